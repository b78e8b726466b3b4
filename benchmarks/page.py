"""docs/performance.md: what the benchmarks found, from results.json and their own words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.frame import FOLDER, RESULTS, Figure, Ratio, load, names, word

PAGE = FOLDER.parent / "docs" / "performance.md"
_HEAD = """\
# Performance

What things cost, each as a ratio to a floor: the least that anybody would pay for the same. Both \
are measured one right after the other, in pairs, and a ratio is the median of its pairs, with \
their quartiles in brackets. A bound is missed where even the quartile nearer to it lies beyond: \
then three quarters of the pairs miss it; where the median alone does, it is within noise. Where \
a bound is not reached, the text says why, and the ratio is held to another one meanwhile. \
Seconds are those of the machine as it was, with its load beside it: the ratios are what \
compares. `make bench` takes all of them and fails where one misses its bound, or what it is held \
to; `make bench ONLY=NAME` takes one; with `KEEP=1` what was taken goes into \
benchmarks/results.json, from which this page is made. Nothing in it is written by hand.
"""
_UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "bytes")),
}


def bound(ratio: Ratio) -> str:
    """The bound in words."""
    if ratio.bound is None:
        return "no bound"
    held = "" if ratio.held is None else f", held to {ratio.held:g}"
    return f"at {'least' if ratio.least else 'most'} {ratio.bound:g}{held}"


def text() -> str:
    """The whole page.

    Raises:
        KeyError: a ratio, or a number that a text asks for, was not taken.
    """
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8"))
    return "\n".join([_HEAD, *(_part(name, results[name]) for name in names())])


def fill() -> None:
    """Write the page."""
    PAGE.write_text(text(), "utf-8")


def check() -> int:
    """0 where the page is what the results give; else 1, and it is said."""
    if PAGE.exists() and PAGE.read_text("utf-8") == text():
        return 0
    print("docs/performance.md is not what the results give: python -m benchmarks --page")
    return 1


def _part(name: str, found: Mapping[str, Any]) -> str:
    benchmark, around = load(name), found["circumstances"]
    rows = [_row(ratio, Figure(**found["figures"][ratio.name])) for ratio in benchmark.RATIOS]
    said = benchmark.PAGE.strip().format_map(found["notes"])
    heading, _, rest = said.partition("\n")
    circumstances = (
        f"`make bench ONLY={name}`: Python {around['python']}, {around['system']}, "
        f"{around['cores']} cores, load {around['load']}."
    )
    return "\n".join([heading, "", *_table(rows), "", circumstances, rest, ""])


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield "| measured | floor | ratio | bound | |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _row(ratio: Ratio, found: Figure) -> tuple[str, ...]:
    spread = f"[{found.lower:.2f}, {found.upper:.2f}]"
    return (
        f"{ratio.says}: {_amount(found.measured, ratio.unit)}",
        f"{ratio.floor}: {_amount(found.floor, ratio.unit)}",
        f"**{found.ratio:.2f}** " + ("(once)" if found.lower == found.upper else spread),
        bound(ratio),
        word(ratio, found),
    )


def _amount(number: float, unit: str) -> str:
    """A number with its unit, in the largest of which there is one at least."""
    for size, name in _UNITS.get(unit, ()):
        if number >= size:
            return f"{number / size:.3g} {name}"
    return f"{number:.3g} {unit}"
