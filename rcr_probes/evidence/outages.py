"""Whether what a capture tells of a lost power can be: which state it left, and of the effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rcr_probes.evidence.course import Looks
from rcr_probes.model import Cell, Event, Json, Measurement
from rcr_probes.vocabulary import LOSSES, POWER_LOSS_LOCAL, POWER_LOSSES, state_of


def told(measured: Measurement) -> Event | None:
    """The event that tells which state the power left; None where it left none that can be."""
    if measured.cell.kind not in POWER_LOSSES:
        return None
    first = next(iter(_told(measured)), None)
    return first if first is not None and _left(first.value, measured.cell) else None


def _told(measured: Measurement) -> list[Event]:
    """All that tell it; none where others published them, or something is damaged."""
    if measured.published or any(d for o in measured.observations for d in o.damage):
        return []
    return [e for e in measured.events if e.lane == "fault" and "state" in e.value]


def _power(measured: Measurement) -> Iterator[str]:
    """Once the power is gone its state is told, once, and it is the planned one."""
    events = _told(measured)
    if measured.cell.kind not in POWER_LOSSES:
        if events:
            yield f"its event {events[0].seq} tells what the power left, but none was lost."
        return
    if len(events) > 1:
        yield f"its event {events[1].seq} tells once more what the power left."
    if events and told(measured) is None:
        yield f"its event {events[0].seq} tells of no state that the power can leave."


def _of_executor(measured: Measurement) -> Iterator[str]:
    """An effect is appended, whole: all are left, or the first ones, or none."""
    event = told(measured)
    if event is None:
        return
    left, loss = event.value.get("effects"), dict(event.value["lost"]).get("effects")
    there = sum(e.lane == "effect" for e in measured.events[: event.seq])
    if measured.cell.kind != POWER_LOSS_LOCAL:
        if left is not None or loss:
            yield f"its event {event.seq} tells of lost effects, but the outside world survives."
        return
    most = {None: there, "shorter": there - 1}.get(loss, 0)
    least = {None: there, "shorter": 1}.get(loss, 0)
    if type(left) is not int or not least <= left <= most:
        yield f"its event {event.seq} tells of {left!r} effects left, where {there} had been there."


def _left(value: Mapping[str, Json], cell: Cell) -> bool:
    """Whether a state is the planned one of those that there are; the first alone loses nothing."""
    state, states, lost = value["state"], value.get("states"), value.get("lost")
    numbers = (state, states, value.get("unexplored"), value.get("lines"))
    if any(type(n) is not int or n < 0 for n in numbers):
        return False
    if not isinstance(lost, list | tuple) or not all(_loss(one) for one in lost):
        return False
    apart = len({one[0] for one in lost}) == len(lost)
    return apart and bool(lost) == (state != 0) and state == state_of(cell.fault) and state < states


def _loss(one: Json) -> bool:
    pair = isinstance(one, list | tuple) and len(one) == 2
    return pair and isinstance(one[0], str) and one[1] in LOSSES


LOOKS: Looks = {
    "power": _power,
    "of_executor": _of_executor,
}
