"""The audit trail: JSON Lines, only ever appended to, one write a line."""

from __future__ import annotations

import errno
import fcntl
import os

import msgspec

from rcr_probes import points
from rcr_probes.reference.records import sync_folder


class AuditLine(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """One step of one operation.

    Attributes:
        event: ``operation.`` and what happened: prepared, approved, rejected, cancelled, expired,
            started, succeeded, failed, stale, partial_failed; and of recovery by evidence:
            reconciled, verification_required, decided.
        approval_id: whose.
        at: seconds since the epoch.
        way: of ``started``: ``execute``, ``resume``, ``reexecute`` or ``replay``.
        code: of ``failed``: the code, errno name or class name of the error.
        reasons: of recovery by evidence: what was known, as stable codes.
        by, on, until: of ``decided``: who, on what evidence, up to when (seconds since the epoch).
    """

    event: str
    approval_id: str
    at: float
    way: str | None = None
    code: str | None = None
    reasons: tuple[str, ...] = ()
    by: str | None = None
    on: str | None = None
    until: float | None = None


_line = msgspec.json.Decoder(AuditLine)


def append(path: str, line: AuditLine, point: str | None, durable: bool = False) -> None:
    """Append one line. The step that it tells of is already persisted in the record.

    A line before it that was cut short stays as it is: the new one begins on a line of its own.

    Args:
        path: the audit file; made where there is none.
        line: what happened.
        point: the point that is reached just before the file is opened; None for the steps whose
            audit is not under probe.
        durable: whether the line is flushed to the device, and the file's name with its first one.

    Raises:
        OSError: the line could not be appended; what stands in the file is left there.
        Exception: whatever the fault at ``point`` raises.
    """
    if point is not None:
        points.reach(point, path)
    # Opened for reading too: whether the last line is whole can only be seen in the file.
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # a line that is just being written is not one cut short
        size = os.fstat(fd).st_size
        torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + msgspec.json.encode(line) + b"\n"
        if os.write(fd, data) != len(data):
            raise OSError(errno.EIO, "an audit line was written in part", path)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    if durable and size == 0:
        sync_folder(os.path.dirname(path))


class Trail(msgspec.Struct, frozen=True):
    """What the audit file holds.

    Attributes:
        lines: every line that could be read, in order.
        damage: what could not be, each as ``name:line: what is wrong``.
    """

    lines: tuple[AuditLine, ...]
    damage: tuple[str, ...]


def read(path: str) -> Trail:
    """Read the audit file whole; a line that cannot be read is reported, never skipped in silence.

    No file is an empty trail.
    """
    try:
        with open(path, "rb") as file:
            *whole, tail = file.read().split(b"\n")
    except FileNotFoundError:
        return Trail((), ())
    name = os.path.basename(path)
    lines: list[AuditLine] = []
    damage: list[str] = []
    for number, raw in enumerate(whole, 1):
        try:
            lines.append(_line.decode(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            damage.append(f"{name}:{number}: not an audit line")
    if tail:
        damage.append(f"{name}:{len(whole) + 1}: cut short, no newline at its end")
    return Trail(tuple(lines), tuple(damage))
