"""Cut an observation at quiescence: read the ledgers and the stored state from outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rcr_probes import faults, folder, ledger, process
from rcr_probes.errors import code_of
from rcr_probes.ledger import CallLine, EffectLine, EventLine, Ledger
from rcr_probes.model import Effect, Event, Observation, Recorded
from rcr_probes.phase import shown
from rcr_probes.process import Ended
from rcr_probes.runtime import Operation, Runtime, recorded


@dataclass(frozen=True, slots=True)
class Strike:
    """The proof of a strike, as the phase wrote it before it struck."""

    fault: str
    pid: int
    path: str | None

    def lift(self) -> None:
        """Take the fault away, before recovery."""
        faults.KINDS[self.fault].lift(self.path)

    def standing(self) -> bool | None:
        """Whether the fault is seen from outside now."""
        return faults.KINDS[self.fault].standing(self.path)


def written(place: str, since: Ledger[EventLine] | None = None) -> Ledger[EventLine]:
    """The events of the cell in this folder, as they are written there.

    Args:
        place: the cell's folder.
        since: what was read there before; where that is gone, there is damage.
    """
    now = ledger.read(os.path.join(place, folder.EVENTS), EventLine)
    if since is None or now.lines[: len(since.lines)] == since.lines:
        return now
    return replace(now, damage=(*now.damage, "events.jsonl: what stood there is gone"))


def strike(lines: Sequence[EventLine]) -> Strike | None:
    """The first strike among the events; None where no fault came to strike."""
    for line in lines:
        if line.lane == "fault" and "fault" in line.value:
            return Strike(line.value["fault"], line.pid, line.path)
    return None


def effects(place: str) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """The effects that exist, named in order of arrival, and the damage of their ledger."""
    read = ledger.read(os.path.join(place, folder.EFFECTS), EffectLine)
    named = tuple(
        Effect(f"E{number}", line.operation_key, line.kind, line.target)
        for number, line in enumerate(read.lines, 1)
    )
    return named, read.damage


def events(lines: Sequence[EventLine]) -> tuple[Event, ...]:
    """The events as facts: numbered in order, effects named, no pid and no path."""
    named: list[Event] = []
    arrived = 0
    for seq, line in enumerate(lines):
        value = line.value
        if line.lane == "effect":
            arrived += 1
            value = {"effect_id": f"E{arrived}", **value}
        named.append(Event(seq, line.phase, line.lane, value))
    return tuple(named)


def returned(lines: Sequence[EventLine], verb: str) -> str | None:
    """What the phase of this verb returned to its caller; None where it did not return."""
    errors = (e.value["error"] for e in lines if e.lane == "return" and e.phase == verb)
    return next(errors, None)


def observe(
    place: str,
    lines: Ledger[EventLine],
    runtime: Runtime,
    operation: Operation,
    after: Literal["fault", "recover"],
    ended: Ended | None,
) -> Observation:
    """Observe one cell from its parent process, while nothing of it is alive.

    Args:
        place: the cell's folder.
        lines: what ``written`` gives now.
        runtime: asked for the stored state alone.
        operation: as recovery has it in hand.
        after: which of the two observations this is: the verb of the phase before it.
        ended: how that phase ended; None where there was none.
    """
    calls = ledger.read(os.path.join(place, folder.CALLS), CallLine)
    seen, effect_damage = effects(place)
    state, record_damage = _recorded(runtime, operation)
    struck = strike(lines.lines) if after == "fault" else None
    answer = returned(lines.lines, after)
    how = ended.how if ended else None
    if how == "exit" and answer is None:
        how = "crash"  # the process went away in the middle of its verb, with status 0
    if answer is None and how not in ("crash", "deadline"):
        answer = how  # the caller died of the same signal
    return Observation(
        after=after,
        events=len(lines.lines),
        recorded=state,
        effects=seen,
        calls=len(calls.lines),
        error=answer,
        ended=how,
        settled=process.fence_is_free(place) and not (ended and ended.left_behind),
        standing=struck.standing() if struck else None,
        damage=(
            *lines.damage,
            *calls.damage,
            *effect_damage,
            *record_damage,
            *_changed(lines.lines, state),
            *_contradictions(lines.lines, len(seen), len(calls.lines), ended),
        ),
    )


def _recorded(runtime: Runtime, operation: Operation) -> tuple[Recorded, tuple[str, ...]]:
    try:
        return recorded(runtime, operation), ()
    except Exception as error:
        return Recorded(ledger.UNREADABLE), (f"record: cannot be read ({code_of(error)})",)


def _changed(lines: Sequence[EventLine], state: Recorded) -> tuple[str, ...]:
    """What is stored is what the phase saw last: nobody was there who could have changed it."""
    seen = [line.value for line in lines if line.lane == "state"]
    if not seen or seen[-1].get("status") == ledger.UNREADABLE or seen[-1] == shown(state):
        return ()
    return ("record: is not what the phase saw last",)


def _contradictions(
    lines: Sequence[EventLine], effects: int, calls: int, ended: Ended | None
) -> tuple[str, ...]:
    """What the harness's own files say against each other, or against the process."""
    damage = []
    for lane, count in (("effect", effects), ("call", calls)):
        noted = sum(e.lane == lane for e in lines)
        if noted != count:
            damage.append(f"events.jsonl: {noted} events of lane {lane}, but {count} in the ledger")
    if any(e.value.get("error") == ledger.UNKNOWN_POINT for e in lines):
        damage.append("events.jsonl: the runtime reached a point that does not exist")
    strikes = [e for e in lines if e.lane == "fault" and "fault" in e.value]
    if ended and ended.how == "SIGKILL" and any(e.pid != ended.pid for e in strikes):
        damage.append("events.jsonl: the phase was killed, but not by the process that struck")
    if ended and ended.left_behind:
        damage.append("processes: some outlived the phase, and were ended")
    return tuple(damage)
