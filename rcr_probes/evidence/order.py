"""Whether captures come in the order of their plan, each once.

As long as they do, nothing is kept of them. Standard library alone: a reader's checker embeds this
module as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rcr_probes.evidence.promised import Numbered, Promised, whole
from rcr_probes.model import Cell


class Order:
    """Goes along the plan of a folder beside its captures."""

    def __init__(self, plan: Promised | None) -> None:
        """Begin with the first capture; of a plan that could not be read, nothing is known."""
        self._plan = plan
        self._ahead = iter(()) if plan is None else plan.cells()
        self._met = 0
        self._every = None if plan is not None and plan.distinct else _Every(plan, 0)

    def follows(self, numbered: Numbered) -> bool:
        """Whether the next capture is that of the next cell; if not, ``problems`` tells of it."""
        if self._every is None:
            if next(self._ahead, None) == numbered:
                self._met += 1
                return True
            self._every = _Every(self._plan, self._met)
        return False

    def problems(self, cell: Cell, number: int) -> Iterator[str]:
        """What is wrong with a capture of this cell on this line, which did not follow."""
        return iter(()) if self._every is None else self._every.problems(cell, number)

    def missing(self, most: int) -> tuple[list[Cell], int]:
        """The first of the cells that no capture was seen of, and how many there are in all."""
        left = map(whole, self._ahead) if self._every is None else self._every.missing()
        first = list(islice(left, most))
        return first, len(first) + sum(1 for _ in left)


class _Every:
    """Every cell of a plan and every capture that was seen: to say what is out of order."""

    def __init__(self, plan: Promised | None, met: int) -> None:
        """Begin where so many captures were those of the first cells, each on its own line."""
        cells = [] if plan is None else [*map(whole, plan.cells())]
        self._planned = None if plan is None else {cell: place for place, cell in enumerate(cells)}
        self._lines = {cell: number for number, cell in enumerate(cells[:met], 1)}
        self._furthest = met - 1

    def problems(self, cell: Cell, number: int) -> Iterator[str]:
        if cell in self._lines:
            yield f"it is there twice; line {self._lines[cell]} holds this cell already."
            return
        self._lines[cell] = number
        if self._planned is None:
            return
        if cell not in self._planned:
            yield "the plan has no such cell."
        elif self._planned[cell] < self._furthest:
            yield "it stands out of the plan's order."
        else:
            self._furthest = self._planned[cell]

    def missing(self) -> Iterator[Cell]:
        return (cell for cell in self._planned or () if cell not in self._lines)
