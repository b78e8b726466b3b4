"""A fault phase under strace: what it is put behind, and what the log proves of the strike.

One call of the phase's process, or of any below it, in whatever language, comes back with an error
and is not executed, or is the last that its process makes.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rcr_probes import folder, ledger, strace
from rcr_probes.ledger import EventLine
from rcr_probes.model import Cell
from rcr_probes.process import Ended
from rcr_probes.strace import CallPoint, Logged
from rcr_probes.vocabulary import FAULTS, TRACED_FAULTS

_KILL = "kill"
_CHILD_KILLED = re.compile(r"^\d+ +(\d+\.\d+) +--- SIGCHLD \{.*\bCLD_KILLED\b", re.MULTILINE)


def by_strace(cell: Cell) -> bool:
    """Whether the cell's fault is placed by strace: a tracer of ours follows a phase by itself."""
    return strace.parse(cell.point) is not None and cell.fault not in TRACED_FAULTS


def under(place: str, cell: Cell, files: Mapping[str, str]) -> tuple[str, ...]:
    """What the fault phase of the cell in this folder is put behind; nothing for a named point.

    Args:
        place: the cell's folder.
        cell: what is planned.
        files: the names that its runtime gives to files, each with the file's path.
    """
    point = _point(cell, files)
    if point is None:
        return ()
    action = strace.KILL if cell.fault == _KILL else f"error={FAULTS[cell.fault]}"
    return tuple(injecting(os.path.join(place, folder.TRACE), point, _private(place), action))


def note(place: str, cell: Cell, ended: Ended, files: Mapping[str, str]) -> None:
    """Write down the strikes that the log proves, each where it happened among the events.

    Called when nothing of the phase is alive. The point has no event where there was no strike: no
    log tells that a process was about to make a call. What the log shows instead goes into the
    cell's output.
    """
    point = _point(cell, files)
    if point is None:
        return
    with open(
        os.path.join(place, folder.TRACE), encoding="utf-8", errors="surrogateescape"
    ) as file:
        log = file.read()
    found = strikes(log, point, _private(place))
    if not found:
        _say_what_was_seen(place, log, point)
    if ended.how == FAULTS[_KILL] and found and _was_a_thread(found, ended.pid, log):
        found[0] = replace(found[0], pid=ended.pid)
    path = os.path.join(place, folder.EVENTS)
    for one in found:
        _insert(path, cell, one)


def injecting(log: str, point: CallPoint, place: str, action: str) -> list[str]:
    """The words before a command that have one call of it, or of a process below it, struck.

    The command stays the child of whoever starts it (-D): strace is its grandchild, and ends when
    all that it watches has ended. Every call that is known is logged, on the point's file alone.

    Args:
        log: where strace writes.
        point: where to strike.
        place: the absolute path of the folder in which the point's file lies; a process may name
            the file relative to it, too, unless one of that name lies in the current directory.
        action: what strace injects: ``strace.KILL``, ``error=ENOSPC``.
    """
    relative: tuple[str, ...] = (point.file, f"./{point.file}")
    if os.path.lexists(point.file):  # strace would take it for the one in our own directory
        relative = ()
    spelled = (*_absolute(point, place), *relative)
    watched = [word for path in dict.fromkeys(spelled) for word in ("-P", path)]
    calls = ",".join(f"?{call}" for call in strace.KNOWN)
    inject = f"inject={point.call}:{action}:when={point.nth}"
    options = ["-D", "-ttt", *watched, "-e", f"trace={calls}", "-e", inject]
    options += ["-e", "signal=KILL,CHLD"]  # of a thread that is killed, nobody is told by a signal
    return [*strace.base(log), *options, "--"]


@dataclass(frozen=True, slots=True)
class Struck:
    """One strike.

    Attributes:
        pid: of the process, or the thread, that made the call.
        at: when, in seconds since the epoch.
    """

    pid: int
    at: float


def strikes(log: str, point: CallPoint, place: str) -> list[Struck]:
    """Every call that was struck: strace refused it, or its process was killed at it.

    Each process and each thread counts its own calls, so that there may be several.

    Args:
        log: the text of a log that was written under ``injecting``.
        point: where it struck.
        place: the folder of the point's file.
    """
    dead = strace.killed(log)
    return [
        Struck(made.pid, made.at)
        for made, nth in _calls(log, point, place)
        if (made.call, nth) == (point.call, point.nth) and made.result is not None
        if made.result.endswith("(INJECTED)") or (made.result == "?" and made.pid in dead)
    ]


def seen(log: str, point: CallPoint, place: str) -> list[str]:
    """The points at all calls on the point's file, in the order of the log."""
    found = (replace(point, call=m.call, nth=nth) for m, nth in _calls(log, point, place))
    return list(dict.fromkeys(map(str, found)))


def _was_a_thread(found: Sequence[Struck], phase: int, log: str) -> bool:
    """Whether it was a thread of the phase's process that was struck, and so that process.

    The log names threads and processes alike. But of a process that is killed its parent is told,
    whether it waits for that or not: where the log tells of one, it may be that one.
    """
    if phase in [one.pid for one in found]:
        return False
    return not any(float(at) >= found[0].at for at in _CHILD_KILLED.findall(log))


def _calls(log: str, point: CallPoint, place: str) -> Iterator[tuple[Logged, int]]:
    """The calls on the point's file, each with its number among those of its name and process."""
    files = {*_absolute(point, place), point.file}
    counted: Counter[tuple[int, str]] = Counter()
    for one in strace.logged(log):
        if not files.isdisjoint([os.path.normpath(path) for path, _ in one.files()]):
            counted[one.pid, one.call] += 1
            yield one, counted[one.pid, one.call]


def _insert(path: str, cell: Cell, struck: Struck) -> None:
    """Put a strike into the events, before the first that was written after it."""
    read = ledger.read(path, EventLine)
    before = sum(line.at <= struck.at for line in read.lines)
    fault = {"point": cell.point, "fault": cell.fault}
    news = (
        EventLine("fault", "point", {"point": cell.point}, struck.pid, at=struck.at),
        EventLine("fault", "fault", fault, struck.pid, at=struck.at),
    )
    if read.damage:  # what cannot be read is not ours to move
        for line in news:
            ledger.append(path, line)
        return
    ledger.rewrite(path, (*read.lines[:before], *news, *read.lines[before:]))


def _say_what_was_seen(place: str, log: str, point: CallPoint) -> None:
    """Tell a person why the fault did not strike, as far as the log knows."""
    there = ", ".join(seen(log, point, _private(place))) or "none at all"
    folder.note(place, f"{point} was not reached; the calls on that file were: {there}")
    if point.call == "rename":
        folder.note(place, "strace knows a rename by the file that is renamed")


def _point(cell: Cell, files: Mapping[str, str]) -> CallPoint | None:
    """Where strace strikes, with its file's own path; None where it does not."""
    point = strace.parse(cell.point)
    if point is None or not by_strace(cell):
        return None
    return replace(point, file=files.get(point.file, point.file))


def _private(place: str) -> str:
    return os.path.join(os.path.abspath(place), folder.RUNTIME)


def _absolute(point: CallPoint, place: str) -> tuple[str, str]:
    """The file's path, as it was given to the runtime, and as the kernel knows it."""
    given = os.path.normpath(os.path.join(place, point.file))
    return given, os.path.realpath(given)
