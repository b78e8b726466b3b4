"""Whether what an executor did can have happened: its effects, its answers, and the forced call.

The executors are the harness's, so what each makes of a call is known (docs/design.md §3). What a
receiver made of an unmodified worker's calls is told by received.py, in more detail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rcr_probes import judge
from rcr_probes.evidence.course import Looks, events_lost, ran, undamaged
from rcr_probes.evidence.received import OTHER
from rcr_probes.model import Cell, Effect, Event, Forced, Json, Measurement, effects_left
from rcr_probes.request import MARKER, RECEIVER, effective_target, recomputed
from rcr_probes.vocabulary import (
    CAPABILITIES,
    EXECUTOR_POINTS,
    FENCED,
    NONE,
    ORIGINALS,
    PAIRS,
    POWER_LOSS_LOCAL,
    RECEIVED,
    RECEIVER_KEY,
    WORKER,
    at_point,
)

_FIRST, _SECOND = "1", "2"  # what an action of two effects makes, in this order
# Local dedupe → how many effects a call leaves, and whether each further call leaves as many more.
_EACH = {
    "none": (1, True),
    "operation_key": (1, False),
    "late_key": (1, False),
    "pair": (2, True),
    "pair_operation_key": (2, False),
    "pair_effect_key": (2, False),
}
_RECEIVERS = ("HTTP_", "RESPONSE_")  # how the errors of a call begin that only a receiver makes
_MISMATCH = "HTTP_422"  # how a receiver answers a key that came with another payload before


def _effects(measured: Measurement) -> Iterator[str]:
    """An executor makes one effect a call, or two; and with dedupe one effect a key."""
    if not ran(measured):
        return
    for observed in measured.observations:
        yield from _named(f"after {observed.after}", [e.effect_id for e in observed.effects or ()])
    arrived = effects_left(measured.events)
    yield from _named("of its events", [e.value.get("effect_id") for e in arrived])
    if measured.forced:
        forced = [e.effect_id for e in measured.forced.effects]
        yield from _named("after its forced call", forced)
    cell = measured.cell
    most = 2 if cell.dedupe in PAIRS else 1
    for observed, events in undamaged(measured):
        effects = observed.effects or ()
        if len(effects) > most * sum(e.lane == "call" for e in events):
            yield f"after {observed.after} it has more effects than calls."
        keys = _keys(cell, events, effects)
        if len(set(keys)) != len(keys):
            yield f"after {observed.after} one key has two effects, which its executor prevents."
        if cell.runtime != WORKER:
            yield from _own(cell, f"after {observed.after}", effects)


def _made_none(measured: Measurement) -> Iterator[str]:
    """A call of a local executor leaves its effect, unless it was struck or fenced off in there.

    One that claims a key first may be struck between the two; and one of two effects after one.
    """
    cell = measured.cell
    if not ran(measured) or cell.runtime == WORKER or cell.dedupe not in _EACH:
        return
    several = cell.recovery_fault in ORIGINALS or (cell.recoverers or 1) > 1
    fenced = cell.variant == FENCED and several
    lost = cell.kind == POWER_LOSS_LOCAL
    if fenced or lost or _inside(cell):
        return
    each, again = _EACH[cell.dedupe]
    for observed, events in undamaged(measured):
        if observed.ended == "deadline":
            return
        if cell.recovery_fault in ORIGINALS and observed.after == "fault":
            continue  # it has called, and has not acted yet
        calls = sum(e.lane == "call" for e in events)
        least = each * (calls if again else min(calls, 1))
        if observed.effects is not None and len(observed.effects) < least:
            yield f"after {observed.after} its {calls} calls made {len(observed.effects)} effects."


def _inside(cell: Cell) -> bool:
    """Whether something strikes inside its executor."""
    around = at_point(cell.recovery_fault)
    return cell.point in EXECUTOR_POINTS or (around is not None and around[1] in EXECUTOR_POINTS)


def _keys(cell: Cell, events: Sequence[Event], effects: Sequence[Effect]) -> list[Json]:
    """What no two effects may share: nothing, their operation's key, or the key that was sent."""
    told = effects_left(events)
    match cell.dedupe:
        case "receiver_key" if cell.runtime == WORKER:
            return [key for e in told if (key := e.value.get("key")) is not None]
        case "none" | "pair":
            return []
        case "late_key" if (cell.recovery_fault, cell.recoverers) != (NONE, 1):
            return []  # who comes at the same time knows of no key
        case "late_key":  # each effect was made by who found no key yet
            return [
                e.value.get("operation_key")
                for at, e in enumerate(events)
                if e.lane == "effect" and _kept(events[:at])
                for _ in range(2)
            ]
        case "expired_key":  # it is forgotten between the phases, and not in them
            return [(e.phase, e.value.get("operation_key")) for e in told]
        case "pair_operation_key" | "pair_effect_key":
            return [(e.operation_key, e.kind) for e in effects]
        case _:
            return [e.operation_key for e in effects]


