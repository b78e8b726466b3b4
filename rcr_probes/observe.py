"""Cut an observation at quiescence: read the ledgers and the stored state from outside."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from rcr_probes import faults, fence, files, folder, held, ledger, process, receiving
from rcr_probes.errors import code_of
from rcr_probes.faults import Target
from rcr_probes.ledger import CallLine, EffectLine, EventLine, Ledger
from rcr_probes.model import Cell, Effect, Event, Observation, Recorded, effects_left, shown
from rcr_probes.phase import STATE
from rcr_probes.process import Ended
from rcr_probes.runtime import Operation, Runtime, recorded
from rcr_probes.vocabulary import (
    ALIVE,
    DAMAGE,
    ENDING_FAULTS,
    FAULTS,
    HANG,
    POWER_LOSSES,
    RECEIVED,
    UNREADABLE,
    by_receiver,
    kind_of,
)


@dataclass(frozen=True, slots=True)
class Strike:
    """The proof of a strike, as the process that it struck wrote it before.

    Attributes:
        fault: its kind.
        pid: of the process that it struck.
        at: what it struck.
        last: whether that process wrote nothing after it.
    """

    fault: str
    pid: int
    at: Target
    last: bool

    def lift(self) -> None:
        """Take the fault away, before recovery; what a receiver did to a call is over."""
        if by_receiver(self.at.point, self.fault):
            return
        faults.KINDS[self.fault].lift(self.at)

    def standing(self, ended: Ended | None) -> bool | None:
        """Whether the fault is seen from outside now, the phase having ended so.

        A process that was killed under the phase's own is gone, and was not heard of again. (How it
        ended, the kernel told its parent alone.)
        """
        if by_receiver(self.at.point, self.fault):
            return None
        if self.fault == "kill" and ended is not None and ended.how != FAULTS["kill"]:
            return self.pid != ended.pid and self.last and not os.path.exists(f"/proc/{self.pid}")
        return faults.KINDS[self.fault].standing(self.at)


def written(place: str, since: Ledger[EventLine] | None = None) -> Ledger[EventLine]:
    """The events of the cell in this folder, as they are written there.

    Args:
        place: the cell's folder.
        since: what was read there before; where that is gone, there is damage.
    """
    now = ledger.read(os.path.join(place, folder.EVENTS), EventLine)
    if since is None or now.lines[: len(since.lines)] == since.lines:
        return now
    return Ledger(now.lines, (*now.damage, "events.jsonl: what stood there is gone"))


def hung(place: str) -> bool:
    """Whether a process of this cell has told that it hangs, and goes no further."""
    if not os.path.exists(os.path.join(place, folder.STRUCK)):
        return False  # as cheap as it can be: this is asked again and again
    told = (line.value.get("error") for line in written(place).lines if line.lane == "fault")
    return FAULTS[HANG] in told


def strike(lines: Sequence[EventLine], runtime: Runtime, operation: Operation) -> Strike | None:
    """The first strike among the events; None where no fault came to strike."""
    for seq, line in enumerate(lines):
        if line.lane == "fault" and "fault" in line.value:
            at = Target(str(line.value.get("point")), line.path, runtime, operation)
            last = all(later.pid != line.pid for later in lines[seq + 1 :])
            return Strike(kind_of(line.value["fault"]), line.pid, at, last)
    return None


def effects(place: str, cell: Cell) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """The effects that exist, named in order of arrival, and the damage of their ledger."""
    if cell.dedupe in RECEIVED:
        return receiving.effects(place)
    read = ledger.read(os.path.join(place, folder.EFFECTS), EffectLine)
    named = tuple(
        Effect(f"E{number}", line.operation_key, line.kind, line.target)
        for number, line in enumerate(read.lines, 1)
    )
    return named, read.damage


def events(lines: Sequence[EventLine]) -> tuple[Event, ...]:
    """The events as facts: numbered in order, effects named, no pid and no path."""
    named: list[Event] = []
    for seq, line in enumerate(lines):
        value = line.value
        if line.lane == "effect":
            value = {"effect_id": f"E{len(effects_left(lines[: seq + 1]))}", **value}
        named.append(Event(seq, line.phase, line.lane, value))
    return tuple(named)


def returned(lines: Sequence[EventLine], verb: str) -> str | None:
    """What the phase of this verb returned to its caller; None where it did not return.

    Where recovery ran more than once, it is what the last one returned that ended. An original that
    returned at last has its attempt's number beside it, and is none of them.
    """
    returns = (e.value for e in lines if e.lane == "return" and e.phase == verb)
    errors = [value["error"] for value in returns if "attempt" not in value]
    return errors[-1 if verb == "recover" else 0] if errors else None


def observe(
    place: str,
    lines: Ledger[EventLine],
    runtime: Runtime,
    operation: Operation,
    after: Literal["fault", "recover"],
    ended: Ended | None,
    asked: Ended | None,
    cell: Cell,
    in_flight: tuple[str, ...] = (),
) -> Observation:
    """Observe one cell from its parent process, while nothing of it is alive.

    Args:
        place: the cell's folder.
        lines: what ``written`` gives now.
        runtime: asked for the stored state, and for what it refuses, alone.
        operation: as recovery has it in hand.
        after: which of the two observations this is: the verb of the phase before it.
        ended: how that phase ended; None where there was none.
        asked: how the process ended that asked for the stored state; None where none did.
        cell: what was planned.
        in_flight: what was sent and may still land, as damage.
    """
    calls = ledger.read(os.path.join(place, folder.CALLS), CallLine)
    seen, effect_damage = effects(place, cell)
    stored, record_damage = state(place, lines.lines, runtime, operation, asked)
    broken = cell.kind in POWER_LOSSES or (cell.recovery_fault in DAMAGE and after == "recover")
    if record_damage and broken and not (asked and any(_asking(asked))):
        record_damage = ()  # what was left there is a fact, also where nobody can read it
    struck = strike(lines.lines, runtime, operation) if after == "fault" else None
    answer = returned(lines.lines, after)
    how = ended.how if ended else None
    if how == "exit" and answer is None:
        how = "crash"  # the process went away in the middle of its verb, with status 0
    if answer is None and how not in ("crash", "deadline", ALIVE):
        answer = FAULTS[HANG] if how == HANG else how  # the caller died of the same signal
    return Observation(
        after=after,
        events=len(lines.lines),
        recorded=stored,
        effects=seen,
        calls=len(calls.lines),
        error=answer,
        ended=how,
        settled=fence.all_over(os.path.join(place, folder.ATTEMPTS))
        and held.pid(place) is None
        and not (ended and ended.left_behind)
        and not in_flight,
        standing=struck.standing(ended) if struck else None,
        damage=(
            *lines.damage,
            *calls.damage,
            *effect_damage,
            *in_flight,
            *record_damage,
            *_changed(lines.lines, stored),
            *_contradictions(lines.lines, len(seen), len(calls.lines), ended),
        ),
    )


def ask(place: str, start: str, deadline: float, after: Literal["fault", "recover"]) -> Ended:
    """Have the stored state asked for in a process of its own, and say how that ended.

    One that fails leaves nothing, and who reads the state says why.

    Args:
        place: the cell's folder.
        start: ``fork`` or ``spawn``.
        deadline: seconds.
        after: the verb of the phase before it.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(place, folder.STATE))
    return process.run_phase(start, place, f"{STATE}{after}", deadline)


