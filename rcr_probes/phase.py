"""One phase: one verb for one cell in one new process; also the process's entry point.

What this module imports, directly or not, is paid by every phase of every cell: see
docs/design.md §4 for what must stay out.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Mapping

import msgspec

from rcr_probes import faults, ledger, points, request
from rcr_probes.errors import code_of
from rcr_probes.executor import MarkerExecutor
from rcr_probes.model import NONE, POINTS, Cell, Json, Lane, Recorded
from rcr_probes.runtime import Operation, Runtime, load

FENCE = os.path.join(ledger.HARNESS, "fence")
CELL = os.path.join(ledger.HARNESS, "cell.json")
OUTPUT = os.path.join(ledger.HARNESS, "output.txt")
VERBS = ("fault", "recover", "call")


def perform(folder: str, verb: str) -> None:
    """Do one verb for the cell whose folder this is, and write down what happens.

    ``fault`` starts the operation with the cell's fault armed; ``recover`` recovers by the cell's
    policy; ``call`` forces one call of the executor, past the runtime: the measured truth.
    """
    os.setsid()  # a group of its own, so that a phase that overruns ends with all that it started
    hold_fence(folder)
    with open(os.path.join(folder, CELL), "rb") as file:
        cell = msgspec.json.decode(file.read(), type=Cell)
    runtime = load(cell.runtime)
    phase = _Phase(folder, verb, cell, runtime)
    points.watch(phase.reached)
    error = NONE
    try:
        match verb:
            case "fault":
                runtime.start(phase.operation)
            case "recover":
                assert cell.policy is not None
                runtime.recover(phase.operation, cell.policy)
            case _:
                phase.operation.executor(phase.operation.key, phase.operation.request)
    except (Exception, SystemExit) as raised:
        error = code_of(raised)
    points.watch(None)
    phase.sample()
    phase.emit("return", {"error": error})


def hold_fence(folder: str) -> int:
    """Hold the cell's fence until this process, and all that inherit from it, are gone.

    It is a kernel lock on an open file description that descendants inherit: whoever acquires it
    later knows that nobody of this attempt can still act. A pid alone proves nothing.

    Raises:
        OSError: an earlier attempt still holds it.
    """
    fd = os.open(os.path.join(folder, FENCE), os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(fd, True)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def operation(cell: Cell, folder: str, verb: str, executor: MarkerExecutor) -> Operation:
    """The operation as its caller hands it over in this phase."""
    from pathlib import Path

    asked = request.requested(cell) if verb == "fault" else request.recomputed(cell)
    private = Path(folder, ledger.RUNTIME)
    return Operation(request.approved(cell).operation_key, asked, private, executor)


def shown(recorded: Recorded) -> Mapping[str, Json]:
    """A recorded state as the value of a state event."""
    return {
        "status": recorded.status,
        "execution": recorded.execution,
        "evidence": [dict(e) for e in recorded.evidence or ()],
    }


class _Phase:
    """Writes the events of one phase: points, the states and audit lines seen at them, strikes."""

    def __init__(self, folder: str, verb: str, cell: Cell, runtime: Runtime) -> None:
        self._events = os.path.join(folder, ledger.EVENTS)
        self._verb = verb
        self._cell = cell
        self._runtime = runtime
        self._armed = verb == "fault" and cell.fault != NONE
        executor = MarkerExecutor(folder, cell.dedupe, self.emit)
        self.operation = operation(cell, folder, verb, executor)
        # What earlier phases have already written down is not news.
        self._state: Mapping[str, Json] | None = None
        self._audited: dict[str, int] = {}
        for line in ledger.read(self._events, ledger.EventLine).lines:
            if line.lane == "state":
                self._state = line.value
            if line.lane == "audit" and line.path is not None:
                self._audited[line.path] = self._audited.get(line.path, 0) + 1

    def emit(self, lane: Lane, value: Mapping[str, Json], path: str | None = None) -> None:
        line = ledger.EventLine(self._verb, lane, dict(value), os.getpid(), path)
        ledger.append(self._events, line)

    def reached(self, name: str, path: str | None) -> None:
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
        if self._verb == "call":
            return
        try:
            state = shown(self._runtime.state(self.operation))
        except Exception as raised:
            state = {"status": ledger.UNREADABLE, "error": code_of(raised)}
        if state != self._state:
            self._state = state
            self.emit("state", state)


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
    perform(sys.argv[1], sys.argv[2])
