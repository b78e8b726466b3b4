"""The cells that plan.json promises, one by one: a sweep may have more than memory has room for.

Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TypeAlias

from rcr_probes.evidence import strict
from rcr_probes.model import Cell, Plan

# A cell as in seed 0 and repeat 0, and then both: so there is one noun for a thousand of a sweep.
Numbered: TypeAlias = tuple[Cell, int | None, int | None]

WHOLE = re.compile(rb"0|[1-9][0-9]{0,14}")  # as JSON writes a number that a plan may count to
MOST_KNOWN = 1024  # what is kept of cells that may come again in another repeat

# Of a plan that is read as a stream: what is out of order is found by keeping them all, and a
# larger plan's captures do not go into one folder. What is not read so is read whole, if small.
MOST_CELLS = 400_000

_HEAD, _OPEN = b'{\n  "name": ', b',\n  "cells": [\n    {\n'
_JOINT, _CLOSE = b"\n    },\n    {\n", b"\n    }\n  ]\n}\n"
_SEED, _REPEAT = b',\n      "seed": ', b',\n      "repeat": '
_CHUNK = 1 << 16  # bytes
_LONGEST = 1 << 20  # bytes of one cell, which has some hundreds


class OtherForm(Exception):
    """It is not as a run writes it, or not in an order that shows its cells to be distinct."""


@dataclass(frozen=True, slots=True)
class Promised:
    """What a plan promises.

    Attributes:
        name: of the plan.
        count: how many cells it has.
        distinct: whether no cell is there twice for sure.
        cells: reads them from the beginning, in order.
    """

    name: str
    count: int
    distinct: bool
    cells: Callable[[], Iterator[Numbered]]


def held(plan: Plan) -> Promised:
    """What a plan promises that is in memory as a whole."""
    return Promised(plan.name, len(plan.cells), False, lambda: map(apart, plan.cells))


def apart(cell: Cell) -> Numbered:
    """A cell as in seed 0 and repeat 0, its seed, and its repeat."""
    return replace(cell, seed=0, repeat=0), cell.seed, cell.repeat


def whole(numbered: Numbered) -> Cell:
    """The cell that these are the parts of."""
    first, seed, repeat = numbered
    return replace(first, seed=seed, repeat=repeat)


def streamed(path: Path) -> Promised:
    """What a plan's file promises. It is read once now, and again whenever its cells are.

    Raises:
        OtherForm: only who reads it as a whole can say what is wrong with it, or that nothing is.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        name, blocks = _opened(file)
        count, cells, rising = 0, _Cells(), _Rising()
        for count, block in enumerate(blocks, 1):
            if count > MOST_CELLS:
                raise OtherForm
            head, seed, repeat = _numbered(block)
            rising.see(head, seed, repeat)
            cells.first(head, block)
    return Promised(name, count, True, lambda: _again(path))


def parted(file: IO[bytes]) -> tuple[str, Iterator[tuple[bytes, int, int]]]:
    """A plan's name; and of each cell the text without its seed and repeat, its seed, its repeat.

    No cell is there twice, unless two texts are of one.

    Raises:
        OtherForm: as ``streamed``; it is found as the cells are read.
    """
    name, blocks = _opened(file)
    return name, _risen(blocks)


def _risen(blocks: Iterator[bytes]) -> Iterator[tuple[bytes, int, int]]:
    rising = _Rising()
    for numbered in map(_numbered, blocks):
        rising.see(*numbered)
        yield numbered


def _again(path: Path) -> Iterator[Numbered]:
    with open(path, "rb") as file:
        try:
            cells = _Cells()
            for block in _opened(file)[1]:
                head, seed, repeat = _numbered(block)
                yield cells.first(head, block), seed, repeat
        except OtherForm:
            raise OSError(0, "it was changed while it was read", path) from None


def _opened(file: IO[bytes]) -> tuple[str, Iterator[bytes]]:
    """The plan's name, and what stands between the braces of each of its cells."""
    head, opened, rest = file.read(_CHUNK).partition(_OPEN)
    try:
        name = strict.decoded(head.removeprefix(_HEAD), str)
    except strict.Unreadable:
        raise OtherForm from None
    if not opened or head != _HEAD + strict.encoded(name):
        raise OtherForm
    return name, _blocks(file, rest)


def _blocks(file: IO[bytes], rest: bytes) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK):
        *whole, rest = (rest + chunk).split(_JOINT)
        yield from whole
        if len(rest) > _LONGEST:
            raise OtherForm
    *whole, last = rest.split(_JOINT)
    yield from whole
    if not last.endswith(_CLOSE):
        raise OtherForm
    yield last.removesuffix(_CLOSE)


def _numbered(block: bytes) -> tuple[bytes, int, int]:
    """What stands before the seed, the seed, and the repeat."""
    head, _, counted = block.rpartition(_SEED)
    seed, _, repeat = counted.partition(_REPEAT)
    if not (WHOLE.fullmatch(seed) and WHOLE.fullmatch(repeat)):
        raise OtherForm
    return head, int(seed), int(repeat)


class _Cells:
    """Reads cells; of those that differ in seed and repeat alone, the first."""

    def __init__(self) -> None:
        self._known: dict[bytes, Cell] = {}

    def first(self, head: bytes, block: bytes) -> Cell:
        """The cell as in seed 0 and repeat 0, by what stands before its own."""
        if head not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[head] = apart(_cell(block))[0]
        return self._known[head]


def _cell(block: bytes) -> Cell:
    whole = b"    {\n" + block + b"\n    }"
    try:
        cell = strict.decoded(whole, Cell)
        written = strict.encoded(cell, indented=True)
    except strict.Unreadable:
        raise OtherForm from None
    if whole != b"    " + written.rstrip().replace(b"\n", b"\n    "):
        raise OtherForm
    return cell


class _Rising:
    """Whether seeds and repeats count upwards wherever all else of a cell is the same.

    So no cell is there twice, and nothing had to be kept of each. Either may count faster.
    """

    def __init__(self) -> None:
        self._last: dict[bytes, tuple[int, int]] = {}
        self._slow: dict[bytes, set[str]] = {}

    def see(self, head: bytes, seed: int, repeat: int) -> None:
        """Look at the next cell.

        Raises:
            OtherForm: they do not.
        """
        now, last = (seed, repeat), self._last.get(head)
        self._last[head] = now
        if last is None:
            if len(self._last) > MOST_CELLS // 10:
                raise OtherForm  # they would have to be kept, each by its text
            self._slow[head] = {"seed", "repeat"}
            return
        if now <= last:
            self._slow[head].discard("seed")
        if now[::-1] <= last[::-1]:
            self._slow[head].discard("repeat")
        if not self._slow[head]:
            raise OtherForm
