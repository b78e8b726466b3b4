"""Whether a measurement of the reference can have happened: its words, points, audit, and keys.

The reference is our own and one process, so what it can do is known beyond what any runtime does.
Evidence may not import a runtime: what is known of this one is written down here again, and a test
holds the two equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from rcr_probes.evidence.course import OWN_END, events_lost, ran
from rcr_probes.model import Json, Measurement
from rcr_probes.vocabulary import (
    AUDIT_FAULTS,
    BASELINE,
    FAULTS,
    HANG,
    INNER_POINTS,
    POINTS,
    REFERENCE,
)

# What its documentation says of its states.
SAYS: Mapping[str, str] = {
    "succeeded": "done",
    **dict.fromkeys(
        ("pending_approval", "approved", "rejected", "cancelled", "expired"), "not_done"
    ),
    **dict.fromkeys(
        ("executing", "failed", "partial_failed", "stale", "verification_required"), "open"
    ),
}
# How far a record says that the execution came; of one that is not there or unreadable: nothing.
EXECUTIONS = ("not_started", "executing", "succeeded", "failed", "partial_failed")
UNTOLD = ("missing", "unreadable")
# Event of its audit → the point that it came to before the line was appended; None: to none.
AUDITED: Mapping[str, str | None] = {
    "operation.prepared": None,
    "operation.rejected": None,
    "operation.cancelled": None,
    "operation.expired": None,
    "operation.stale": None,
    "operation.partial_failed": None,
    "operation.approved": "approval_audit",
    "operation.started": "start_audit",
    "operation.failed": "before_action",
    "operation.succeeded": "completion_audit",
    "operation.reconciled": "completion_audit",
    "operation.verification_required": "completion_audit",
    "operation.decided": "response",
    "unreadable": None,  # a line that nobody can read
}
# What the kernel says where /dev/null is flushed: an append that is lost is then told of.
_NOT_FLUSHED = "EINVAL"
# Variant → the digests whose recomputed request is another one to its digest.
_SEEN: Mapping[str, tuple[str, ...]] = {
    BASELINE: ("changed", "volatile"),
    "meaning_digest": ("changed", "coarse"),
}


def _says(measured: Measurement) -> Iterator[str]:
    """What its states say is documented, and no measurement's to choose."""
    if measured.says != SAYS:
        yield "what its runtime's states say is not what they say."


def _words(measured: Measurement) -> Iterator[str]:
    """States, and events of the audit, are those that the reference has."""
    for event in measured.events:
        value = event.value
        if event.lane == "state" and not _known(value):
            yield f"its event {event.seq} is of a state that the reference does not have."
        elif event.lane == "audit" and value.get("event") not in AUDITED:
            yield (
                f"its event {event.seq} is an audit line {value.get('event')!r}, "
                "which the reference does not write."
            )


def _known(state: Mapping[str, Json]) -> bool:
    status, execution = state.get("status"), state.get("execution")
    if status in UNTOLD:
        return execution is None
    return status in SAYS and execution in EXECUTIONS


def _keys(measured: Measurement) -> Iterator[str]:
    """Every call, and every question to an executor, is under the operation's own key."""
    for event in measured.events:
        key = event.value.get("operation_key")
        if event.lane in ("call", "ask") and key != measured.approved.operation_key:
            yield f"its event {event.seq} is under {key!r}, which is not the operation's key."


def _order(measured: Measurement) -> Iterator[str]:
    """The fault phase comes to the points one after the other, and leaves none of them out.

    But those of an executor, which need not come to its own.
    """
    inner = INNER_POINTS.get(measured.cell.dedupe, ())
    at = list(POINTS).index("before_action") + 1
    chain = (*POINTS[:at], *inner, *POINTS[at:])
    came = -1
    if events_lost(measured):
        return
    for event in measured.events:
        point = event.value.get("point")
        if event.lane != "point" or event.phase != "fault" or point not in chain:
            continue
        place = chain.index(point)
        if place < came or not set(chain[came + 1 : place]) <= set(inner):
            yield f"its event {event.seq} is at {point!r}, to which it cannot have come by then."
        came = max(came, place)


def _lines(measured: Measurement) -> Iterator[str]:
    """A line of the audit is appended at its point: there are no more of it than comings there."""
    if events_lost(measured):
        return
    seen: Counter[tuple[str, Json]] = Counter()
    for event in measured.events:
        if event.lane == "point":
            seen[event.phase, event.value.get("point")] += 1
        if event.lane != "audit":
            continue
        kind = str(event.value.get("event"))
        point = AUDITED.get(kind)
        seen[event.phase, f"{kind} line"] += 1
        if point and seen[event.phase, f"{kind} line"] > seen[event.phase, point]:
            yield f"its event {event.seq} is a line {kind!r}, but it had not come to {point!r}."


def _audited(measured: Measurement) -> Iterator[str]:
    """What stands in place of the audit file stands there until it is lifted: no line is kept.

    And its caller sees the error of its append.
    """
    cell, first = measured.cell, measured.after("fault")
    if first is None or first.damage:
        return
    if cell.fault not in AUDIT_FAULTS or "@" in cell.point:
        return
    after = [e for e in measured.events if e.phase == "fault"]
    while after and not (after[0].lane == "fault" and "fault" in after[0].value):
        del after[0]
    if any(e.lane == "audit" for e in after):
        yield f"an audit line was kept after {cell.fault!r} struck, which keeps none."
    flushed = (cell.fault, cell.variant) == ("lost_append", "fsync")
    given = _NOT_FLUSHED if flushed else FAULTS[cell.fault]
    if after and first.standing and first.ended == "exit" and first.error != given:
        yield f"its caller saw {first.error!r}, which is not what {cell.fault!r} gives."


def _ended(measured: Measurement) -> Iterator[str]:
    """It is one process: where that had ended, or hung, it comes to nothing more."""
    first = measured.after("fault")
    if first is None or first.damage:
        return
    if first.ended not in (FAULTS["kill"], HANG) or events_lost(measured):
        return
    ended = False
    for event in measured.events:
        if event.phase != "fault":
            return
        if ended and event.lane in ("point", "call", "ask"):
            yield f"its event {event.seq} came after its fault had ended its phase."
        ended = ended or (event.lane == "fault" and event.value.get("fault") in OWN_END)


def _digests(measured: Measurement) -> Iterator[str]:
    """Its digest sees a changed request, and neither a session nor an order of keys.

    The baseline's sees also what has no meaning, and not all that has; the other is of the meaning.

    What another runtime's sees is what the probe is there to find out.
    """
    changed = measured.cell.digest in _SEEN.get(measured.cell.variant or "", _SEEN[BASELINE])
    for observed in measured.observations:
        stored, in_hand = observed.recorded.approved_digest, observed.recorded.current_digest
        if None not in (stored, in_hand) and changed == (stored == in_hand):
            yield (
                f"its request is {measured.cell.digest!r}, but the two digests after "
                f"{observed.after} are {'equal' if changed else 'different'}."
            )


def looks(measured: Measurement) -> tuple[Callable[[Measurement], Iterator[str]], ...]:
    """Those that a measurement is held against: all where it ran the reference, else none."""
    return _LOOKS if ran(measured) and measured.cell.runtime == REFERENCE else ()


_LOOKS: tuple[Callable[[Measurement], Iterator[str]], ...] = (
    _says,
    _words,
    _keys,
    _order,
    _lines,
    _audited,
    _ended,
    _digests,
)
