"""The words: points, faults, executors and all else that a cell is named by, and what is judged.

Standard library alone, no I/O. What each means stands in docs/design.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

# The life of an operation, in the order in which its points occur (docs/design.md §3).
POINTS = (
    "approval_audit",
    "start_audit",
    "before_action",
    "after_action",
    "after_result",
    "completion_audit",
    "response",
)
AUDIT_POINTS = ("approval_audit", "start_audit", "completion_audit")
# Inside an executor: dedupe → the points that its executor comes to, and no runtime does.
INNER_POINTS: Mapping[str, tuple[str, ...]] = {
    "claim_first": ("after_claim",),
    "late_key": ("before_key",),
    "pair": ("between_effects",),
    "pair_operation_key": ("between_effects",),
    "pair_effect_key": ("between_effects",),
}
EXECUTOR_POINTS = tuple(dict.fromkeys(p for points in INNER_POINTS.values() for p in points))
NONE = "none"
BASELINE = "baseline"  # the variant of a runtime that has no other
MEASURED = "measured"  # the source of a row that this harness measured

# Each kind of fault, and what its strike must show as proof besides its event: the error that
# leaves the point, the signal that ends the process, or the error that the caller sees; NONE where
# there is no such error. What the caller sees of a refused result is for its runtime to say.
FAULTS: Mapping[str, str] = {
    "exception": "INJECTED_FAULT",
    "kill": "SIGKILL",
    "audit_is_directory": "EISDIR",
    "result_refused": NONE,
    "kill_host": "SIGKILL",
    "io_error": "EIO",
    "disk_full": "ENOSPC",
    "symlink_loop": "ELOOP",
    "not_a_directory": "ENOTDIR",
    "file_too_large": "EFBIG",
    "lost_append": NONE,
    "torn_append": "SIGKILL",
    "hang": "HUNG",
    "response_lost": "RESPONSE_LOST",
    "error_after_call": "EIO",
    "power_loss": "SIGKILL",
    "power_loss_local": "SIGKILL",
}
# Where each kind is possible at all; a runtime may support it at fewer points.
FAULT_POINTS: Mapping[str, tuple[str, ...]] = {
    "exception": (*POINTS, *EXECUTOR_POINTS),
    "kill": (*POINTS, *EXECUTOR_POINTS),
    "audit_is_directory": AUDIT_POINTS,
    "result_refused": ("start_audit", "after_action"),
    "kill_host": ("before_action", "after_action", "after_result", "response"),
    "io_error": (),
    "disk_full": AUDIT_POINTS,
    "symlink_loop": AUDIT_POINTS,
    "not_a_directory": AUDIT_POINTS,
    "file_too_large": AUDIT_POINTS,
    "lost_append": AUDIT_POINTS,
    "torn_append": AUDIT_POINTS,
    "hang": (*POINTS, *EXECUTOR_POINTS),
    "response_lost": ("response",),
    "error_after_call": (),
    "power_loss": (*POINTS, *EXECUTOR_POINTS),
    "power_loss_local": (*POINTS, *EXECUTOR_POINTS),
}
# Planned as power_loss#N: with state N of those that it may leave. Of a local executor the effects
# are on the same disk.
POWER_LOSS, POWER_LOSS_LOCAL = "power_loss", "power_loss_local"
POWER_LOSSES = (POWER_LOSS, POWER_LOSS_LOCAL)
# What strikes at a point that is a system call (CALL@FILE#N, strace.py): strace, instead of that
# call; or a tracer of ours (tracer.py), once the call is done.
CALL_FAULTS = ("kill", "io_error", "disk_full", "error_after_call")
TRACED_FAULTS = ("torn_append", "error_after_call")
# Another file, or none, stands at the audit's path, and there it stays until it is lifted.
AUDIT_FAULTS = (
    "audit_is_directory", "disk_full", "symlink_loop", "not_a_directory", "file_too_large",
    "lost_append",
)  # fmt: skip
# They leave nothing to see outside the process, and nothing that must be lifted.
PROCESS_FAULTS = (
    "exception", "kill", "kill_host", "hang", "response_lost", "error_after_call", *POWER_LOSSES,
)  # fmt: skip
# By which a process ends.
ENDING_FAULTS = ("kill", "kill_host", "torn_append", "hang", *POWER_LOSSES)
HANG = "hang"  # the fault, and how a phase ended that was killed once it had provably hung

# What a receiver does to a call → the side of its effect; the proof is written before the strike.
RECEIVER_FAULTS: Mapping[str, str] = {
    "error_before_effect": "before_action",
    "response_lost": "after_action",
    "error_after_effect": "after_action",
    "timeout": "after_action",
}


def at_point(recovery_fault: str | None) -> tuple[str, str] | None:
    """The strike on recovery and its point, of ``kill@POINT`` and its like; None of all others."""
    kind, _, point = (recovery_fault or "").partition("@")
    return (kind, point) if kind in RECOVERY_STRIKES and point in _RECOVERED else None


def recovery_phases(policy: str | None, recovery_fault: str | None) -> tuple[str, ...]:
    """The phases of a recovery, in the order in which they begin; ``decide`` is a person's.

    A person decides only where recovery stopped; everything else comes about in every cell.
    """
    if policy == "never":
        return ()
    if recovery_fault == "person_present":
        return ("recover", "decide", "recover_2")
    if recovery_fault in (TWICE, "person_absent") or at_point(recovery_fault):
        return ("recover", "recover_2")
    return ("recover",)


def kind_of(fault: str) -> str:
    """The kind of a fault: all that it is called, but of a power loss without its state."""
    return fault.partition("#")[0] if state_of(fault) is not None else fault


def state_of(fault: str) -> int | None:
    """Which state a power loss leaves, from 0; None of other faults, and where none is said."""
    kind, _, number = fault.partition("#")
    if kind not in POWER_LOSSES or not (number.isascii() and number.isdigit() and len(number) <= 5):
        return None
    return int(number) if str(int(number)) == number else None


def by_receiver(point: str, fault: str) -> bool:
    """Whether it is the receiver that strikes so: a fault of this name may strike elsewhere too."""
    return RECEIVER_FAULTS.get(fault) == point


# What an executor declares that another call with the same operation key can rely on.
CAPABILITIES: Mapping[str, tuple[str, ...]] = {
    "none": (),
    "operation_key": ("lookup", "replay"),
    "claim_first": ("replay",),
    "late_key": ("replay",),
    "receiver_key": ("lookup", "replay"),
    "expired_key": ("replay",),
    "pair": (),
    "pair_operation_key": ("lookup", "replay"),
    "pair_effect_key": ("lookup", "replay"),
}
# What it truly has, where that is less: a crash inside it, or time, breaks what it declares.
TRULY: Mapping[str, tuple[str, ...]] = {
    **CAPABILITIES,
    "claim_first": (),
    "late_key": (),
    "expired_key": (),
    "pair_operation_key": (),
}
DEDUPES = tuple(CAPABILITIES)
RECEIVER_KEY = "receiver_key"  # a remote receiver honours the key that a request carries
RECEIVED = (RECEIVER_KEY, "expired_key")  # the action is a request to a receiver
PAIRS = ("pair", "pair_operation_key", "pair_effect_key")  # the action is two effects
DIGESTS = ("same", "changed", "reordered", "volatile", "coarse")
AGAIN = "again"  # the caller submits once more
POLICIES = (AGAIN, "never")  # and, for each runtime, the ways that it documents
EVIDENCE_GATED = "evidence_gated"  # the reference's recovery by evidence
# What recovery by evidence may read about the effect: all that there is; what there was before any
# attempt; nothing; something that was changed after it was registered; what belongs to another.
WITNESSES = ("exact", "lagging", "absent", "damaged", "foreign")
# What happens around recovery, besides a strike on it (``kill@POINT``, ``exception@POINT``) and one
# recoverer that is held at a point until the other has finished (``held@POINT``).
PERSONS = ("person_absent", "person_present")  # after a stop
ORIGINALS = ("original_alive", "late_original")  # it acts once recovery has finished
RECORD_DAMAGE = ("empty_record", "contradiction")  # it says no more for whom an approval stands
DAMAGE = ("torn_line", "glued_records", "nulls", "raw_newline", "stored_failure", *RECORD_DAMAGE)
STALE_LOCKS = ("lock_dead", "lock_recycled", "lock_zombie", "lock_live")
TWICE = "twice"
# What an adapter says of a record that tells nothing; the second also stands for an audit line.
NO_RECORD = MISSING, UNREADABLE = "missing", "unreadable"
STOPPED: Final = "verification_required"  # where recovery stops for a person, it leaves this state
DECIDED = "operation.decided"  # the audit's word of a person's decision
RECOVERY_FAULTS = (NONE, TWICE, *PERSONS, *ORIGINALS, *DAMAGE, *STALE_LOCKS)
HELD = "held"
RECOVERY_STRIKES = ("kill", "exception", HELD)  # each at a point
_RECOVERED = (*POINTS[1:], *EXECUTOR_POINTS)  # the points that a recovery may come to
ALIVE = "alive"  # how the phase of an original stood that was held when it was observed
FENCED = "fenced"  # the variant whose calls carry a fencing token, which the executor enforces
STARTS = ("fork", "spawn")  # how a phase's process is made: a circumstance
REFERENCE = "rcr_probes.reference:approval"
WORKER = "worker"  # the runtime that `rcr probe` measures: somebody's command, which stays theirs

# What a state says of the effect. ``due``: open, and the runtime will act without being asked.
Says = Literal["done", "not_done", "open", "due"]
Identity = Literal["valid", "changed", "unknown"]
EffectFact = Literal["absent", "present", "partial", "many", "unknown"]
Eligibility = Literal["reexecute", "reconcile", "stop"]
Way = Literal["evidence", "lookup", "replay"]
Harm = Literal["none", "duplicate", "wrong", "useless"]
# What a power loss did to a file: beside what stood there when the power went.
Loss = Literal["gone", "back", "empty", "shorter", "cut", "older", "older_cut"]
VerdictName = Literal[
    "unknown",
    "wrong_effect",
    "duplicate_effect",
    "lost_effect",
    "blocked",
    "state_effect_split",
    "held",
    "deduplicated",
    "protected",
    "consistent",
    "no_effect",
]
Lane = Literal["state", "audit", "point", "fault", "call", "ask", "effect", "return"]

SAYS: tuple[Says, ...] = get_args(Says)
IDENTITIES: tuple[Identity, ...] = get_args(Identity)
EFFECT_FACTS: tuple[EffectFact, ...] = get_args(EffectFact)
VERDICTS: tuple[VerdictName, ...] = get_args(VerdictName)
LOSSES: tuple[Loss, ...] = get_args(Loss)
