"""Whether what a measurement tells can have happened: its events, and what was observed of them.

Damage excuses what it makes uncertain, and makes the verdict unknown. A publication may give
figures without events, and is held against what it gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from rcr_probes import judge, strace
from rcr_probes.evidence.received import OTHER
from rcr_probes.model import (
    FAULTS,
    NONE,
    POINTS,
    PROCESS_FAULTS,
    RECEIVER_FAULTS,
    RECEIVER_KEY,
    REFERENCE,
    WORKER,
    Cell,
    Effect,
    Event,
    Forced,
    Json,
    Measurement,
    Observation,
    Recorded,
    as_map,
)
from rcr_probes.request import recomputed

# The signals of Linux, where evidence is made; it may be checked elsewhere.
_SIGNALS = frozenset((
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL",
    "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGSTKFLT", "SIGCHLD",
    "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGXCPU", "SIGXFSZ",
    "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS", "SIGRTMIN", "SIGRTMAX",
))  # fmt: skip


_KILLS = ("kill", "kill_host")
# What a strike says besides that it struck, where one kind of fault alone says it.
_TELLS = {FAULTS[fault]: fault for fault in ("exception", "kill_host")}


def harness_broke(measured: Measurement) -> bool:
    """Nothing was observed, and the damage says that the harness could not.

    Then the verdict is unknown, and the processes are those that came to run.
    """
    return bool(measured.observations) and all(
        o.ended is None and any(d.startswith("harness:") for d in o.damage)
        for o in measured.observations
    )


def _ran(measured: Measurement) -> bool:
    """Whether phases ran here, and were observed."""
    return not measured.published and not harness_broke(measured)


def _events_lost(measured: Measurement) -> bool:
    """The file of events was damaged, perhaps after the first cut: what is there is not all."""
    return any(d.startswith("events.jsonl") for o in measured.observations for d in o.damage)


def _undamaged(measured: Measurement) -> Iterator[tuple[Observation, tuple[Event, ...]]]:
    """Each observation that must agree with the events up to its cut, and these."""
    if _events_lost(measured):
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
    if not _ran(measured):
        return
    for observed in measured.observations:
        after, ended = observed.after, observed.ended
        ran = after == "fault" or measured.cell.policy != "never"
        if ran != (ended is not None):
            yield f"its observation after {after} " + (
                "does not say how the phase ended." if ran else "tells of a phase that did not run."
            )
        if ended is not None and ended not in judge.ENDS and ended not in _SIGNALS:
            yield f"its {after} phase ended by {ended!r}, which is no signal."
        if observed.settled is None:
            yield f"its observation after {after} does not say whether the attempt was settled."


def _sequence(measured: Measurement) -> Iterator[str]:
    events, begin = measured.events, 0
    for number, event in enumerate(events):
        if event.seq != number:
            yield f"its event {number} carries the number {event.seq}: one is missing or moved."
            break
    if _events_lost(measured):
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
    lost = _events_lost(measured)  # also where a runtime came to a point that does not exist
    seen: Counter[str] = Counter()
    for event in measured.events:
        point = event.value.get("point")
        if event.lane not in ("point", "fault"):
            continue
        if point not in POINTS and strace.parse(str(point)) is None:
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
    if not _ran(measured) or _events_lost(measured):
        return
    struck = any(e.lane == "fault" and "fault" in e.value for e in measured.events)
    fault = measured.cell.fault
    for observed in measured.observations:
        # A kill is seen in how the phase ended, or else in what became of the process below it.
        under = fault == "kill" and observed.ended != FAULTS[fault]
        left = under or fault not in (*PROCESS_FAULTS, *RECEIVER_FAULTS)
        wanted = struck and left and observed.after == "fault"
        if wanted != (observed.standing is not None):
            yield f"its observation after {observed.after} " + (
                "does not say whether the fault still stood."
                if wanted
                else "says whether a fault stood that leaves nothing, or was lifted."
            )
        if under and observed.standing and measured.cell.runtime == REFERENCE:
            yield "it says that a process below its phase was killed; the reference has none."


def _killed(measured: Measurement) -> Iterator[str]:
    """A phase that was killed, though its fault kills nothing, is told as damage."""
    first, cell = measured.observations[0], measured.cell
    if not _ran(measured) or cell.runtime == WORKER or cell.fault in _KILLS or first.damage:
        return
    struck = any(e.lane == "fault" and "fault" in e.value for e in measured.events)
    if struck and first.ended == FAULTS["kill"]:
        yield f"its phase was killed where {cell.fault!r} struck, which kills nothing."


def _counts(measured: Measurement) -> Iterator[str]:
    for observed, events in _undamaged(measured):
        after = f"its observation after {observed.after}"
        calls = sum(e.lane == "call" for e in events)
        if observed.calls not in (None, calls):
            yield f"{after} counts {observed.calls} calls, but {calls} are among its events."
        arrived = [e for e in events if e.lane == "effect"]
        if observed.effects is not None and not _same_effects(arrived, observed.effects):
            yield f"the effects of {after.removeprefix('its ')} are not those of its events."


def _same_effects(arrived: Sequence[Event], effects: Sequence[Effect]) -> bool:
    return len(arrived) == len(effects) and all(
        event.value.get("effect_id") == effect.effect_id
        and all(event.value.get(k, v) == v for k, v in as_map(effect).items())
        for event, effect in zip(arrived, effects, strict=True)
    )


def _effects(measured: Measurement) -> Iterator[str]:
    """The executor is ours: it makes one effect a call, and with dedupe one effect a key."""
    if not _ran(measured):
        return
    for observed in measured.observations:
        yield from _named(f"after {observed.after}", [e.effect_id for e in observed.effects or ()])
    arrived = [e for e in measured.events if e.lane == "effect"]
    yield from _named("of its events", [e.value.get("effect_id") for e in arrived])
    if measured.forced:
        forced = [e.effect_id for e in measured.forced.effects]
        yield from _named("after its forced call", forced)
    for observed, events in _undamaged(measured):
        effects = observed.effects or ()
        if len(effects) > sum(e.lane == "call" for e in events):
            yield f"after {observed.after} it has more effects than calls."
        keys = _keys(measured.cell, events, effects)
        if len(set(keys)) != len(keys):
            yield f"after {observed.after} one key has two effects, which its executor prevents."


def _keys(cell: Cell, events: Sequence[Event], effects: Sequence[Effect]) -> list[Json]:
    """What no two effects may share: nothing, their operation's key, or the key that was sent."""
    if cell.dedupe == RECEIVER_KEY:
        sent = [e.value.get("key") for e in events if e.lane == "effect"]
        return [key for key in sent if key is not None]
    return [] if cell.dedupe == NONE else [e.operation_key for e in effects]


