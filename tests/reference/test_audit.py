"""The audit trail keeps what it holds, and says what it cannot read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import points
from rcr_probes.reference import audit
from rcr_probes.reference.audit import AuditLine

LINE = AuditLine(event="operation.prepared", approval_id="0" * 32, at=1.0)


def test_lines_are_read_in_order(tmp_path: Path) -> None:
    """Each append adds one line at the end, and all are read back."""
    path = str(tmp_path / "audit.jsonl")
    other = AuditLine(event="operation.started", approval_id="1" * 32, at=2.0, way="resume")
    audit.append(path, LINE, None)
    audit.append(path, other, None)
    assert audit.read(path) == audit.Trail((LINE, other), ())


def test_no_file_is_an_empty_trail(tmp_path: Path) -> None:
    """Where nothing was ever appended there is nothing to read, and no damage."""
    assert audit.read(str(tmp_path / "audit.jsonl")) == audit.Trail((), ())


def test_line_cut_short_is_neither_lost_nor_continued(tmp_path: Path) -> None:
    """After a line that was cut short the next one starts anew; the torn one is kept and named."""
    path = tmp_path / "audit.jsonl"
    audit.append(str(path), LINE, None)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:25])
    assert audit.read(str(path)).damage == ("audit.jsonl:2: cut short, no newline at its end",)
    audit.append(str(path), LINE, None)
    assert path.read_bytes() == whole + whole[:25] + b"\n" + whole
    assert audit.read(str(path)) == audit.Trail((LINE, LINE), ("audit.jsonl:2: not an audit line",))


@pytest.mark.parametrize("raw", [b"{}", b"", b"\xff\xfe", b'{"event":"\xff"}', b"[" * 9000])
def test_line_that_is_no_audit_line_is_named(tmp_path: Path, raw: bytes) -> None:
    """A line that holds anything else is reported with its number."""
    path = tmp_path / "audit.jsonl"
    path.write_bytes(raw + b"\n")
    audit.append(str(path), LINE, None)
    assert audit.read(str(path)) == audit.Trail((LINE,), ("audit.jsonl:1: not an audit line",))


def test_point_is_reached_before_the_file_is_opened(tmp_path: Path) -> None:
    """The point gets the path while the file is untouched, so that a fault can be placed there."""
    path = tmp_path / "audit.jsonl"
    seen: list[tuple[str, str | None, bool]] = []
    points.watch(lambda name, at: seen.append((name, at, path.exists())))
    try:
        audit.append(str(path), LINE, "start_audit")
        audit.append(str(path), LINE, None)
    finally:
        points.watch(None)
    assert seen == [("start_audit", str(path), False)]


def test_directory_in_its_place_makes_the_append_raise(tmp_path: Path) -> None:
    """The append itself raises EISDIR, and makes nothing."""
    path = tmp_path / "audit.jsonl"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        audit.append(str(path), LINE, None)
    assert list(path.iterdir()) == []


def test_lines_of_several_processes_do_not_mix(
    tmp_path: Path, children: Callable[..., list[tuple[str, Any]]]
) -> None:
    """Processes that append at once leave whole lines, none lost."""
    path = str(tmp_path / "audit.jsonl")

    def fifty() -> None:
        for _ in range(50):
            audit.append(path, LINE, None)

    children(fifty, fifty, fifty)
    assert audit.read(path) == audit.Trail((LINE,) * 150, ())
