"""Drive one cell: setup, the worker under its strike, the measured truth, recovery, the counts."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rcr_probes import files, linux, room, strace
from rcr_probes.errors import RcrError
from rcr_probes.evidence.received import DONE
from rcr_probes.model import Cell
from rcr_probes.probe import strike, trace
from rcr_probes.probe.command import Command
from rcr_probes.probe.process import Ended, Running
from rcr_probes.probe.trace import Target, Traced
from rcr_probes.receiver import (
    HOLDS,
    NotReached,
    Receiver,
    Record,
    Request,
    Settings,
    read_back,
)
from rcr_probes.receiver.store import Store
from rcr_probes.strace import CallPoint

_DRAIN = 5.0  # seconds in which a receiver must be drained once nobody calls it any more
_TAIL = 12  # lines of what a command printed, where it matters
_READ = 4000  # bytes of its end that are read for that


@dataclass(frozen=True, slots=True)
class Commands:
    """What is run for every strike, and how long it may take.

    Attributes:
        worker: under the strike.
        recovery: afterwards, in a new process.
        setup: before each strike; None where nothing has to be prepared.
        settings: of the receiver; how long it withholds an answer follows from ``timeout``.
        timeout: seconds for each run of a command.
    """

    worker: Command
    recovery: Command
    setup: Command | None
    settings: Settings
    timeout: float


@dataclass(frozen=True, slots=True)
class Course:
    """What one cell's course was, as it was seen from outside.

    Attributes:
        cell: what was planned.
        worker: how the worker ended.
        recovery: how its recovery ended.
        drained: whether the receiver was drained after the one, and after the other.
        after_fault: all that the receiver had recorded before recovery.
        after_recovery: and after it.
        truth: what a copy of it had recorded once one more call was handled there.
        forced: that call.
        truth_ran: the process of the copy, and how long it ran in seconds.
        proven: for a kill at a system call, whether the log of calls proves it; else None.
        printed: the last lines of what the worker printed, and its setup before it.
        recovery_printed: and of what its recovery printed.
    """

    cell: Cell
    worker: Ended
    recovery: Ended
    drained: tuple[bool, bool]
    after_fault: Record
    after_recovery: Record
    truth: Record
    forced: Request
    truth_ran: tuple[int, float]
    proven: bool | None
    printed: tuple[str, ...]
    recovery_printed: tuple[str, ...]


def drive(
    cell: Cell,
    place: Path,
    commands: Commands,
    sample: Request | None,
    target: Target | None = None,
) -> Course:
    """Run one cell from its setup to the last count.

    Args:
        cell: what to do.
        place: a folder for it alone; it does not exist yet.
        commands: what to run.
        sample: a request that the control sent, for where the worker sends none.
        target: the call at which strace kills the worker; None: the cell strikes at a request.

    Raises:
        RcrError: its setup failed, the control sent no request, or a command wrote more than it
            may.
    """
    with _ready(place, commands) as run:
        receiver = run.receiver
        if target is None:
            worker, proven = run.worker(cell), None
        else:
            worker, proven = run.traced(target)
        drained = _drained(receiver)
        receiver.disarm()
        before = receiver.record()
        struck = _forced(before, sample)
        if struck is None:
            raise NothingSent(before, worker, told(run.printed()))
        truth, forced, ran = _truth(receiver, place / "truth", struck)
        recovery = run.recovery()
        return Course(
            cell,
            worker,
            recovery,
            (drained, _drained(receiver)),
            before,
            receiver.record(),
            truth,
            forced,
            ran,
            proven,
            run.printed(),
            run.printed(recovery=True),
        )


def told(printed: Sequence[str]) -> str:
    """What a command printed, as the end of a remedy; empty where it printed nothing."""
    return "\n  It printed:" + "".join(f"\n    {line}" for line in printed) if printed else ""


def changes(path: str, place: Path, commands: Commands) -> list[Target]:
    """Where the worker changes files below a path, in a run without a strike: one for each call.

    Args:
        path: the watched folder or file; ``{folder}`` in it is filled in.
        place: a folder for this run; it does not exist yet.
        commands: what to run.

    Raises:
        RcrError: its setup failed, a command wrote more than it may, or a file's name is no text,
            which no cell can hold.
    """
    with _ready(place, commands) as run:
        watched = trace.place_of(path, run.folder)
        log = run.under_strace(watched, None).log
        made = strace.calls(log, watched)
        of_file = not os.path.isdir(watched) and all(c.point.file == strace.HERE for c in made)
    if of_file:  # as it looks once all is over: the worker may have made it, or taken it away
        made = strace.calls(log, *os.path.split(watched))
    targets: dict[CallPoint, Target] = {}
    for call in made:
        if call.changes and not _is_text(call.point.file):
            raise RcrError(
                f"The worker changes a file whose name is no UTF-8 text: {call.point.file!r}.",
                "Have --syscalls watch a folder, or a file, where every name is.",
            )
        if call.changes:  # a path that leads through the folder of this run is nobody's later
            spelled = tuple(s for s in call.spelled if not os.path.isabs(s))
            targets.setdefault(call.point, Target(path, of_file, call.point, spelled))
    return list(targets.values())


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


class NothingSent(RcrError):
    """The worker sent nothing that could be struck."""

    def __init__(self, record: Record, worker: Ended, said: str) -> None:
        others = len(record.requests)
        refused = [one.status for one in record.requests if one.outcome == "refused"]
        if worker.how == "deadline":
            cause = f"The worker sent no request, and did not end within {worker.seconds:.0f} s."
        elif refused:
            cause = (
                f"The receiver refused what the worker sent, with HTTP {refused[0]}: it stands at "
                "an http:// address, speaks HTTP/1.1, and no TLS."
            )
        elif others:
            cause = (
                f"The worker sent requests ({others}), but none that can make an effect: "
                "GET, HEAD, OPTIONS and TRACE only ask."
            )
        else:
            cause = f"The worker sent nothing to the receiver, and ended with {worker.status}."
        left = (
            " It left a process running, which was ended: run it in the foreground."
            if worker.left_behind
            else ""
        )
        super().__init__(
            cause + left,
            "Have it call the address in the environment variable RCR_RECEIVER, or put "
            "{receiver} into its command where it takes the API's address; --setup can give it a "
            "job to do." + said,
        )


@contextmanager
def _ready(place: Path, commands: Commands) -> Iterator[_Runner]:
    """A receiver and a fresh folder, in which the setup has run."""
    folder = place / "folder"
    folder.mkdir(parents=True)
    settings = replace(commands.settings, bound=commands.timeout / 2)
    with Receiver(str(place / "receiver"), settings) as receiver:
        run = _Runner(commands, receiver, str(folder), place)
        try:
            run.setup()
            yield run
            room.require_bounded(str(place))  # also where it was too quick to be looked at
        except room.FolderTooLarge as error:
            raise RcrError(
                f"What is probed wrote more than it may in one strike: {error}.",
                "Give it a smaller job, such as by --setup, and keep large files outside {folder} "
                "(the environment variable RCR_FOLDER); what it prints counts, too."
                + told(run.printed()),
            ) from error


class _Runner:
    """Runs the commands of one cell, in their environment."""

    def __init__(self, commands: Commands, receiver: Receiver, folder: str, place: Path) -> None:
        self.receiver = receiver
        self.folder = folder
        self._commands = commands
        self._watch = room.Watch(str(place))
        self._output = str(place / "output.txt")
        self._recovery_output = str(place / "recovery.txt")

    def setup(self) -> None:
        if self._commands.setup is None:
            return
        with self._start(self._commands.setup, self._output) as running:
            ended = running.end(self._commands.timeout)
        if ended.status != DONE:
            raise RcrError(
                f"The setup ended with {ended.status}: {self._commands.setup}",
                "It runs before each strike, and must prepare the state in {folder} "
                "(the environment variable RCR_FOLDER)." + told(self.printed()),
            )

    def worker(self, cell: Cell) -> Ended:
        """Run the worker, with the cell's strike at its request."""
        fault = strike.AT_REQUEST.get((cell.point, cell.fault))
        if fault is not None:
            self.receiver.arm(fault, strike.nth(cell))
        until = time.monotonic() + self._commands.timeout
        with self._start(self._commands.worker, self._output) as running:
            if fault in HOLDS:
                self._kill_held(running, until)
            return running.end(until - time.monotonic())

    def traced(self, target: Target) -> tuple[Ended, bool]:
        """Run the worker, and kill it at a call; also, whether the log proves that."""
        place = target.place(self.folder)
        found = self.under_strace(place, target)
        return found.ended, strace.struck(found.log, target.point, place)

    def under_strace(self, place: str, target: Target | None) -> Traced:
        words = self._filled(self._commands.worker)
        timeout = self._commands.timeout
        around = self._environment()
        return trace.run(words, around, self._output, timeout, place, target, self._watch)

    def recovery(self) -> Ended:
        with self._start(self._commands.recovery, self._recovery_output) as running:
            return running.end(self._commands.timeout)

    def printed(self, *, recovery: bool = False) -> tuple[str, ...]:
        """The last lines that setup and worker printed, or the recovery, for a person."""
        output = self._recovery_output if recovery else self._output
        try:
            with open(files.opened(output), "rb") as file:  # it may be large: its end alone is read
                file.seek(max(0, os.fstat(file.fileno()).st_size - _READ))
                lines = file.read(_READ).decode(errors="replace").strip().splitlines()[-_TAIL:]
        except OSError:
            return ()
        return tuple("".join(c if c.isprintable() else " " for c in line) for line in lines)

    def _kill_held(self, running: Running, until: float) -> None:
        """Kill the worker while its request is held, then drop the request."""
        while (left := until - time.monotonic()) > 0:  # else it is ``end`` that will tell
            try:
                held = self.receiver.wait_held(min(left, room.LOOK), unless_ended=running.pid)
            except NotReached:
                self._watch.look()
                continue
            if held is not None:
                running.kill()
                self.receiver.release(held, "drop")
            return

    def _start(self, command: Command, output: str) -> Running:
        return Running(self._filled(command), self._environment(), output, self._watch)

    def _filled(self, command: Command) -> list[str]:
        return command.filled(self.receiver.address, self.folder)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "RCR_RECEIVER": self.receiver.address, "RCR_FOLDER": self.folder}