def _named(where: str, names: Sequence[Json]) -> Iterator[str]:
    if list(names) != [f"E{number}" for number in range(1, len(names) + 1)]:
        yield f"the effects {where} are not named E1, E2 and so on in their order."


def _returns(measured: Measurement) -> Iterator[str]:
    """What a caller saw is what its phase returned, or else the signal that it died of."""
    for observed, events in _undamaged(measured):
        verb = observed.after
        own = [e for e in events if e.phase == verb]
        errors = [e.value.get("error") for e in own if e.lane == "return"]
        died = None if observed.ended in judge.ENDS else observed.ended
        if (errors or not measured.published) and observed.error != [*errors, died][0]:
            says = f"its events say {errors[0]!r}" if errors else f"its process ended by {died}"
            says = says if errors or died else "nothing was returned"
            yield f"its caller saw {observed.error!r} after {verb}, but {says}."
        if observed.ended == "exit" and not errors:
            yield f"its {verb} phase ended, but no event says what it returned."
        if died == "SIGKILL" and _returned_after_its_kill(own):
            yield f"its {verb} phase returned, though its fault had killed it."


def _returned_after_its_kill(events: Sequence[Event]) -> bool:
    kills = [
        n for n, e in enumerate(events) if e.lane == "fault" and e.value.get("fault") == "kill"
    ]
    return bool(kills) and any(e.lane == "return" for e in events[kills[0] :])


