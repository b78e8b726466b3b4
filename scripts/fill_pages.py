"""Fill the READMEs' tables and numbers, and draw their figures, from the committed evidence.

A place to fill is ``<!-- fill: NAME -->…<!-- /fill -->``. Nothing between the marks is written by
hand. ``--check`` writes nothing, and exits 1 where a page is not what the evidence gives.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from rcr_probes.evidence import compare, store
from rcr_probes.report import figure, tables

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "en", "README.zh.md": "zh"}
FIGURES = {f"docs/figures/p3_causal_chain.{lang}.png": lang for lang in PAGES.values()}
_PLACE = re.compile(r"<!-- fill: (\w+) -->(.*?)<!-- /fill -->", re.DOTALL)


def evidence(name: str) -> store.Evidence:
    return store.read(ROOT / "evidence" / name)


def markdown(frame: pd.DataFrame) -> str:
    """A table of a page: numbers to the right, everything else to the left."""
    rows = [[str(name) for name in frame.columns]]
    right = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame.columns]
    rows.append(["---:" if r else "---" for r in right])
    rows += [["" if pd.isna(v) else str(v) for v in row] for row in frame.itertuples(index=False)]
    return "\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n\n"


def matrix(frame: pd.DataFrame) -> pd.DataFrame:
    """The verdict matrix with its index as columns, but for an axis that does not vary."""
    flat = frame.reset_index()
    return flat[[name for name in flat.columns if flat[name].nunique() > 1]]


def compared() -> compare.Comparison:
    return compare.compare(ROOT / "evidence" / "article", ROOT / "evidence" / "rcr-20260831")


FILLS: Mapping[str, Callable[[str], str]] = {
    "fault_locations": lambda lang: markdown(tables.fault_locations(evidence("article"), lang)),
    "restart": lambda lang: markdown(tables.restart(evidence("article"), lang)),
    "verdicts": lambda lang: markdown(matrix(tables.verdicts(evidence("locations"), lang))),
    "states": lambda lang: markdown(tables.states(evidence("locations"), lang)),
    "article_cells": lambda lang: str(len(evidence("article").plan.cells)),
    "location_cells": lambda lang: str(len(evidence("locations").plan.cells)),
    "compared_values": lambda lang: str(compared().values),
    "compared_pairs": lambda lang: str(compared().pairs),
}


def filled(page: str, lang: str) -> str:
    """The page's text with every place filled.

    Raises:
        KeyError: a place has a name that nothing fills.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    return _PLACE.sub(lambda m: f"<!-- fill: {m[1]} -->{FILLS[m[1]](lang)}<!-- /fill -->", text)


def drawn(lang: str) -> bytes:
    """The causal figure as the bytes of its PNG."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "figure.png")
        figure.save(figure.causal_chain(evidence("article"), lang), path)
        return path.read_bytes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where one differs"
    )
    check = parser.parse_args().check
    made = {page: filled(page, lang).encode() for page, lang in PAGES.items()}
    made |= {path: drawn(lang) for path, lang in FIGURES.items()}
    stale = [
        n for n, data in made.items() if not (ROOT / n).exists() or (ROOT / n).read_bytes() != data
    ]
    for name in stale:
        print(f"{name}: {'is not what the evidence gives' if check else 'filled'}")
        if not check:
            (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / name).write_bytes(made[name])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
