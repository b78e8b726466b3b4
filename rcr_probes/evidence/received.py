"""Whether what a receiver tells of an unmodified worker can have happened, as ``rcr probe`` has it.

A receiver claims a key for the first request that carries it, makes one effect for it, and writes
its fault down before it strikes; how a command ended is all the state that it has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rcr_probes import strace
from rcr_probes.evidence.course import Looks
from rcr_probes.model import Cell, Event, Json, Measurement, Observation, Recorded
from rcr_probes.vocabulary import BASELINE, NONE

OTHER = "other"  # the target and the kind of an effect that no control makes
DONE = "exit_0"  # how a worker ends that says that all is done
_NO_CONTROLS = "a probe begins with its two controls, which are not there."
_EXIT = re.compile(r"exit_(0|[1-9]\d{0,2})")
_KEY = re.compile(r"K[1-9]\d*")
_LABEL = re.compile(rf"(?:payload|path)-[1-9]\d*|{OTHER}")
_REQUEST = re.compile(r"request_([1-9]\d{0,8})")
_DROPPED = "dropped"  # what becomes of a call that is struck before it is handled
_GAVE_UP = (None, "caller", "bound")
# What becomes of a request that can make an effect.
_OUTCOMES = ("effect", "replayed", "mismatch", "conflict", "refused", _DROPPED)
_FORCED = (NONE, "mismatch", "conflict", "refused")


def nth(cell: Cell) -> int | None:
    """The request at which a cell strikes, from 1; None where its variant names none."""
    if cell.variant == BASELINE:
        return 1
    found = _REQUEST.fullmatch(cell.variant or "")
    at_request = cell.point != NONE and strace.parse(cell.point) is None
    return int(found[1]) if found and int(found[1]) > 1 and at_request else None


@dataclass(frozen=True, slots=True)
class _Call:
    """One request that can make an effect.

    Attributes:
        at: the place of its event.
        phase: in which it arrived.
        key: its label; None where it carried none.
        payload: the label of what it asked for; None where requests are only counted.
        outcome: what became of it; None where it might still act.
        gave_up: who did, where its answer was withheld.
    """

    at: int
    phase: str
    key: Json
    payload: Json
    outcome: Json
    gave_up: Json


def _calls(events: Sequence[Event]) -> list[_Call]:
    names = ("key", "payload", "outcome", "gave_up")
    return [
        _Call(at, event.phase, *map(event.value.get, names))
        for at, event in enumerate(events)
        if event.lane == "call"
    ]


def _struck(events: Sequence[Event]) -> int | None:
    """Where the fault struck among the events."""
    return next((at for at, e in enumerate(events) if e.lane == "fault"), None)


def _worker_ended(measured: Measurement) -> Iterator[str]:
    """A command has no state but how it ended, and a caller sees no more of it."""
    for observed in measured.observations:
        verb, ended, status = observed.after, observed.ended, observed.recorded.status
        exited = _EXIT.fullmatch(status)
        if not (exited and int(exited[1]) < 256 if ended == "exit" else status == ended):
            yield f"its {verb} phase ended by {ended!r}, but its status is {status!r}."
        error = {DONE: NONE, "deadline": None}.get(status, status)
        if observed.error != error:
            yield f"its caller saw {observed.error!r} after {verb}, but its status is {status!r}."
        returned = any((e.phase, e.lane) == (verb, "return") for e in measured.events)
        if returned != (ended == "exit"):
            yield f"its {verb} phase ended by {ended!r}, but " + (
                "it returned something." if returned else "it returned nothing."
            )
        yield from _stored(observed)
    words = [o.recorded.status for o in measured.observations]
    says = {word: "done" if word == DONE else "open" for word in words}
    if dict(measured.says) != says:
        yield f"its states say {dict(measured.says)}, but those of its commands say {says}."


def _stored(observed: Observation) -> Iterator[str]:
    if observed.recorded != Recorded(observed.recorded.status):
        yield f"after {observed.after} it has stored more than how its command ended."
    if observed.settled is not (not observed.damage):
        yield f"after {observed.after} it is " + (
            "settled, though something is damaged."
            if observed.damage
            else "not settled, though nothing is damaged."
        )
    if observed.standing:
        yield "it says that another process than its worker was killed."


def _worker_calls(measured: Measurement) -> Iterator[str]:
    """What became of each call follows from its key, and from who had carried that before."""
    calls = _calls(measured.events)
    damaged = any(o.damage for o in measured.observations)
    for number, call in enumerate(calls):
        name = f"its call {number + 1}"
        before = [one for one in calls[:number] if one.key == call.key is not None]
        first = any((one.outcome, one.payload) == ("effect", call.payload) for one in before)
        if call.outcome not in _OUTCOMES and not (call.outcome is None and damaged):
            yield f"{name} came to {call.outcome!r}, which nothing knows."
        elif call.outcome == "replayed" and not first:
            yield f"{name} was replayed, but its key and payload had no effect before."
        elif call.outcome in ("mismatch", "conflict") and not before:
            yield f"{name} met a {call.outcome}, but nothing had carried its key before."
        elif call.outcome == "refused" and call.key is None:
            yield f"{name} was refused, but it carries no key that could not be read."
        if call.key is not None and not _KEY.fullmatch(str(call.key)):
            yield f"{name} carries {call.key!r}, which is no key's label."
        if call.payload is not None and not _LABEL.fullmatch(str(call.payload)):
            yield f"{name} asks for {call.payload!r}, which is no label of a payload."
    yield from _withheld(measured, calls)


def _withheld(measured: Measurement, calls: Sequence[_Call]) -> Iterator[str]:
    """Only the struck call is dropped, and only its answer is withheld."""
    cell, struck = measured.cell, _struck(measured.events)
    for number, call in enumerate(calls, 1):
        here = number == nth(cell) and call.phase == "fault" and struck is not None
        if call.outcome == _DROPPED and not (here and cell.point == "before_action"):
            yield f"its call {number} was dropped, but no fault struck before its effect."
        if call.gave_up not in _GAVE_UP or (
            call.gave_up is not None and not (here and cell.fault == "timeout")
        ):
            yield f"its call {number} tells of {call.gave_up!r}, who gave up on no answer of it."


def _worker_effects(measured: Measurement) -> Iterator[str]:
    """Each effect is one of the calls that took effect, and comes after it."""
    events, calls = measured.events, _calls(measured.events)
    made: dict[Json, int] = {}  # number of a call → where its effect stands
    for at, event in enumerate(events):
        if event.lane != "effect":
            continue
        name, number = f"its effect {event.value.get('effect_id')!r}", event.value.get("call")
        call = calls[number - 1] if type(number) is int and 0 < number <= len(calls) else None
        if call is None or call.at > at or number in made:
            yield f"{name} belongs to no call before it."
            continue
        made[number] = at
        if (call.outcome, call.key) != ("effect", event.value.get("key")):
            yield f"{name} is of the call {number}, which came to {call.outcome!r}."
        yield from _kind(measured, event.value)
    for observed in measured.observations:
        for number, call in enumerate(calls, 1):
            due = call.at < observed.events and call.outcome == "effect" and not observed.damage
            if due and not (number in made and made[number] < observed.events):
                yield f"its call {number} took effect, but after {observed.after} no effect is its."
    yield from _strike(measured, calls, made)


def _kind(measured: Measurement, value: Mapping[str, Json]) -> Iterator[str]:
    known = [str(number) for number in range(1, measured.approved.effects + 1)]
    kind, target = value.get("kind"), value.get("target")
    wanted = OTHER if kind == OTHER else measured.approved.target
    if kind not in (*known, OTHER) or target != wanted:
        yield f"its effect {value.get('effect_id')!r} is {kind!r} on {target!r}, which none is."


def _strike(
    measured: Measurement, calls: Sequence[_Call], made: Mapping[Json, int]
) -> Iterator[str]:
    """The fault strikes the request of its cell: before that is handled, or once it was."""
    cell, struck, number = measured.cell, _struck(measured.events), nth(measured.cell)
    first = measured.observations[0]
    own = [call for call in calls if call.phase == "fault"]
    if cell.point == NONE or strace.parse(cell.point) or number is None:
        return
    if len(own) < number:
        if struck is not None:
            yield f"its fault struck, but the worker sent no request {number}."
        return
    call = own[number - 1]
    if struck is None:
        if not first.damage:
            yield f"its worker sent request {number}, but no fault struck it."
    elif struck < call.at:
        yield f"its fault struck before request {number} came."
    elif cell.point == "before_action":
        if call.outcome not in (_DROPPED, None):
            yield f"its fault struck before the effect, but that call came to {call.outcome}."
    elif call.outcome in (_DROPPED, None):
        yield f"its fault struck after the call, but that came to {call.outcome}."
    elif call.outcome == "effect" and made.get(number, struck) >= struck:
        yield "its fault struck after the effect, but no effect of that call comes before it."


def _worker_forced(measured: Measurement) -> Iterator[str]:
    """The struck call, or else the last one, was handled once more as it was sent."""
    first, forced = measured.observations[0], measured.forced
    own = [c for c in _calls(measured.events) if c.phase == "fault"]
    if forced is None or first.damage or not own:
        return
    number = nth(measured.cell) if _struck(measured.events) is not None else None
    at_call = strace.parse(measured.cell.point) is not None
    call = own[-1] if number is None or number > len(own) or at_call else own[number - 1]
    done = any((c.key, c.outcome) == (call.key, "effect") for c in own)
    wanted = 0 if call.outcome == "refused" or (done and call.key is not None) else 1
    refused = (call.outcome == "refused") == (forced.error == "refused")
    made = len(forced.effects) - len(first.effects or ())
    if forced.error not in _FORCED or not refused or made != wanted:
        yield (
            f"its forced call made {made} effects, and ended in {forced.error!r}: "
            f"the call that it repeats would make {wanted}."
        )


LOOKS: Looks = {
    "worker_ended": _worker_ended,
    "worker_calls": _worker_calls,
    "worker_effects": _worker_effects,
    "worker_forced": _worker_forced,
}


class Probe:
    """The captures of a worker, one after another, as those of one run.

    Its two controls alone are kept: a stranger's folder may hold more captures than memory does.
    """

    def __init__(self) -> None:
        self._controls: list[Measurement] = []
        self._begins = True  # with its controls, as far as was seen
        self._slots: dict[Json, list[Json]] = {}

    def problems(self, one: Measurement) -> Iterator[tuple[Cell, str]]:
        """Each reason why no probe made this capture after those before it, and of which cell."""
        try:
            yield from self._together(one)
        except Exception as error:  # bad evidence may hold anything; it never ends the check
            said = f"beside its controls it cannot be examined: {type(error).__name__}: {error}."
            yield one.cell, said

    def end(self) -> Iterator[tuple[Cell, str]]:
        """The same of what is missing, once each capture was looked at."""
        if self._begins and len(self._controls) == 1:
            yield self._controls[0].cell, _NO_CONTROLS

    def _together(self, one: Measurement) -> Iterator[tuple[Cell, str]]:
        if not self._begins:
            return
        known, control = len(self._controls), one.cell.point == NONE
        if control != (known < 2) or (control and one.cell.repeat != known):
            self._begins = False
            yield (self._controls or [one])[0].cell, _NO_CONTROLS
            return
        if not control:
            yield from self._held(one)
            return
        self._controls.append(one)
        if known == 1:
            counted = [_count(control) for control in self._controls]
            if counted[0] != counted[1] or not counted[0][1]:
                yield one.cell, f"its controls differ, or have no effect: {counted}."
            for payload, kind in _kinds(self._controls[0], "fault"):
                self._slots.setdefault(payload, []).append(kind)
            for each in self._controls:
                yield from self._held(each)

    def _held(self, one: Measurement) -> Iterator[tuple[Cell, str]]:
        """What one capture has that its controls do not allow."""
        sent, made = _count(self._controls[0])
        if one.approved.effects != made:
            yield (
                one.cell,
                f"{one.approved.effects} effects were approved, but its control made {made}.",
            )
        if (nth(one.cell) or 0) > sent:
            yield one.cell, f"it strikes at request {nth(one.cell)}; its control sends {sent}."
        if one.cell.policy != self._controls[0].cell.policy:
            yield one.cell, "it recovers in another way than its control."
        yield from _named(one, self._slots)


def _count(control: Measurement) -> tuple[int, int]:
    """The requests and the effects of a run without a fault."""
    lanes = Counter(e.lane for e in control.events if e.phase == "fault")
    return lanes["call"], lanes["effect"]


def _kinds(measured: Measurement, *phases: str) -> list[tuple[Json, Json]]:
    """For each effect what its call asked for, and which approved one it is said to be."""
    calls = _calls(measured.events)
    effects = [e for e in measured.events if e.lane == "effect" and e.phase in phases]
    return [(calls[e.value["call"] - 1].payload, e.value.get("kind")) for e in effects]


def _named(
    measured: Measurement, slots: Mapping[Json, Sequence[Json]]
) -> Iterator[tuple[Cell, str]]:
    """Which approved effect each is, its control says: the next one like it, then the last."""
    came: Counter[Json] = Counter()
    for payload, kind in _kinds(measured, "fault", "recover"):
        own = slots.get(payload, (OTHER,))
        if kind != own[min(came[payload], len(own) - 1)]:
            yield (
                measured.cell,
                f"its effect of {payload} is called {kind!r}, unlike its control's.",
            )
        came[payload] += 1
