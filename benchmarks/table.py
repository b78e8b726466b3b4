"""What the tidy table of a sweep costs, beside pandas reading the same rows from Parquet."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks import _sweep
from benchmarks.frame import Noted, Pair, Ratio, Taking, seconds
from rcr_probes.evidence import store
from rcr_probes.report.tables import tidy

FLOOR = "pandas reading the same rows from Parquet"
RATIOS = (
    Ratio("parquet", "the tidy table of evidence", FLOOR, 5.0, held=16.0),
    Ratio("lines", "its lines read, and nothing made of them", FLOOR, None),
    Ratio("decoded", "the tidy table of evidence", "its lines read and decoded by msgspec", 1.0),
)
PAGE = """
## The tidy table

{captures} captures, {megabytes} MB of JSON, give a table that is {kilobytes} kB as Parquet, \
where repeats of a value are counted and not written. The bound is not reached: only to read the \
lines takes that of `lines`, and the rest is to find what each has in common with another, and \
that it is the one which the plan promises. Captures that say the same are decoded once, so the \
table is there sooner than whoever decodes every line.
"""


@contextlib.contextmanager
def taking(captures: int = 10_000) -> Iterator[Taking]:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as scratch:
        folder = _sweep.sealed(Path(scratch, "sweep"), captures)
        plain = Path(scratch, "plain.parquet")
        frame = tidy(store.read(folder))
        frame.to_parquet(plain)
        if not frame.equals(pd.read_parquet(plain)):
            raise RuntimeError("the floor reads another table")

        def pair() -> dict[str, Pair]:
            ours = seconds(lambda: tidy(store.read(folder)))
            least = seconds(lambda: pd.read_parquet(plain))
            return {
                "parquet": (ours, least),
                "lines": (seconds(lambda: sum(map(len, _sweep.lines(folder)))), least),
                "decoded": (ours, seconds(lambda: _sweep.decoded(folder))),
            }

        notes: dict[str, Noted] = {
            "captures": f"{len(frame):,}",
            "megabytes": f"{(folder / 'captures.jsonl').stat().st_size / 1e6:.0f}",
            "kilobytes": f"{plain.stat().st_size / 1e3:.0f}",
        }
        yield Taking(pair, 9, notes)
