"""Start a phase's process by fork or spawn, wait for its end, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rcr_probes import folder, linux, phase, room
from rcr_probes.vocabulary import HANG

_GRACE = 0.5  # seconds that a process has to end by itself once its phase has ended
_LOOK = 0.002  # seconds between two looks at whether it has
_spared: set[int] = set()  # children that belong to no phase, and outlive them


@dataclass(frozen=True, slots=True)
class Ended:
    """How a phase's process ended.

    Attributes:
        pid: its process id.
        how: ``exit``, a signal's name, ``crash`` (a nonzero exit status), ``deadline``, or ``hang``
            (it was ended here as soon as it had provably hung).
        seconds: wall time from start to end on the monotonic clock.
        left_behind: how many processes outlived it and were ended by pid.
    """

    pid: int
    how: str
    seconds: float
    left_behind: int


def run_phase(
    start: str,
    place: str,
    verb: str,
    deadline: float,
    under: Sequence[str] = (),
    hung: Callable[[], bool] | None = None,
) -> Ended:
    """Run one verb in one new process, and return when nothing of it is alive.

    The caller is single-threaded, has called ``linux.adopt_descendants``, and has no children but
    those that are ``spared``: whatever else is left of them then is the phase's, and is ended.

    Args:
        start: ``fork`` (from this warm, single-threaded process) or ``spawn`` (a new interpreter).
        place: the cell's folder.
        verb: one that ``phase.perform`` knows.
        deadline: seconds; a phase that overruns is killed with its whole process group.
        under: the program, and its arguments, that becomes the phase's process; ``spawn`` alone.
        hung: whether the phase has proven that it hangs, and is to be ended now; cheap.

    Raises:
        FolderTooLarge, NoRoom: it wrote more than it may, and was ended.
    """
    return finish(begin(start, place, verb, under), deadline, hung)


@dataclass(frozen=True, slots=True)
class Begun:
    """A phase that is running: its process, when it began on the monotonic clock, and where."""

    pid: int
    at: float
    place: str


def begin(start: str, place: str, verb: str, under: Sequence[str] = ()) -> Begun:
    """Start a phase's process, as ``run_phase`` does, and do not wait for it."""
    at = time.monotonic()
    pid = _fork(place, verb) if start == "fork" else _spawn(place, verb, under)
    return Begun(pid, at, place)


def finish(begun: Begun, deadline: float, hung: Callable[[], bool] | None = None) -> Ended:
    """Wait for the end of a phase, as ``run_phase`` does, and return when nothing is left of it."""
    pid = begun.pid
    try:
        over = _over(begun, deadline, hung)
        room.require(begun.place)  # also of a phase that was too quick to be looked at
    except BaseException:
        linux.kill_group(pid)
        end_orphans(0.0)
        raise
    if over is not None:
        linux.kill_group(pid)
    _, status = os.waitpid(pid, 0)
    left_behind = end_orphans()
    return Ended(pid, over or _how(status), time.monotonic() - begun.at, left_behind)


@contextmanager
def spared(pid: int) -> Iterator[None]:
    """Let a child of this process outlive the phases that end while the block runs."""
    _spared.add(pid)
    try:
        yield
    finally:
        _spared.discard(pid)


def end(pid: int) -> None:
    """End a child of this process, and what is in its group; one that has ended is left alone."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            linux.kill_group(pid)
            os.waitpid(pid, 0)


def end_orphans(grace: float = _GRACE) -> int:
    """End every child that is left, and all that they have below them; return how many.

    One that is on its way out is waited for, for so many seconds: what dies with its parent dies a
    moment later.
    """
    ended, until = 0, time.monotonic() + grace
    while True:
        try:
            reaped = _reap()
        except ChildProcessError:
            return ended
        if reaped:
            continue
        if time.monotonic() < until:
            time.sleep(_LOOK)
            continue
        ended += linux.end_all_below(_spared)


def _reap() -> bool:
    """Whether a child had ended, and was taken from the table of processes.

    Raises:
        ChildProcessError: there is no child, but for those that are spared.
    """
    if not _spared:  # one call of the kernel, for all of them
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    left = _children()
    if not left:
        raise ChildProcessError
    return any(os.waitpid(pid, os.WNOHANG)[0] for pid in left)


def _children() -> list[int]:
    """Those that are not spared."""
    return [pid for pid in linux.children(os.getpid()) if pid not in _spared]


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


def _over(begun: Begun, deadline: float, hung: Callable[[], bool] | None) -> str | None:
    """Why a process is to be ended: ``deadline`` or ``hang``; None where it ended by itself.

    Raises:
        FolderTooLarge, NoRoom: it wrote more than it may.
    """
    until, watch = time.monotonic() + deadline, room.Watch(begun.place)
    fd = os.pidfd_open(begun.pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if poll.poll(1000 * min(left, room.LOOK if hung is None else _LOOK)):
                return None
            if hung is not None and hung():
                return HANG
            watch.look()
        return "deadline"
    finally:
        os.close(fd)


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return linux.signal_name(os.WTERMSIG(status))
    return "exit" if os.WEXITSTATUS(status) == 0 else "crash"
