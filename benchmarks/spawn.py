"""What a spawned phase costs, beside an interpreter that imports json, hashlib and os."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.cell import MEMORY
from benchmarks.frame import Pair, Ratio, Taking, seconds
from rcr_probes import folder, linux, process
from rcr_probes.model import Cell

RATIOS = (
    Ratio(
        "phase",
        "the fault phase of a P3 cell, in a new interpreter",
        "an interpreter that imports json, hashlib and os",
        1.8,
    ),
)
PAGE = """
## A spawned phase

"""
P3 = Cell(point="completion_audit", fault="audit_is_directory", policy="resume")
FLOOR = [sys.executable, "-c", "import json, hashlib, os"]


def _floor() -> None:
    pid = os.posix_spawn(FLOOR[0], FLOOR, os.environ)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("the floor failed")


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    linux.adopt_descendants()
    with tempfile.TemporaryDirectory(prefix="rcr-bench-", dir=MEMORY) as scratch:
        place = os.path.join(scratch, "cell")

        def phase() -> None:
            process.run_phase("spawn", place, "fault", 30.0)

        def pair() -> dict[str, Pair]:
            shutil.rmtree(place, ignore_errors=True)
            folder.make(place, P3)
            return {"phase": (seconds(phase), seconds(_floor))}

        pair()  # warm
        yield Taking(pair, 31)
