"""How a cell is recovered: once, struck and again, twice, by two, over damage, past stale locks.

What happens around recovery is placed by this process, before the recovery that meets it, and told
as an event of that recovery. What it tells of is proof; the runtime is asked for no word on it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from rcr_probes import folder, held, ledger, locked, observe, phase, process, request, testimony
from rcr_probes.ledger import EventLine
from rcr_probes.model import Cell, Json
from rcr_probes.process import Begun, Ended
from rcr_probes.runtime import Operation, Runtime, offered
from rcr_probes.vocabulary import (
    ALIVE,
    DAMAGE,
    FAULTS,
    HELD,
    ORIGINALS,
    STALE_LOCKS,
    STOPPED,
    at_point,
    recovery_phases,
)

_ALIVE_ALONE = "original_alive"  # of ORIGINALS, the one whose phase is still to return


@dataclass(frozen=True, slots=True)
class Site:
    """One cell that is measured: where, how, and what is needed of its runtime.

    Attributes:
        place: its folder.
        cell: what is planned.
        start: ``fork`` or ``spawn``.
        deadline: seconds for each phase.
        runtime: under probe.
        in_hand: the operation, as recovery has it in hand.
        files: the names that the runtime gives to files, each with the file's path.
        settle: waits until nothing that was sent can land any more, and says what still can.
    """

    place: str
    cell: Cell
    start: str
    deadline: float
    runtime: Runtime
    in_hand: Operation
    files: Mapping[str, str]
    settle: Callable[[], tuple[str, ...]]


class Original:
    """The fault phase, and what of it is still held once it is observed.

    Attributes:
        ended: how it ended, or that it is alive.
        pid: of the process that acts once it is let go; None where none is held.
    """

    def __init__(self, ended: Ended, site: Site, begun: Begun | None, pid: int | None) -> None:
        self.ended = ended
        self.pid = pid
        self._site = site
        self._begun = begun

    def let_go(self) -> None:
        """Let it act, and wait until it has ended; nothing is done where none is held."""
        if self.pid is None:
            return
        place = self._site.place
        held.release(place)
        begun = self._begun or Begun(self.pid, time.monotonic(), place)
        self.ended = process.finish(begun, self._site.deadline)
        self.pid = None


@contextlib.contextmanager
def original(site: Site, run: Callable[[Site], Ended]) -> Iterator[Original]:
    """Run the fault phase; one that is to act late is held, and is gone after the block.

    Args:
        site: the cell.
        run: runs the phase, where nothing of it is to be held.
    """
    if site.cell.recovery_fault not in ORIGINALS:
        yield Original(run(site), site, None, None)
        return
    held.prepare(site.place)
    begun = process.begin(site.start, site.place, "fault")
    with contextlib.ExitStack() as whatever_comes:
        whatever_comes.callback(process.end, begun.pid)
        pid = held.awaited(site.place, begun.pid, site.deadline)
        if pid not in (None, begun.pid) and site.cell.recovery_fault == _ALIVE_ALONE:
            # It called in a process below the phase's, which waits for it: nobody can tell the two
            # apart later, and to wait for the deadline would tell no more.
            ended, pid = process.finish(begun, 0.0), None
            folder.note(site.place, f"{_ALIVE_ALONE} needs a call in the process of start() itself")
            yield Original(ended, site, None, None)
            return
        whatever_comes.enter_context(process.spared(pid or begun.pid))
        if pid == begun.pid:
            ended = Ended(pid, ALIVE, time.monotonic() - begun.at, 0)
        else:
            ended = process.finish(begun, site.deadline)
            whatever_comes.callback(process.end, pid or begun.pid)
        yield Original(ended, site, begun if pid == begun.pid else None, pid)


def recover(site: Site) -> dict[str, Ended]:
    """Recover the cell as it is planned; nothing of it is alive after that.

    Returns:
        How each phase ended, in the order in which they ended.
    """
    verbs = recovery_phases(site.cell.policy, site.cell.recovery_fault)
    struck, ended = at_point(site.cell.recovery_fault), {}
    with _around(site):
        if struck and struck[0] == HELD:
            return _interleaved(site, verbs)
        for verb in verbs:
            if verb == phase.DECIDE and not _find_out(site):
                continue
            if verb != phase.DECIDE:
                _testify(site)
            ended[verb] = process.run_phase(site.start, site.place, verb, site.deadline)
            if struck and verb == verbs[0] and _was_killed(site, ended[verb]):
                tell(site.place, {"point": struck[1], "error": FAULTS["kill"]})
    return ended


def _was_killed(site: Site, ended: Ended) -> bool:
    """Whether its strike killed the recovery that ended so, or a process below it."""
    told = [line for line in observe.written(site.place).lines if line.phase == "recover"]
    strike = observe.strike(told, site.runtime, site.in_hand)
    if strike is None or strike.fault != "kill":
        return False
    return ended.how == FAULTS["kill"] or bool(strike.standing(ended))


def last(ended: Mapping[str, Ended], cell: Cell, original: Original) -> Ended | None:
    """How recovery ended as a whole: the last phase's end, and whatever went wrong beside it."""
    recoveries = [end for verb, end in ended.items() if verb.startswith("recover")]
    if not recoveries:
        return None
    if cell.recovery_fault in ORIGINALS:
        recoveries.insert(0, original.ended)
    struck = at_point(cell.recovery_fault)
    fine = {"exit", FAULTS["kill"]} if struck and struck[0] == "kill" else {"exit"}
    whole = next((end for end in recoveries[:-1] if end.how not in fine), recoveries[-1])
    every = {id(end): end for end in (*recoveries, *ended.values())}
    return replace(whole, left_behind=sum(end.left_behind for end in every.values()))


