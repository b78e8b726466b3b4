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
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from rcr_probes import faults, folder, ledger, linux, points, request, strace
from rcr_probes.errors import code_of
from rcr_probes.executor import MarkerExecutor
from rcr_probes.model import BASELINE, NONE, POINTS, Cell, Json, Lane, Recorded
from rcr_probes.runtime import Operation, Runtime, load, offered, recorded

_FOREIGN = "rcr_probes.foreign"  # a module that imports this one
STATE = "state/"  # and the verb of the phase after which it is asked
BROKEN = 70  # the exit status of a phase in which the harness itself broke: EX_SOFTWARE


def perform(place: str, verb: str, parent: int) -> None:
    """Do one verb for the cell whose folder is ``place``, and write down what happens.

    ``fault`` starts the operation with the cell's fault armed; ``recover`` recovers by the cell's
    policy; ``force`` calls the executor once, past the runtime: the measured truth; ``state/fault``
    and ``state/recover`` ask what is stored after that phase.
    """
    os.setsid()  # a group of its own, so that a phase that overruns ends with all that it started
    linux.die_with(parent)
    hold_fence(place)
    cell = folder.read_cell(place)
    runtime = load(cell.runtime)
    if verb.startswith(STATE):  # what is stored is seen as recovery has the operation in hand
        Phase(place, verb.removeprefix(STATE), cell, runtime, "recover").store_state(place)
        return
    phase = Phase(place, verb, cell, runtime, verb)
    points.watch(phase.reached, _outside(place, verb, cell))
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
    if not asks(cell, runtime):  # what came to its points was perhaps not this process
        phase.look_back()
    phase.sample()


def asks(cell: Cell, runtime: Runtime) -> bool:
    """Whether a phase itself asks for the stored state: at each point, and at its end.

    Where a system call is struck it does not, for then the calls that count are the runtime's own.
    """
    return bool(offered(runtime, "state_at_points")) and strace.parse(cell.point) is None


def _outside(place: str, verb: str, cell: Cell) -> points.Outside:
    """The commands do their part where we are, wherever they are run."""
    words = (sys.executable, "-P", "-m", _FOREIGN)
    rest = (os.getcwd(), place, verb, str(os.getpid()))
    armed = cell.point if verb == "fault" and cell.point in POINTS else None
    return points.Outside((*words, "call", *rest), (*words, "reach", *rest), armed)


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
    key, variant = request.approved(cell).operation_key, cell.variant or BASELINE
    return Operation(key, asked, private, executor, variant)


class Phase:
    """Writes the events of one phase: points, the states and audit lines seen at them, strikes."""

    def __init__(
        self,
        place: str,
        verb: str,
        cell: Cell,
        runtime: Runtime,
        hand: str,
        pid: Callable[[], int] = os.getpid,
    ) -> None:
        """Look at what is there.

        Args:
            place: the cell's folder.
            verb: of the phase.
            cell: what is planned.
            runtime: under probe.
            hand: the verb whose request is in hand.
            pid: of the process that comes to points.
        """
        self._events = os.path.join(place, folder.EVENTS)
        self._struck = os.path.join(place, folder.STRUCK)
        self._verb = verb
        self._cell = cell
        self._armed = verb == "fault" and cell.fault != NONE
        self.runtime = runtime
        executor = MarkerExecutor(place, cell.dedupe, self.emit)
        self.operation = operation(cell, place, hand, executor)
        self._pid = pid
        self._asks = asks(cell, runtime)
        self.look_back()

    def look_back(self) -> None:
        """See what is written down already: it is no news, whoever has written it."""
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
            line = ledger.EventLine(self._verb, lane, dict(value), self._pid(), path, time.time())
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
        if self._armed and name == self._cell.point and self._is_first():
            self._strike(faults.Target(name, path, self.runtime, self.operation, self._pid()))

    def _is_first(self) -> bool:
        """Whether no process and no thread of this phase has come to the armed point before."""
        self._armed = False
        try:
            os.close(os.open(self._struck, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        except FileExistsError:
            return False
        return True

    def _strike(self, at: faults.Target) -> None:
        def proven(error: str) -> None:
            self.emit("fault", {"point": at.point, "error": error})

        fault = {"point": at.point, "fault": self._cell.fault}
        self.emit("fault", fault, at.path)  # before the strike
        try:
            faults.KINDS[self._cell.fault].strike(at, proven)
        except Exception as raised:
            proven(code_of(raised))
            raise

    def sample(self) -> None:
        """Note what changed since the last look: audit lines in order, then the stored state."""
        for path, seen in self._audited.items():
            lines = _lines(path)
            for line in lines[seen:]:
                self.emit("audit", {"event": line}, path)
            self._audited[path] = max(seen, len(lines))
        if self._verb != "force" and self._asks:
            self.sample_state()

    def sample_state(self) -> Recorded | None:
        """Note the stored state where it changed, and return it; None where it cannot be read."""
        stored = None
        try:
            stored = recorded(self.runtime, self.operation)
            state = shown(stored)
        except Exception as raised:
            state = {"status": ledger.UNREADABLE, "error": code_of(raised)}
            if state != self._state:
                _tell(raised)
        if state != self._state:
            self._state = state
            self.emit("state", state)
        return stored

    def store_state(self, place: str) -> None:
        """Ask once for the stored state, and leave it where the observer finds it."""
        stored = self.sample_state()
        if stored is not None:
            with open(os.path.join(place, folder.STATE), "wb") as file:
                file.write(msgspec.json.encode(stored))


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
