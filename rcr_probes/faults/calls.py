"""Faults of a system call that the runtime makes: refused before it, or misreported after it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

from rcr_probes import tracer
from rcr_probes.errors import FaultError
from rcr_probes.faults.audit import Link
from rcr_probes.faults.kind import Proven, Target
from rcr_probes.faults.process import ProcessFault
from rcr_probes.strace import CallPoint

_HERE = -100  # AT_FDCWD
# Which arguments of a call name its file: a descriptor, a path, or a folder and a path in it.
_BY_PATH = ("open", "creat", "truncate", "rename", "link", "unlink", "mkdir", "rmdir")
_IN_FOLDER = ("openat", "mkdirat", "unlinkat", "renameat", "renameat2", "linkat")
_TWO_PATHS = ("renameat", "renameat2", "linkat")


class Refused:
    """A system call comes back with an error, and is not executed: strace does it, from outside.

    Its event is written from strace's log once the phase is over, so what was struck was seen.
    """

    def strike(self, at: Target, proven: Proven) -> None:
        _nothing_here(at.point)

    def standing(self, at: Target) -> bool | None:
        return True

    def lift(self, at: Target) -> None:
        """It ended with the phase."""


class DiskFull(Link):
    """At an audit point, the kernel's own full device; at a system call, its error instead of it.

    The first says it of each write until it is lifted, the second of that one call.
    """

    def __init__(self) -> None:
        super().__init__("/dev/full")

    def standing(self, at: Target) -> bool | None:
        return "@" in at.point or super().standing(at)


class Misreported(ProcessFault):
    """A system call is executed, and says that it failed: what a failing device may answer.

    strace changes nothing after a call, so a tracer of ours does it, and writes down the proof
    while the thread is stopped there.
    """

    def strike(self, at: Target, proven: Proven) -> None:
        _nothing_here(at.point)


def misreport(point: CallPoint, private: str, struck: Callable[[], Callable[[], None]]) -> None:
    """From here on, follow this thread to its call at the point, and have that one say EIO.

    A call that fails by itself is counted, and is not struck.

    Args:
        point: the ``nth`` call of its name that this thread makes on its file.
        private: the folder in which the file lies.
        struck: called before the strike; what it returns is called after it.

    Raises:
        FaultError: calls cannot be followed here.
    """
    given = os.path.normpath(os.path.join(os.path.abspath(private), point.file))
    wanted = {given, os.path.realpath(given)}
    seen = 0

    def entering(call: tracer.Call) -> tracer.Leaving | None:
        nonlocal seen
        if call.name != point.call or not wanted & set(_files(call)):
            return None
        seen += 1
        if seen != point.nth:
            return None

        def leaving(result: int) -> bool:
            if result >= 0:
                after = struck()
                call.answer(-errno.EIO)
                after()
            return True

        return leaving

    tracer.follow(entering)


def _files(call: tracer.Call) -> Iterator[str]:
    """The absolute paths that a call is about."""
    given = call.given
    if call.name in _BY_PATH:
        yield _joined(call, _HERE, given[0])
    elif call.name in _IN_FOLDER:
        yield _joined(call, given[0], given[1])
        if call.name in _TWO_PATHS:
            yield _joined(call, given[2], given[3])
    else:
        yield _link(call.file(given[0])).removesuffix(" (deleted)")


def _joined(call: tracer.Call, folder: int, name: int) -> str:
    spelled = call.path(name)
    if os.path.isabs(spelled):
        return os.path.normpath(spelled)
    here = folder & 0xFFFFFFFF == _HERE & 0xFFFFFFFF
    base = f"/proc/{call.thread}/cwd" if here else call.file(folder)
    return os.path.normpath(os.path.join(_link(base), spelled))


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # nothing is open there: the call will say so
        return ""


def _nothing_here(point: str) -> None:
    raise FaultError(f"At {point!r} there is no call to strike.", "Name one: CALL@FILE#N.")
