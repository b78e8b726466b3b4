"""What is asked for: a cell's operation, what its approval allows, and what recovery recomputes."""

from __future__ import annotations

from collections.abc import Mapping

from rcr_probes.model import Approved, Cell, Json
from rcr_probes.vocabulary import PAIRS, RECEIVED

MARKER, RECEIVER = "local-marker", "receiver"  # the names of our executors
MARKERS = "/markers/"  # where a receiver has its targets


def approved(cell: Cell) -> Approved:
    """What the approval allows; the seed gives each cell of a sweep its own synthetic names."""
    return Approved(
        operation_key=f"operation-{cell.seed}",
        target=effective_target(requested(cell)),
        effects=2 if cell.dedupe in PAIRS else 1,
    )


def requested(cell: Cell) -> Mapping[str, Json]:
    """The request that was approved."""
    request: dict[str, Json] = {
        "executor": RECEIVER if cell.dedupe in RECEIVED else MARKER,
        "action": "append",
        "target": f"marker-{cell.seed}",
        "session_id": "session-1",
    }
    match cell.digest:
        case "volatile":
            return {**request, "credential": "credential-1"}
        case "coarse":
            return {**request, "relative": True}
        case _:
            return request


def recomputed(cell: Cell) -> Mapping[str, Json]:
    """The request that recovery computes anew, in a session of its own (docs/design.md §3)."""
    request = {**requested(cell), "session_id": "session-2"}
    match cell.digest:
        case "changed":
            return {**request, "target": f"{request['target']}-changed"}
        case "reordered":
            return dict(reversed(request.items()))
        case "volatile":  # minted anew; nothing that the request means depends on it
            return {**request, "credential": "credential-2"}
        case _:
            return request


def effective_target(request: Mapping[str, Json]) -> str:
    """Where the action really acts: a relative target is one of the session that asks."""
    target = str(request["target"])
    return f"{target}@{request['session_id']}" if request.get("relative") else target
