"""Whether a measurement of the reference can have happened: its words, points, audit, and keys.

The reference is our own and one process, so what it can do is known beyond what any runtime does.
Evidence may not import a runtime: what is known of this one is written down here again, and tests
hold its words to the runtime's own, and its order to what was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rcr_probes.eligibility import decide, known, may_call
from rcr_probes.evidence import outages
from rcr_probes.evidence.course import OWN_END, Looks, events_lost
from rcr_probes.evidence.recovered import recovery
from rcr_probes.model import Approved, Event, Json, Measurement, Observation
from rcr_probes.request import effective_target, recomputed
from rcr_probes.vocabulary import (
    AUDIT_FAULTS,
    BASELINE,
    DECIDED,
    EVIDENCE_GATED,
    FAULT_POINTS,
    FAULTS,
    HANG,
    INNER_POINTS,
    MISSING,
    NO_RECORD,
    NONE,
    ORIGINALS,
    PERSONS,
    POINTS,
    UNREADABLE,
    at_point,
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
# State → how far its record may say that the execution came; where there is no record, nothing.
# (``resume`` resets the execution of a failed one before it begins again.)
STATES: Mapping[str, tuple[str | None, ...]] = {
    **dict.fromkeys(
        ("pending_approval", "approved", "rejected", "cancelled", "expired", "stale"),
        ("not_started",),
    ),
    **{state: (state,) for state in ("executing", "succeeded", "partial_failed")},
    "failed": ("failed", "not_started"),
    "verification_required": ("failed", "not_started", "partial_failed", "succeeded"),
    **dict.fromkeys(NO_RECORD, (None,)),
}
# State → the point that a fault phase came to before it was stored; None: it need not have come to
# any. One that is not here is recovery's.
_UNBEGUN = ("pending_approval", "approved")  # what is stored no more at the point _BEGUN
_BEGUN = "start_audit"
_STORED: Mapping[str, str | None] = {
    **dict.fromkeys((*_UNBEGUN, *NO_RECORD)),
    "executing": "approval_audit",
    "failed": "before_action",
    "succeeded": "after_action",
}
# Event of its audit → the point that it came to before the line was appended; None: it need not
# have come to any (that which a person decides is appended at none).
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
    DECIDED: None,
}
# What a lost power makes of a file that nobody can read any more.
_BROKEN = ("empty", "cut", "older_cut")
# What the kernel says where /dev/null is flushed: an append that is lost is then told of.
_NOT_FLUSHED = "EINVAL"
# States in which no approval stands, and those in which one does. ``verification_required`` may be
# either: recovery also says so of a record that it found without an approval.
NOT_STANDING = (*NO_RECORD, "pending_approval", "rejected", "cancelled", "expired", "stale")
_STANDING = ("approved", "executing", "failed", "succeeded", "partial_failed")
# Variant → the digests whose recomputed request is another one to its digest.
_SEEN: Mapping[str, tuple[str, ...]] = {
    BASELINE: ("changed", "volatile"),
    "meaning_digest": ("changed", "coarse"),
}


def _says(measured: Measurement) -> Iterator[str]:
    """What its states say is documented, and no measurement's to choose."""
    if measured.says != SAYS:
        yield "it gives the reference's states another meaning than they have."


def _words(measured: Measurement) -> Iterator[str]:
    """States, and events of the audit, are those that the reference has."""
    for event in measured.events:
        value = event.value
        status, word = value.get("status"), value.get("event")
        if event.lane == "state" and value.get("execution") not in STATES.get(str(status), ()):
            yield f"its event {event.seq} is of a state that the reference does not have."
        elif event.lane == "audit" and word not in (*AUDITED, UNREADABLE):
            yield (
                f"its event {event.seq} is an audit line {word!r}, "
                "which the reference does not write."
            )


def _keys(measured: Measurement) -> Iterator[str]:
    """Calls, effects, and questions to an executor are under the operation's own key.

    What a fault phase makes is on the approved target: it has the request that was approved.
    """
    approved = measured.approved
    for event in measured.events:
        key, target = event.value.get("operation_key"), event.value.get("target")
        if event.lane in ("call", "ask", "effect") and key != approved.operation_key:
            yield f"its event {event.seq} is under {key!r}, which is not the operation's key."
        if (event.phase, event.lane) == ("fault", "effect") and target != approved.target:
            yield f"its event {event.seq} is an effect on {target!r}, which nobody had asked for."


