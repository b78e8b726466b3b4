"""The reference, whose adapter keeps one part of the contract in another way."""

from __future__ import annotations

from rcr_probes.reference import ApprovalRuntime
from rcr_probes.runtime import Operation


class Apart(ApprovalRuntime):
    """Its state is to be asked for in a process of its own."""

    state_at_points = False


class CannotDamage(ApprovalRuntime):
    """Its author's mistake: what is to put its record wrong fails by itself."""

    def damage(self, operation: Operation, kind: str) -> tuple[str | None, int | None]:
        raise FileNotFoundError(f"nothing is stored that could have {kind}")
