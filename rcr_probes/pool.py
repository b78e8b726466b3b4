"""Lean workers side by side: each gets every n-th cell, and their captures come back in order."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator

import msgspec

from rcr_probes import worker
from rcr_probes.errors import EvidenceError, RcrError
from rcr_probes.evidence import seal
from rcr_probes.model import Capture, recovery_phases
from rcr_probes.worker import Job

_AHEAD = 2  # jobs that a worker has in hand, so that it never waits for us
# Phases of a cell besides its recovery, each with its deadline: the fault phase, an original that
# was held, the forced call, and two that ask for the state.
_PHASES = 5
_GRACE = 30.0  # seconds for what a worker does besides: start, observe, seal


def captures(jobs: Iterable[Job], workers: int) -> Iterator[Capture]:
    """The captures of the jobs, in their order.

    Raises:
        RcrError: a worker cannot even start.
    """
    pool: list[_Worker] = []
    pending: deque[_Worker] = deque()
    try:
        pool += (_Worker() for _ in range(workers))
        for number, job in enumerate(jobs):
            if len(pending) == _AHEAD * workers:
                yield pending.popleft().receive()
            chosen = pool[number % workers]
            chosen.send(job)
            pending.append(chosen)
        while pending:
            yield pending.popleft().receive()
    finally:
        for one in pool:
            one.end()


class _Worker:
    """A process that runs cells: never this one, which may be a notebook or have threads."""

    def __init__(self) -> None:
        self._unanswered: deque[Job] = deque()
        self._start()

    def _start(self) -> None:
        self._read = b""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", worker.__name__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to handle: we end it in good order
        )
        try:
            ready = self._line(_GRACE) == worker.READY
        except BaseException:  # interrupted: nobody else knows of it yet
            self.end()
            raise
        if not ready:
            self.end()
            raise RcrError(
                "A worker process cannot start.",
                f"What it printed says why; {sys.executable} must be able to import rcr_probes.",
            )

    def send(self, job: Job) -> None:
        """Give it one more job."""
        self._unanswered.append(job)
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # its death is noticed when we receive
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()

    def receive(self) -> Capture:
        """The capture of the oldest unanswered job; a worker that dies or hangs costs that one."""
        job = self._unanswered[0]
        recoveries = recovery_phases(job.cell.policy, job.cell.recovery_fault)
        line = self._line((_PHASES + len(recoveries)) * job.deadline + _GRACE)
        self._unanswered.popleft()
        if line.endswith(b"\n"):
            try:
                return seal.decode(line, "worker")
            except EvidenceError:
                return worker.broken(job, "its capture cannot be read")
        self.end()
        capture = worker.recovered(job)
        if not job.keep:
            shutil.rmtree(job.folder, ignore_errors=True)
        waiting, self._unanswered = self._unanswered, deque()
        self._start()
        for other in waiting:
            self.send(other)
        return capture

    def end(self) -> None:
        """End the process and the phase that it is running; return when it is gone."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _line(self, seconds: float) -> bytes:
        """Its next line; what there is of one where it died, or said nothing for so long."""
        assert self._process.stdout
        fd, until = self._process.stdout.fileno(), time.monotonic() + seconds
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while b"\n" not in self._read:
            left = until - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                break
            data = os.read(fd, 1 << 16)
            if not data:
                break
            self._read += data
        line, newline, self._read = self._read.partition(b"\n")
        return line + newline
