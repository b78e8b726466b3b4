"""Run a worker under strace: to learn where it changes files, or to kill it at such a call."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rcr_probes import room, strace
from rcr_probes.probe.command import FOLDER, fill
from rcr_probes.probe.process import Ended, Running
from rcr_probes.strace import CallPoint

_PIECE = 1 << 16
_TOLD = 1.0  # seconds in which the log has told of every thread that a kill ended


@dataclass(frozen=True, slots=True)
class Target:
    """Where to kill.

    Attributes:
        path: the watched folder or file, in which ``{folder}`` is filled in per strike.
        point: the call.
        spelled: other paths by which the worker names its file.
    """

    path: str
    point: CallPoint
    spelled: tuple[str, ...]


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
        place: the absolute path of the watched folder or file.
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
            traced = strace.striking(pipe, target.point, place, strace.KILL, words, target.spelled)
        with Running(traced, environment, output, watch) as running:
            text = _followed(running, log, timeout, place, target)
            ended = running.end(0)
            return Traced(ended, text + _read(log))
    finally:
        os.close(log)
        os.unlink(pipe)


def _followed(running: Running, log: int, timeout: float, place: str, target: Target | None) -> str:
    """Read the log until the worker ends; where it was killed at the call, kill all of it at once.

    A worker may be several processes, and it is the worker that is to be killed. One process may
    be several threads, whose ends the log tells one by one: that of the call may come last.
    """
    until = time.monotonic() + timeout
    text = ""
    while True:
        ready = running.wait(until - time.monotonic(), log)
        if log in ready:
            text += _read(log)
            if target is not None and strace.killed(text):
                if not strace.struck(text, target.point, place):
                    until = min(until, time.monotonic() + _TOLD)
                    continue
                running.kill()
                running.wait(until - time.monotonic())
                return text
        if running.pid in ready or not ready:
            return text


def _read(log: int) -> str:
    pieces = []
    try:
        while piece := os.read(log, _PIECE):
            pieces.append(piece)
    except BlockingIOError:
        pass
    return b"".join(pieces).decode(errors="surrogateescape")


def place_of(path: str, folder: str) -> str:
    """The watched place of one strike."""
    return os.path.realpath(Path(fill(path, {FOLDER: folder})))
