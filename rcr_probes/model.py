"""The frozen nouns: what is planned, what was measured, and what was derived from it.

And what they are as JSON, how a state is shown, and which of their effects are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Protocol, TypeVar

from rcr_probes.vocabulary import (
    AGAIN,
    BASELINE,
    MEASURED,
    NONE,
    REFERENCE,
    EffectFact,
    Eligibility,
    Harm,
    Identity,
    Lane,
    Says,
    VerdictName,
    Way,
    kind_of,
)

Json = Any  # a JSON value; in facts: strings, integers, booleans, null, and lists and maps of them
DEEPEST = 100  # lists and maps within each other: who tells of them calls itself for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The unit of everything: one operation under one fault and one recovery.

    ``None`` stands for "not published", and occurs in imported rows alone.
    """

    point: str
    fault: str
    dedupe: str = NONE
    digest: str = "same"
    policy: str | None = AGAIN
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
# Of these, those of the article's P3 without dedupe, whose events are the causal chain
# (docs/design.md §3).
P3 = ("completion_audit", "audit_is_directory", NONE, "same", "resume")


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


def shown(seen: Recorded) -> Mapping[str, Json]:
    """A recorded state as the value of a state event."""
    evidence = [dict(one) for one in seen.evidence or ()]
    return {"status": seen.status, "execution": seen.execution, "evidence": evidence}


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
            a return), ``deadline`` (the harness ended it) or ``hang`` (it was ended for hanging);
            ``alive`` where the original is held; None where no phase ran.
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

    @property
    def called_again(self) -> bool:
        """Whether the executor was called between the two observations; it takes both."""
        first, last = self.observations
        return (last.calls or 0) > (first.calls or 0)


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


def too_deep(value: Json) -> bool:
    """Whether lists and maps are within each other more than ``DEEPEST`` times."""
    layer = [value]
    for _ in range(DEEPEST):
        layer = [
            inner
            for outer in layer
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, list | tuple | dict)
        ]
    return bool(layer)


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
