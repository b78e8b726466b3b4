"""The fault that a runtime offers a seam for: its own write of the result fails."""

from __future__ import annotations

from rcr_probes.faults.kind import Proven, Target
from rcr_probes.runtime import Refusal, offered


class ResultRefused:
    """The runtime's own write of the result fails, by the seam that it offers."""

    def strike(self, at: Target, proven: Proven) -> None:
        _refusal(at).place()

    def standing(self, at: Target) -> bool | None:
        return _refusal(at).standing()

    def lift(self, at: Target) -> None:
        _refusal(at).lift()


def _refusal(at: Target) -> Refusal:
    made: Refusal = offered(at.runtime, "refusal")(at.operation)
    return made
