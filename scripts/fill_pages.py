"""Fill the READMEs' tables and numbers, and draw their figures, from the committed evidence.

A place to fill is ``<!-- fill: NAME -->…<!-- /fill -->``. Nothing between the marks is written by
hand. ``--check`` writes nothing, and exits 1 where a page is not what the evidence gives.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rcr_probes.evidence import store
from rcr_probes.evidence.compare import Comparison, compare
from rcr_probes.report import figure, terminal
from rcr_probes.report.texts import text

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "en", "README.zh.md": "zh"}
FIGURES = {f"docs/figures/p3_causal_chain.{lang}.png": lang for lang in PAGES.values()}
_PLACE = re.compile(r"<!-- fill: (\w+) -->(.*?)<!-- /fill -->", re.DOTALL)


def evidence(name: str) -> store.Evidence:
    return store.read(ROOT / "evidence" / name)


def table(folder: str, name: str, lang: str) -> str:
    """One of the tables that ``rcr show --markdown`` prints of this evidence."""
    title = text(f"table.{name}", lang)
    [found] = [one for one in terminal.every(evidence(folder), lang) if one.title == title]
    return f"\n\n{terminal.markdown(found)}\n\n"


def compared() -> Comparison:
    return compare(evidence("article"), evidence("rcr-20260831"))


FILLS: Mapping[str, Callable[[str], str]] = {
    "fault_locations": lambda lang: table("article", "fault_locations", lang),
    "restart": lambda lang: table("article", "restart", lang),
    "verdicts": lambda lang: table("locations", "verdicts", lang),
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
    old = (ROOT / page).read_text(encoding="utf-8")
    return _PLACE.sub(lambda m: f"<!-- fill: {m[1]} -->{FILLS[m[1]](lang)}<!-- /fill -->", old)


def drawn(lang: str) -> bytes:
    """The causal figure as the bytes of its PNG."""
    return figure.rendered(figure.causal_chain(evidence("article"), lang), ".png")


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