def state(
    place: str,
    lines: Sequence[EventLine],
    runtime: Runtime,
    operation: Operation,
    asked: Ended | None,
) -> tuple[Recorded, tuple[str, ...]]:
    """What is stored, and why it cannot be read: asked for here, or as ``ask`` found it.

    Args:
        place: the cell's folder.
        lines: the events of the cell.
        runtime: asked, where nobody else was.
        operation: as recovery has it in hand.
        asked: how the process ended that asked for it; None where it is to be asked here.
    """
    damage = () if asked is None else tuple(_asking(asked))
    try:
        if asked is None:
            return recorded(runtime, operation), ()
        data = files.read(os.path.join(place, folder.STATE))
        return msgspec.json.decode(data, type=Recorded), damage
    except Exception as error:
        why = code_of(error) if asked is None else _why(lines, asked, error)
        return Recorded(UNREADABLE), (f"record: cannot be read ({why})", *damage)


def _asking(asked: Ended) -> Iterator[str]:
    """What is wrong with how the process ended that asked for the stored state."""
    if asked.how != "exit":
        yield f"record: the process that asked for it ended by {asked.how}"
    if asked.left_behind:
        yield "record: the process that asked for it left others running, which were ended"


def _why(lines: Sequence[EventLine], asked: Ended, error: Exception) -> str:
    """Why that process left no state: what it told of its last question, or how it ended."""
    if asked.how != "exit":
        return asked.how
    told = [line.value.get("error") for line in lines if line.lane == "state"]
    return str(told[-1] if told and told[-1] else code_of(error))


def _changed(lines: Sequence[EventLine], state: Recorded) -> tuple[str, ...]:
    """What is stored is what the phase saw last: nobody was there who could have changed it."""
    seen = [line.value for line in lines if line.lane == "state"]
    if not seen or seen[-1].get("status") == UNREADABLE or seen[-1] == shown(state):
        return ()
    return ("record: is not what the phase saw last",)


def _contradictions(
    lines: Sequence[EventLine], effects: int, calls: int, ended: Ended | None
) -> tuple[str, ...]:
    """What the harness's own files say against each other, or against the process."""
    damage = []
    called = sum(e.lane == "call" for e in lines)
    for lane, noted, count in (
        ("effect", len(effects_left(lines)), effects),
        ("call", called, calls),
    ):
        if noted != count:
            damage.append(f"events.jsonl: {noted} events of lane {lane}, but {count} in the ledger")
    if any(e.value.get("error") == ledger.UNKNOWN_POINT for e in lines):
        damage.append("events.jsonl: the runtime reached a point that does not exist")
    strikes = [e for e in lines if e.lane == "fault" and "fault" in e.value]
    if ended and ended.how == FAULTS["kill"] and strikes:
        if all(e.pid != ended.pid for e in strikes):
            damage.append("events.jsonl: the phase was killed, but not by the process that struck")
        elif kind_of(strikes[0].value["fault"]) not in ENDING_FAULTS:
            damage.append("events.jsonl: the phase was killed, though its fault kills nothing")
    if _went_on(lines):
        damage.append("events.jsonl: a process that had told that it hangs went on")
    if ended and ended.left_behind:
        damage.append("processes: some outlived the phase, and were ended")
    return tuple(damage)


def _went_on(lines: Sequence[EventLine]) -> bool:
    """Whether a process wrote anything after its word that it goes no further."""
    hung: set[int] = set()
    for line in lines:
        if line.phase != "fault":
            break  # a later process may have the pid of one that is gone
        if line.pid in hung:
            return True
        if line.lane == "fault" and line.value.get("error") == FAULTS[HANG]:
            hung.add(line.pid)
    return False
