"""Whether what a measurement tells can have happened: its events, and what was observed of them.

Damage excuses what it makes uncertain, and makes the verdict unknown. A publication may give
figures without events, and is held against what it gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rcr_probes import judge, strace
from rcr_probes.model import (
    Cell,
    Effect,
    Event,
    Measurement,
    Observation,
    as_map,
    effects_left,
    shown,
)
from rcr_probes.vocabulary import (
    ENDING_FAULTS,
    FAULT_POINTS,
    FAULTS,
    HANG,
    INNER_POINTS,
    NONE,
    POINTS,
    PROCESS_FAULTS,
    REFERENCE,
    WORKER,
    by_receiver,
)

# Each look at a measurement by its name: what it yields is why nothing like it can have happened.
Looks = Mapping[str, Callable[[Measurement], Iterator[str]]]

# The signals of Linux, where evidence is made; it may be checked elsewhere. Of the real-time ones,
# and of two that the C library keeps for itself, only the first and the last have names.
SIGNALS = frozenset((
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
    "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD",
    "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ",
    "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS", "SIGRTMIN", "SIGRTMAX",
    *(f"SIGNAL_{number}" for number in (32, 33, *range(35, 64))),
))  # fmt: skip


# What a strike says besides that it struck, where one kind of fault alone says it.
_TELLS = {FAULTS[f]: f for f in ("exception", "kill_host", HANG, "error_after_call")}
# What ends the process that came to the point, and no other.
OWN_END = ("kill", "torn_append", HANG)
# Our own runtimes that start no process below their phase's.
OF_ONE_PROCESS = (REFERENCE, "rcr_probes.contrast.")


def harness_broke(measured: Measurement) -> bool:
    """Nothing was observed, and the damage says that the harness could not.

    Then the verdict is unknown, and the processes are those that came to run.
    """
    return bool(measured.observations) and all(
        o.ended is None and any(d.startswith("harness:") for d in o.damage)
        for o in measured.observations
    )


def ran(measured: Measurement) -> bool:
    """Whether phases ran here, and were observed."""
    return not measured.published and not harness_broke(measured)


def events_lost(measured: Measurement) -> bool:
    """The file of events was damaged, perhaps after the first cut: what is there is not all."""
    return any(d.startswith("events.jsonl") for o in measured.observations for d in o.damage)


def undamaged(measured: Measurement) -> Iterator[tuple[Observation, tuple[Event, ...]]]:
    """Each observation that must agree with the events up to its cut, and these."""
    if events_lost(measured):
        return
    for observed in measured.observations:
        events = measured.events[: max(observed.events, 0)]
        if not observed.damage and (events or not measured.published):
            yield observed, events


def _observations(measured: Measurement) -> Iterator[str]:
    found = [o.after for o in measured.observations]
    allowed: list[list[str]] = [["fault", "recover"]]
    if measured.published:
        allowed += [["fault"], ["recover"]]
    if found not in allowed:
        yield f"its observations are {found}, not one after the fault and one after recovery."
    if not ran(measured):
        return
    for observed in measured.observations:
        after, ended = observed.after, observed.ended
        due = after == "fault" or measured.cell.policy != "never"
        if due != (ended is not None):
            yield f"its observation after {after} " + (
                "does not say how the phase ended." if due else "tells of a phase that did not run."
            )
        if ended is not None and ended not in (*judge.ENDS, HANG) and ended not in SIGNALS:
            yield f"its {after} phase ended by {ended!r}, which is no signal."
        if observed.settled is None:
            yield f"its observation after {after} does not say whether the attempt was settled."


def _sequence(measured: Measurement) -> Iterator[str]:
    events, begin = measured.events, 0
    for number, event in enumerate(events):
        if event.seq != number:
            yield f"its event {number} carries the number {event.seq}: one is missing or moved."
            break
    if events_lost(measured):
        return
    for observed in measured.observations:
        cut, verb = observed.events, observed.after
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


def _points(measured: Measurement) -> Iterator[str]:
    """Points exist, and the strikes are those of the planned fault, each at its own point."""
    if measured.published:
        return
    lost = events_lost(measured)  # also where a runtime came to a point that does not exist
    known = (*POINTS, *INNER_POINTS.get(measured.cell.dedupe, ()))
    seen: Counter[str] = Counter()
    for event in measured.events:
        point = event.value.get("point")
        if event.lane not in ("point", "fault"):
            continue
        around = measured.cell.recovery_fault not in (None, NONE)
        if around and event.lane == "fault" and event.phase == "recover":
            continue  # recovered.py looks at what stood around recovery
        if point not in known and strace.parse(str(point)) is None:
            if event.lane == "point" or not lost:
                yield f"its event {event.seq} is at the point {point!r}, which does not exist."
        elif event.lane == "fault" and not _planned(measured.cell, event):
            yield f"its event {event.seq} tells of a fault that the cell does not plan."
        elif point == measured.cell.point and event.phase == "fault" and not lost:
            yield from _strike(event, seen)


def _planned(cell: Cell, event: Event) -> bool:
    where = (event.phase, event.value.get("point"))
    fault = _TELLS.get(str(event.value.get("error")), event.value.get("fault", cell.fault))
    return where == ("fault", cell.point) and fault == cell.fault


def _strike(event: Event, seen: Counter[str]) -> Iterator[str]:
    """The point is reached, then the fault strikes, then its error leaves the point.

    Threads may write events of their own between these, so only the order is held against it.
    """
    if event.lane == "point":
        seen["reached"] += 1
        return
    step, needs = ("struck", "reached") if "fault" in event.value else ("raised", "struck")
    seen[step] += 1
    if seen[step] > seen[needs]:
        before = "the operation came to its point" if step == "struck" else "its fault struck"
        yield f"its event {event.seq} is of a strike, but no event before it says that {before}."


def _standing(measured: Measurement) -> Iterator[str]:
    """A fault that leaves something to see was looked for after the fault phase, and only then."""
    if not ran(measured) or events_lost(measured):
        return
    told = (e for e in measured.events if e.phase == "fault" and e.lane == "fault")
    struck = any("fault" in e.value for e in told)
    fault = measured.cell.kind
    for observed in measured.observations:
        # A kill is seen in how the phase ended, or else in what became of the process below it.
        under = fault == "kill" and observed.ended != FAULTS[fault]
        received = by_receiver(measured.cell.point, fault)
        left = under or not (fault in PROCESS_FAULTS or received)
        wanted = struck and left and observed.after == "fault"
        if wanted != (observed.standing is not None):
            yield f"its observation after {observed.after} " + (
                "does not say whether the fault still stood."
                if wanted
                else "says whether a fault stood that leaves nothing, or was lifted."
            )
        if under and observed.standing and measured.cell.runtime.startswith(OF_ONE_PROCESS):
            owner = "the reference" if measured.cell.runtime == REFERENCE else "its runtime"
            yield f"it says that a process below its phase was killed; {owner} has none."


def _killed(measured: Measurement) -> Iterator[str]:
    """A phase that was killed, though its fault kills nothing, is told as damage.

    And none is ended as one that hangs but where a fault had it hang, and told so.
    """
    first, cell = measured.observations[0], measured.cell
    if not ran(measured) or cell.runtime == WORKER or first.damage:
        return
    struck = any(e.lane == "fault" and "fault" in e.value for e in measured.events)
    kills = cell.kind in ENDING_FAULTS and cell.fault != HANG
    if struck and first.ended == FAULTS["kill"] and not kills:
        yield f"its phase was killed where {cell.fault!r} struck, which kills nothing."
    told = any(e.lane == "fault" and e.value.get("error") == FAULTS[HANG] for e in measured.events)
    for observed in measured.observations:
        if observed.ended == HANG and not (observed is first and told):
            yield f"its {observed.after} phase was ended for hanging; nothing told that it hung."


def _answered(measured: Measurement) -> Iterator[str]:
    """An answer that was lost came to nobody."""
    cell, first, lost = measured.cell, measured.observations[0], FAULTS["response_lost"]
    if not ran(measured) or first.damage or cell.point not in FAULT_POINTS["response_lost"]:
        return
    struck = any(e.lane == "fault" and "fault" in e.value for e in measured.events)
    loses = cell.fault == "response_lost" and struck
    if loses and first.ended == "exit" and first.error != lost:
        yield f"its caller saw {first.error!r}, though its answer was lost."


def _counts(measured: Measurement) -> Iterator[str]:
    for observed, events in undamaged(measured):
        after = f"its observation after {observed.after}"
        calls = sum(e.lane == "call" for e in events)
        if observed.calls not in (None, calls):
            yield f"{after} counts {observed.calls} calls, but {calls} are among its events."
        arrived = effects_left(events)
        if observed.effects is not None and not _same_effects(arrived, observed.effects):
            yield f"the effects of {after.removeprefix('its ')} are not those of its events."


def _same_effects(arrived: Sequence[Event], effects: Sequence[Effect]) -> bool:
    return len(arrived) == len(effects) and all(
        event.value.get("effect_id") == effect.effect_id
        and all(event.value.get(k, v) == v for k, v in as_map(effect).items())
        for event, effect in zip(arrived, effects, strict=True)
    )


def _returns(measured: Measurement) -> Iterator[str]:
    """What a caller saw is what its phase returned, or else the signal that it died of."""
    for observed, events in undamaged(measured):
        verb = observed.after
        own = [e for e in events if e.phase == verb]
        returns = [e.value for e in own if e.lane == "return" and "attempt" not in e.value]
        errors = [value.get("error") for value in returns]
        errors = errors[-1:] if verb == "recover" else errors  # of the last one that ended
        died = None if observed.ended in judge.ENDS else observed.ended
        died = FAULTS[HANG] if died == HANG else died
        if (errors or not measured.published) and observed.error != [*errors, died][0]:
            says = f"its events say {errors[0]!r}" if errors else f"its process ended by {died}"
            says = says if errors or died else "nothing was returned"
            yield f"its caller saw {observed.error!r} after {verb}, but {says}."
        if observed.ended == "exit" and not errors:
            yield f"its {verb} phase ended, but no event says what it returned."
        if died in ("SIGKILL", FAULTS[HANG]) and _returned_after_its_kill(own):
            yield f"its {verb} phase returned, though its fault had killed it."


def _returned_after_its_kill(events: Sequence[Event]) -> bool:
    told = [e.value.get("fault") if e.lane == "fault" else None for e in events]
    kills = [n for n, fault in enumerate(told) if fault in OWN_END]
    return bool(kills) and any(e.lane == "return" for e in events[kills[0] :])


def _states(measured: Measurement) -> Iterator[str]:
    """What is stored at a cut is what was last seen of it: nobody was left to change it."""
    for observed, events in undamaged(measured):
        after = observed.after
        states = [e.value for e in events if e.lane == "state"]
        if not states:
            if observed.ended == "exit":
                yield f"its {after} phase ended, but no event says in which state."
            continue
        last, stored = states[-1], shown(observed.recorded)
        if "error" in last:  # the phase itself could not read it
            continue
        for name, word in {"state": "status", "execution": "execution"}.items():
            if last.get(word) != stored[word]:
                yield (
                    f"its {name} after {after} is {stored[word]!r}, "
                    f"but its events say {last.get(word)!r}."
                )
        if last.get("evidence") != stored["evidence"]:
            yield f"the evidence recorded after {after} is not that of its events."


def _never(measured: Measurement) -> Iterator[str]:
    """Where no recovery ran, nobody saw an error of it, and nothing changed."""
    first, last = measured.after("fault"), measured.after("recover")
    if not ran(measured) or measured.cell.policy != "never" or not (first and last):
        return
    if last.error is not None:
        yield f"no recovery ran, but its caller saw {last.error!r}."
    if first.damage or last.damage:
        return
    if last.events != first.events:
        yield "no recovery ran, but it has events after those of the fault."
    seen = [(shown(o.recorded), o.effects, o.calls) for o in (first, last)]
    if seen[0] != seen[1]:
        yield "no recovery ran, but its state, effects or calls are not those after the fault."


LOOKS: Looks = {
    "observations": _observations,
    "sequence": _sequence,
    "points": _points,
    "standing": _standing,
    "killed": _killed,
    "answered": _answered,
    "counts": _counts,
    "returns": _returns,
    "states": _states,
    "never": _never,
}
