"""Start a phase's process by fork or spawn, wait for its end, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rcr_probes import folder, phase

_GRACE = 0.5  # seconds that a process has to end by itself once its phase has ended
_LOOK = 0.002  # seconds between two looks at whether it has


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


def run_phase(
    start: str, place: str, verb: str, deadline: float, under: Sequence[str] = ()
) -> Ended:
    """Run one verb in one new process, and return when nothing of it is alive.

    The caller is single-threaded, has called ``linux.adopt_descendants``, and has no other
    children: whatever is left of its children afterwards is the phase's, and is ended.

    Args:
        start: ``fork`` (from this warm, single-threaded process) or ``spawn`` (a new interpreter).
        place: the cell's folder.
        verb: ``fault``, ``recover`` or ``force``.
        deadline: seconds; a phase that overruns is killed with its whole process group.
        under: the program, and its arguments, that becomes the phase's process; ``spawn`` alone.
    """
    begun = time.monotonic()
    pid = _fork(place, verb) if start == "fork" else _spawn(place, verb, under)
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


def fence_is_free(place: str) -> bool:
    """Whether nobody who inherited the fence of any attempt on this cell is alive."""
    try:
        os.close(phase.hold_fence(place))
    except OSError:
        return False
    return True


def end_orphans() -> int:
    """End every child that is left, and the children that they leave in turn; return how many.

    One that is on its way out is waited for: what dies with its parent dies a moment later.
    """
    ended, until = 0, time.monotonic() + _GRACE
    while True:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if reaped:
            continue
        if time.monotonic() < until:
            time.sleep(_LOOK)
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


def _fork(place: str, verb: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = phase.BROKEN
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _redirect(os.path.join(place, folder.OUTPUT))
        phase.perform(place, verb, parent)
        status = 0
    except BaseException:
        import traceback  # only where the harness itself broke

        traceback.print_exc()
    finally:  # whatever the runtime did to its streams, this process must not go on as its parent
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def _redirect(output: str) -> None:
    """What a runtime prints is kept in the cell's folder, and is no part of our own output."""
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(out)


def _spawn(place: str, verb: str, under: Sequence[str]) -> int:
    output = os.path.join(place, folder.OUTPUT)
    argv = [*under, sys.executable, "-P", "-m", phase.__name__, place, verb, str(os.getpid())]
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    )
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)


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
