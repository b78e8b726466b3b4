"""One phase: one verb for one cell in one new process; also the process's entry point.

What this module imports, directly or not, is paid by every phase of every cell: see
docs/design.md §4 for what must stay out.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from rcr_probes import (
    audited,
    executors,
    faults,
    fence,
    folder,
    held,
    ledger,
    linux,
    points,
    request,
    strace,
)
from rcr_probes.errors import code_of, where
from rcr_probes.executors.marker import Fenced, Marker
from rcr_probes.late import Late
from rcr_probes.model import Cell, Json, Recorded, shown
from rcr_probes.runtime import Executor, Operation, Runtime, made, offered, recorded
from rcr_probes.vocabulary import (
    BASELINE,
    FAULT_POINTS,
    FAULTS,
    FENCED,
    HELD,
    INNER_POINTS,
    NONE,
    ORIGINALS,
    POINTS,
    UNREADABLE,
    Lane,
    at_point,
    by_receiver,
    kind_of,
)

_FOREIGN = "rcr_probes.foreign"  # a module that imports this one
_SHORT = 0.5  # seconds that a call waits for an answer that is planned not to come
DECIDE = "decide"
STATE = "state/"  # and the verb of the phase after which it is asked
BROKEN = 70  # the exit status of a phase in which the harness itself broke: EX_SOFTWARE


def perform(place: str, verb: str, parent: int) -> None:
    """Do one verb for the cell whose folder is ``place``, and write down what happens.

    ``fault`` starts the operation with the cell's fault armed; ``recover`` recovers by the cell's
    policy, and so does ``recover_2``, which is no more struck; ``decide`` enters what a person
    found out; ``force`` calls the executor once, past the runtime: the measured truth;
    ``state/fault`` and ``state/recover`` ask what is stored after that phase.
    """
    os.setsid()  # a group of its own, so that a phase that overruns ends with all that it started
    linux.die_with(parent)
    own = os.getpid()
    cell = folder.read_cell(place)
    runtime = made(cell.runtime)  # the worker that started us has loaded it, and looked it over
    if verb.startswith(STATE):  # what is stored is seen as recovery has the operation in hand
        Phase(place, verb.removeprefix(STATE), cell, runtime, "recover").store_state()
        return
    attempt = 0 if verb == DECIDE else fence.enter(os.path.join(place, folder.ATTEMPTS)).number
    attempt += verb == "force"  # one more call comes after the one that was there
    phase = Phase(place, verb, cell, runtime, verb, attempt=attempt)
    points.watch(phase.reached, _outside(place, verb, cell, attempt))
    error = NONE
    try:
        match verb:
            case "fault":
                phase.arm_call()
                phase.runtime.start(phase.operation)
            case "recover" | "recover_2":
                assert cell.policy is not None
                phase.runtime.recover(phase.operation, cell.policy)
            case "decide":
                with open(os.path.join(place, folder.FINDING), encoding="ascii") as file:
                    offered(phase.runtime, DECIDE)(phase.operation, file.read())
            case _:
                phase.operation.executor(phase.operation.key, phase.operation.request)
                phase.deliver()
    except BaseException as raised:  # SystemExit and KeyboardInterrupt are answers, too
        error = code_of(raised)
        _tell(raised)
    phase.sample()
    if os.getpid() != own:  # forked by the runtime, and let come back: the operation has one caller
        os._exit(BROKEN)
    phase.emit("return", {"error": phase.lost_answer() or error, **phase.whose()})
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


def _outside(place: str, verb: str, cell: Cell, attempt: int) -> points.Outside:
    """The commands do their part where we are, wherever they are run."""
    words = (sys.executable, "-P", "-m", _FOREIGN)
    rest = (os.getcwd(), place, verb, str(attempt), str(os.getpid()))
    _, point = _armed(verb, cell) or (NONE, NONE)
    armed = point if point in POINTS else None
    return points.Outside((*words, "call", *rest), (*words, "reach", *rest), armed)


def _armed(verb: str, cell: Cell) -> tuple[str, str] | None:
    """What strikes in a phase of this verb, and where; None where nothing of ours does."""
    if verb == "recover":
        return at_point(cell.recovery_fault)
    own = cell.fault != NONE and not by_receiver(cell.point, cell.fault)
    return (cell.fault, cell.point) if verb == "fault" and own else None


def _tell(raised: BaseException) -> None:
    """Say in the output where an error came from: its code alone tells a developer little."""
    with contextlib.suppress(OSError):
        os.write(2, origin(raised))


def origin(raised: BaseException) -> bytes:
    """An error and where it came from, as a line of a cell's output.

    The module ``traceback`` would say more, and cost each refused recovery several milliseconds.
    """
    said = " ".join(line.strip() for line in str(raised).splitlines())
    return f"{type(raised).__name__}: {said} ({where(raised)})\n".encode(errors="replace")


def _leave() -> None:
    """What an interpreter does on its way out: its threads come to their end, exit handlers run.

    It is done here, so that it happens alike in a forked process and in a spawned one, and so that
    what it still does to the operation is observed.
    """
    threading = sys.modules.get("threading")  # it has threads only where somebody imported it
    if threading is not None:
        threading._shutdown()
    atexit._run_exitfuncs()


def _patience(verb: str, cell: Cell) -> float:
    """How long a call waits for its receiver: what is planned to come is waited for."""
    late = cell.fault == "timeout" and by_receiver(cell.point, cell.fault)
    return _SHORT if late and verb == "fault" else executors.PATIENCE


def operation(cell: Cell, place: str, verb: str, executor: Executor, attempt: int = 0) -> Operation:
    """The operation as its caller hands it over in this phase."""
    asked = request.requested(cell) if verb == "fault" else request.recomputed(cell)
    private = Path(place, folder.RUNTIME)
    key, variant = request.approved(cell).operation_key, cell.variant or BASELINE
    attempts, witness = Path(place, folder.ATTEMPTS), Path(place, folder.WITNESS)
    return Operation(key, asked, private, executor, variant, attempt, attempts, witness)


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
        attempt: int = 0,
    ) -> None:
        """Look at what is there.

        Args:
            place: the cell's folder.
            verb: of the phase.
            cell: what is planned.
            runtime: under probe.
            hand: the verb whose request is in hand.
            pid: of the process that comes to points.
            attempt: the number of this phase's attempt.
        """
        self._events = os.path.join(place, folder.EVENTS)
        struck = folder.STRUCK if verb == "fault" else folder.STRUCK_IN_RECOVERY
        self._struck = os.path.join(place, struck)
        self._place = place
        self._verb = "recover" if verb in ("recover_2", DECIDE) else verb  # what its events say
        self._late = False
        self._cell = cell
        self._armed = _armed(verb, cell)
        self._points = (*POINTS, *INNER_POINTS.get(cell.dedupe, ()))
        self.runtime = runtime
        patience = _patience(verb, cell)
        token = attempt if cell.variant == FENCED else None
        executor = executors.make(place, cell.dedupe, self.emit, self.reached, patience, token)
        if verb == "fault" and cell.recovery_fault in ORIGINALS and isinstance(executor, Marker):
            kind, off = cell.recovery_fault, self._fenced_off
            executor = Late(executor, kind, place, self._let_go, off)
        self.operation = operation(cell, place, hand, executor, attempt)
        self._pid = pid
        self._asks = asks(cell, runtime)
        self._calls_count = verb == "fault" and strace.parse(cell.point) is not None
        self.look_back()

    def look_back(self) -> None:
        """See what is written down already: it is no news, whoever has written it."""
        self._state: Mapping[str, Json] | None = None
        self._audited: dict[str, int] = {}
        for line in ledger.read(self._events, ledger.EventLine).lines:
            if line.lane == "state":
                self._state = line.value
            if line.lane in ("point", "audit") and line.path is not None:
                news = line.lane == "audit"
                self._audited[line.path] = self._audited.get(line.path, 0) + news
            if line.lane == "fault" and line.path is not None and "lines" in line.value:
                self._audited[line.path] = line.value["lines"]  # what damage left of it

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
        """Note that runtime or executor came to a point; strike where the fault is armed for it."""
        if path is not None:
            self._audited.setdefault(path, 0)
        self.sample()
        if name not in self._points:
            self.emit("fault", {"point": name, "error": ledger.UNKNOWN_POINT})
            return
        self.emit("point", {"point": name}, path)
        match self._armed:
            case (fault, point) if name == point and self._is_first():
                at = faults.Target(name, path, self.runtime, self.operation, self._pid())
                self._strike(fault, at)

    def _let_go(self) -> None:
        """What this phase still does belongs to recovery: it was held while that ran."""
        self._verb = "recover"
        self._late = True
        self.look_back()
        self.emit("fault", {"fault": self._cell.recovery_fault})

    def _fenced_off(self, code: str) -> None:
        self.emit("fault", {"refused": code})

    def whose(self) -> Mapping[str, Json]:
        """Whose return is told, where it is not that of the phase which is running."""
        return {"attempt": self.operation.attempt} if self._late else {}

    def deliver(self) -> None:
        """What an original had sent acts in the copy too, after the call that is forced there."""
        cell = self._cell
        if cell.recovery_fault not in ORIGINALS:
            return
        token = 1 if cell.variant == FENCED else None
        original = executors.make(self._place, cell.dedupe, self.emit, token=token)
        assert isinstance(original, Marker)
        with contextlib.suppress(Fenced):
            original.act(self.operation.key, request.requested(cell))

    def _is_first(self) -> bool:
        """Whether no process and no thread of this phase has come to the armed point before."""
        self._armed = None
        try:
            os.close(os.open(self._struck, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
        except FileExistsError:
            return False
        return True

    def _strike(self, fault: str, at: faults.Target) -> None:
        """Strike, or hold this process until it is released; proof is written before."""

        def proven(error: str) -> None:
            self.emit("fault", {"point": at.point, "error": error})

        self.emit("fault", {"point": at.point, "fault": fault}, at.path)
        if fault == HELD:
            held.wait(self._place, os.getppid())
            self.look_back()  # what happened meanwhile is written down already
            return
        try:
            faults.KINDS[kind_of(fault)].strike(at, proven)
        except Exception as raised:
            proven(code_of(raised))
            raise

    def arm_call(self) -> None:
        """Have the call at the cell's point say that it failed, where that is the cell's fault."""
        point = strace.parse(self._cell.point)
        if self._armed is None or point is None or self._cell.fault != "error_after_call":
            return
        thread = os.getpid()

        def struck() -> Callable[[], None]:
            """The proof is written by the tracer, while the thread that it tells of is stopped."""
            self._pid = lambda: thread
            self.emit("point", {"point": self._cell.point})
            self.emit("fault", {"point": self._cell.point, "fault": self._cell.fault})
            proof = {"point": self._cell.point, "error": FAULTS[self._cell.fault]}
            return lambda: self.emit("fault", proof)

        named = offered(self.runtime, "files")(self.operation)
        point = replace(point, file=named.get(point.file, point.file))
        faults.misreport(point, str(self.operation.folder), struck)

    def lost_answer(self) -> str | None:
        """What the caller sees of an answer that was lost on its way; None where none was.

        Whoever it was that came to the point, it is this process that does not get the answer.
        """
        lost = self._verb == "fault" and self._cell.fault == "response_lost"
        if not lost or self._cell.point not in FAULT_POINTS["response_lost"]:
            return None
        return FAULTS["response_lost"] if os.path.exists(self._struck) else None

    def sample(self) -> None:
        """Note what changed since the last look: audit lines in order, then the stored state."""
        if not self._calls_count:
            self._sample_audit()
        if self._verb != "force" and self._asks:
            self.sample_state()

    def _sample_audit(self) -> None:
        for path, seen in self._audited.items():
            lines = audited.lines(path)
            for line in lines[seen:]:
                self.emit("audit", line, path)
            self._audited[path] = max(seen, len(lines))

    def sample_state(self) -> Recorded | None:
        """Note the stored state where it changed, and return it; None where it cannot be read."""
        stored = None
        try:
            stored = recorded(self.runtime, self.operation)
            state = shown(stored)
        except Exception as raised:
            state = {"status": UNREADABLE, "error": code_of(raised)}
            if state != self._state:
                _tell(raised)
        if state != self._state:
            self._state = state
            self.emit("state", state)
        return stored

    def store_state(self) -> None:
        """Look once at audit and stored state, and leave the state where the observer finds it."""
        self._sample_audit()
        stored = self.sample_state()
        if stored is not None:
            with open(os.path.join(self._place, folder.STATE), "wb") as file:
                file.write(msgspec.json.encode(stored))


if __name__ == "__main__":
    perform(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    os._exit(0)
