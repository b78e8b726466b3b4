"""What may have become of record and audit when recovery finds them: real bytes, put wrong.

Each kind is something that other software, a full disk or a restored copy leaves behind. The
harness has it placed between the fault and recovery; the service never calls this.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from rcr_probes import files
from rcr_probes.reference.records import NOT_STARTED, Records


def damage(records: Records, audit_path: str, approval_id: str, kind: str) -> bool:
    """Damage the record of an approval, or the audit; say whether it was the audit.

    Args:
        records: of the store.
        audit_path: its audit file; it holds two lines or more.
        approval_id: whose record.
        kind: one of ``rcr_probes.vocabulary.DAMAGE``.

    Raises:
        KeyError: there is no such kind.
        ValueError: the audit holds too little to be damaged so.
        OSError: it could not be placed.
        ApprovalError: the record that is to be changed cannot be read.
    """
    if kind in _OF_AUDIT:
        _write(audit_path, _OF_AUDIT[kind](files.read(audit_path)))
        return True
    if kind == "empty_record":
        _write(records.path(approval_id), b"")
        return False
    record = records.read(approval_id)
    changed = {
        # A failure that is on record, whatever became of the action.
        "stored_failure": replace(
            record,
            status="failed",
            consumed=True,
            token_sha256=None,
            execution=replace(record.execution, status="failed", pid=None, error_code="EISDIR"),
        ),
        # An older copy, from before the operation was begun; the audit tells that it was.
        "contradiction": replace(
            record, status="approved", consumed=False, execution=NOT_STARTED, held=None
        ),
    }[kind]
    _write(records.path(approval_id), msgspec.json.encode(changed))
    return False


def _torn(data: bytes) -> bytes:
    """The last line ends after its first field."""
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    return data[: data.index(b",", start) + 1]


def _glued(data: bytes) -> bytes:
    """The last two lines are one."""
    head, last, _ = data.rsplit(b"\n", 2)
    return head + last + b"\n"


def _nulled(data: bytes) -> bytes:
    """The first line is NULs, and valid lines follow."""
    end = data.index(b"\n")
    return bytes(end) + data[end:]


def _split(data: bytes) -> bytes:
    """A newline stands inside the last line, behind its first field."""
    torn = _torn(data)
    return torn + b"\n" + data[len(torn) :]


_OF_AUDIT = {
    "torn_line": _torn,
    "glued_records": _glued,
    "nulls": _nulled,
    "raw_newline": _split,
}


def _write(path: str, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
