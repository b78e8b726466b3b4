"""Whether what a capture tells of a lost power can be: its state, and what the store then says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rcr_probes.model import Cell, Event, Json, Measurement
from rcr_probes.vocabulary import (
    LOSSES,
    MISSING,
    POWER_LOSS_LOCAL,
    POWER_LOSSES,
    REFERENCE,
    UNREADABLE,
    state_of,
)

_BROKEN = ("empty", "cut", "older_cut")  # what nobody can read any more


def _power(measured: Measurement) -> Iterator[str]:
    """Once the power is gone its state is told, once, and what is lost shows in the store."""
    if measured.published or any(d for o in measured.observations for d in o.damage):
        return
    told = [e for e in measured.events if e.lane == "fault" and "state" in e.value]
    if measured.cell.kind not in POWER_LOSSES:
        if told:
            yield f"its event {told[0].seq} tells what the power left, but none was lost."
        return
    if len(told) > 1:
        yield f"its event {told[1].seq} tells once more what the power left."
    for event in told[:1]:
        if not _left(event.value, measured.cell):
            yield f"its event {event.seq} tells of no state that the power can leave."
            continue
        yield from _of_executor(measured, event)
        if measured.cell.runtime == REFERENCE:
            yield from _stored(measured, event)
            yield from _audited(measured, event)


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


def _stored(measured: Measurement, event: Event) -> Iterator[str]:
    """The reference reads its caller's ticket, and then the record of which that tells."""
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


def _audited(measured: Measurement, event: Event) -> Iterator[str]:
    """Audit lines are appended: all are left, or none, or so many as were there at most."""
    loss = dict(event.value["lost"]).get("audit.jsonl")
    there = sum(e.lane == "audit" for e in measured.events[: event.seq])
    left, least = event.value["lines"], 0 if loss else there
    most = 0 if loss in ("gone", "empty") else there
    if not least <= left <= most:
        yield f"its event {event.seq} tells of {left} audit lines, where {there} had been seen."


def _of_executor(measured: Measurement, event: Event) -> Iterator[str]:
    """An effect is appended, whole: all are left, or the first ones, or none."""
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


LOOKS: tuple[Callable[[Measurement], Iterator[str]], ...] = (_power,)
