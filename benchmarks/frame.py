"""What a benchmark is: ratios to a floor, taken in pairs, each with a bound and its spread.

A benchmark is a module of this folder with three names:

RATIOS: the ratios that it takes, in the order in which they are told.
PAGE: what docs/performance.md says of it, in Markdown; ``{name}`` is a number that it noted.
taking: a context manager that makes ready, and yields the benchmark as a ``Taking``.
"""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
LEAST_PAIRS = 7
_FRAME = {"__main__", "frame", "page", "take"}  # and what begins with "_" helps one of them

Pair = tuple[float, float]  # what was measured, and its floor, in the ratio's unit
Noted = float | str


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure.

    Attributes:
        name: within its benchmark.
        says: what is measured, in a few words.
        floor: what it is divided by, in a few words.
        bound: where the ratio should lie, or None where none was promised.
        held: what the ratio is held to meanwhile, where its bound is not reached and ``PAGE`` says
            why: so that things do not become worse.
        least: whether the bound is the least that it should be, and not the most.
        unit: of both sides.
    """

    name: str
    says: str
    floor: str
    bound: float | None
    least: bool = False
    held: float | None = None
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Taking:
    """A benchmark that is ready.

    Attributes:
        pair: measure once, one side right after the other: a pair for each ratio, by its name.
        pairs: how many times it is to be called.
        notes: what else was counted; it may be filled by ``pair``.
    """

    pair: Callable[[], Mapping[str, Pair]]
    pairs: int = 15
    notes: MutableMapping[str, Noted] = field(default_factory=dict)


class Benchmark(Protocol):
    """What a module of this folder has."""

    RATIOS: Sequence[Ratio]
    PAGE: str

    @staticmethod
    def taking() -> AbstractContextManager[Taking]:
        """Make ready."""
        ...


@dataclass(frozen=True, slots=True)
class Figure:
    """What was found for a ratio.

    Attributes:
        ratio: the median of the pairs' ratios.
        lower: their lower quartile.
        upper: their upper quartile.
        measured: the median of what was measured, in the ratio's unit.
        floor: the median of its floor.
        pairs: how many there were.
    """

    ratio: float
    lower: float
    upper: float
    measured: float
    floor: float
    pairs: int


def figure(pairs: Sequence[Pair]) -> Figure:
    """Each side is divided by the other of its own pair, so that a load on the machine is in both.

    Raises:
        ValueError: there are too few to say anything of their spread.
    """
    if len(pairs) < LEAST_PAIRS:
        raise ValueError(f"{len(pairs)} pairs say too little; take {LEAST_PAIRS} or more")
    ratios = [ours / floor for ours, floor in pairs]
    lower, middle, upper = statistics.quantiles(ratios, n=4, method="inclusive")
    measured, floor = (statistics.median(side) for side in zip(*pairs, strict=True))
    return Figure(
        _rounded(middle),
        _rounded(lower),
        _rounded(upper),
        _rounded(measured),
        _rounded(floor),
        len(pairs),
    )


def misses(ratio: Ratio, found: Figure) -> bool:
    """Whether a bound, or what is held in its place, is missed by more than noise allows.

    Noise allows that a quarter of the pairs keep the bound: it is missed where even the quartile
    that is nearer to it lies beyond.
    """
    return _beyond(ratio, found, ratio.bound if ratio.held is None else ratio.held)


def word(ratio: Ratio, found: Figure) -> str:
    """How the ratio stands to its bound: ``kept``, ``missed``, or ``within noise`` of it."""
    if ratio.bound is None:
        return ""
    if _beyond(ratio, found, ratio.bound):
        return "missed" if misses(ratio, found) else "missed, held"
    keeps = found.ratio >= ratio.bound if ratio.least else found.ratio <= ratio.bound
    return "kept" if keeps else "within noise"


def _beyond(ratio: Ratio, found: Figure, bound: float | None) -> bool:
    if bound is None:
        return False
    return found.upper < bound if ratio.least else found.lower > bound


def names() -> list[str]:
    """Every benchmark of this folder."""
    return sorted(
        path.stem for path in FOLDER.glob("*.py") if path.stem not in _FRAME and path.stem[0] != "_"
    )


def load(name: str) -> Benchmark:
    """The benchmark with this name."""
    return cast(Benchmark, importlib.import_module(f"benchmarks.{name}"))


def circumstances() -> dict[str, Noted]:
    """On what kind of machine this is; no host, user or path."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "load": _rounded(os.getloadavg()[0]),
    }


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, on the monotonic clock."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _rounded(number: float) -> float:
    return float(f"{number:.4g}")
