"""Ledgers lose nothing: what cannot be read is reported with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes import ledger
from rcr_probes.ledger import EffectLine


def line(number: int) -> EffectLine:
    return EffectLine(f"operation-{number}", "local-marker", f"marker-{number}")


def test_what_was_appended_is_read_in_order(tmp_path: Path) -> None:
    """Three lines in, the same three lines out, and no damage."""
    path = str(tmp_path / "effects.jsonl")
    for number in range(3):
        ledger.append(path, line(number))
    read = ledger.read(path, EffectLine)
    assert read.lines == (line(0), line(1), line(2))
    assert read.damage == ()


def test_a_ledger_that_was_never_written_is_empty(tmp_path: Path) -> None:
    """No file: nothing was appended, and nothing is wrong."""
    assert ledger.read(str(tmp_path / "none.jsonl"), EffectLine) == ledger.Ledger((), ())


def test_a_ledger_that_cannot_be_opened_is_damaged_and_not_empty(tmp_path: Path) -> None:
    """A directory in its place is never read as no effects."""
    (tmp_path / "effects.jsonl").mkdir()
    read = ledger.read(str(tmp_path / "effects.jsonl"), EffectLine)
    assert read.damage == ("effects.jsonl: cannot be read (EISDIR)",)


@pytest.mark.parametrize(
    ("broken", "damage"),
    [
        (b'{"operation_key": "o', "effects.jsonl:2: torn, no newline at its end"),
        (b"\n", "effects.jsonl:2: not a ledger line"),
        (b"not json\n", "effects.jsonl:2: not a ledger line"),
        (b"\x00\x00\x00\n", "effects.jsonl:2: not a ledger line"),
        (b'{"operation_key": "a"}\n', "effects.jsonl:2: not a ledger line"),
        (b'{"operation_key":1,"kind":"k","target":"t"}\n', "effects.jsonl:2: not a ledger line"),
        (b'\xff{"operation_key":"a"}\n', "effects.jsonl:2: not a ledger line"),
    ],
)
def test_damage_is_reported_and_the_whole_lines_are_kept(
    tmp_path: Path, broken: bytes, damage: str
) -> None:
    """A torn tail, a blank line, bytes that are no text: each with its line number."""
    path = tmp_path / "effects.jsonl"
    ledger.append(str(path), line(1))
    path.write_bytes(path.read_bytes() + broken)
    read = ledger.read(str(path), EffectLine)
    assert read.lines == (line(1),)
    assert read.damage == (damage,)


@given(cut=st.data(), count=st.integers(1, 5))
def test_a_ledger_cut_anywhere_is_never_silently_shorter(
    tmp_path_factory: pytest.TempPathFactory, cut: st.DataObject, count: int
) -> None:
    """Wherever the bytes end, each line is read whole, or the cut is reported."""
    path = tmp_path_factory.mktemp("cut") / "effects.jsonl"
    for number in range(count):
        ledger.append(str(path), line(number))
    data = path.read_bytes()
    at = cut.draw(st.integers(0, len(data)))
    path.write_bytes(data[:at])
    read = ledger.read(str(path), EffectLine)
    assert read.lines == tuple(line(n) for n in range(data[:at].count(b"\n")))
    assert bool(read.damage) is not (at == 0 or data[:at].endswith(b"\n"))


def test_processes_that_append_at_once_lose_no_line(tmp_path: Path) -> None:
    """Each line is one write to a file opened for appending."""
    path = str(tmp_path / "effects.jsonl")
    children = []
    for child in range(4):
        pid = os.fork()
        if pid == 0:
            for number in range(50):
                ledger.append(path, line(100 * child + number))
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    read = ledger.read(path, EffectLine)
    assert read.damage == ()
    assert len(set(read.lines)) == 200
