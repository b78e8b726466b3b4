"""Run a plan of so many cells without running them, and say what memory its orchestrator took.

All of it is real but its lanes: they answer at once, with the line of a cell that was measured here
once, under the seed that was asked for. (So its digest is another cell's; the orchestrator does not
look at it.) Prints bytes.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from rcr_probes import pool, run
from rcr_probes.evidence import seal
from rcr_probes.model import Plan
from rcr_probes.pool import Lane, Received
from rcr_probes.product import Cells, product
from rcr_probes.worker import Job

_SEED = b'"seed":0,'


class Answering:
    """A lane that has measured one cell, and says the same of every other."""

    def __init__(self, line: bytes) -> None:
        self._line = line
        self._asked: deque[Job] = deque()

    def send(self, job: Job) -> None:
        self._asked.append(job)

    def receive(self) -> Received:
        seed = b'"seed":%d,' % (self._asked.popleft().cell.seed or 0)
        return Received(seal.decode(self._line.replace(_SEED, seed), "worker"))


def sweep(cells: int) -> Cells:
    """P3 under so many seeds."""
    return product(
        point="completion_audit", fault="audit_is_directory", policy="resume", seed=range(cells)
    )


def main(cells: int) -> None:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as into:
        one = run.run(Plan("one", sweep(1)), Path(into, "one"), workers=1)
        [measured] = one.captures()

        @contextlib.contextmanager
        def answering(workers: int) -> Iterator[Sequence[Lane]]:
            yield [Answering(seal.encode(measured))]

        setattr(pool, "local", answering)  # noqa: B010 (run.py asks this module for its lanes)
        evidence = run.run(Plan("many", sweep(cells)), Path(into, "many"), workers=1)
        if evidence.manifest.captures != cells:
            raise RuntimeError("not every cell was sealed")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main(int(sys.argv[1]))
