"""How each kind of fault is really placed, seen from outside, and lifted again."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Protocol

from rcr_probes.errors import FaultError, InjectedFault
from rcr_probes.model import FAULT_POINTS


class Kind(Protocol):
    """One kind of fault."""

    points: tuple[str, ...]
    """Where it is possible at all; a runtime may support it at fewer points."""

    def strike(self, point: str, path: str | None) -> None:
        """Strike inside the phase's process; the proof that it fired is already on disk."""
        ...

    def standing(self, path: str | None) -> bool | None:
        """Whether it is seen from outside now; None where it leaves nothing to see."""
        ...

    def lift(self, path: str | None) -> None:
        """Take it away before recovery; what it set aside is put back."""
        ...


class _ProcessFault:
    """A fault of the process: it leaves nothing standing and needs no lifting."""

    def standing(self, path: str | None) -> bool | None:
        return None

    def lift(self, path: str | None) -> None:
        return None


class _Exception(_ProcessFault):
    points = FAULT_POINTS["exception"]

    def strike(self, point: str, path: str | None) -> None:
        raise InjectedFault(point)


class _Kill(_ProcessFault):
    points = FAULT_POINTS["kill"]

    def strike(self, point: str, path: str | None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class _AuditIsDirectory:
    """The audit file is renamed away, and a directory stands at its path.

    The append itself then raises EISDIR; nothing in Python is patched.
    """

    points = FAULT_POINTS["audit_is_directory"]

    def strike(self, point: str, path: str | None) -> None:
        if path is None:
            raise FaultError(
                f"The point {point!r} was reached without the audit file's path.",
                "Call reach(point, path=audit_file) just before the append.",
            )
        if os.path.exists(path):
            os.rename(path, _saved(path))
        os.mkdir(path)

    def standing(self, path: str | None) -> bool | None:
        return path is not None and os.path.isdir(path)

    def lift(self, path: str | None) -> None:
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


KINDS: Mapping[str, Kind] = {
    "exception": _Exception(),
    "kill": _Kill(),
    "audit_is_directory": _AuditIsDirectory(),
}