def _drained(receiver: Receiver) -> bool:
    try:
        receiver.wait_idle(_DRAIN)
    except NotReached:
        return False
    return True


def _forced(record: Record, sample: Request | None) -> Request | None:
    """What is called once more: the struck request, or the last one, or what the control sent."""
    acting = [request for request in record.requests if request.nth is not None]
    struck = [request for request in acting if request.fault is not None]
    return next(iter([*struck, *reversed(acting)]), sample)


def _truth(
    receiver: Receiver, copy: Path, struck: Request
) -> tuple[Record, Request, tuple[int, float]]:
    """One more call, in a copy of the receiver's world, past the worker: in a process of its own.

    Nobody sends it, so the copy needs no sockets: its database is all of its world.
    """
    begun = time.monotonic()
    receiver.snapshot(str(copy))
    pid = _forced_call(str(copy), struck)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RcrError(
            "One more call could not be made in a copy of the receiver.", "Run the probe again."
        )
    record = read_back(str(copy))
    return record, record.requests[-1], (pid, time.monotonic() - begun)


def _forced_call(copy: str, struck: Request) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:  # nothing of the parent's may run on in here, whatever happens
        linux.die_with(parent)
        world = Store(copy)
        world.disarm()
        world.repeat(struck)
        world.close()
        status = 0
    finally:
        os._exit(status)
