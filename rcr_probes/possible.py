"""Which cells can be, whatever their runtime is and whatever machine they run on.

Standard library alone: a plan refuses by these rules, and so does whoever checks evidence. What may
happen around a recovery has rules of its own (``recoverable``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rcr_probes import power, recoverable, strace
from rcr_probes.model import Cell
from rcr_probes.vocabulary import (
    CALL_FAULTS,
    DEDUPES,
    DIGESTS,
    EXECUTOR_POINTS,
    FAULT_POINTS,
    FAULTS,
    FENCED,
    INNER_POINTS,
    NONE,
    POINTS,
    POWER_LOSS,
    POWER_LOSS_LOCAL,
    POWER_LOSSES,
    RECEIVED,
    RECEIVER_FAULTS,
    RECOVERY_FAULTS,
    WITNESSES,
    by_receiver,
    state_of,
)

LARGEST = 2**53 - 1  # of a seed or a repeat: a larger one does not come back from every JSON reader
_CALL = "CALL@FILE#N, such as write@state#1"
_POINTS = (NONE, *POINTS, *EXECUTOR_POINTS)
_FAULTS = tuple(dict.fromkeys((NONE, *FAULTS, *RECEIVER_FAULTS)))


def unknown(cell: Cell) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The names in a cell that nothing knows: each what it should name, it, and what is known.

    What was not published is no name.
    """
    call, at_call, _ = cell.point.partition("@")
    for kind, name, known in (
        ("system call", call, strace.KNOWN) if at_call else ("point", call, _POINTS),
        ("fault", cell.kind, _FAULTS),
        ("dedupe", cell.dedupe, DEDUPES),
        ("digest", cell.digest, DIGESTS),
        ("witness", cell.witness, WITNESSES),
    ):
        if name is not None and name not in known:
            yield kind, name, known
    around = cell.recovery_fault
    if around is not None and not recoverable.known(around):
        yield "recovery_fault", around, (*recoverable.STRIKES, *RECOVERY_FAULTS)


def problems(cell: Cell) -> Iterator[tuple[str, str]]:
    """Why a cell cannot be: each a cause and a remedy.

    Args:
        cell: its names are known.
    """
    if cell.fault in POWER_LOSSES:
        yield (
            f"The fault {cell.fault!r} does not say which state it leaves.",
            f"Write {cell.fault}#N; the states of a point are counted from 0, and the plan 'power' "
            "has them all.",
        )
    if cell.variant == FENCED and cell.dedupe in RECEIVED:
        yield (
            f"variant = {FENCED!r} with dedupe = {cell.dedupe!r} cannot be run: the receiver knows "
            "no fencing tokens.",
            "Our local executors do.",
        )
    if (cell.point == NONE) != (cell.fault == NONE):
        yield (
            f"point = {cell.point!r} with fault = {cell.fault!r} cannot be.",
            "A fault needs a point and a point needs a fault; the control has neither.",
        )
    elif "@" in cell.point:
        yield from _at_call(cell)
    elif cell.point != NONE:
        yield from _at_point(cell)


def _at_call(cell: Cell) -> Iterator[tuple[str, str]]:
    """A system call at which nothing can strike; any runtime makes some."""
    if strace.parse(cell.point) is None:
        yield (
            f"The point {cell.point!r} is no {_CALL}.",
            "FILE is a path in the runtime's private folder, without '..', and a file where the "
            "call takes no folder; N counts from 1.",
        )
    if cell.fault not in CALL_FAULTS:
        yield (
            f"The fault {cell.fault!r} cannot strike at a system call.",
            f"There {', '.join(CALL_FAULTS)} can.",
        )


def _at_point(cell: Cell) -> Iterator[tuple[str, str]]:
    """A fault at a point where it cannot strike."""
    if by_receiver(cell.point, cell.fault) and cell.dedupe in RECEIVED:
        return  # it is the receiver that strikes, whatever the runtime is
    points = FAULT_POINTS.get(cell.kind, ())
    if cell.point not in points and cell.fault in RECEIVER_FAULTS:
        others = f"; elsewhere at {', '.join(points)}" if points else ""
        yield (
            f"The fault {cell.fault!r} cannot strike at {cell.point!r} with dedupe = "
            f"{cell.dedupe!r}.",
            f"A receiver does it to a call, at {RECEIVER_FAULTS[cell.fault]}, where dedupe is "
            f"{' or '.join(RECEIVED)}{others}.",
        )
    elif cell.point not in points:
        at_calls = (_CALL,) if cell.fault in CALL_FAULTS else ()
        yield (
            f"The fault {cell.fault!r} cannot strike at {cell.point!r}.",
            f"It can at {', '.join((*points, *at_calls))}.",
        )
    elif cell.point in EXECUTOR_POINTS and cell.point not in INNER_POINTS.get(cell.dedupe, ()):
        having = [dedupe for dedupe, inner in INNER_POINTS.items() if cell.point in inner]
        yield (
            f"No executor with dedupe = {cell.dedupe!r} comes to {cell.point!r}.",
            f"That is a point of {', '.join(having)}.",
        )
    if (state_of(cell.fault) or 0) >= power.MOST:
        yield (
            f"The fault {cell.fault!r} is out of range: at most {power.MOST} states are explored.",
            "Those of a point are counted from 0.",
        )
    if cell.kind == POWER_LOSS_LOCAL and cell.dedupe in RECEIVED:
        yield (
            f"The fault {cell.fault!r} cannot strike with dedupe = {cell.dedupe!r}: a receiver's "
            "effects are on no disk of ours.",
            f"Write {POWER_LOSS}#N.",
        )
