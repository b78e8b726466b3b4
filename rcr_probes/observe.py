"""Cut an observation at quiescence: read the ledgers and the stored state from outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rcr_probes import faults, ledger, process
from rcr_probes.errors import code_of
from rcr_probes.model import Effect, Event, Observation, Recorded
from rcr_probes.process import Ended
from rcr_probes.runtime import Operation, Runtime


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


def strike(folder: str) -> Strike | None:
    """The first strike in the cell's events; None where no fault came to strike."""
    for line in ledger.read(os.path.join(folder, ledger.EVENTS), ledger.EventLine).lines:
        if line.lane == "fault" and "fault" in line.value:
            return Strike(line.value["fault"], line.pid, line.path)
    return None


def effects(folder: str) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """The effects that exist, named in order of arrival, and the damage of their ledger."""
    read = ledger.read(os.path.join(folder, ledger.EFFECTS), ledger.EffectLine)
    named = tuple(
        Effect(f"E{number}", line.operation_key, line.kind, line.target)
        for number, line in enumerate(read.lines, 1)
    )
    return named, read.damage


def events(folder: str) -> tuple[Event, ...]:
    """The cell's events as facts: numbered in order, effects named, no pid and no path."""
    named: list[Event] = []
    arrived = 0
    lines = ledger.read(os.path.join(folder, ledger.EVENTS), ledger.EventLine).lines
    for seq, line in enumerate(lines):
        value = line.value
        if line.lane == "effect":
            arrived += 1
            value = {"effect_id": f"E{arrived}", **value}
        named.append(Event(seq, line.phase, line.lane, value))
    return tuple(named)


def observe(
    folder: str,
    runtime: Runtime,
    operation: Operation,
    after: Literal["fault", "recovery"],
    ended: Ended | None,
) -> Observation:
    """Observe one cell from its parent process, while nothing of it is alive.

    Args:
        folder: the cell's folder.
        runtime: asked for the stored state alone.
        operation: as recovery has it in hand.
        after: which of the two observations this is.
        ended: how the phase before it ended; None where there was none.
    """
    written = ledger.read(os.path.join(folder, ledger.EVENTS), ledger.EventLine)
    calls = ledger.read(os.path.join(folder, ledger.CALLS), ledger.CallLine)
    seen, effect_damage = effects(folder)
    recorded, record_damage = _recorded(runtime, operation)
    struck = strike(folder) if after == "fault" else None
    verb = "fault" if after == "fault" else "recover"
    returned = [e.value["error"] for e in written.lines if e.lane == "return" and e.phase == verb]
    how = ended.how if ended else None
    if how == "exit" and not returned:
        how = "crash"  # the process went away in the middle of its verb, with status 0
    return Observation(
        after=after,
        events=len(written.lines),
        recorded=recorded,
        effects=seen,
        calls=len(calls.lines),
        error=_error(how, returned),
        ended=how,
        settled=process.fence_is_free(folder),
        standing=struck.standing() if struck else None,
        damage=(
            *written.damage,
            *calls.damage,
            *effect_damage,
            *record_damage,
            *_contradictions(written.lines, len(seen), len(calls.lines), ended),
        ),
    )


def _error(how: str | None, returned: Sequence[str]) -> str | None:
    """What the caller saw: the phase's own word, or else the signal that ended the process."""
    if returned:
        return returned[0]
    return None if how in (None, "crash", "deadline") else how


def _recorded(runtime: Runtime, operation: Operation) -> tuple[Recorded, tuple[str, ...]]:
    try:
        return runtime.state(operation), ()
    except Exception as error:
        return Recorded(ledger.UNREADABLE), (f"record: cannot be read ({code_of(error)})",)


def _contradictions(
    lines: Sequence[ledger.EventLine], effects: int, calls: int, ended: Ended | None
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
        damage.append(f"processes: {ended.left_behind} outlived the phase and were ended")
    return tuple(damage)
