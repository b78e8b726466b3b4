"""Recovery by evidence with one part taken out of it: runtimes that a plan can name.

Each is the reference with a policy that looks much like the real one. What is taken out stands in
the name, and test_mutants_of_recovery.py names the cell that shows it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from rcr_probes import fence
from rcr_probes.model import Decision
from rcr_probes.reference import ApprovalRuntime, policies
from rcr_probes.reference.errors import ApprovalError
from rcr_probes.reference.policies import EvidenceGated, Found
from rcr_probes.reference.records import Record
from rcr_probes.runtime import Operation
from rcr_probes.witness import Snapshot


class Without(ApprovalRuntime):
    """The reference, whose recovery has this done to it first."""

    def __init__(self, take_out: Callable[[], None]) -> None:
        self._take_out = take_out

    def recover(self, operation: Operation, way: str) -> None:
        self._take_out()  # in the phase's own process, which ends with it
        super().recover(operation, way)


def nothing() -> Without:
    """Nothing is taken out: what the others are held against."""
    return Without(lambda: None)


def settled_check() -> Without:
    """A snapshot with nothing in it is taken for an absence, though something is in flight."""

    def take_out() -> None:
        policies._settled = lambda seen, last, raised: seen.covers == last

    return Without(take_out)


def fresh_snapshot() -> Without:
    """Any snapshot is taken for one of now, whenever it was taken."""
    read = policies._snapshot

    def of_any_time(operation: Operation, last: int) -> Snapshot:
        return replace(read(operation, last), covers=last)

    def take_out() -> None:
        policies._snapshot = of_any_time

    return Without(take_out)


def fence_of_others() -> Without:
    """Whoever may still act is passed over: those that are over speak for all."""

    def passes(self: EvidenceGated, operation: Operation) -> int:
        assert operation.attempts is not None
        return fence.over(operation.attempts)

    def take_out() -> None:
        EvidenceGated._alone = passes  # type: ignore[method-assign]

    return Without(take_out)


def repair_of_what_is_there() -> Without:
    """An effect that is there is called for once more, where it could be repaired."""
    decided = EvidenceGated._decided

    def calls(self: EvidenceGated, found: Found, operation: Operation) -> tuple[Found, Decision]:
        found, decision = decided(self, found, operation)
        if decision.way == "evidence":
            decision = Decision("reconcile", "replay", decision.reasons)
        return found, decision

    def take_out() -> None:
        EvidenceGated._decided = calls  # type: ignore[method-assign]

    return Without(take_out)


def proof_by_the_fence() -> Without:
    """The pid in a lock is asked, in place of the fence, whether its holder is gone."""
    recovers = EvidenceGated.recover

    def asks(self: EvidenceGated, approval_id: str, operation: Operation) -> Record:
        try:
            with open(self.records.path(approval_id, ".lock"), encoding="ascii") as file:
                os.kill(int(file.read()), 0)
        except (FileNotFoundError, ProcessLookupError):
            return recovers(self, approval_id, operation)
        raise ApprovalError("APPROVAL_BUSY", "The holder of the lock is alive, by its pid.")

    def take_out() -> None:
        EvidenceGated.recover = asks  # type: ignore[method-assign]

    return Without(take_out)
