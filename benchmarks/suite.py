"""What it takes to execute every notebook, beside as many that only import what these import."""

from __future__ import annotations

import ast
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from benchmarks.frame import Noted, Pair, Ratio, Taking
from rcr_probes.report.execute import NOTEBOOKS, TAG

RATIOS = (
    Ratio(
        "suite",
        "every notebook, executed",
        "as many notebooks that only import what these import",
        2.5,
        held=3.5,
    ),
)
PAGE = """
## The notebooks

Each of the {notebooks} notebooks is executed on both sides as `rcr notebooks` does it: by \
papermill, in a kernel of its own, from the folder that it lies in, one after the other. Where the \
time goes, seconds of each, and of the one beside it that only imports:

| notebook | executed | only imports |
|---|---|---|
{table}

A kernel that has imported pandas and matplotlib is the floor; what comes on top is evidence that \
is read, and figures that are drawn as SVG and as PNG, in the notebook's language. The guide \
(`00`) holds every claim against every capture that is committed.
"""
# What runs the notebooks of a folder, and says how long each took.
PROGRAM = """
import json, sys, time
from pathlib import Path
from rcr_probes.report import execute
execute.NOTEBOOKS = Path(sys.argv[1])
took = {}
for source in sorted(execute.NOTEBOOKS.glob("*.ipynb")):
    begun = time.perf_counter()
    execute.run_notebooks(Path(sys.argv[2]), {}, [source.stem])
    took[source.stem] = time.perf_counter() - begun
print(json.dumps(took))
"""


def bare(source: Path) -> Any:
    """A notebook that only imports what another one does, and takes the same parameters."""
    book: Any = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    book.cells = [cell for cell in book.cells if cell.cell_type == "code"]
    for cell in book.cells:
        if TAG not in cell.metadata.get("tags", ()):
            cell.source = "\n".join(imports(cell.source))
    return book


def imports(text: str) -> Iterator[str]:
    """The statements of a cell that import something; its magics are left out."""
    python = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    for node in ast.walk(ast.parse(python)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield ast.unparse(node)


def executed(folder: Path, into: Path) -> dict[str, float]:
    """The seconds of each notebook of a folder."""
    words = [sys.executable, "-c", PROGRAM, str(folder), str(into)]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as scratch:
        lean, into = Path(scratch, "lean"), Path(scratch, "into")
        lean.mkdir()
        sources = sorted(NOTEBOOKS.glob("*.ipynb"))
        for source in sources:
            nbformat.write(bare(source), lean / source.name)  # type: ignore[no-untyped-call]
        notes: dict[str, Noted] = {"notebooks": str(len(sources))}
        each: dict[str, list[Pair]] = defaultdict(list)

        def pair() -> dict[str, Pair]:
            ours, floor = executed(NOTEBOOKS, into), executed(lean, into)
            for name, took in ours.items():
                each[name].append((took, floor[name]))
            notes["table"] = "\n".join(
                f"| {name} | {median(0, pairs)} | {median(1, pairs)} |"
                for name, pairs in each.items()
            )
            return {"suite": (sum(ours.values()), sum(floor.values()))}

        yield Taking(pair, 7, notes)


def median(side: int, pairs: list[Pair]) -> str:
    """Of one side of the pairs, in seconds."""
    return f"{statistics.median(pair[side] for pair in pairs):.2g}"