def _order(measured: Measurement) -> Iterator[str]:
    """A phase comes to the points one after the other, and leaves none of them out.

    But those of an executor, which need not come to its own; recovery may begin at any. It is not
    looked at where it is struck, or two recover.
    """
    cell = measured.cell
    if events_lost(measured):
        return
    inner = INNER_POINTS.get(cell.dedupe, ())
    at = list(POINTS).index("before_action") + 1
    chain = (*POINTS[:at], *inner, *POINTS[at:])
    plain = (cell.recovery_fault, cell.recoverers) == (NONE, 1)
    for phase in ("fault", "recover") if plain else ("fault",):
        came = -1 if phase == "fault" else None
        for event in measured.events:
            point = event.value.get("point")
            if event.lane != "point" or event.phase != phase or point not in chain:
                continue
            place = chain.index(point)
            came = place if came is None else came
            if place < came or not set(chain[came + 1 : place]) <= set(inner):
                yield f"its event {event.seq} is at {point!r}, to which it cannot have come then."
            came = max(came, place)


def _stored(measured: Measurement) -> Iterator[str]:
    """What a fault phase stores, it stores where it has come; until the power goes."""
    came: set[Json] = set()
    status = ""
    if events_lost(measured):
        return
    for event in measured.events:
        if event.phase != "fault" or (event.lane == "fault" and "state" in event.value):
            return
        if event.lane == "point":
            came.add(event.value.get("point"))
        elif event.lane == "state":
            status = str(event.value.get("status"))
        else:
            continue
        early = event.lane == "state" and _STORED.get(status, "") not in (None, *came)
        if early or (status in _UNBEGUN and _BEGUN in came):
            yield f"by its event {event.seq} it stored {status!r}, which it cannot have done yet."


def _lines(measured: Measurement) -> Iterator[str]:
    """A line of the audit is appended at its point: there are no more of it than comings there.

    Whatever the phase: who was ended between the two leaves its line to be found by the next.
    """
    seen: Counter[Json] = Counter()
    if events_lost(measured):
        return
    for event in measured.events:
        if event.lane == "point":
            seen[event.value.get("point")] += 1
        if event.lane != "audit":
            continue
        word = str(event.value.get("event"))
        point = AUDITED.get(word)
        seen[word] += 1
        if point and seen[word] > seen[point]:
            yield f"its event {event.seq} is a line {word!r}, but it had not come to {point!r}."


