"""What executing every notebook costs, beside as many that only import what these import."""

from __future__ import annotations

import ast
import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from benchmarks.frame import Pair, Ratio, Taking, seconds
from benchmarks.start import RCR, run
from rcr_probes.report.execute import NOTEBOOKS, TAG

RATIOS = (
    Ratio(
        "suite",
        "`rcr notebooks`, all of them",
        "as many notebooks that only import what these import",
        2.5,
    ),
)
PAGE = """
## The notebooks

{notebooks} notebooks, each in a kernel of its own, on both sides with papermill.
"""


def bare(source: Path) -> Any:
    """A notebook that only imports what another one does."""
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


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as scratch:
        books = sorted(NOTEBOOKS.glob("*.ipynb"))
        lean = Path(scratch, "lean")
        lean.mkdir()
        for source in books:
            nbformat.write(bare(source), lean / source.name)  # type: ignore[no-untyped-call]
        program = (
            "import sys; from pathlib import Path; from rcr_probes.report import execute\n"
            "execute.NOTEBOOKS = Path(sys.argv[1])\n"
            "execute.run_notebooks(Path(sys.argv[2]), {}, None)"
        )
        into = os.path.join(scratch, "into")

        def pair() -> dict[str, Pair]:
            ours = seconds(lambda: run(*RCR, "notebooks", "--into", into))
            words = (sys.executable, "-c", program, str(lean), into)
            return {"suite": (ours, seconds(lambda: run(*words)))}

        yield Taking(pair, 7, {"notebooks": str(len(books))})
