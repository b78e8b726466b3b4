"""Which recoveries can be: what may happen around one, and what it needs.

Standard library alone: a plan refuses by these rules, and so does whoever checks evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rcr_probes.model import Cell
from rcr_probes.vocabulary import (
    DAMAGE,
    EVIDENCE_GATED,
    EXECUTOR_POINTS,
    HELD,
    INNER_POINTS,
    NONE,
    ORIGINALS,
    PERSONS,
    RECEIVED,
    RECOVERY_FAULTS,
    RECOVERY_STRIKES,
    STALE_LOCKS,
    at_point,
)

# What of its contract a runtime may leave out, and these cannot do without.
NEEDS = {
    **dict.fromkeys(DAMAGE, "damage"),
    **dict.fromkeys(STALE_LOCKS, "lock"),
    "person_present": "decide",
}
STRIKES = tuple(f"{kind}@POINT" for kind in RECOVERY_STRIKES)
_BEFORE_IT_BEGINS = ("approval_audit", "start_audit")


def known(recovery_fault: str | None) -> bool:
    """Whether anything of this name can happen around a recovery."""
    return recovery_fault in RECOVERY_FAULTS or at_point(recovery_fault) is not None


def problems(cell: Cell, offers: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """Why a recovery cannot be as this cell plans it: each a cause and a remedy.

    Args:
        cell: its recovery fault is known.
        offers: what its runtime offers of the contract, as far as that can be left out; None where
            nobody can ask it.
    """
    around, struck = cell.recovery_fault or NONE, at_point(cell.recovery_fault)
    if around != NONE and cell.policy == "never":
        yield f"recovery_fault = {around!r} needs a recovery.", "Choose another policy than never."
    held = struck is not None and struck[0] == HELD
    if cell.recoverers != (2 if held else 1):
        yield (
            f"recoverers = {cell.recoverers} with recovery_fault = {around!r} cannot be run.",
            "One recovers: recoverers = 1. Two are an interleaving that is planned: recoverers = 2 "
            "with recovery_fault = held@POINT, where one waits until the other has finished.",
        )
    if struck and struck[1] in EXECUTOR_POINTS and struck[1] not in _inner(cell):
        having = [dedupe for dedupe, points in INNER_POINTS.items() if struck[1] in points]
        yield (
            f"No executor with dedupe = {cell.dedupe!r} comes to {struck[1]!r}.",
            f"That is a point of {', '.join(having)}.",
        )
    if around in ORIGINALS and (cell.point != NONE or cell.dedupe in RECEIVED):
        yield (
            f"recovery_fault = {around!r} cannot be with this point or dedupe.",
            'The original is not struck, and its executor is local: point = "none", and dedupe is '
            f"none of {', '.join(RECEIVED)}.",
        )
    if around in PERSONS and cell.policy != EVIDENCE_GATED:
        yield (
            f"recovery_fault = {around!r} needs a recovery that can stop.",
            f"Choose policy = {EVIDENCE_GATED!r}.",
        )
    if around == "contradiction" and cell.point in _BEFORE_IT_BEGINS:
        yield (
            f"At {cell.point!r} nothing is audited that a record could contradict.",
            "Choose a later point.",
        )
    needs = NEEDS.get(around)
    if needs and offers is not None and needs not in offers:
        yield (
            f"The runtime {cell.runtime!r} cannot have recovery_fault = {around!r}.",
            f"It would have to offer {needs}().",
        )


def _inner(cell: Cell) -> tuple[str, ...]:
    return INNER_POINTS.get(cell.dedupe, ())