def _states(measured: Measurement) -> Iterator[str]:
    """What is stored at a cut is what was last seen of it: nobody was left to change it."""
    for observed, events in _undamaged(measured):
        after = observed.after
        states = [e.value for e in events if e.lane == "state"]
        if not states:
            if observed.ended == "exit":
                yield f"its {after} phase ended, but no event says in which state."
            continue
        last, stored = states[-1], _stored(observed.recorded)
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


def _stored(recorded: Recorded) -> Mapping[str, Json]:
    """A recorded state as a state event shows it."""
    evidence = [dict(one) for one in recorded.evidence or ()]
    return {"status": recorded.status, "execution": recorded.execution, "evidence": evidence}


def _never(measured: Measurement) -> Iterator[str]:
    """Where no recovery ran, nobody saw an error of it, and nothing changed."""
    first, last = measured.after("fault"), measured.after("recover")
    if not _ran(measured) or measured.cell.policy != "never" or not (first and last):
        return
    if last.error is not None:
        yield f"no recovery ran, but its caller saw {last.error!r}."
    if first.damage or last.damage:
        return
    if last.events != first.events:
        yield "no recovery ran, but it has events after those of the fault."
    seen = [(_stored(o.recorded), o.effects, o.calls) for o in (first, last)]
    if seen[0] != seen[1]:
        yield "no recovery ran, but its state, effects or calls are not those after the fault."


def _digests(measured: Measurement) -> Iterator[str]:
    """The reference's digest sees a changed request, and neither a session nor an order of keys.

    What another runtime's sees is what the probe is there to find out.
    """
    if not _ran(measured) or measured.cell.runtime != REFERENCE:
        return
    changed = measured.cell.digest == "changed"
    for observed in measured.observations:
        stored, in_hand = observed.recorded.approved_digest, observed.recorded.current_digest
        if None not in (stored, in_hand) and changed == (stored == in_hand):
            yield (
                f"its request is {measured.cell.digest!r}, but the two digests after "
                f"{observed.after} are {'equal' if changed else 'different'}."
            )


def _forced(measured: Measurement) -> Iterator[str]:
    """The forced call is one call of our executor, with the request that recovery has in hand."""
    first, forced = measured.after("fault"), measured.forced
    if forced is None or first is None or first.effects is None or first.damage:
        return
    if forced.error in judge.UNMEASURED:
        return
    if forced.effects[: len(first.effects)] != first.effects:
        yield "its forced call did not begin with the effects that stood after the fault."
        return
    new = forced.effects[len(first.effects) :]
    target = recomputed(measured.cell)["target"]
    asked = (target, OTHER) if measured.cell.runtime == WORKER else (target,)
    key = measured.approved.operation_key
    if any(e.operation_key != key or e.target not in asked for e in new):
        yield f"its forced call made an effect that it did not ask for, which was on {target!r}."
    if measured.cell.dedupe == RECEIVER_KEY:  # which key the call carried is the worker's to say
        if len(new) > (forced.error == NONE):
            yield f"its forced call made {len(new)} effects, and ended in {forced.error!r}."
        return
    made = _made(measured, first.effects, forced)
    if len(new) != made and not (forced.error in _SIGNALS and len(new) < made):
        yield f"its forced call made {len(new)} effects, where its executor makes {made}."


def _made(measured: Measurement, before: Sequence[Effect], forced: Forced) -> int:
    """How many effects the call makes: one, but none over its own with dedupe or with an error."""
    known = any(e.operation_key == measured.approved.operation_key for e in before)
    deduplicated = measured.cell.dedupe != NONE and known
    failed = forced.error != NONE and forced.error not in _SIGNALS
    return 0 if deduplicated or failed else 1


LOOKS: tuple[Callable[[Measurement], Iterator[str]], ...] = (
    _observations,
    _sequence,
    _points,
    _standing,
    _killed,
    _counts,
    _effects,
    _returns,
    _states,
    _never,
    _digests,
    _forced,
)
