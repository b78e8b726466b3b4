"""The cells of a plan as they are kept in memory: few whole ones, and three numbers for each.

A sweep has a cell many times, and what differs is its seed and its repeat.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import eq
from pathlib import Path
from typing import overload

import msgspec

from rcr_probes.evidence.promised import Numbered, OtherForm, apart, parted, whole
from rcr_probes.model import Cell, Plan


class Planned(Sequence[Cell]):
    """Cells in the order of their plan, made when they are asked for.

    They equal any sequence of the same cells in the same order.
    """

    def __init__(self) -> None:
        self._firsts: list[Cell] = []  # seed and repeat of each are 0
        self._places: dict[bytes, int] = {}  # of these, by their text
        self._which, self._seeds, self._repeats = array("L"), array("q"), array("q")

    def add(self, text: bytes, seed: int, repeat: int) -> None:
        """Add the next one.

        Args:
            text: its JSON without the braces, the seed and the repeat.
            seed: of it.
            repeat: of it.

        Raises:
            OtherForm: the text is none of a cell.
        """
        place = self._places.get(text)
        if place is None:
            place = self._places[text] = len(self._firsts)
            self._firsts.append(_first(text))
        self._which.append(place)
        self._seeds.append(seed)
        self._repeats.append(repeat)

    def complete(self) -> None:
        """There are no more of them: their texts are forgotten.

        Raises:
            OtherForm: two of them were those of one cell.
        """
        self._places.clear()
        if len(set(self._firsts)) != len(self._firsts):
            raise OtherForm

    def numbered(self) -> Iterator[Numbered]:
        """Each cell as in seed 0 and repeat 0, its seed, and its repeat."""
        firsts = map(self._firsts.__getitem__, self._which)
        return zip(firsts, self._seeds, self._repeats, strict=True)

    def __len__(self) -> int:
        return len(self._which)

    def __iter__(self) -> Iterator[Cell]:
        return map(whole, self.numbered())

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Cell, ...]: ...

    def __getitem__(self, index: int | slice) -> Cell | tuple[Cell, ...]:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(len(self))[index])
        first = self._firsts[self._which[index]]
        return whole((first, self._seeds[index], self._repeats[index]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


def read(path: Path) -> Plan:
    """The plan of a file, in which no cell is twice.

    Raises:
        OtherForm: it has to be read as a whole, or perhaps cannot be read.
        OSError: it cannot be opened.
    """
    cells = Planned()
    with open(path, "rb") as file:
        name, parts = parted(file)
        for text, seed, repeat in parts:
            cells.add(text, seed, repeat)
    cells.complete()
    return Plan(name, cells)


def numbered(plan: Plan) -> Iterator[Numbered]:
    """The cells of any plan, each as in seed 0 and repeat 0, its seed, and its repeat."""
    return plan.cells.numbered() if isinstance(plan.cells, Planned) else map(apart, plan.cells)


def _first(text: bytes) -> Cell:
    try:
        return msgspec.json.decode(b"{" + text + b',"seed":0,"repeat":0}', type=Cell)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise OtherForm from None
