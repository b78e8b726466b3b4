"""One phase: one verb for one cell in one new process; also the process's entry point.

What this module imports, directly or not, is paid by every phase of every cell: see
docs/design.md §4 for what must stay out.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rcr_probes import faults, folder, ledger, linux, points, request
from rcr_probes.errors import code_of
from rcr_probes.executor import MarkerExecutor
from rcr_probes.model import NONE, POINTS, Cell, Json, Lane, Recorded
from rcr_probes.runtime import Operation, Runtime, load, recorded

BROKEN = 70  # the exit status of a phase in which the harness itself broke: EX_SOFTWARE


def perform(place: str, verb: str, parent: int) -> None:
    """Do one verb for the cell whose folder is ``place``, and write down what happens.

    ``fault`` starts the operation with the cell's fault armed; ``recover`` recovers by the cell's
    policy; ``force`` calls the executor once, past the runtime: the measured truth.
    """
    os.setsid()  # a group of its own, so that a phase that overruns ends with all that it started
    linux.die_with(parent)
    hold_fence(place)
    cell = folder.read_cell(place)
    phase = _Phase(place, verb, cell, load(cell.runtime))
    points.watch(phase.reached)
    error = NONE
    try:
        match verb:
            case "fault":
                phase.runtime.start(phase.operation)
            case "recover":
                assert cell.policy is not None
                phase.runtime.recover(phase.operation, cell.policy)
            case _:
                phase.operation.executor(phase.operation.key, phase.operation.request)
    except BaseException as raised:  # SystemExit and KeyboardInterrupt are answers, too
        error = code_of(raised)
        _tell(raised)
    phase.sample()
    phase.emit("return", {"error": error})
    _leave()
    points.watch(None)
    phase.sample()


def _tell(raised: BaseException) -> None:
    """Say in the cell's output where an error came from: its code alone tells a developer little.

    The module ``traceback`` would say more, and cost each refused recovery several milliseconds.
    """
    place, trace = "", raised.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    with contextlib.suppress(OSError):
        os.write(2, f"{type(raised).__name__}: {raised} ({place})\n".encode(errors="replace"))


def _leave() -> None:
    """What an interpreter does on its way out: its threads come to their end, exit handlers run.

    It is done here, so that it happens alike in a forked process and in a spawned one, and so that
    what it still does to the operation is observed.
    """
    threading = sys.modules.get("threading")  # it has threads only where somebody imported it
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()


def hold_fence(place: str) -> int:
    """Hold the cell's fence until this process, and all that inherit from it, are gone.

    It is a kernel lock on an open file description. A descendant that keeps inherited descriptors
    holds it too; one that closed them does not, and is what the subreaper is for.

    Raises:
        OSError: an earlier attempt still holds it.
    """
    fd = os.open(os.path.join(place, folder.FENCE), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    os.set_inheritable(fd, True)
    return fd


def operation(cell: Cell, place: str, verb: str, executor: MarkerExecutor) -> Operation:
    """The operation as its caller hands it over in this phase."""
    asked = request.requested(cell) if verb == "fault" else request.recomputed(cell)
    private = Path(place, folder.RUNTIME)
    return Operation(request.approved(cell).operation_key, asked, private, executor)


class _Phase:
    """Writes the events of one phase: points, the states and audit lines seen at them, strikes."""

    def __init__(self, place: str, verb: str, cell: Cell, runtime: Runtime) -> None:
        self._events = os.path.join(place, folder.EVENTS)
        self._verb = verb
        self._cell = cell
        self._armed = verb == "fault" and cell.fault != NONE
        self.runtime = runtime
        executor = MarkerExecutor(place, cell.dedupe, self.emit)
        self.operation = operation(cell, place, verb, executor)
        # What earlier phases have already written down is not news.
        self._state: Mapping[str, Json] | None = None
        self._audited: dict[str, int] = {}
        for line in ledger.read(self._events, ledger.EventLine).lines:
            if line.lane == "state":
                self._state = line.value
            if line.lane == "audit" and line.path is not None:
                self._audited[line.path] = self._audited.get(line.path, 0) + 1

    def emit(self, lane: Lane, value: Mapping[str, Json], path: str | None = None) -> None:
        """Write one event down.

        Where that fails, it is no failure of the runtime, which must not see it as one: the phase
        ends here, and its cell is unknown.
        """
        try:
            line = ledger.EventLine(self._verb, lane, dict(value), os.getpid(), path)
            ledger.append(self._events, line)
        except Exception as broken:
            os.write(2, f"harness: an event could not be written: {broken}\n".encode())
            os._exit(BROKEN)

    def reached(self, name: str, path: str | None) -> None:
        """Note that the runtime came to a point, and strike where the fault is armed for it."""
        if path is not None:
            self._audited.setdefault(path, 0)
        self.sample()
        if name not in POINTS:
            self.emit("fault", {"point": name, "error": ledger.UNKNOWN_POINT})
            return
        self.emit("point", {"point": name})
        if self._armed and name == self._cell.point:
            self._armed = False
            self._strike(name, path)

    def _strike(self, point: str, path: str | None) -> None:
        self.emit("fault", {"point": point, "fault": self._cell.fault}, path)  # before the strike
        try:
            faults.KINDS[self._cell.fault].strike(point, path)
        except Exception as raised:
            self.emit("fault", {"point": point, "error": code_of(raised)})
            raise

    def sample(self) -> None:
        """Note what changed since the last look: audit lines in order, then the stored state."""
        for path, seen in self._audited.items():
            lines = _lines(path)
            for line in lines[seen:]:
                self.emit("audit", {"event": line}, path)
            self._audited[path] = max(seen, len(lines))
        if self._verb == "force":
            return
        try:
            state = shown(recorded(self.runtime, self.operation))
        except Exception as raised:
            state = {"status": ledger.UNREADABLE, "error": code_of(raised)}
            if state != self._state:
                _tell(raised)
        if state != self._state:
            self._state = state
            self.emit("state", state)


def shown(seen: Recorded) -> Mapping[str, Json]:
    """A recorded state as the value of a state event."""
    return {
        "status": seen.status,
        "execution": seen.execution,
        "evidence": [dict(e) for e in seen.evidence or ()],
    }


def _lines(path: str) -> list[str]:
    """What each whole line of an audit file calls its event; nothing where a fault stands."""
    try:
        with open(path, "rb") as file:
            whole = file.read().split(b"\n")[:-1]
    except OSError:
        return []
    return [_event(line) for line in whole]


def _event(line: bytes) -> str:
    try:
        return str(msgspec.json.decode(line, type=dict[str, Json])["event"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        return ledger.UNREADABLE


if __name__ == "__main__":
    perform(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    os._exit(0)
