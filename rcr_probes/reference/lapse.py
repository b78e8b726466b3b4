"""What time and death do to a record that nobody touches."""

from __future__ import annotations

import os

from msgspec.structs import replace

from rcr_probes.reference.records import Record, Status

# No approval stands in these: not yet, no more, or not for the request in hand.
NOT_STANDING: frozenset[Status] = frozenset(
    {"pending_approval", "rejected", "cancelled", "expired", "stale"}
)


def lapsed(record: Record, now: float) -> Record | None:
    """What the record has to become, because its executor died or its review is overdue.

    None where it stands as it is. An executor that died may have acted: its operation becomes
    ``partial_failed``, and no token is given out for it. A granted approval does not expire.
    """
    if record.status == "executing" and _dead(record.execution.pid):
        execution = replace(record.execution, status="partial_failed", pid=None)
        return replace(record, status="partial_failed", execution=execution, token_sha256=None)
    if record.status == "pending_approval" and not usable(record, now):
        return replace(record, status="expired")
    return None


def usable(record: Record, now: float) -> bool:
    """An approval that can still be used: pending within its review time, or granted and unused."""
    if record.status == "pending_approval":
        return now <= record.review_by
    return record.status == "approved" and not record.consumed


def standing(record: Record) -> bool:
    """Whether its approval stands, for the request whose digest the record holds."""
    return record.decided_by is not None and record.status not in NOT_STANDING


def _dead(pid: int | None) -> bool:
    """No process has this pid.

    A zombie, a process of another user and a recycled pid count as alive (our choice: to take the
    living for dead would be the worse mistake).
    """
    if pid is None:
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False  # there is one, and it is another user's
    return False
