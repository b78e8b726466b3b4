"""The combinations of what a table of cells names: all that its filters leave, or every pair."""

from __future__ import annotations

import itertools
import math
from array import array
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from operator import eq
from typing import Any, TypeAlias, overload

from rcr_probes.errors import PlanError, UnknownName
from rcr_probes.model import Cell
from rcr_probes.pairwise import cover
from rcr_probes.possible import LARGEST

AXES = tuple(f.name for f in fields(Cell))
NUMBERS = ("recoverers", "seed", "repeat")
COUNTED = ("seed", "repeat")
FILTERS = ("only", "without")
PAIRWISE = "pairwise"

Values: TypeAlias = Sequence[str | int]
Filter: TypeAlias = Mapping[str, Any]  # axis → the value, or values, of the cells that it is about
_Wanted: TypeAlias = Mapping[str | int, None] | range  # quick to look in, and in order

_MOST = 1_000_000  # combinations of one table: more is a slip of the pen, and would fill the memory
_MOST_PAIRED = 50_000  # combinations of axes that are paired: of ten axes, they take some seconds
_ENDS = ("from", "to")  # of a range of numbers; both are in it
_DEFAULTS: Mapping[str, Any] = {f.name: f.default for f in fields(Cell)}
_REQUIRED = tuple(name for name, default in _DEFAULTS.items() if default is MISSING)


def product(
    *,
    only: Filter | Sequence[Filter] | None = None,
    without: Filter | Sequence[Filter] | None = None,
    pairwise: Sequence[str] | None = None,
    **axes: Any,
) -> Cells:
    """Every combination of the values given for the axes, the last axis varying fastest.

    Args:
        only: keep the cells of which one of these filters is true: its axes all have one of the
            values that it gives them.
        without: of these, leave out those of which one of these filters is true.
        pairwise: of these axes, three or more, do not combine every value with every other: of the
            combinations that the filters leave, take so few that every pair of values of two of
            these axes is still there. Each is combined with all values of the other axes.
        axes: axis of ``Cell`` → one value, or several: a list, and of numbers also a range, or
            ``{"from": 0, "to": 9}``, which holds both of its ends.

    Raises:
        UnknownName: there is no such axis, or a filter names a value that its axis has not.
        PlanError: ``point`` or ``fault`` is missing, an axis has no values, one of the wrong type,
            or one twice; a filter takes away nothing, or everything; there are too many
            combinations.
    """
    for name in axes:
        if name not in AXES:
            raise UnknownName("axis of a cell", name, (*AXES, *FILTERS, PAIRWISE))
    missing = [name for name in _REQUIRED if name not in axes]
    if missing:
        raise PlanError(
            f"A table of cells lacks {' and '.join(missing)}.",
            'The control without a fault is point = "none", fault = "none".',
        )
    values = {axis: _values(axis, given) for axis, given in axes.items()}
    if math.prod(map(len, values.values())) > _MOST:
        raise PlanError(
            f"A table makes {math.prod(map(len, values.values()))} cells, before any is left out.",
            f"Make {_MOST} at most.",
        )
    if pairwise is not None:
        _refuse_idle(pairwise, values)
        _refuse_many(pairwise, values)
    kept, out = _Filters("only", only, values), _Filters("without", without, values)
    rows: Iterator[tuple[Any, ...]] = itertools.product(*values.values())
    chosen = array(
        "I",
        (n for n, row in enumerate(rows) if (not kept or kept.holds(row)) and not out.holds(row)),
    )
    if pairwise is not None:
        chosen = _paired(values, chosen, pairwise)
    if not chosen:
        raise PlanError(
            "The filters of a table leave no cell of it.", "Drop one of them, or the whole table."
        )
    if kept and not kept.passed:
        raise PlanError("only keeps every cell of its table.", "Drop it, or ask for less.")
    kept.refuse_idle()
    out.refuse_idle()
    return Cells((values, chosen))


