"""The frozen nouns: what is planned, what was measured, and what was derived from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Protocol, TypeVar, get_args

Json = Any  # a JSON value; in facts: strings, integers, booleans, null, and lists and maps of them

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
POLICIES = ("again", "never")  # and, for each runtime, the ways that it documents
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
STOPPED = "verification_required"  # the state that recovery leaves where it stops for a person
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The unit of everything: one operation under one fault and one recovery.

    ``None`` stands for "not published", and occurs in imported rows alone.
    """

    point: str
    fault: str
    dedupe: str = NONE
    digest: str = "same"
    policy: str | None = "again"
    runtime: str = REFERENCE
    variant: str | None = BASELINE
    witness: str | None = "exact"
    recovery_fault: str | None = NONE
    recoverers: int | None = 1
    seed: int | None = 0
    repeat: int | None = 0

    @property
    def kind(self) -> str:
        """The kind of its fault."""
        return kind_of(self.fault)

    @property
    def id(self) -> str:
        """point/fault/dedupe/digest/policy, then ``name=value`` for what is not the default."""
        parts = [getattr(self, name) or "unpublished" for name in MATCHED]
        parts += [
            f"{f.name}={value}"
            for f in fields(self)
            if f.name not in MATCHED and (value := getattr(self, f.name)) != f.default
            if value is not None
        ]
        return "/".join(parts)


# Rows of two evidence folders are the same cell when these agree (and what else both have).
MATCHED = ("point", "fault", "dedupe", "digest", "policy")


PLAN_NAME = r"\w[\w. -]*"  # it names the evidence folder, so no path hides in it


@dataclass(frozen=True, slots=True)
class Plan:
    """A named, ordered, finite, nonempty list of distinct cells."""

    name: str
    cells: Sequence[Cell]

    def __post_init__(self) -> None:
        if isinstance(self.cells, list):  # as a reader of JSON makes them
            object.__setattr__(self, "cells", tuple(self.cells))


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a runtime has stored of the operation. Reading it writes nothing.

    Attributes:
        status: the runtime's own word; ``missing`` where there is no record.
        execution: its word for the execution block, where it has one.
        evidence: what the executor returned, as far as the record still holds it.
        approved_digest: the stored digest of the request whose approval stands; None where the
            runtime stores none, or no approval stands.
        current_digest: the same digest, computed from the request in hand now.
    """

    status: str
    execution: str | None = None
    evidence: tuple[Mapping[str, Json], ...] | None = ()
    approved_digest: str | None = None
    current_digest: str | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect that exists, named E1, E2 … in order of arrival; None is "not published".

    Where several were approved, ``kind`` says which of them it is, and each may be there once.
    """

    effect_id: str
    operation_key: str | None = None
    kind: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What an executor that declares ``lookup`` says of a key, when it is asked.

    Attributes:
        effects: how many effects it knows under the key; None where it does not know.
        in_flight: whether something that was sent may still act under the key.
    """

    effects: int | None
    in_flight: bool


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, in the order in which the cell's folder received it."""

    seq: int
    phase: str
    lane: Lane
    value: Mapping[str, Json]


class _Noted(Protocol):
    """An event, or the line of one that has no number yet."""

    @property
    def lane(self) -> Lane: ...
    @property
    def value(self) -> Mapping[str, Json]: ...


Noted = TypeVar("Noted", bound=_Noted)


def effects_left(events: Iterable[Noted]) -> list[Noted]:
    """Of the effects that events tell, those that are there: a lost power may take the last ones.

    What it left of them, its own event says.
    """
    there: list[Noted] = []
    for event in events:
        if event.lane == "effect":
            there.append(event)
        elif event.lane == "fault" and isinstance(number := event.value.get("effects"), int):
            del there[max(number, 0) :]
    return there


