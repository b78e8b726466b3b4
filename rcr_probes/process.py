"""Start a phase's process by fork or spawn, wait for its end, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from dataclasses import dataclass

from rcr_probes import phase

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Ended:
    """How a phase's process ended.

    Attributes:
        pid: its process id.
        how: ``exit``, a signal's name, ``crash`` (a nonzero exit status), or ``deadline``.
        seconds: wall time from start to end on the monotonic clock.
        left_behind: how many processes outlived it and were ended by pid.
    """

    pid: int
    how: str
    seconds: float
    left_behind: int


def adopt_descendants() -> None:
    """Make orphans of this process's phases its own children, whatever group they moved to."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def run_phase(start: str, folder: str, verb: str, deadline: float) -> Ended:
    """Run one verb in one new process, and return when nothing of it is alive.

    Args:
        start: ``fork`` (from this warm, single-threaded process) or ``spawn`` (a new interpreter).
        folder: the cell's folder.
        verb: one of ``phase.VERBS``.
        deadline: seconds; a phase that overruns is killed with its whole process group.
    """
    begun = time.monotonic()
    pid = (_fork if start == "fork" else _spawn)(folder, verb)
    try:
        overran = not _ends_within(pid, deadline)
    except BaseException:
        _kill(pid)
        end_orphans()
        raise
    if overran:
        _kill(pid)
    _, status = os.waitpid(pid, 0)
    left_behind = end_orphans()
    how = "deadline" if overran else _how(status)
    return Ended(pid, how, time.monotonic() - begun, left_behind)


def fence_is_free(folder: str) -> bool:
    """Whether nobody of any attempt on this cell can still act: its fence can be acquired."""
    try:
        os.close(phase.hold_fence(folder))
    except OSError:
        return False
    return True


def end_orphans() -> int:
    """End every child that is left, and the children that they leave in turn; return how many."""
    ended = 0
    while True:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if reaped:
            continue
        for pid in _children():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            ended += 1


def _kill(pid: int) -> None:
    """End a phase with its whole process group; it may not have come to make its own group yet."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(pid, signal.SIGKILL)


def _children() -> list[int]:
    me = os.getpid()
    with open(f"/proc/{me}/task/{me}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def _fork(folder: str, verb: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _redirect(os.path.join(folder, phase.OUTPUT))
        phase.perform(folder, verb)
        status = 0
    except BaseException:
        import traceback  # only where the harness itself broke

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _redirect(output: str) -> None:
    """What a runtime prints is kept in the cell's folder, and is no part of our own output."""
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(out)


def _spawn(folder: str, verb: str) -> int:
    output = os.path.join(folder, phase.OUTPUT)
    argv = [sys.executable, "-m", phase.__name__, folder, verb]
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    return os.posix_spawn(sys.executable, argv, os.environ, file_actions=actions)


def _ends_within(pid: int, deadline: float) -> bool:
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(deadline * 1000))
    finally:
        os.close(fd)


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return "exit" if os.WEXITSTATUS(status) == 0 else "crash"
