"""What a forked P3 cell costs, beside forks whose children do the same file operations."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.frame import FOLDER, Pair, Ratio, Taking

RATIOS = (
    Ratio(
        "same_parent",
        "a P3 cell without its forced call",
        "two forks of the same process, whose children do the same file operations",
        2.0,
        held=3.5,
    ),
    Ratio(
        "lean_parent",
        "a P3 cell without its forced call",
        "the same forks of an interpreter with json, hashlib and os alone",
        3.0,
        held=6.0,
    ),
    Ratio("truth", "a P3 cell with its forced call", "the same cell without it", 2.0),
    Ratio(
        "whole",
        "a P3 cell with its forced call",
        "three forks of the same process, whose children do the same file operations",
        None,
    ),
)
PAGE = """
## A forked cell

The cell stands in memory. Its phases make {file_operations} file operations, as CPython's own \
audit events count them; the floor is plain `os.open`, `os.write`, `os.rename` and so on with the \
same arguments. What a cell does besides, and its floor does not: make and remove its folder, \
observe twice, write the witness, judge, seal.

Where the time goes: into page faults. A forked child writes to the reference count of whatever \
Python object it uses, and so copies its page; and its parent, whose pages a fork makes \
read-only, faults once more on each that it uses. On average:

| | without the forced call | its floor |
|---|---|---|
| page faults of the worker | {bare_own_faults} | {two_own_faults} |
| page faults of the phases | {bare_phase_faults} | {two_phase_faults} |
| CPU time in Python, ms | {bare_user_ms} | {two_user_ms} |
| CPU time in the kernel, ms | {bare_kernel_ms} | {two_kernel_ms} |

Neither bound is reached. Each fault that the cell has and its floor has not comes with \
{us_per_fault} µs in the kernel here, where the machine is a virtual one; were there none, and \
all else in the kernel as dear as the floor's, CPU time would be {without_faults} times the \
floor's. Most faults are distinct objects used once, and so less code is what \
helps: no second look at the runtime, one digest of the request, plain reads. What was tried and \
left: to run a cell in the worker itself first, so that its code is specialized (some per cent \
fewer faults); glibc's allocator instead of Python's (a fifth more of them); huge pages (what \
Python holds lies in pieces, of which two or three are as large as one: no fewer); to fork phases \
before they are needed, a dozen at a time (nearly none of the worker's own faults is left, and \
CPU time stays: what is dear is the pages that phases copy).
"""
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class Server:
    """A process that does what it is told, and says how long it took."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, *words],
            cwd=FOLDER.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def seconds(self, act: str) -> float:
        assert self._process.stdin
        print(act, file=self._process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the benchmark has ended")
        return line

    def end(self) -> None:
        self._process.communicate()


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="rcr-bench-", dir=MEMORY))
        notes: dict[str, float | str] = {}
        stack.callback(lambda: notes.update(_used(Path(scratch, "used"))))
        cells = Server("-m", "benchmarks._cells", scratch)
        stack.callback(cells.end)
        two = os.path.join(scratch, "two")
        lean = Server(str(FOLDER / "_replay.py"), two)
        stack.callback(lean.end)

        def pair() -> dict[str, Pair]:
            bare, least = cells.seconds("bare"), cells.seconds("two")
            whole, three = cells.seconds("cell"), cells.seconds("three")
            return {
                "same_parent": (bare, least),
                "lean_parent": (bare, lean.seconds(two)),
                "truth": (whole, bare),
                "whole": (whole, three),
            }

        pair()  # warm
        notes["file_operations"] = int(Path(scratch, "count").read_text())
        yield Taking(pair, 101, notes)


def _used(path: Path) -> dict[str, float]:
    """What a cell and its floor used, on average."""
    used: dict[str, float] = {}
    measured: dict[str, list[float]] = json.loads(path.read_text())
    for name, (own, below, user, system) in measured.items():
        used[f"{name}_own_faults"] = round(own)
        used[f"{name}_phase_faults"] = round(below)
        used[f"{name}_user_ms"] = round(user * 1e3, 2)
        used[f"{name}_kernel_ms"] = round(system * 1e3, 2)
    cell, floor = measured["bare"], measured["two"]
    faults = sum(cell[:2]) - sum(floor[:2])
    used["us_per_fault"] = round((cell[3] - floor[3]) / faults * 1e6, 1)
    used["without_faults"] = round((cell[2] + floor[3]) / sum(floor[2:]), 2)
    return used
