"""Faults of the process, and of what stands between it and its caller: nothing is left standing."""

from __future__ import annotations

import os
import signal
import time

from rcr_probes import linux
from rcr_probes.errors import FaultError, InjectedFault
from rcr_probes.faults.kind import Proven, Target
from rcr_probes.runtime import offered
from rcr_probes.vocabulary import FAULTS, HANG

_DIES = 5.0  # seconds in which a process that got SIGKILL must be gone
_LONG = 3600.0  # seconds for which one that hangs sleeps at a time


class ProcessFault:
    """It leaves nothing standing and needs no lifting."""

    def standing(self, at: Target) -> bool | None:
        return None

    def lift(self, at: Target) -> None:
        return None


class Raise(ProcessFault):
    """The runtime's own code fails at the point."""

    def strike(self, at: Target, proven: Proven) -> None:
        raise InjectedFault(at.point)


class Kill(ProcessFault):
    """The process that reached the point ends: the phase's own, or one that it forked."""

    def strike(self, at: Target, proven: Proven) -> None:
        if at.pid != os.getpid():  # it is in another language, and told us that it came there
            _kill(at.pid)
        else:
            os.kill(at.pid, signal.SIGKILL)


class KillHost(ProcessFault):
    """The runtime's long-lived processes end, as when their machine or container goes.

    The process that reached the point goes last, where it is one of them.
    """

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


class Hang(ProcessFault):
    """The process that reached the point goes no further: its parent ends it once that is told."""

    def strike(self, at: Target, proven: Proven) -> None:
        proven(FAULTS[HANG])
        while True:
            time.sleep(_LONG)


class LoseAnswer(ProcessFault):
    """The runtime does its work to the end, and what it answers does not come to its caller.

    The phase, which is the caller, throws the answer away: nothing is done to the runtime.
    """

    def strike(self, at: Target, proven: Proven) -> None:
        return None


def _kill(pid: int) -> None:
    """Kill a process that is not ours to wait for, and see that it is gone.

    Raises:
        ProcessLookupError: there is none.
        FaultError: it is still there.
    """
    if not linux.ends_within(pid, _DIES, signal.SIGKILL):
        raise FaultError(f"Process {pid} did not die of SIGKILL.", "See what holds it.")
