"""Run a plan of so many cells without running them, and say what memory its orchestrator took.

Everything of the run is real but its lanes: they answer at once, with a capture that was measured
here once, under the name of the cell that was asked for.
"""

from __future__ import annotations

import contextlib
import resource
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rcr_probes import pool, run
from rcr_probes.evidence import seal
from rcr_probes.model import Capture, Plan
from rcr_probes.pool import Lane, Received
from rcr_probes.product import product
from rcr_probes.worker import Job

P3: Mapping[str, Any] = {
    "point": "completion_audit",
    "fault": "audit_is_directory",
    "policy": "resume",
}


class Answering:
    """A lane that has measured one cell, and says the same of every other."""

    def __init__(self, measured: Capture) -> None:
        self._measured = measured
        self._asked: deque[Job] = deque()

    def send(self, job: Job) -> None:
        self._asked.append(job)

    def receive(self) -> Received:
        whole = self._measured
        measurement = replace(whole.measurement, cell=self._asked.popleft().cell)
        line = seal.encode(seal.seal(measurement, whole.judgement, whole.circumstances))
        return Received(seal.decode(line, "worker"))  # as it comes from a worker


def main(cells: int) -> None:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as into:
        one = run.run(Plan("one", product(**P3)), Path(into, "one"), workers=1)
        [measured] = one.captures()

        @contextlib.contextmanager
        def answering(workers: int) -> Iterator[Sequence[Lane]]:
            yield [Answering(measured)]

        setattr(pool, "local", answering)  # noqa: B010
        plan = Plan("sealing", product(**P3, seed=range(cells)))
        evidence = run.run(plan, Path(into, "many"), workers=1)
        assert evidence.manifest.captures == cells
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


if __name__ == "__main__":
    main(int(sys.argv[1]))
