"""What the witness of a cell says, written at quiescence by the parent of its phases.

A policy reads the effect through it (docs/design.md §6): it may lag, say nothing, have been
changed, or be another owner's.
"""

from __future__ import annotations

import contextlib
import os

from rcr_probes import fence, folder, observe, request, witness
from rcr_probes.model import Cell, Effect, as_map
from rcr_probes.witness import Envelope, Timeline


def testify(place: str, cell: Cell, in_flight: bool) -> None:
    """Write what the cell's witness says now.

    Args:
        place: the cell's folder.
        cell: what is planned.
        in_flight: whether something that was sent may still land.
    """
    path = os.path.join(place, folder.WITNESS)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    effects, damage = observe.effects(place, cell)
    timeline = None if damage else _timeline(place, cell, effects, in_flight)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # what was said before is not said now
    if timeline is not None:
        with open(path, "wb") as file:
            file.write(witness.written(timeline))


def _timeline(
    place: str, cell: Cell, effects: tuple[Effect, ...], in_flight: bool
) -> Timeline | None:
    """The envelope of this witness, and its manifest; None of one that is absent."""
    owner = request.approved(cell).operation_key
    covers = fence.over(os.path.join(place, folder.ATTEMPTS))
    opposite = () if effects else _of(owner, cell)
    match cell.witness:
        case "absent":
            return None
        case "lagging":
            return _registered(owner, _envelope(owner, 0, (), False))
        case "foreign":
            other = f"{owner}-of-another"
            return _registered(other, _envelope(other, covers, opposite, in_flight))
        case "damaged":
            whole = _envelope(owner, covers, effects, in_flight)
            changed = _envelope(owner, covers, opposite, in_flight)
            return Timeline(owner, (changed,), {changed["id"]: witness.digest(whole)})
        case _:
            return _registered(owner, _envelope(owner, covers, effects, in_flight))


def _of(owner: str, cell: Cell) -> tuple[Effect, ...]:
    """What a witness says that speaks of an effect which is not there."""
    approved = request.approved(cell)
    return (Effect("E1", owner, None, approved.target),) * approved.effects


def _envelope(owner: str, covers: int, effects: tuple[Effect, ...], in_flight: bool) -> Envelope:
    named = [{**as_map(e), "effect_id": f"E{n}"} for n, e in enumerate(effects, 1)]
    return {
        "id": f"effects-{covers}",
        "owner": owner,
        "available_at": covers,
        "kind": witness.EFFECTS,
        "body": {"effects": named, "in_flight": in_flight},
    }


def _registered(owner: str, envelope: Envelope) -> Timeline:
    return Timeline(owner, (envelope,), {envelope["id"]: witness.digest(envelope)})
