"""Whether one capture agrees with itself: origin, processes, events, observations, judgement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields

from msgspec import to_builtins

from rcr_probes import judge
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.seal import facts_sha256
from rcr_probes.model import (
    DEDUPES,
    DIGESTS,
    FAULTS,
    NONE,
    POINTS,
    STARTS,
    WITNESSES,
    Capture,
    Cell,
    Effect,
    Event,
    Judgement,
    Measurement,
    Observation,
    Verdict,
    canonical_json,
)

MEASURED = "measured"
PUBLISHED = "published:"  # how the runtime of a row that others published is named

_KNOWN = {
    "point": (NONE, *POINTS),
    "fault": (NONE, *FAULTS),
    "dedupe": DEDUPES,
    "digest": DIGESTS,
    "witness": (None, *WITNESSES),
}
_VERBS = {"fault": "fault", "recovery": "recover"}
# What a run writes where its judge broke over a measurement.
_NOT_JUDGED = Judgement(verdict=Verdict("unknown", ("judge_failed",)))


def problems(capture: Capture) -> Iterator[str]:
    """Every reason, in one sentence each, why no run and no import wrote this capture."""
    for look in _LOOKS:
        try:
            yield from look(capture)
        except Exception as error:  # bad evidence may hold anything; it never ends the check
            yield f"it cannot be examined: {type(error).__name__}: {error}."


def measured_here(measured: Measurement) -> bool:
    """Whether the row was measured by a run, not published by others."""
    return measured.source == MEASURED


def _origin(capture: Capture) -> Iterator[str]:
    """A row says three times whether it was measured, and all three must agree.

    So none of them can be changed to keep a measured row from being judged.
    """
    measured = capture.measurement
    here = measured_here(measured)
    if here != (measured.forced is not None):
        yield f"its source is {measured.source!r}, " + (
            "but no forced call is in it." if here else "but a forced call is in it."
        )
    if here == measured.cell.runtime.startswith(PUBLISHED):
        yield f"its source is {measured.source!r}, but its runtime {measured.cell.runtime!r}."
    if here and measured.published_verdict is not None:
        yield "it was measured, but carries a published verdict."


def _cell(capture: Capture) -> Iterator[str]:
    cell = capture.cell
    for axis, known in _KNOWN.items():
        if getattr(cell, axis) not in known:
            yield f"its {axis} is {getattr(cell, axis)!r}, which nothing knows."
    if (cell.point == NONE) != (cell.fault == NONE):
        yield f"it has the fault {cell.fault!r} at the point {cell.point!r}."
    if measured_here(capture.measurement):
        for field in fields(Cell):
            if getattr(cell, field.name) is None:
                yield f"it was measured, but its {field.name} is null."


def _processes(capture: Capture) -> Iterator[str]:
    circumstances, measured = capture.circumstances, capture.measurement
    pids, seconds = circumstances.pids, circumstances.seconds
    if not measured_here(measured):
        if circumstances.start or circumstances.parent or pids or seconds:
            yield "it was published by others, but carries processes of a run."
        return
    if circumstances.start not in STARTS:
        yield f"its start method is {circumstances.start!r}, neither fork nor spawn."
    every = [*pids.values(), circumstances.parent]
    if any(pid is None or pid <= 0 for pid in every):
        yield "a process id in it is missing, or is none."
    if len(set(every)) != len(every):
        yield "two of its processes have the same pid, though each phase is a process of its own."
    if pids.keys() != seconds.keys() or any(took < 0 for took in seconds.values()):
        yield "its times do not belong to its processes."
    wanted = {"fault", "call", *(() if capture.cell.policy == "never" else ("recover",))}
    missing, added = sorted(wanted - pids.keys()), sorted(pids.keys() - wanted)
    if missing and not _harness_broke(measured):
        yield f"no process is recorded for its phase {' and '.join(missing)}."
    if added:
        yield f"a process is recorded for {' and '.join(added)}, which the cell does not have."


def _observations(capture: Capture) -> Iterator[str]:
    measured = capture.measurement
    found = [o.after for o in measured.observations]
    allowed: list[list[str]] = [["fault", "recovery"]]
    if not measured_here(measured):
        allowed += [["fault"], ["recovery"]]
    if found not in allowed:
        yield f"its observations are {found}, not one after the fault and one after recovery."
    if not measured_here(measured) or _harness_broke(measured):
        return
    for observed in measured.observations:
        ran = observed.after == "fault" or capture.cell.policy != "never"
        if ran != (observed.ended is not None):
            yield f"its observation after {observed.after} " + (
                "does not say how the phase ended." if ran else "tells of a phase that did not run."
            )


def _sequence(capture: Capture) -> Iterator[str]:
    events, begin = capture.measurement.events, 0
    for number, event in enumerate(events):
        if event.seq != number:
            yield f"its event {number} carries the number {event.seq}: one is missing or moved."
            break
    for observed in capture.measurement.observations:
        cut, verb = observed.events, _VERBS[observed.after]
        if not begin <= cut <= len(events):
            yield (
                f"its observation after {observed.after} is cut at {cut}, "
                f"outside the events {begin} to {len(events)}."
            )
            return
        if any(event.phase != verb for event in events[begin:cut]):
            yield f"an event of another phase stands among those of {verb}."
        begin = cut
    if begin != len(events):
        yield f"it has {len(events)} events, but the last observation is cut at {begin}."


def _counts(capture: Capture) -> Iterator[str]:
    """Each observation must agree with the events up to its cut.

    Damage excuses it, and makes the verdict unknown. A publication may give figures without events.
    """
    measured = capture.measurement
    for observed in measured.observations:
        events = measured.events[: max(observed.events, 0)]
        if observed.damage or not (events or measured_here(measured)):
            continue
        after = f"its observation after {observed.after}"
        calls = sum(e.lane == "call" for e in events)
        if observed.calls not in (None, calls):
            yield f"{after} counts {observed.calls} calls, but {calls} are among its events."
        arrived = [e for e in events if e.lane == "effect"]
        if observed.effects is not None and not _same_effects(arrived, observed.effects):
            yield f"the effects of {after.removeprefix('its ')} are not those of its events."
        yield from _returned(measured, observed, events)


def _same_effects(arrived: list[Event], effects: tuple[Effect, ...]) -> bool:
    return len(arrived) == len(effects) and all(
        event.value.get("effect_id") == effect.effect_id
        and all(event.value.get(k, v) == v for k, v in to_builtins(effect).items())
        for event, effect in zip(arrived, effects, strict=True)
    )


def _returned(
    measured: Measurement, observed: Observation, events: tuple[Event, ...]
) -> Iterator[str]:
    """What the caller saw stands in the events too, and so does the state at the phase's end."""
    after, verb = observed.after, _VERBS[observed.after]
    errors = [e.value.get("error") for e in events if e.lane == "return" and e.phase == verb]
    if errors and observed.error != errors[0]:
        yield (
            f"its caller saw {observed.error!r} after {after}, but its events say {errors[0]!r}."
        )
    if measured_here(measured) and observed.ended != "exit":
        return
    if not errors:
        yield f"its {verb} phase ended, but no event says what it returned."
    states = [e.value.get("status") for e in events if e.lane == "state"]
    if states and states[-1] != observed.recorded.status:
        yield (
            f"its state after {after} is {observed.recorded.status!r}, "
            f"but its events say {states[-1]!r}."
        )


