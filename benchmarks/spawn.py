"""What a spawned phase costs, beside an interpreter that imports json, hashlib and os."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

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
        held=4.0,
    ),
    Ratio("msgspec", "one that imports msgspec, and is gone at once", "the same floor", None),
    Ratio(
        "imports",
        "one that imports all that a phase does, and is gone at once",
        "the same floor",
        None,
    ),
)
PAGE = """
## A spawned phase

The bound is not reached. Where the time goes: into imports, before anything is done. What a \
phase reads from disk is validated by msgspec, whose import takes most of what the bound allows. \
Of what comes after it, about a third each is the rest of the libraries (pathlib, ctypes, the \
OpenSSL of hashlib), some forty modules of harness and reference, and their nouns: those that \
check.py embeds are dataclasses, whose methods Python writes and compiles anew in every process. A \
phase that is to keep the bound imports neither msgspec nor dataclasses, and reads and writes JSON \
by itself: it would be another one than forks. Fork is the default, and pays for no import.

Modules are read from the compiled code that an interpreter before left. Where it may leave none \
(PYTHONDONTWRITEBYTECODE, or a folder that cannot be written to), every phase compiles the forty \
anew, and takes nearly half as long again.
"""
P3 = Cell(point="completion_audit", fault="audit_is_directory", policy="resume")
FLOOR = "import json, hashlib, os"
GONE = "; os._exit(0)"  # as a phase ends: what was imported is not taken apart
MSGSPEC = f"import os, msgspec{GONE}"
IMPORTS = f"import os, rcr_probes.phase, rcr_probes.reference{GONE}"


def _interpreter(code: str) -> None:
    pid = os.posix_spawn(sys.executable, [sys.executable, "-P", "-c", code], os.environ)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError(f"an interpreter failed: {code}")


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
            ours, floor = seconds(phase), seconds(partial(_interpreter, FLOOR))
            return {
                "phase": (ours, floor),
                "msgspec": (seconds(partial(_interpreter, MSGSPEC)), floor),
                "imports": (seconds(partial(_interpreter, IMPORTS)), floor),
            }

        pair()  # warm
        yield Taking(pair, 31)