class Cells(Sequence[Cell]):
    """Cells that are made when they are asked for: a million of them take some megabytes.

    They equal any sequence of the same cells in the same order.
    """

    def __init__(self, *tables: tuple[Mapping[str, Values], array[int]]) -> None:
        """Put the cells of tables one after another.

        Args:
            tables: the values of each axis, and which of their combinations are meant, counted
                from 0 with the last axis varying fastest.
        """
        self._tables = tables
        self._ends = [0, *itertools.accumulate(len(chosen) for _, chosen in tables)]

    @property
    def distinct(self) -> bool:
        """Whether no cell can be there twice: no table holds one twice, two of them might."""
        return len(self._tables) == 1

    def __len__(self) -> int:
        return self._ends[-1]

    def __iter__(self) -> Iterator[Cell]:
        return (_cell(values, number) for values, chosen in self._tables for number in chosen)

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Cell, ...]: ...

    def __getitem__(self, index: int | slice) -> Cell | tuple[Cell, ...]:
        places = range(len(self))[index]
        if isinstance(places, range):
            return tuple(map(self.__getitem__, places))
        table = bisect(self._ends, places) - 1
        values, chosen = self._tables[table]
        return _cell(values, chosen[places - self._ends[table]])

    def __add__(self, other: Cells) -> Cells:
        return Cells(*self._tables, *other._tables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]


def _cell(values: Mapping[str, Values], number: int) -> Cell:
    """The combination with this number."""
    chosen: dict[str, Any] = {}
    for axis in reversed(list(values)):
        number, place = divmod(number, len(values[axis]))
        chosen[axis] = values[axis][place]
    return Cell(**chosen)


def typed(axis: str, value: object) -> None:
    """Refuse a value that no cell can have on this axis.

    Raises:
        PlanError: it is of the wrong type, or a number out of range.
    """
    kind = int if axis in NUMBERS else str
    if type(value) is not kind:
        raise PlanError(
            f"{axis} = {value!r} is of the wrong type.",
            f"It takes {'a whole number' if kind is int else 'a name in quotes'}.",
        )
    if axis in COUNTED and isinstance(value, int) and not 0 <= value <= LARGEST:
        raise PlanError(f"{axis} = {value} is out of range.", f"Count from 0 to {LARGEST}.")


def _values(axis: str, given: Any) -> Values:
    """The values that are given for an axis, each of its type and each once."""
    if isinstance(given, Mapping):
        given = _range(axis, given)
    several = given if isinstance(given, list | tuple | range) else [given]
    if not several:
        raise PlanError(
            f"The axis {axis} has no values.", "Give it one value or more, or leave it out."
        )
    for value in _ends(several) if isinstance(several, range) else several:
        typed(axis, value)
    if isinstance(several, range):
        return several
    seen: set[str | int] = set()
    for value in several:
        if value in seen:
            raise PlanError(
                f"{axis} has the value {value!r} twice.",
                "Name it once; to repeat a cell, vary repeat.",
            )
        seen.add(value)
    return several


def _ends(numbers: range) -> tuple[int, int]:
    return numbers[0], numbers[-1]


def _range(axis: str, given: Mapping[str, Any]) -> range:
    """The numbers of ``{ from = 0, to = 9 }``."""
    if axis not in COUNTED:
        raise PlanError(
            f"{axis} = {dict(given)!r} gives no values.",
            f"A range is for {' and '.join(COUNTED)} alone: give {axis} one value, or a list.",
        )
    right = f"Write {axis} = {{ from = 0, to = 9 }}: whole numbers, and both ends are in the range."
    for key in given:
        if key not in _ENDS:
            unknown = UnknownName(f"key in the range of {axis}", key, _ENDS)
            raise PlanError(unknown.cause, f"{unknown.remedy}. {right}")
    if missing := [end for end in _ENDS if end not in given]:
        raise PlanError(f"The range of {axis} lacks {' and '.join(missing)}.", right)
    for end in _ENDS:
        if type(given[end]) is not int:
            raise PlanError(
                f"The range of {axis} has {end} = {given[end]!r}, which is no whole number.", right
            )
        typed(axis, given[end])
    first, last = (given[end] for end in _ENDS)
    if first > last:
        raise PlanError(
            f"{axis} counts from {first} to {last}, which is nothing.",
            f"Count upward: {axis} = {{ from = {last}, to = {first} }}",
        )
    return range(first, last + 1)


