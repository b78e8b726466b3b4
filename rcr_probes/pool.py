"""Lanes side by side, each with every n-th cell: their captures come back in order.

A lane is a lean worker of this machine, or a place on a cluster (cluster.py).
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from rcr_probes import folder, linux, worker
from rcr_probes.errors import EvidenceError, RcrError
from rcr_probes.evidence import seal
from rcr_probes.evidence.form import LONGEST
from rcr_probes.model import Capture
from rcr_probes.vocabulary import recovery_phases
from rcr_probes.worker import Job

_AHEAD = 2  # jobs that a worker has in hand, so that it never waits for us
# Phases of a cell besides its recovery, each with its deadline: the fault phase, an original that
# was held, the forced call, and two that ask for the state.
_PHASES = 5
_GRACE = 30.0  # seconds for what a worker does besides: start, observe, seal
_ENDING = 0.5  # seconds for a worker to end its phase and itself; then both are killed
_STARTS = 3  # times that one is started which is killed as it starts
# Names a worker in the environment of whatever it starts: where it is killed, that is left to init.
_MARK = "RCR_WORKER"


class Lane(Protocol):
    """One of several that run cells, each in the order in which it is sent them."""

    def send(self, job: Job) -> None:
        """Give it one more job."""

    def receive(self) -> Received:
        """The capture of the oldest unanswered job."""


class Received(NamedTuple):
    """A capture, and the name of the cluster's worker that measured it; None is this machine."""

    capture: Capture
    worker: str | None = None


def captures(jobs: Iterable[Job], lanes: Sequence[Lane]) -> Iterator[Received]:
    """The captures of the jobs, in their order, whichever lane they come from."""
    pending: deque[Lane] = deque()
    for number, job in enumerate(jobs):
        if len(pending) == _AHEAD * len(lanes):
            yield pending.popleft().receive()
        chosen = lanes[number % len(lanes)]
        chosen.send(job)
        pending.append(chosen)
    while pending:
        yield pending.popleft().receive()


@contextlib.contextmanager
def local(workers: int) -> Iterator[Sequence[Lane]]:
    """Lean workers on this machine; they are gone when the block is left.

    Raises:
        RcrError: a worker cannot even start.
    """
    pool: list[LeanWorker] = []
    try:
        pool += (LeanWorker() for _ in range(workers))
        yield pool
    finally:
        for one in pool:  # all of them at once, and then wait
            one.interrupt()
        for one in pool:
            one.end()


class LeanWorker:
    """A process that runs cells: never this one, which may be a notebook or have threads.

    The thread that makes it must outlive it: the kernel ends it with that thread.
    """

    def __init__(self, idle: int = 0) -> None:
        """Start it.

        Args:
            idle: seconds without a job after which it ends by itself; 0 is never.

        Raises:
            RcrError: it cannot start.
        """
        self._idle = idle
        self._unanswered: deque[Job] = deque()
        self._process: subprocess.Popen[bytes]
        self._over: float  # when it is killed, on the monotonic clock
        self._start()

    def idle_for(self) -> float:
        """Seconds since it was last given a job or has answered one."""
        return time.monotonic() - self._used

    def interrupt(self) -> None:
        """End the process; whoever waits for a capture of it is told so, and end() is theirs."""
        if self._over == math.inf:  # told once: a second signal would break off its cleaning up
            self._process.terminate()
            self._over = time.monotonic() + _ENDING

    def _start(self) -> None:
        """Start the process; once more where somebody kills it as it starts, as for its memory.

        Raises:
            RcrError: it cannot start.
        """
        for _ in range(_STARTS):
            if self._ready():
                return
            self.end()
            if self._process.returncode != -signal.SIGKILL:
                break  # what it printed says why
        raise RcrError(
            "A worker process cannot start.",
            f"What it printed says why; {sys.executable} must be able to import rcr_probes.",
        )

    def _ready(self) -> bool:
        """Start the process, and wait until it says that it is there."""
        self._read, self._used, self._over = b"", time.monotonic(), math.inf
        self._named = f"{os.getpid()}-{time.monotonic_ns()}-{id(self)}"
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", worker.__name__, str(os.getpid()), str(self._idle)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, _MARK: self._named},
            start_new_session=True,  # Ctrl-C is ours to handle: we end it in good order
        )
        try:
            return self._line(_GRACE) == worker.READY
        except BaseException:  # interrupted: nobody else knows of it yet
            self.end()
            raise

    def send(self, job: Job) -> None:
        """Give it one more job."""
        self._used = time.monotonic()
        self._unanswered.append(job)
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # its death is noticed when we receive
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()

    def receive(self) -> Received:
        """The capture of the oldest unanswered job; a worker that dies or hangs costs that one."""
        return Received(self._received())

    def _received(self) -> Capture:
        job = self._unanswered[0]
        recoveries = recovery_phases(job.cell.policy, job.cell.recovery_fault)
        line = self._line((_PHASES + len(recoveries)) * job.deadline + _GRACE)
        self._used = time.monotonic()
        self._unanswered.popleft()
        capture = _answered(job, line)
        if capture is not None:
            return capture
        self.end()
        if line.endswith(b"\n"):  # somebody else wrote there: whose the next lines are, none knows
            capture = worker.broken(job, "what its worker said is not its capture")
        else:
            capture = worker.left_by(job)
        if not job.keep:
            folder.remove(job.folder)
        waiting, self._unanswered = self._unanswered, deque()
        self._start()
        for other in waiting:
            folder.remove(other.folder)  # it may have been begun
            self.send(other)
        return capture

    def end(self) -> None:
        """End the process and the phase that it is running; return when it is gone."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self.interrupt()
        try:
            self._process.wait(self._over - time.monotonic())
        except subprocess.TimeoutExpired:  # then what it has adopted would be left, too
            linux.kill_with_all_below(self._process.pid)
            self._process.wait()
        if self._process.returncode < 0:  # killed, perhaps by others: it ended nothing itself
            linux.kill_marked(f"{_MARK}={self._named}")
        self._process.stdout.close()

    def _line(self, seconds: float) -> bytes:
        """Its next line; what there is of one where it died, or said nothing for so long.

        One that is longer than any capture is not read to its end. Its own end is looked for beside
        that of its output, which a process may hold open that outlives it.
        """
        assert self._process.stdout
        fd, until = self._process.stdout.fileno(), time.monotonic() + seconds
        over = os.pidfd_open(self._process.pid)
        poll = select.poll()
        for each in (fd, over):
            poll.register(each, select.POLLIN)
        try:
            while b"\n" not in self._read and len(self._read) <= LONGEST:
                left = until - time.monotonic()
                ready = [one for one, _ in poll.poll(left * 1000)] if left > 0 else []
                data = os.read(fd, 1 << 16) if fd in ready else b""
                if not data:
                    break
                self._read += data
        finally:
            os.close(over)
        line, newline, self._read = self._read.partition(b"\n")
        return line + newline


def _answered(job: Job, line: bytes) -> Capture | None:
    """The capture that a worker's line holds; None where it is not whole, or not of this job."""
    if not line.endswith(b"\n"):
        return None
    try:
        capture = seal.decode(line, "worker")
    except EvidenceError:
        return None
    return capture if capture.cell == job.cell else None