def _forced(capture: Capture) -> Iterator[str]:
    measured = capture.measurement
    first, forced = measured.after("fault"), measured.forced
    if forced is None or first is None or first.effects is None or first.damage:
        return
    kept = forced.effects[: len(first.effects)]
    if forced.error not in judge.UNMEASURED and kept != first.effects:
        yield "its forced call did not begin with the effects that stood after the fault."


def _judgement(capture: Capture) -> Iterator[str]:
    stored = capture.judgement
    try:
        derived = derive(capture.measurement)
    except Exception as error:
        if stored != _NOT_JUDGED:
            yield f"no judgement follows from what it measured ({type(error).__name__}: {error})."
        return
    for field in fields(Judgement):
        given, follows = getattr(stored, field.name), getattr(derived, field.name)
        if given != follows:
            yield (
                f"its {field.name} does not follow from what it measured: "
                f"it says {_shown(given)}, but {_shown(follows)} follows."
            )


def _digest(capture: Capture) -> Iterator[str]:
    computed = facts_sha256(capture.measurement, capture.judgement)
    if computed != capture.facts_sha256:
        yield f"its facts were changed: facts_sha256 is not theirs, which is {computed}."


def _harness_broke(measured: Measurement) -> bool:
    """Nothing was observed, and the damage says that the harness could not.

    Then the verdict is unknown, and the processes are those that came to run.
    """
    return bool(measured.observations) and all(
        o.ended is None and any(d.startswith("harness:") for d in o.damage)
        for o in measured.observations
    )


def _shown(value: object) -> str:
    return canonical_json(to_builtins(value)).decode()


_LOOKS: tuple[Callable[[Capture], Iterator[str]], ...] = (
    _origin,
    _cell,
    _processes,
    _observations,
    _sequence,
    _counts,
    _forced,
    _judgement,
    _digest,
)
