"""What memory it takes to read the rows of a sweep out, beside that for a smaller one."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import _sweep
from benchmarks.frame import Noted, Pair, Ratio, Taking

CAPTURES = 10_000
_FLOOR = "the same for the sweep"
RATIOS = tuple(
    Ratio(
        name,
        f"the largest memory of `rcr {command}` for ten times as many captures",
        _FLOOR,
        1.3,
        unit="bytes",
    )
    for name, command in (("csv", "show --csv"), ("json", "show --json"), ("export", "export"))
)
PAGE = """
## Reading rows out

The sweep has {captures} captures, and the larger one {many}. Rows are written one after another, \
those of an export in groups of 10,000; of the plan a cell is kept once, and a seed and a repeat \
for each capture. So what grows is some bytes for each, and what Parquet holds of a group until it \
is written. Memory is that of a process of its own, pandas in it, and \
was taken once. The tables that `rcr show` draws are pandas' and are in memory as a whole.
"""


@contextlib.contextmanager
def taking(captures: int = CAPTURES) -> Iterator[Taking]:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as scratch:
        few, many = (
            _sweep.sealed(Path(scratch, name), count)
            for name, count in (("few", captures), ("many", 10 * captures))
        )
        words = {"csv": ["show", "--csv"], "json": ["show", "--json"], "export": ["export"]}
        pairs: dict[str, Pair] = {}
        for name, said in words.items():
            more = {of: ["--to", f"{of}.parquet"] if name == "export" else [] for of in (few, many)}
            pairs[name] = (
                _sweep.peak(*said, str(many), *more[many]),
                _sweep.peak(*said, str(few), *more[few]),
            )
        notes: dict[str, Noted] = {
            "captures": f"{sum(1 for _ in _sweep.lines(few)):,}",
            "many": f"{sum(1 for _ in _sweep.lines(many)):,}",
        }
        yield Taking(lambda: pairs, 7, notes)
