"""Run a worker under strace: to learn where it changes files, or to kill it at such a call."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rcr_probes import room, strace
from rcr_probes.errors import RcrError
from rcr_probes.probe.command import FOLDER, fill
from rcr_probes.probe.process import Ended, Running
from rcr_probes.strace import CallPoint

_PIECE = 1 << 16
_TOLD = 1.0  # seconds in which the log has told of every thread that a kill ended
_LARGEST = 64 << 20  # bytes of a log; some 500,000 calls, of which nobody strikes at each


@dataclass(frozen=True, slots=True)
class Target:
    """Where to kill.

    Attributes:
        path: the watched folder or file, in which ``{folder}`` is filled in per strike.
        of_file: whether that is a file: then it is its folder that the point's file lies in.
        point: the call.
        spelled: other paths by which the worker names its file.
    """

    path: str
    of_file: bool
    point: CallPoint
    spelled: tuple[str, ...]

    def place(self, folder: str) -> str:
        """The absolute path of the folder that the point's file lies in, in one strike."""
        watched = place_of(self.path, folder)
        return os.path.dirname(watched) if self.of_file else watched


@dataclass(frozen=True, slots=True)
class Traced:
    """How a worker ended under strace, and what the log says."""

    ended: Ended
    log: str


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    output: str,
    timeout: float,
    place: str,
    target: Target | None,
    watch: room.Watch,
) -> Traced:
    """Run a command under strace.

    Args:
        words: the command.
        environment: all of it.
        output: the file that its output is appended to.
        timeout: seconds until it is ended.
        place: the absolute path of the folder that the target's file lies in.
        target: where to kill it; None: nowhere.
        watch: looks at what the command writes meanwhile.
    """
    pipe = f"{output}.strace"
    os.mkfifo(pipe, 0o600)
    log = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # for writing too: so nobody waits to open it
    try:
        if target is None:
            traced = strace.watching(pipe, words)
        else:
            traced = strace.striking(pipe, target.point, place, words, target.spelled)
        with Running(traced, environment, output, watch) as running:
            told = _Log(log)
            _follow(running, told, timeout, place, target)
            ended = running.end(0)
            told.read()
            return Traced(ended, told.text())
    finally:
        os.close(log)
        os.unlink(pipe)


class _Log:
    """What strace has written to a pipe so far: each byte is read and looked at once."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self._pieces: list[bytes] = []
        self._size = 0
        self._open = b""  # the last line, as far as it goes

    def read(self) -> bool:
        """Read what is there; whether it tells of a kill.

        Raises:
            RcrError: it is longer than is followed.
        """
        new: list[bytes] = []
        with contextlib.suppress(BlockingIOError):
            while self._size <= _LARGEST and (piece := os.read(self.pipe, _PIECE)):
                new.append(piece)
                self._size += len(piece)
        if self._size > _LARGEST:
            raise RcrError(
                f"What strace tells of the worker has more than {_LARGEST >> 20} MiB.",
                "Give --syscalls a folder of fewer files, or have the worker do less in one run.",
            )
        self._pieces += new
        lines, end, self._open = b"".join((self._open, *new)).rpartition(b"\n")
        return bool(strace.killed(_decoded(lines + end)))

    def text(self) -> str:
        """All of it."""
        return _decoded(b"".join(self._pieces))


def _decoded(log: bytes) -> str:
    return log.decode(errors="surrogateescape")


def _follow(running: Running, log: _Log, timeout: float, place: str, target: Target | None) -> None:
    """Read the log until the worker ends; where it was killed at the call, kill all of it at once.

    A worker may be several processes, and it is the worker that is to be killed. One process may
    be several threads, whose ends the log tells one by one: that of the call may come last.
    """
    until = time.monotonic() + timeout
    while True:
        ready = running.wait(until - time.monotonic(), log.pipe)
        if log.pipe in ready and log.read() and target is not None:
            if strace.struck(log.text(), target.point, place):
                running.kill()
                running.wait(until - time.monotonic())
                return
            until = min(until, time.monotonic() + _TOLD)
        if running.pid in ready or not ready:
            return


def place_of(path: str, folder: str) -> str:
    """The watched place of one strike."""
    return os.path.realpath(Path(fill(path, {FOLDER: folder})))