@dataclass(frozen=True, slots=True)
class Observation:
    """A cut in the cell's events at quiescence, made by the parent process.

    Attributes:
        after: the verb of the phase before it: ``fault`` (the fault still stands) or ``recover``.
        events: how many events had happened: the cut.
        recorded: what the runtime has stored.
        effects: every effect that exists.
        calls: how often the executor was entered.
        error: what the phase's caller saw: ``none``, an error code, an errno name, or the signal
            that ended the process; None where no phase ran, or where it is not published.
        ended: how the phase's process ended: ``exit``, a signal's name, ``crash`` (it ended without
            a return) or ``deadline`` (the harness ended it); None where no phase ran.
        settled: no process of the attempt had to be ended, and its fence could be acquired.
        standing: the fault is seen from outside, after the process: what it placed stands, or the
            process that it killed is gone where that is another than the phase's own. None where
            it leaves nothing to see.
        damage: what could not be read, each with its place; empty when all was read.
    """

    after: Literal["fault", "recover"]
    events: int
    recorded: Recorded
    effects: tuple[Effect, ...] | None
    calls: int | None
    error: str | None = None
    ended: str | None = None
    settled: bool | None = None
    standing: bool | None = None
    damage: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Approved:
    """What the approval allows: so many effects of this key on this target."""

    operation_key: str
    target: str
    effects: int = 1


@dataclass(frozen=True, slots=True)
class Forced:
    """The measured truth: one call was forced in a copy of the cell, and this stood there after."""

    effects: tuple[Effect, ...]
    error: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """All that one cell measured; everything else is derived from it, and can be again.

    Attributes:
        cell: what was planned.
        source: ``measured``, or the publication and the row that was transcribed.
        approved: what the operation was allowed to do.
        says: the runtime's states, each as done, not_done, due or open, from its documentation.
        events: in order.
        observations: after the fault phase, and after recovery; a publication may lack one.
        forced: the measured truth; None where it was not published.
        published_verdict: the publication's own word for the row; None for measured rows.
    """

    cell: Cell
    source: str
    approved: Approved
    says: Mapping[str, Says]
    events: tuple[Event, ...]
    observations: tuple[Observation, ...]
    forced: Forced | None
    published_verdict: str | None = None

    def after(self, verb: Literal["fault", "recover"]) -> Observation | None:
        """The observation after that phase; None where it was not published."""
        return next((o for o in self.observations if o.after == verb), None)

    @property
    def published(self) -> bool:
        """Whether others measured and published it, and nothing can be derived from it here."""
        return self.source != MEASURED


@dataclass(frozen=True, slots=True)
class Facts:
    """What a policy could know at the first observation."""

    identity: Identity
    effect: EffectFact
    capability: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether another call was allowed, and why; ``way`` says how to reconcile."""

    eligibility: Eligibility
    way: Way | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """What another call would have done, as measured by forcing one."""

    call_needed: bool
    call_harm: Harm


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the cell shows, and the stable codes that say why."""

    verdict: VerdictName
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """All that is derived from a measurement. Published rows are not judged: all None."""

    fired: bool | None = None
    facts: Facts | None = None
    decision: Decision | None = None
    truth: Truth | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What differs from run to run and is no fact: processes and times.

    Attributes:
        start: ``fork`` or ``spawn``; None in published rows.
        parent: pid of the process that made the phases and wrote the observations.
        pids: verb of each phase → its pid.
        seconds: verb of each phase → wall time, seconds on the monotonic clock.
    """

    start: str | None = None
    parent: int | None = None
    pids: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capture:
    """One cell, measured, judged, and sealed: the digest is over measurement and judgement."""

    measurement: Measurement
    judgement: Judgement
    circumstances: Circumstances
    facts_sha256: str

    @property
    def cell(self) -> Cell:
        return self.measurement.cell


def canonical_json(value: Json) -> bytes:
    """The one byte form of a JSON value without floats and with ASCII keys (RFC 8785 on these).

    A noun is written as the map of its fields, wherever it stands in the value.
    """
    import json  # a decision is made and said without

    return json.dumps(
        value,
        ensure_ascii=False,
        allow_nan=False,
        sort_keys=True,
        separators=(",", ":"),
        default=as_map,
    ).encode()


def as_map(noun: object) -> dict[str, Json]:
    """A noun as a map of its fields; what they hold is left as it is.

    Raises:
        TypeError: it is none.
    """
    kind: Any = type(noun)
    return {name: getattr(noun, name) for name in _names(kind)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is no noun and no JSON")
    return tuple(kind.__dataclass_fields__)
