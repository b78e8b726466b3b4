"""The reference, whose adapter keeps one part of the contract in another way."""

from __future__ import annotations

from rcr_probes.reference import ApprovalRuntime


class Apart(ApprovalRuntime):
    """Its state is to be asked for in a process of its own."""

    state_at_points = False
