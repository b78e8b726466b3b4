"""How each kind of fault is really placed, seen from outside, and lifted again."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rcr_probes.errors import FaultError, InjectedFault
from rcr_probes.model import FAULT_POINTS
from rcr_probes.runtime import Operation, Refusal, Runtime, offered

_DIES = 5.0  # seconds in which a process that got SIGKILL must be gone


@dataclass(frozen=True, slots=True)
class Target:
    """What a fault strikes.

    Attributes:
        point: where the operation is.
        path: the audit file there, where there is one.
        runtime: under probe; it gives the seam that some kinds need.
        operation: in hand.
        pid: of the process that reached the point.
    """

    point: str
    path: str | None
    runtime: Runtime
    operation: Operation
    pid: int = field(default_factory=os.getpid)


Proven = Callable[[str], None]


class Kind(Protocol):
    """One kind of fault."""

    points: tuple[str, ...]
    """Where it is possible at all; a runtime may support it at fewer points."""

    def strike(self, at: Target, proven: Proven) -> None:
        """Strike inside the process that reached the point; that it struck is already on disk.

        ``proven`` takes what is proof besides, where it must be told before the strike is over.
        """
        ...

    def standing(self, at: Target) -> bool | None:
        """Whether it is seen from outside now; None where it leaves nothing to see."""
        ...

    def lift(self, at: Target) -> None:
        """Take it away before recovery; what it set aside is put back."""
        ...


class _ProcessFault:
    """A fault of the process: it leaves nothing standing and needs no lifting."""

    def standing(self, at: Target) -> bool | None:
        return None

    def lift(self, at: Target) -> None:
        return None


class _Exception(_ProcessFault):
    points = FAULT_POINTS["exception"]

    def strike(self, at: Target, proven: Proven) -> None:
        raise InjectedFault(at.point)


class _Kill(_ProcessFault):
    """The process that reached the point ends: the phase's own, or one that it forked."""

    points = FAULT_POINTS["kill"]

    def strike(self, at: Target, proven: Proven) -> None:
        if at.pid != os.getpid():  # it is in another language, and told us that it came there
            _kill(at.pid)
        else:
            os.kill(at.pid, signal.SIGKILL)


class _KillHost(_ProcessFault):
    """The runtime's long-lived processes end, as when their machine or container goes.

    The process that reached the point goes last, where it is one of them.
    """

    points = FAULT_POINTS["kill_host"]

    def strike(self, at: Target, proven: Proven) -> None:
        hosts = set(offered(at.runtime, "hosts")(at.operation))
        if not hosts - {os.getpid()}:
            raise FaultError(
                f"At {at.point!r} the runtime named no process of its host to kill.",
                "Let hosts() return the pids of its long-lived processes.",
            )
        for pid in hosts - {os.getpid()}:
            _kill(pid)
        proven(signal.SIGKILL.name)
        if os.getpid() in hosts:
            os.kill(os.getpid(), signal.SIGKILL)


def _kill(pid: int) -> None:
    """Kill a process that is not ours to wait for, and see that it is gone.

    Raises:
        ProcessLookupError: there is none.
        FaultError: it is still there.
    """
    fd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(_DIES * 1000):
            raise FaultError(f"Process {pid} did not die of SIGKILL.", "See what holds it.")
    finally:
        os.close(fd)


class _AuditIsDirectory:
    """The audit file is renamed away, and a directory stands at its path.

    The append itself then raises EISDIR; nothing in Python is patched.
    """

    points = FAULT_POINTS["audit_is_directory"]

    def strike(self, at: Target, proven: Proven) -> None:
        path = at.path
        if path is None:
            raise FaultError(
                f"The point {at.point!r} was reached without the audit file's path.",
                "Call reach(point, path=audit_file) just before the append.",
            )
        if os.path.exists(path):
            os.rename(path, _saved(path))
        os.mkdir(path)

    def standing(self, at: Target) -> bool | None:
        return at.path is not None and os.path.isdir(at.path)

    def lift(self, at: Target) -> None:
        path = at.path
        if path is None or not os.path.isdir(path):
            return
        try:
            os.rmdir(path)
        except OSError:  # the runtime has put something into it, which is not ours to lose
            os.rename(path, f"{path}.struck")
        if os.path.exists(_saved(path)):
            os.rename(_saved(path), path)


def _saved(path: str) -> str:
    return f"{path}.saved"


class _ResultRefused:
    """The runtime's own write of the result fails, by the seam that it offers."""

    points = FAULT_POINTS["result_refused"]

    def strike(self, at: Target, proven: Proven) -> None:
        _refusal(at).place()

    def standing(self, at: Target) -> bool | None:
        return _refusal(at).standing()

    def lift(self, at: Target) -> None:
        _refusal(at).lift()


def _refusal(at: Target) -> Refusal:
    made: Refusal = offered(at.runtime, "refusal")(at.operation)
    return made


class _CallRefused:
    """A system call comes back with an error, and is not executed: strace does it, from outside.

    Its event is written from strace's log once the phase is over, so what was struck was seen.
    """

    def __init__(self, name: str) -> None:
        self.points = FAULT_POINTS[name]

    def strike(self, at: Target, proven: Proven) -> None:
        raise FaultError(f"At {at.point!r} there is no call to refuse.", "Name one: CALL@FILE#N.")

    def standing(self, at: Target) -> bool | None:
        return True

    def lift(self, at: Target) -> None:
        """It ended with the phase."""


KINDS: Mapping[str, Kind] = {
    "exception": _Exception(),
    "kill": _Kill(),
    "audit_is_directory": _AuditIsDirectory(),
    "result_refused": _ResultRefused(),
    "kill_host": _KillHost(),
    "io_error": _CallRefused("io_error"),
    "disk_full": _CallRefused("disk_full"),
}
