"""What only Linux offers to keep processes together, and to see that one ends."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
from collections.abc import Callable, Collection, Sequence

from rcr_probes.errors import RcrError

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# Python ignores these, and a program that is started by hand would inherit that.
PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)
_libc = ctypes.CDLL(None, use_errno=True)


def require() -> None:
    """Refuse where no cell can run; what was measured can be read all the same.

    Raises:
        RcrError: this is no Linux, or a Python built for one before 5.3, as conda's may be:
            it has no pidfd_open, by which the end of a process is awaited.
    """
    if sys.platform != "linux":
        raise RcrError(
            f"Cells are run on Linux alone, and this is {sys.platform}.",
            "Run them there, or in a container; rcr show, explain, check and decide work here.",
        )
    if not hasattr(os, "pidfd_open"):
        raise RcrError(
            f"{sys.executable} was built for an old Linux: it has no os.pidfd_open.",
            "Use another build of Python, such as that of your distribution: make PYTHON=PATH",
        )


def adopt_descendants() -> None:
    """Make orphans among this process's descendants its own children, in whatever group they are.

    Raises:
        OSError: the kernel refused.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children(pid: int) -> list[int]:
    """The processes that this one has started or adopted, and not waited for; none of who is gone.

    Raises:
        OSError: the kernel does not tell.
    """
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    return found


def kill_group(leader: int) -> None:
    """Kill a process that leads its group, and the group; it may not have come to make one yet."""
    for end in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            end(leader, signal.SIGKILL)


def kill_with_all_below(pid: int) -> None:
    """Kill a process and whatever it or those below it have started, in whatever group they are.

    All are stopped before one is killed: nothing is started while they are looked for, and none
    dies with its parent and leaves its own children to somebody else. What one left that ended
    meanwhile was adopted, and is found by looking again. The lowest is killed first: who would
    reap it is still stopped, so that no pid can have become another's.
    """
    _kill_stopped([pid], lambda found: [below for one in found for below in children(one)])


def end_all_below(spared: Collection[int] = ()) -> int:
    """Kill and reap all that this process has below it, as above; return how many there were.

    It has called ``adopt_descendants``, so that whatever is left by one of them comes to it.

    Args:
        spared: children that go on, with all that they have below them.
    """
    here = os.getpid()

    def below(found: Sequence[int]) -> list[int]:
        own = [one for one in children(here) if one not in spared]
        return [*own, *(below for one in found for below in children(one))]

    ended = 0
    for pid in _kill_stopped(below([]), below):  # above before below: then that is ours, too
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
            ended += 1
    return ended


def _kill_stopped(first: Sequence[int], look: Callable[[Sequence[int]], list[int]]) -> list[int]:
    """Stop these, and what a look at those that were found finds besides; then kill them all."""
    found: list[int] = []
    new = list(first)
    while new:
        for one in new:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGSTOP)
        found += new
        new = [one for one in dict.fromkeys(look(found)) if one not in found]
    for one in reversed(found):
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    return found


def kill_marked(mark: str) -> None:
    """Kill every process that began with this in its environment, ``NAME=value``, wherever it is.

    So those are found whose parent was killed, and that nobody adopted who knows of them. One that
    cleared its environment, or is another user's, is not. They are killed at once and not stopped
    before: who does this may be killed meanwhile, and what is stopped stays so. What they started
    carries the mark, too, and is found by looking again; whoever outruns that is stopped.
    """
    killed: set[int] = set()
    while new := [pid for pid in _marked(mark.encode()) if pid not in killed]:
        for pid in new:
            if killed:
                kill_with_all_below(pid)
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        killed.update(new)


def _marked(mark: bytes) -> list[int]:
    found: list[int] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if mark in file.read().split(b"\0"):
                found.append(int(name))
    return found


def ends_within(pid: int, seconds: float, asked: signal.Signals | None = None) -> bool:
    """Whether a process ends so soon, once it got this signal; it is not waited for, nor reaped.

    Raises:
        ProcessLookupError: there is none.
    """
    fd = os.pidfd_open(pid)
    try:
        if asked is not None:
            signal.pidfd_send_signal(fd, asked)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))  # a negative time is for ever
    finally:
        os.close(fd)


def signal_name(number: int) -> str:
    """What a signal is called, as in ``SIGKILL``; ``SIGNAL_40`` where it has a number alone."""
    try:
        return signal.Signals(number).name
    except ValueError:  # Linux names of its real-time signals the first and the last
        return f"SIGNAL_{number}"


def die_with(parent: int) -> None:
    """Have the kernel end this process when its parent ends, however that comes about.

    Raises:
        OSError: the kernel refused.
        SystemExit: the parent has ended already.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the kernel was asked
        raise SystemExit(1)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