def _reached(measured: Measurement) -> Iterator[str]:
    """It comes back from its action where it has called, and only then has a result."""
    if events_lost(measured):
        return
    # An original is begun in one phase, and goes on in the other.
    together: Sequence[Sequence[str]] = [("fault", "recover")]
    apart: Sequence[Sequence[str]] = [("fault",), ("recover",)]
    for own in together if measured.cell.recovery_fault in ORIGINALS else apart:
        events = [event for event in measured.events if event.phase in own]
        points = Counter(e.value.get("point") for e in events if e.lane == "point")
        calls = sum(event.lane == "call" for event in events)
        after = points["after_action"]
        if calls < after:
            where = " and ".join(own)
            yield f"in its phase {where} it came back {after} times, and called {calls} times."
        if "recover" not in own and points["after_result"] > after:
            yield "it kept a result, and had not come back from its action."


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
    It can always compute that of the request in hand, and stores one where an approval stands.
    """
    changed = measured.cell.digest in _SEEN.get(measured.cell.variant or "", _SEEN[BASELINE])
    for observed in measured.observations:
        stored, in_hand = observed.recorded.approved_digest, observed.recorded.current_digest
        status, there = observed.recorded.status, stored is not None
        if status in (NOT_STANDING if there else _STANDING):
            yield (
                f"its record says {status!r} after {observed.after}, "
                f"and {'a' if there else 'no'} digest of an approved request."
            )
        if (in_hand is None) != (status == UNREADABLE):
            yield (
                f"its record says {status!r} after {observed.after}, "
                f"and {'no' if in_hand is None else 'a'} digest of the request in hand."
            )
        if None not in (stored, in_hand) and changed == (stored == in_hand):
            yield (
                f"its request is {measured.cell.digest!r}, but the two digests after "
                f"{observed.after} are {'equal' if changed else 'different'}."
            )


def _answer(measured: Measurement) -> Iterator[str]:
    """None of its answers is lost where nothing loses it."""
    cell, first, lost = measured.cell, measured.after("fault"), FAULTS["response_lost"]
    if first is None or first.damage or cell.point not in FAULT_POINTS["response_lost"]:
        return
    if cell.fault != "response_lost" and first.error == lost:
        yield f"its caller saw {lost!r}, though {cell.fault!r} loses no answer."


def _lost(measured: Measurement) -> Iterator[str]:
    """Where the power went, what is left is what it did not take."""
    event = outages.told(measured)
    if event is None:
        return
    yield from _left_stored(measured, event)
    yield from _left_audited(measured, event)


def _left_stored(measured: Measurement, event: Event) -> Iterator[str]:
    """It reads its caller's ticket, and then the record of which that tells."""
    lost = dict(event.value["lost"])
    ticket, record = lost.get("ticket.json"), lost.get("record")
    before = [e.value for e in measured.events[: event.seq] if e.lane == "state"]
    if ticket == "gone":
        left = MISSING
    elif ticket in _BROKEN:
        left = UNREADABLE
    elif "gone" in (record, lost.get("approvals")):
        left = MISSING
    elif record in _BROKEN:
        left = UNREADABLE
    elif record or not before:
        return  # an older one, which any state may be
    else:
        left = str(before[-1].get("status"))
    found = measured.observations[0].recorded.status
    if found != left:
        yield f"its state after the power was lost is {found!r}, but what was lost leaves {left!r}."


def _left_audited(measured: Measurement, event: Event) -> Iterator[str]:
    """Audit lines are appended: all are left, or none, or so many as were there at most."""
    loss = dict(event.value["lost"]).get("audit.jsonl")
    there = sum(e.lane == "audit" for e in measured.events[: event.seq])
    left, least = event.value["lines"], 0 if loss else there
    most = 0 if loss in ("gone", "empty") else there
    if not least <= left <= most:
        yield f"its event {event.seq} tells of {left} audit lines, where {there} had been seen."


def _reasoned(measured: Measurement) -> Iterator[str]:
    """What its recovery by evidence said first is what could be known.

    Not where it was struck before, or had to ask; nor where the facts are false.
    """
    cell, first = measured.cell, measured.after("fault")
    if cell.policy != EVIDENCE_GATED or cell.digest == "coarse":
        return
    if events_lost(measured) or first is None or first.damage:
        return
    if at_point(cell.recovery_fault) or cell.recovery_fault in ORIGINALS:
        return
    facts = known(cell, _held_against(measured, first), first, measured.says)
    said = [e.value["reasons"] for e in recovery(measured) if e.value.get("reasons")]
    decision = decide(facts)
    if decision.way == "lookup":
        return
    called = any(event.lane == "call" for event in recovery(measured))
    if called and not may_call(decision) and cell.recovery_fault not in PERSONS:
        yield f"its recovery called, which nothing allowed where the effect was {facts.effect!r}."
    if said and f"effect_{facts.effect}" not in said[0]:
        yield f"its recovery said {said[0]} first, but the effect was {facts.effect!r} to know."


def _held_against(measured: Measurement, first: Observation) -> Approved:
    """What recovery holds effects against: without a record, its own request is all that it has."""
    cell = measured.cell
    if cell.recovery_fault != "empty_record" and first.recorded.status not in NO_RECORD:
        return measured.approved
    return replace(measured.approved, target=effective_target(recomputed(cell)))


LOOKS: Looks = {
    "says": _says,
    "words": _words,
    "keys": _keys,
    "order": _order,
    "stored": _stored,
    "lines": _lines,
    "reached": _reached,
    "audited": _audited,
    "ended": _ended,
    "digests": _digests,
    "answer": _answer,
    "lost": _lost,
    "reasoned": _reasoned,
}