def _kept(events: Sequence[Event]) -> bool:
    """Whether a late key was kept: a call came to ``before_key``, and no fault struck it there."""
    here = [e for e in _since_loss(events) if e.value.get("point") == "before_key"]
    struck = sum(e.lane == "fault" and "fault" in e.value for e in here)
    return sum(e.lane == "point" for e in here) > struck


def _since_loss(events: Sequence[Event]) -> Sequence[Event]:
    """The events since an executor lost its keys with the power; all where it did not."""
    lost = [
        at
        for at, e in enumerate(events)
        if e.lane == "fault" and any("keys" in one for one in _rows(e.value.get("lost")))
    ]
    return events[lost[-1] + 1 :] if lost else events


def _rows(value: Json) -> list[Json]:
    """The lists in a list; none where it is no such thing."""
    rows = value if isinstance(value, list | tuple) else ()
    return [one for one in rows if isinstance(one, list | tuple)]


def _own(cell: Cell, where: str, effects: Sequence[Effect]) -> Iterator[str]:
    """Each is of the kind that its executor makes, and the second of two follows a first."""
    known = _kinds(cell)
    came: Counter[tuple[str | None, str | None]] = Counter()
    for effect in effects:
        if effect.kind not in known:
            yield f"{where} its effect {effect.effect_id!r} is {effect.kind!r}, which none is."
        came[effect.operation_key, effect.kind] += 1
        key = effect.operation_key
        if known == (_FIRST, _SECOND) and came[key, _SECOND] > came[key, _FIRST]:
            yield f"{where} the second of two effects is there before the first."


def _kinds(cell: Cell) -> tuple[str, ...]:
    if cell.dedupe in PAIRS:
        return _FIRST, _SECOND
    return (RECEIVER,) if cell.dedupe in RECEIVED else (MARKER,)


def _first_call(measured: Measurement) -> Iterator[str]:
    """Where the first call takes the key of the whole action, no later one makes a part of it."""
    cell, first = measured.cell, measured.after("fault")
    if cell.dedupe not in ("claim_first", "pair_operation_key") or not ran(measured):
        return
    if events_lost(measured) or first is None or first.damage or first.ended == "deadline":
        return
    if cell.kind == POWER_LOSS_LOCAL:  # the key may be lost
        return
    taken: dict[Json, str] = {}
    for event in measured.events:
        key = event.value.get("operation_key")
        if event.lane == ("call" if cell.dedupe == "claim_first" else "effect"):
            taken.setdefault(key, event.phase)
        if event.lane == "effect" and taken.get(key) != event.phase:
            yield f"its event {event.seq} is of an effect whose key an earlier call had taken."


def _asked(measured: Measurement) -> Iterator[str]:
    """A look-up is answered by an executor that declares it, from the effects that are there."""
    cell = measured.cell
    if cell.runtime == WORKER or not ran(measured) or events_lost(measured):
        return
    for event in measured.events:
        if event.lane != "ask":
            continue
        key = event.value.get("operation_key")
        there = effects_left(measured.events[: event.seq])
        made = sum(e.value.get("operation_key") == key for e in there)
        if "lookup" not in CAPABILITIES.get(cell.dedupe, ()):
            yield f"its event {event.seq} is of a look-up, which its executor does not declare."
            continue
        known, in_flight = event.value.get("effects"), event.value.get("in_flight")
        count = _told(cell, made)
        sure = in_flight is False and not any(o.damage for o in measured.observations)
        if in_flight not in (True, False) or (sure and known != count):
            yield f"its event {event.seq} tells of {known!r} effects, but {count} were there."


