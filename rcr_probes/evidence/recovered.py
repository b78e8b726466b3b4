"""Whether what is told of recovery can have happened: what stood around it, how often it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rcr_probes.evidence.course import OF_ONE_PROCESS, Looks, events_lost, ran
from rcr_probes.judge import happened
from rcr_probes.model import Event, Json, Measurement
from rcr_probes.vocabulary import (
    ALIVE,
    DAMAGE,
    DECIDED,
    FAULTS,
    FENCED,
    HELD,
    NONE,
    ORIGINALS,
    STALE_LOCKS,
    STOPPED,
    at_point,
    recovery_phases,
)


def _told(measured: Measurement) -> Iterator[str]:
    """Of recovery, nothing is told but what its cell plans, each once and in its order."""
    if measured.published or events_lost(measured):
        return
    around = measured.cell.recovery_fault or NONE
    told = [e for e in recovery(measured) if e.lane == "fault"]
    values = [{k: v for k, v in e.value.items() if k != "lines"} for e in told]
    planned = _planned(around, measured.cell.variant)
    for event, value in zip(told, values, strict=True):
        if value not in planned:
            yield f"its event {event.seq} tells of a fault that its recovery does not plan."
        elif values.count(value) > 1:
            yield f"its event {event.seq} is told of more than once."
    if [v for v in planned if v in values] != [v for v in values if v in planned]:
        yield "what was placed around its recovery is told in another order."


def _planned(around: str, variant: str | None) -> list[Mapping[str, Json]]:
    """What the events may tell of it, in order."""
    struck = at_point(around)
    if struck is None:
        placed = around in (*DAMAGE, *STALE_LOCKS, *ORIGINALS)
        fenced = around in ORIGINALS and variant == FENCED
        refused: list[Mapping[str, Json]] = [{"refused": "FENCED"}] if fenced else []
        return [{"fault": around}, *refused] if placed else []
    kind, point = struck
    strike: Mapping[str, Json] = {"point": point, "fault": kind}
    return [strike] if kind == HELD else [strike, {"point": point, "error": FAULTS[kind]}]


def _before(measured: Measurement) -> Iterator[str]:
    """Damage and locks stand before recovery begins; a strike is at a point that was reached."""
    if not ran(measured) or events_lost(measured):
        return
    events, around = recovery(measured), measured.cell.recovery_fault
    placed = [n for n, e in enumerate(events) if e.value.get("fault") == around]
    if around in (*DAMAGE, *STALE_LOCKS) and placed and placed[0] != 0:
        yield f"{around!r} is told of after recovery had begun."
    struck = at_point(around)
    if struck is None:
        return
    reached = False
    for event in events:
        point = event.value.get("point") == struck[1]
        if event.lane == "fault" and point and not reached:
            yield f"its event {event.seq} is of a strike at a point that was not reached before."
        reached = reached or (event.lane == "point" and point)


def _runs(measured: Measurement) -> Iterator[str]:
    """Recovery returned as often as it ran, but where it was killed, and a person in between."""
    last = measured.after("recover")
    if not ran(measured) or events_lost(measured) or last is None or last.damage:
        return
    if last.ended not in (None, "exit"):
        return
    events, cell = recovery(measured), measured.cell
    returns = [e for e in events if e.lane == "return" and "attempt" not in e.value]
    due = len(recovery_phases(cell.policy, cell.recovery_fault))
    struck, met = at_point(cell.recovery_fault), happened(measured)
    due -= bool(struck and struck[0] == "kill" and met and not _killed_below(measured))
    due -= bool(struck and struck[0] == HELD and not met)
    due -= bool(cell.recovery_fault == "person_present" and not met)
    if len(returns) != due:
        yield f"its recovery returned {len(returns)} times, and ran {due} times to its end."


def _killed_below(measured: Measurement) -> bool:
    """Whether what was killed in recovery was a process below it: it returned all the same."""
    told = [(event.lane, event.value.get("error")) for event in recovery(measured)]
    before = told[: told.index(("fault", FAULTS["kill"]))]
    returned = any(lane == "return" for lane, _ in before)
    return returned and not measured.cell.runtime.startswith(OF_ONE_PROCESS)


def _decided(measured: Measurement) -> Iterator[str]:
    """A person decides once, where one is planned, on an operation that recovery had stopped."""
    if not ran(measured) or events_lost(measured):
        return
    events = recovery(measured)
    decided = [n for n, e in enumerate(events) if e.value.get("event") == DECIDED]
    if decided and measured.cell.recovery_fault != "person_present":
        yield "a person decided on it, whom its cell does not plan."
    if len(decided) > 1:
        yield "a person decided on it more than once."
    for place in decided:
        states = [e.value.get("status") for e in events[:place] if e.lane == "state"]
        if not states or states[-1] != STOPPED:
            yield "a person decided on it, though recovery had not stopped."


def _alive(measured: Measurement) -> Iterator[str]:
    """An original is alive when it is observed where that is planned, and nowhere else.

    While one is alive, or has sent what may still land, nothing is settled (docs/design.md §6).
    """
    first, planned = measured.after("fault"), measured.cell.recovery_fault == "original_alive"
    if not ran(measured) or first is None or first.damage:
        return
    if first.ended == ALIVE and not planned:
        yield "its original was alive when it was observed, which its cell does not plan."
    if first.ended == "exit" and planned and happened(measured):
        yield "its original had ended when it was observed, and was to be alive."
    late = measured.cell.recovery_fault == "late_original" and measured.cell.variant != FENCED
    if first.settled and (first.ended == ALIVE or late):
        yield "all was settled when it was observed, and its original could still act."


def recovery(measured: Measurement) -> Sequence[Event]:
    """The events of whoever recovered."""
    return [event for event in measured.events if event.phase == "recover"]


LOOKS: Looks = {
    "told": _told,
    "before": _before,
    "runs": _runs,
    "decided": _decided,
    "alive": _alive,
}
