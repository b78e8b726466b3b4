"""Records are replaced whole, and what is not valid is refused and kept."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from rcr_probes.reference import ApprovalError
from rcr_probes.reference.records import (
    NOT_STARTED,
    Record,
    Records,
    Status,
    replace_file,
)

RECORD = Record(
    id="0123456789abcdef" * 2,
    status="approved",
    execution=NOT_STARTED,
    request={"executor": "local-marker", "target": "标记"},
    digest="sha256:" + "a" * 64,
    executor="local-marker",
    requester="user",
    token_sha256="b" * 64,
    consumed=False,
    created_at=1.5,
    review_by=2.5,
    decided_by="admin-1",
    reason="because",
    held=None,
    ruling=None,
)


def written(folder: Path, **changed: object) -> tuple[Records, Path]:
    """A store with RECORD in it; ``changed`` names are set in the file, ``...`` takes one away."""
    records = Records(str(folder))
    records.write(RECORD)
    path = folder / f"{RECORD.id}.json"
    stored = json.loads(path.read_bytes()) | changed
    path.write_text(json.dumps({name: value for name, value in stored.items() if value != ...}))
    return records, path


def refusal(records: Records) -> str:
    with pytest.raises(ApprovalError) as caught:
        records.read(RECORD.id)
    return caught.value.code


def test_record_survives_its_file(tmp_path: Path) -> None:
    """What is written is what is read, for every status."""
    records = Records(str(tmp_path))
    for status in get_args(Status):
        record = replace(RECORD, status=status)
        assert records.write(record) == records.read(RECORD.id) == record


@pytest.mark.parametrize(
    "data", [b"", b"not json", b"{}", b"[]", b'{"id":"\xff"}', b"[" * 9000, b"null", b"\x00" * 20]
)
def test_file_that_holds_no_record_is_corrupt(tmp_path: Path, data: bytes) -> None:
    """It is APPROVAL_STORE_CORRUPT, names the file, and the file keeps its bytes."""
    records = Records(str(tmp_path))
    path = tmp_path / f"{RECORD.id}.json"
    path.write_bytes(data)
    with pytest.raises(ApprovalError, match=path.name) as caught:
        records.read(RECORD.id)
    assert caught.value.code == "APPROVAL_STORE_CORRUPT"
    assert path.read_bytes() == data


def test_record_cut_short_is_corrupt(tmp_path: Path) -> None:
    """No prefix of a record's file is taken for a record."""
    records, path = written(tmp_path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert refusal(records) == "APPROVAL_STORE_CORRUPT"


@pytest.mark.parametrize("name", Record.__struct_fields__)
def test_record_lacking_a_field_is_corrupt(tmp_path: Path, name: str) -> None:
    """No field is made up where it is missing."""
    assert refusal(written(tmp_path, **{name: ...})[0]) == "APPROVAL_STORE_CORRUPT"


EXECUTION: dict[str, object] = {
    "status": "not_started",
    "pid": None,
    "evidence": [],
    "error_code": None,
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "done"),
        ("id", "f" * 32),
        ("digest", "sha256:" + "A" * 64),
        ("requester", "admin"),
        ("token_sha256", "token"),
        ("consumed", 1),
        ("created_at", "now"),
        ("request", []),
        ("extra", 1),
        ("execution", {}),
        ("execution", {**EXECUTION, "status": "executing"}),
        ("execution", {**EXECUTION, "pid": 5}),
        ("execution", {**EXECUTION, "status": "executing", "pid": 0}),
        ("execution", {**EXECUTION, "status": "executing", "pid": -1}),
        ("execution", {**EXECUTION, "status": "executing", "pid": 2**31}),
        ("execution", {**EXECUTION, "evidence": [1]}),
    ],
)
def test_record_with_an_impossible_value_is_corrupt(
    tmp_path: Path, name: str, value: object
) -> None:
    """A value that this store cannot have written is not worked with; a pid least of all."""
    assert refusal(written(tmp_path, **{name: value})[0]) == "APPROVAL_STORE_CORRUPT"


@pytest.mark.parametrize("approval_id", ["", "../0123", "0" * 31, "0" * 33, "G" * 32, "A" * 32])
def test_what_is_no_id_leads_nowhere(tmp_path: Path, approval_id: str) -> None:
    """An id that is not one of the store's own never becomes a path."""
    with pytest.raises(ApprovalError) as caught:
        Records(str(tmp_path)).read(approval_id)
    assert caught.value.code == "APPROVAL_NOT_FOUND"


def test_damaged_record_is_not_left_out_of_the_list(tmp_path: Path) -> None:
    """All records are read, or it is said that one cannot be; other files are no records."""
    records, path = written(tmp_path)
    (tmp_path / "prepare.lock").touch()
    (tmp_path / f"{RECORD.id}.json.tmp").write_bytes(b"half a rec")
    (tmp_path / "notes.json").write_text("{}")
    assert records.all() == (RECORD,)
    path.write_bytes(b"{")
    with pytest.raises(ApprovalError, match="APPROVAL_STORE_CORRUPT"):
        records.all()


def test_file_is_old_or_new_and_never_between(
    tmp_path: Path, children: Callable[..., list[tuple[str, Any]]]
) -> None:
    """A process that reads while another replaces sees one whole content or the other."""
    path = tmp_path / "file"
    contents = [b"a" * 5000, b"b" * 7000]
    path.write_bytes(contents[0])

    def write() -> None:
        for turn in range(300):
            replace_file(str(path), contents[turn % 2])

    def read() -> bool:
        return all(path.read_bytes() in contents for _ in range(300))

    assert children(write, read, read) == [("exit", None), ("exit", True), ("exit", True)]


def test_replacing_that_fails_leaves_what_stood_there(tmp_path: Path) -> None:
    """Where the rename cannot be done, nothing is lost and no temporary file stays."""
    target = tmp_path / "file"
    target.mkdir()
    (target / "kept").touch()
    with pytest.raises(IsADirectoryError):
        replace_file(str(target), b"new")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "kept"]


def test_killed_writer_leaves_a_readable_record(
    tmp_path: Path, child: Callable[[Callable[[], object]], tuple[str, Any]]
) -> None:
    """A writer that is killed while it replaces again and again leaves one of its records."""
    records = Records(str(tmp_path))
    records.write(RECORD)

    def write() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        while True:
            records.write(replace(RECORD, consumed=True))

    assert child(write) == ("SIGKILL", None)
    assert records.read(RECORD.id).status == "approved"
    assert records.write(RECORD) == records.read(RECORD.id)