def _interleaved(site: Site, verbs: tuple[str, ...]) -> dict[str, Ended]:
    """The first recoverer is held at its point until the second has finished."""
    first, second = verbs
    held.prepare(site.place)
    _testify(site)
    begun = process.begin(site.start, site.place, first)
    ended: dict[str, Ended] = {}
    with contextlib.ExitStack() as whatever_comes:
        whatever_comes.callback(process.end, begun.pid)
        with process.spared(begun.pid):
            if held.awaited(site.place, begun.pid, site.deadline) is not None:
                _testify(site)
                ended[second] = process.run_phase(site.start, site.place, second, site.deadline)
                held.release(site.place)
        ended[first] = process.finish(begun, site.deadline)
    return ended


@contextlib.contextmanager
def _around(site: Site) -> Iterator[None]:
    """What stands around the recovery while it runs."""
    around = site.cell.recovery_fault
    if around in DAMAGE:
        try:
            path, lines = offered(site.runtime, "damage")(site.in_hand, around)
        except Exception as raised:  # there is nothing to damage so, or the adapter is wrong
            folder.note(site.place, f"nothing was damaged: {phase.origin(raised).decode().strip()}")
        else:
            tell(site.place, {"fault": around, **({} if lines is None else {"lines": lines})}, path)
    if around not in STALE_LOCKS:
        yield
        return
    path = offered(site.runtime, "lock")(site.in_hand)
    with locked.standing(around, path, site.place):
        tell(site.place, {"fault": around})
        yield


def _find_out(site: Site) -> bool:
    """What a person finds out about an operation that was stopped; False where nothing is asked."""
    place, cell, runtime = site.place, site.cell, site.runtime
    apart = not phase.asks(cell, runtime)
    asked = observe.ask(place, site.start, site.deadline, "recover") if apart else None
    lines = observe.written(place).lines
    stored, unread = observe.state(place, lines, runtime, site.in_hand, asked)
    effects, damage = observe.effects(place, cell)
    if unread or stored.status != STOPPED:
        return False
    if damage or len(effects) not in (0, request.approved(cell).effects):
        return False
    with open(os.path.join(place, folder.FINDING), "w", encoding="ascii") as file:
        file.write("present" if effects else "absent")
    return True


def _testify(site: Site) -> None:
    """Have the cell's witness say what it says now, for the recovery that comes next."""
    # A recoverer that is held is alive, which is for the fence to tell; what an original had sent
    # is in flight.
    sent = site.cell.recovery_fault in ORIGINALS and held.pid(site.place) is not None
    testimony.testify(site.place, site.cell, bool(site.settle()) or sent)


def tell(place: str, value: Mapping[str, Json], path: str | None = None) -> None:
    """Write an event of recovery that this process made happen, or saw."""
    line = EventLine("recover", "fault", dict(value), os.getpid(), path, time.time())
    ledger.append(os.path.join(place, folder.EVENTS), line)
