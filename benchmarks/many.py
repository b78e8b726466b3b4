"""What many cells cost: with two workers beside one, and late in a worker's life beside early."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks._sealing import sweep
from benchmarks.frame import Pair, Ratio, Taking, seconds
from rcr_probes import pool
from rcr_probes.evidence.form import CAPTURES, LARGEST
from rcr_probes.evidence.write import Writer
from rcr_probes.model import Cell, Plan
from rcr_probes.pool import Lane
from rcr_probes.scratch import scratch
from rcr_probes.worker import Job

AGED = 10_000  # cells that the older worker has run before the first pair
TIMED = 100  # cells of a side of a pair
PAIRS = 7
RATIOS = (
    Ratio(
        "two_workers",
        f"cells a second with two workers, {TIMED} cells at a time",
        "with one",
        1.7,
        least=True,
        unit="cells/s",
    ),
    Ratio(
        "late",
        f"{TIMED} cells of a worker that has run {AGED:,} before",
        f"{TIMED} cells of one that has run hundreds",
        1.1,
    ),
)
PAGE = """
## Many cells

Captures come back in the order of the plan and are written as they come, as in `rcr run`; the \
cells stand in memory, the evidence on disk. The older worker had run {aged:,} cells before; both \
run in turn, and write to one folder of evidence, which grows to {cells:,} captures.

### Sizing

The fastest of the pairs ran {rate:.0f} P3 cells a second with one worker on its core; a capture \
has {bytes:,.0f} bytes on disk, and its cell {planned:,.0f} more in plan.json. So a million of \
them take {core_hours:.1f} core-hours at that rate, and {gigabytes:.1f} GB. `rcr check` opens no \
file of more than 1 GiB, which holds {most:,.0f} such captures: make several plans of a larger \
sweep.
"""


class Run:
    """A run that can be asked for its next cells."""

    def __init__(self, into: Path, place: Path) -> None:
        self.plan = Plan("many", sweep(AGED + 2 * TIMED + PAIRS * 5 * TIMED))
        self.writer = Writer(into, self.plan)
        self._cells = iter(self.plan.cells)
        self._place = place

    def cells(self, count: int, lanes: list[Lane]) -> None:
        """Run and write so many, with these lanes."""
        some = itertools.islice(self._cells, count)
        for capture, worker in pool.captures(map(self._job, some), lanes):
            self.writer.append(capture, worker)

    def _job(self, cell: Cell) -> Job:
        return Job(cell, str(self._place / str(cell.seed)), "fork", 30.0)


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    with (
        tempfile.TemporaryDirectory(prefix="rcr-bench-") as into,
        scratch() as place,
        pool.local(1) as old,
        pool.local(1) as new,
        pool.local(2) as two,
    ):
        run = Run(Path(into, "evidence"), place)
        notes: dict[str, float | str] = {"aged": AGED}
        with run.writer:
            run.cells(AGED, list(old))
            run.cells(2 * TIMED, [*new, *two])  # so that none of them starts while it is timed

            def pair() -> dict[str, Pair]:
                first, second = (seconds(lambda: run.cells(TIMED, list(new))) for _ in range(2))
                both = seconds(lambda: run.cells(2 * TIMED, list(two)))
                late = seconds(lambda: run.cells(TIMED, list(old)))
                one = (first + second) / 2
                rate = TIMED / one
                _note(notes, rate, run, Path(into, "evidence"))
                return {"two_workers": (2 * TIMED / both, rate), "late": (late, second)}

            yield Taking(pair, PAIRS, notes)


def _note(notes: dict[str, float | str], rate: float, run: Run, folder: Path) -> None:
    """What the page says of sizes; the rate is the best of the pairs."""
    done = run.writer.done
    size = os.path.getsize(folder / CAPTURES) / done
    planned = os.path.getsize(folder / "plan.json") / len(run.plan.cells)
    best = max(rate, float(notes.get("rate", 0)))
    notes.update(
        cells=done,
        rate=round(best, 1),
        bytes=round(size),
        planned=round(planned),
        core_hours=round(1e6 / best / 3600, 2),
        gigabytes=round((size + planned) / 1000, 2),
        most=int(LARGEST / size),
    )
