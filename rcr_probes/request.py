"""What is asked for: a cell's operation, what its approval allows, and what recovery recomputes."""

from __future__ import annotations

from collections.abc import Mapping

from rcr_probes.model import Approved, Cell, Json


def approved(cell: Cell) -> Approved:
    """What the approval allows; the seed gives each cell of a sweep its own synthetic names."""
    return Approved(operation_key=f"operation-{cell.seed}", target=f"marker-{cell.seed}")


def requested(cell: Cell) -> Mapping[str, Json]:
    """The request that was approved."""
    return {
        "executor": "local-marker",
        "action": "append",
        "target": approved(cell).target,
        "session_id": "session-1",
    }


def recomputed(cell: Cell) -> Mapping[str, Json]:
    """The request that recovery computes anew, in a session of its own (docs/design.md §3)."""
    request = {**requested(cell), "session_id": "session-2"}
    match cell.digest:
        case "changed":
            return {**request, "target": f"{request['target']}-changed"}
        case "reordered":
            return dict(reversed(request.items()))
        case _:
            return request
