"""From a course as it was seen to a measurement: labels for identifiers, events in order, cuts.

Pure. Raw keys, paths and payloads stay behind: they are the worker's, and no facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from rcr_probes import request
from rcr_probes.evidence.received import DONE, OTHER
from rcr_probes.model import (
    Circumstances,
    Effect,
    Event,
    Forced,
    Json,
    Measurement,
    Observation,
    Recorded,
)
from rcr_probes.probe import strike
from rcr_probes.probe.attribute import Attribution
from rcr_probes.probe.drive import Course
from rcr_probes.probe.process import Ended
from rcr_probes.receiver import Record, Request
from rcr_probes.vocabulary import MEASURED, NONE, Lane, Says

Step = tuple[Lane, Mapping[str, Json]]


def measurement(course: Course, told: Attribution) -> Measurement:
    """What was measured of one cell.

    Args:
        course: its course.
        told: how its requests are told apart, and how many effects are approved.
    """
    seen = _Seen(course, told)
    before = _steps(course, seen, "fault")
    after = _steps(course, seen, "recover")
    steps = [*(("fault", *s) for s in before), *(("recover", *s) for s in after)]
    made = seen.effects(course.truth)
    outcome = course.forced.outcome
    words = (course.worker.status, course.recovery.status)
    says: dict[str, Says] = {word: "done" if word == DONE else "open" for word in words}
    return Measurement(
        cell=course.cell,
        source=MEASURED,
        approved=replace(request.approved(course.cell), effects=len(told.made)),
        says=says,
        events=tuple(Event(seq, *step) for seq, step in enumerate(steps)),
        observations=(
            _observed(course, seen, "fault", len(before)),
            _observed(course, seen, "recover", len(steps)),
        ),
        forced=Forced(made, NONE if outcome in ("effect", "replayed") else str(outcome)),
    )


def circumstances(course: Course, parent: int) -> Circumstances:
    """The processes and times of a course."""
    pid, seconds = course.truth_ran
    ran = {
        "fault": (course.worker.pid, course.worker.seconds),
        "force": (pid, seconds),
        "recover": (course.recovery.pid, course.recovery.seconds),
    }
    return Circumstances(
        start="spawn",
        parent=parent,
        pids={verb: one for verb, (one, _) in ran.items()},
        seconds={verb: round(took, 6) for verb, (_, took) in ran.items()},
    )


class _Seen:
    """One course's records under labels: keys K1, K2 … in order of appearance, effects by kind."""

    def __init__(self, course: Course, told: Attribution) -> None:
        self._told = told
        self._approved = request.approved(course.cell)
        sent = [r.key for r in course.after_recovery.requests if r.key is not None]
        self._keys = {key: f"K{n}" for n, key in enumerate(dict.fromkeys(sent), 1)}

    def effects(self, record: Record) -> tuple[Effect, ...]:
        by_id = {r.id: r for r in record.requests}
        kinds = self._told.kinds([by_id[effect.request] for effect in record.effects])
        return tuple(
            Effect(
                effect.id,
                self._approved.operation_key,
                kind,
                OTHER if kind == OTHER else self._approved.target,
            )
            for effect, kind in zip(record.effects, kinds, strict=True)
        )

    def call(self, sent: Request, gave_up: str | None) -> dict[str, Json]:
        """One request as the value of a call event."""
        value: dict[str, Json] = {"operation_key": self._approved.operation_key}
        value["key"] = self.key(sent.key)
        if (label := self._told.label(sent)) is not None:
            value["payload"] = label
        value["outcome"] = sent.outcome
        if gave_up is not None:
            value["gave_up"] = gave_up
        return value

    def key(self, raw: str | None) -> str | None:
        return None if raw is None else self._keys[raw]


def _steps(course: Course, seen: _Seen, verb: str) -> list[Step]:
    """The events of one phase, in the order in which the receiver wrote them."""
    ended = course.worker if verb == "fault" else course.recovery
    steps = list(_received(course, seen, verb))
    if verb == "fault" and course.proven:
        point = course.cell.point
        steps += [("point", {"point": point}), ("fault", {"point": point, "fault": "kill"})]
    steps.append(("state", {"status": ended.status, "execution": None, "evidence": []}))
    if ended.how == "exit":
        steps.append(("return", {"error": _error(ended)}))
    return steps


def _received(course: Course, seen: _Seen, verb: str) -> Iterator[Step]:
    whole = course.after_recovery
    cut = len(course.after_fault.events)
    events = whole.events[:cut] if verb == "fault" else whole.events[cut:]
    requests = {r.id: r for r in whole.requests}
    effects = {e.effect_id: e for e in seen.effects(whole)}
    gave_up = {e.request: e.detail for e in whole.events if e.what == "gave_up"}
    for event in events:
        if event.request is None:
            continue
        sent = requests[event.request]
        match event.what:
            case "arrived" if sent.nth is not None:
                yield "call", seen.call(sent, gave_up.get(event.request))
            case "arrived" if sent.outcome == "no_effect":
                yield "ask", {}
            case "effect":
                effect = effects[str(event.detail)]
                yield (
                    "effect",
                    {
                        "effect_id": effect.effect_id,
                        "operation_key": effect.operation_key,
                        "kind": effect.kind,
                        "target": effect.target,
                        "key": seen.key(sent.key),
                        "call": sent.nth,
                    },
                )
            case "struck":
                point, fault = strike.POINTS_OF[str(event.detail)]
                yield "point", {"point": point}
                yield "fault", {"point": point, "fault": fault}


def _observed(course: Course, seen: _Seen, verb: str, events: int) -> Observation:
    fault = verb == "fault"
    ended = course.worker if fault else course.recovery
    record = course.after_fault if fault else course.after_recovery
    drained = course.drained[0 if fault else 1]
    return Observation(
        after="fault" if fault else "recover",
        events=events,
        recorded=Recorded(ended.status),
        effects=seen.effects(record),
        calls=sum(r.nth is not None for r in record.requests),
        error=None if ended.how == "deadline" else _error(ended),
        ended=ended.how,
        settled=drained and not ended.left_behind,
        standing=_standing(course) if fault else None,
        damage=tuple(_damage(ended, drained)),
    )


def _standing(course: Course) -> bool | None:
    """A kill that was to strike, and found the worker gone already, struck nothing."""
    struck = course.proven or any(e.what == "struck" for e in course.after_fault.events)
    killed = course.worker.how == "SIGKILL"
    return False if course.cell.fault == "kill" and struck and not killed else None


def _damage(ended: Ended, drained: bool) -> Sequence[str]:
    found = []
    if ended.left_behind:
        found.append("processes: some outlived the command, and were ended")
    if not drained:
        found.append("receiver: something that was sent was still in flight")
    return found


def _error(ended: Ended) -> str:
    return NONE if ended.status == DONE else ended.status