def _told(cell: Cell, effects: int) -> int:
    """What a look-up says where so many effects of the key are there."""
    return 2 if cell.dedupe == "pair_operation_key" and effects else effects


def _forced(measured: Measurement) -> Iterator[str]:
    """The forced call is one call of our executor, with the request that recovery has in hand."""
    first, forced, cell = measured.after("fault"), measured.forced, measured.cell
    if forced is None or first is None or first.effects is None or first.damage:
        return
    local = cell.dedupe not in RECEIVED and cell.runtime != WORKER
    fenced = forced.error == "FENCED" and cell.variant != FENCED
    if fenced or (local and forced.error.startswith(_RECEIVERS)):
        yield f"its forced call ended in {forced.error!r}, which its executor cannot answer."
    if forced.error not in judge.MEASURES:
        return
    if forced.effects[: len(first.effects)] != first.effects:
        yield "its forced call did not begin with the effects that stood after the fault."
        return
    new = forced.effects[len(first.effects) :]
    target = effective_target(recomputed(cell))
    asked = (target, OTHER) if cell.runtime == WORKER else (target,)
    # An original that acts after the call makes what was approved, whatever the call asked for.
    late = _late(cell) if cell.recovery_fault in ORIGINALS else 0
    called, original = new[: max(0, len(new) - late)], new[max(0, len(new) - late) :]
    key, approved = measured.approved.operation_key, measured.approved.target
    if any(e.operation_key != key or e.target not in asked for e in called):
        yield f"its forced call made an effect that it did not ask for, which was on {target!r}."
    if any(e.operation_key != key or e.target != approved for e in original):
        yield f"its original made an effect that it did not ask for, which was on {approved!r}."
    if cell.runtime == WORKER:  # which key the call carried is the worker's to say
        if len(new) > (forced.error == NONE):
            yield f"its forced call made {len(new)} effects, and ended in {forced.error!r}."
        return
    yield from _own(cell, "after its forced call", forced.effects)
    mismatch = cell.dedupe == RECEIVER_KEY and any(
        e.target != target for e in first.effects if e.operation_key == key
    )
    if mismatch != (forced.error == _MISMATCH) and forced.error in (NONE, _MISMATCH):
        yield f"its forced call ended in {forced.error!r}, which is not what its receiver answers."
    made = _made(measured, first.effects, forced)
    if made is not None and len(new) != made + late:
        yield f"its forced call made {len(new)} effects, where its executor makes {made + late}."


def _made(measured: Measurement, before: Sequence[Effect], forced: Forced) -> int | None:
    """How many effects the call makes; None where that cannot be told."""
    cell, key = measured.cell, measured.approved.operation_key
    if forced.error != NONE:
        return 0
    ours = [e for e in before if e.operation_key == key]
    own = [e for e in measured.events if e.phase == "fault"]
    known = [e for e in _since_loss(own) if e.value.get("operation_key") == key]
    ended = measured.observations[0].ended
    match cell.dedupe:
        case "none" | "expired_key":
            return 1
        case "pair":
            return 2
        case "pair_operation_key":
            return 0 if ours else 2
        case "pair_effect_key":
            return 2 - len({e.kind for e in ours})
        case "claim_first" | "late_key" if ended == "deadline" or events_lost(measured):
            return None  # where it was then, nobody knows
        case "claim_first":
            return 0 if any(e.lane == "call" for e in known) else 1
        case "late_key":
            return 0 if _kept(own) else 1
        case _:
            return 0 if ours else 1


def _late(cell: Cell) -> int:
    """How many effects an original makes that acts after another call."""
    if cell.variant == FENCED:
        return 0
    return {"none": 1, "pair": 2}.get(cell.dedupe, 0)


def _named(where: str, names: Sequence[Json]) -> Iterator[str]:
    if list(names) != [f"E{number}" for number in range(1, len(names) + 1)]:
        yield f"the effects {where} are not named E1, E2 and so on in their order."


LOOKS: Looks = {
    "effects": _effects,
    "made_none": _made_none,
    "first_call": _first_call,
    "asked": _asked,
    "forced": _forced,
}
