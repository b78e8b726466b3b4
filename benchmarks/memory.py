"""What memory the orchestrator of a large plan takes, beside that of a smaller one."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.frame import FOLDER, Ratio, Taking

MANY, FEW = 100_000, 10_000
RATIOS = (
    Ratio(
        "peak",
        f"peak memory of the process that runs and seals a plan of {MANY:,} cells",
        f"the same of {FEW:,} cells",
        1.3,
        unit="bytes",
    ),
)
PAGE = """
## Memory

A cell of a table is made when it is asked for, plan.json is written a cell at a time, and a \
capture is written when it comes back: what grows is 4 bytes for each combination of a table, and \
what the allocator leaves. The lanes answer at once here, with the line of a capture that was \
measured before; all else is what `rcr run` does, but for its tables, which read what was sealed.
"""


def _peak(cells: int) -> float:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks._sealing", str(cells)],
        cwd=FOLDER.parent,
        check=True,
        stdout=subprocess.PIPE,
    )
    return float(done.stdout)


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    yield Taking(lambda: {"peak": (_peak(MANY), _peak(FEW))}, 7)
