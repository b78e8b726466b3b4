"""What a forked P3 cell costs, beside forks whose children do the same file operations."""

from __future__ import annotations

import contextlib
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
    ),
    Ratio(
        "lean_parent",
        "a P3 cell without its forced call",
        "the same forks of an interpreter with json, hashlib and os alone",
        3.0,
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
observe twice, judge, seal.
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
        yield Taking(pair, 101, {"file_operations": int(Path(scratch, "count").read_text())})
