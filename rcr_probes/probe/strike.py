"""Which strikes there are, what the receiver does for each, and the cells that they become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rcr_probes.model import Cell
from rcr_probes.receiver import Fault
from rcr_probes.vocabulary import BASELINE, NONE, RECEIVER_KEY, WORKER

# (point, fault) of a cell → what the receiver does at the request. For a kill it holds the request
# while the worker is killed, and then drops it.
AT_REQUEST: Mapping[tuple[str, str], Fault] = {
    ("before_action", "kill"): "hold_before",
    ("before_action", "error_before_effect"): "error_before_effect",
    ("after_action", "kill"): "hold_after",
    ("after_action", "response_lost"): "response_lost",
    ("after_action", "error_after_effect"): "error_after_effect",
    ("after_action", "timeout"): "timeout",
}
POINTS_OF: Mapping[str, tuple[str, str]] = {fault: cell for cell, fault in AT_REQUEST.items()}
_VARIANT = "request_"


def controls(policy: str) -> tuple[Cell, Cell]:
    """Two runs without a strike: what they do alike is what the worker does."""
    first, second = (_cell(NONE, NONE, policy, repeat=number) for number in (0, 1))
    return first, second


def at_requests(requests: Iterable[int], policy: str) -> list[Cell]:
    """Every strike at each of these requests, counted from 1."""
    return [
        _cell(point, fault, policy, BASELINE if nth == 1 else f"{_VARIANT}{nth}")
        for nth in requests
        for point, fault in AT_REQUEST
    ]


def at_call(point: str, policy: str) -> Cell:
    """A kill at one file-changing call of the worker."""
    return _cell(point, "kill", policy)


def nth(cell: Cell) -> int:
    """The request at which a cell strikes."""
    variant = cell.variant or BASELINE
    return 1 if variant == BASELINE else int(variant.removeprefix(_VARIANT))


def _cell(point: str, fault: str, policy: str, variant: str = BASELINE, repeat: int = 0) -> Cell:
    return Cell(
        point=point,
        fault=fault,
        dedupe=RECEIVER_KEY,
        policy=policy,
        runtime=WORKER,
        variant=variant,
        repeat=repeat,
    )
