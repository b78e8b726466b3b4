"""Few rows that hold every pair of values: all-pairs testing, the greedy way."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeAlias, TypeVar

Row = TypeVar("Row", bound=Sequence[Hashable])
_Pair: TypeAlias = tuple[tuple[int, Hashable], tuple[int, Hashable]]


def cover(rows: Iterable[Row]) -> set[Row]:
    """Rows among these in which every pair of values is that any of them has in two places.

    The row that adds the most new pairs is taken first, the earlier of equals: the same rows give
    the same cover. It is small, and not always the smallest, which nobody knows how to find fast.
    """
    every = list(rows)
    taken: set[Row] = set()
    held: set[_Pair] = set()
    # A row never adds more than when it was last looked at: so the heap's top, looked at anew, is
    # the best of all as soon as it stays on top.
    heap = [(-len(set(_pairs(row))), place) for place, row in enumerate(every)]
    heapq.heapify(heap)
    while heap:
        _, place = heapq.heappop(heap)
        new = set(_pairs(every[place])) - held
        if heap and (-len(new), place) > heap[0]:
            heapq.heappush(heap, (-len(new), place))
        elif new:
            taken.add(every[place])
            held |= new
    return taken


def _pairs(row: Sequence[Hashable]) -> Iterable[_Pair]:
    return itertools.combinations(enumerate(row), 2)
