"""What was admissible at a cutoff, and what it allowed to say then (docs/design.md §6).

Pure, standard library alone. An envelope is a JSON map ``{id, owner, available_at, kind, body}``,
one snapshot of an approval or of the effects. A naive reader stands beside the careful one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rcr_probes.model import Json
from rcr_probes.witness import (
    EFFECTS,
    Envelope,
    Reason,
    Timeline,
    compact,
    digest,
    latest,
    listed,
    refusal,
    time_of,
)

APPROVAL = "approval-snapshot"  # body: status, and what else the record says of itself

Observed = Literal["yes", "not_observed", "unknown"]


@dataclass(frozen=True, slots=True)
class Rejected:
    """An envelope that does not count, and the first check that it fails."""

    id: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Reading:
    """What a timeline allows to say at a cutoff.

    Attributes:
        approval_status: the runtime's own word; None where no snapshot says it.
        effect_count: effects in the latest snapshot; None where none can be read.
        effect_observed: ``not_observed`` is said of a snapshot that was read and is empty. It is
            not yet ``absent``: an attempt that can still act may add to it (docs/design.md §6).
        duplicate_observed: two effects have one operation key, and are of one kind; None where no
            snapshot can be read, or it does not say whose the effects are.
        accepted: ids, by time and then by id.
        rejected: in the same order.
    """

    approval_status: str | None
    effect_count: int | None
    effect_observed: Observed
    duplicate_observed: bool | None
    accepted: tuple[str, ...]
    rejected: tuple[Rejected, ...]


def read(timeline: Timeline, at: int) -> Reading:
    """What was admissible at a cutoff, and what it says.

    Of each kind the latest admissible snapshot is read: each holds all of its time, so they are
    never added up. Two of one kind and time whose bodies differ say nothing. What an approval says
    of effects is not read: nobody proves an effect by a word of their own.
    """
    accepted: list[Envelope] = []
    rejected: dict[Rejected, None] = {}  # the same envelope may be given twice
    for envelope in in_order(timeline):
        reason = refusal(timeline, envelope, at)
        if reason is None:
            accepted.append(envelope)
        else:
            rejected[Rejected(envelope["id"], reason)] = None
    return _reading(latest(accepted, APPROVAL), effects(accepted), accepted, rejected)


def naive(timeline: Timeline) -> Reading:
    """What a reader says who ignores owner, cutoff and manifest.

    It believes the latest snapshot of each kind, the last one given where several are of one time,
    and takes what is missing or cannot be read for an empty one.
    """
    approval, existing = (_last(timeline.envelopes, kind) for kind in (APPROVAL, EFFECTS))
    return _reading(approval, listed(existing) or (), in_order(timeline), ())


def in_order(timeline: Timeline) -> list[Envelope]:
    """The envelopes by time and then by id, whatever the order in which they are given."""
    return sorted(timeline.envelopes, key=_order)


def cutoffs(timeline: Timeline) -> tuple[int, ...]:
    """Every time at which something of the owner became available, in order."""
    own = (time_of(e) for e in timeline.envelopes if e["owner"] == timeline.owner)
    return tuple(sorted({time for time in own if time is not None}))


def effects(admissible: Iterable[Envelope]) -> Sequence[Mapping[str, Json]] | None:
    """The effects in the latest of these snapshots; None where none can be read."""
    return listed(latest(admissible, EFFECTS))


def _reading(
    approval: Json,
    existing: Sequence[Mapping[str, Json]] | None,
    accepted: Iterable[Envelope],
    rejected: Iterable[Rejected],
) -> Reading:
    status = approval.get("status") if isinstance(approval, Mapping) else None
    observed: Observed = "unknown"
    if existing is not None:
        observed = "yes" if existing else "not_observed"
    return Reading(
        approval_status=status if isinstance(status, str) else None,
        effect_count=None if existing is None else len(existing),
        effect_observed=observed,
        duplicate_observed=None if existing is None else _duplicate(existing),
        accepted=tuple(dict.fromkeys(envelope["id"] for envelope in accepted)),
        rejected=tuple(rejected),
    )


def _duplicate(existing: Sequence[Mapping[str, Json]]) -> bool | None:
    """Where several were approved, their kinds differ; without keys nobody can say."""
    whose = [(e.get("operation_key"), e.get("kind")) for e in existing]
    attributed = [compact(one) for one in whose if one[0] is not None]
    if len(set(attributed)) < len(attributed):
        return True
    return None if len(whose) > 1 and len(attributed) < len(whose) else False


def _last(envelopes: Iterable[Envelope], kind: str) -> Json:
    """The body that a naive reader believes."""
    found = sorted((e for e in envelopes if e["kind"] == kind), key=_when)  # a stable sort
    return found[-1]["body"] if found else None


def _when(envelope: Envelope) -> tuple[bool, int]:
    at = time_of(envelope)
    return at is None, at or 0


def _order(envelope: Envelope) -> tuple[bool, int, str, str, str]:
    return *_when(envelope), envelope["id"], envelope["owner"], digest(envelope)