def _refuse_idle(pairwise: Any, values: Mapping[str, Values]) -> None:
    """Refuse a pairwise that is no list of three axes, each of which has a choice."""
    listed = isinstance(pairwise, list | tuple) and all(isinstance(one, str) for one in pairwise)
    if not listed or len(set(pairwise)) != len(pairwise) or len(pairwise) < 3:
        raise PlanError(
            f"{PAIRWISE} = {pairwise!r} names no three axes.",
            f'Write {PAIRWISE} = ["dedupe", "digest", "witness"]: of two axes, every pair is every '
            "combination.",
        )
    for axis in pairwise:
        if axis not in AXES:
            raise UnknownName(f"axis in {PAIRWISE}", axis, AXES)
        if len(values.get(axis, ())) < 2:
            raise PlanError(
                f"{PAIRWISE} names {axis}, of which there are not two values here.",
                "Give the axis several, or leave it out there.",
            )


def _refuse_many(pairwise: Sequence[str], values: Mapping[str, Values]) -> None:
    """Refuse axes of which so many combinations would be looked at that it takes minutes."""
    count = math.prod(len(values[axis]) for axis in pairwise)
    if count > _MOST_PAIRED:
        raise PlanError(
            f"{PAIRWISE} chooses among {count} combinations of {', '.join(pairwise)}, before any "
            "is left out.",
            f"Make {_MOST_PAIRED} at most: give these axes fewer values, name fewer of them there, "
            "or make several tables.",
        )


def _paired(
    values: Mapping[str, Values], numbers: Sequence[int], pairwise: Sequence[str]
) -> array[int]:
    """Of the combinations with these numbers, those that are of the cover on these axes."""
    axes = list(values)
    sizes = [len(values[axis]) for axis in axes]
    # how many combinations there are before the next value of an axis, and how many values
    strides = [(math.prod(sizes[place + 1 :]), sizes[place]) for place in map(axes.index, pairwise)]

    def part(number: int) -> tuple[int, ...]:
        return tuple(number // stride % size for stride, size in strides)

    taken = cover(dict.fromkeys(map(part, numbers)))
    return array("I", (number for number in numbers if part(number) in taken))


class _Filters:
    """The filters of one kind, and what each of them has been true of so far."""

    def __init__(self, kind: str, given: Any, values: Mapping[str, Values]) -> None:
        self._kind = kind
        self._given = [] if given is None else [given] if isinstance(given, Mapping) else given
        if given is not None and not (isinstance(self._given, list | tuple) and self._given):
            raise PlanError(f"{kind} = {given!r} is no filter.", f"Write {_example(kind)}.")
        self._axes = [_filter(kind, one, values) for one in self._given]
        self._true = [0] * len(self._axes)
        self.passed = 0  # combinations of which none is true

    def __bool__(self) -> bool:
        return bool(self._axes)

    def holds(self, row: tuple[str | int, ...]) -> bool:
        """Whether one of them is true of a combination; it counts for the first that is."""
        for number, axes in enumerate(self._axes):
            if all(row[place] in wanted for place, wanted in axes):
                self._true[number] += 1
                return True
        self.passed += 1
        return False

    def refuse_idle(self) -> None:
        """Refuse a filter that was true of nothing, or of nothing but what came to others."""
        for true, given in zip(self._true, self._given, strict=True):
            if not true:
                does = "keeps" if self._kind == "only" else "leaves out"
                raise PlanError(
                    f"{self._kind} = {dict(given)!r} {does} no cell that is left to it.",
                    "Mend it, or drop it: the cells are not there, or another filter had them.",
                )


def _filter(kind: str, given: Any, values: Mapping[str, Values]) -> list[tuple[int, _Wanted]]:
    """A filter as places in a combination, and what may stand there."""
    if not isinstance(given, Mapping) or not given:
        raise PlanError(f"{kind} = {given!r} is no filter.", f"Write {_example(kind)}.")
    places = list(values)
    axes: list[tuple[int, _Wanted]] = []
    for axis, value in given.items():
        if axis not in AXES:
            raise UnknownName(f"axis in {kind}", axis, AXES)
        wanted = _held(_values(axis, value))
        there = _held(values.get(axis, (_DEFAULTS[axis],)))
        for one in wanted:
            if one not in there:
                raise UnknownName(f"value of {axis} in {kind}", one, map(str, there))
        if axis in values:  # else it is the default in every cell
            axes.append((places.index(axis), wanted))
    return axes


def _held(values: Values) -> _Wanted:
    return values if isinstance(values, range) else dict.fromkeys(values)


def _example(kind: str) -> str:
    return f'{kind} = {{ point = "after_action", fault = ["kill", "hang"] }}, or a list of such'
