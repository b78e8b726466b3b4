"""Fill the pages' tables and numbers, and draw their figures, from the committed evidence.

The pages are the READMEs and docs/results.md, in both languages. A place to fill is
``<!-- fill: NAME -->…<!-- /fill -->``; a page has no other comment. Nothing between the marks is
written by hand. ``claim ID`` is filled with a claim's sentence, ``value ID`` with what was measured
for it. ``--check`` writes nothing, and exits 1 where a page is not what the evidence gives.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure

from rcr_probes.errors import EvidenceError, RcrError, UnknownName
from rcr_probes.evidence import claims, store
from rcr_probes.evidence.claimed import held
from rcr_probes.evidence.claims import Outcome
from rcr_probes.evidence.compare import Comparison, compare
from rcr_probes.report import figure, gated, matrix, terminal
from rcr_probes.report.repeats import Repeated, repeated
from rcr_probes.report.texts import LANGS, text

_MARKS = "Write <!-- fill: NAME -->…<!-- /fill -->, and no other comment."
ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "en",
    "README.zh.md": "zh",
    "docs/results.md": "en",
    "docs/results.zh.md": "zh",
}
# What a figure's file is named after → how it is drawn in a language, from which evidence.
FIGURES: Mapping[str, tuple[Callable[[store.Evidence, str], Figure], str]] = {
    "p3_causal_chain": (figure.causal_chain, "article"),
    "real_runtimes": (matrix.matrix, "runtimes"),
    "policies": (gated.compared, "faults"),
}
_BEGIN = re.compile(r"<!-- fill: (\w+(?: [\w.-]+)?) -->")
_END = "<!-- /fill -->"
# Whatever begins or ends a comment in a page: each is a mark, or a mark that somebody mistyped.
_COMMENT = re.compile(r"<!-{1,2}(?:(?!<!-|-->).)*(?:-->)?|-->|<\s*!\s*-+", re.DOTALL)


def evidence(name: str) -> store.Evidence:
    return store.read(ROOT / "evidence" / name)


def table(folder: str, name: str, lang: str) -> str:
    """One of the tables that ``rcr show --markdown`` prints of this evidence."""
    title = text(f"table.{name}", lang)
    [found] = [one for one in terminal.every(evidence(folder), lang) if one.title == title]
    return f"\n\n{terminal.markdown(found)}\n\n"


def compared() -> Comparison:
    """The measured rows beside the published ones, of which the pages say that all are equal.

    Raises:
        EvidenceError: some differ.
    """
    found = compare(evidence("article"), evidence("rcr-20260831"))
    if not found.same:
        raise EvidenceError(
            "evidence/article",
            "differs from the published rows.",
            "See where: rcr compare evidence/article evidence/rcr-20260831",
        )
    return found


@cache
def runtimes() -> list[Repeated]:
    """Every cell of real runtimes, its repeats taken together."""
    return repeated(evidence("runtimes"))


@cache
def outcomes() -> Mapping[str, Outcome]:
    """Every claim's outcome, by the claim's id."""
    return {one.outcome.claim.id: one.outcome for one in held(ROOT / "evidence").claims}


def claimed(name: str) -> Outcome:
    """The outcome of a claim that holds: of any other, a page says nothing.

    Raises:
        UnknownName: there is no such claim.
        EvidenceError: it does not hold.
    """
    if name not in outcomes():
        raise UnknownName("claim", name, outcomes())
    if not outcomes()[name].holds:
        raise EvidenceError(name, "does not hold.", "See why: rcr check evidence")
    return outcomes()[name]


def lines_of_a_runtime() -> int:
    """How many lines the class has that docs/own-runtime.md shows whole, blank ones left out."""
    shown = (ROOT / "docs" / "own-runtime.md").read_text(encoding="utf-8")
    code = shown.split("```python\n")[1].split("```")[0]
    return sum(bool(line.strip()) for line in code[code.index("class ") :].splitlines())


FILLS: Mapping[str, Callable[[str], str]] = {
    "fault_locations": lambda lang: table("article", "fault_locations", lang),
    "restart": lambda lang: table("article", "restart", lang),
    "verdicts": lambda lang: table("locations", "verdicts", lang),
    "policies": lambda lang: table("faults", "policies", lang),
    "demands": lambda lang: table("contrast", "demands", lang),
    "faults_cells": lambda lang: str(len(evidence("faults").plan.cells)),
    "article_cells": lambda lang: str(len(evidence("article").plan.cells)),
    "location_cells": lambda lang: str(len(evidence("locations").plan.cells)),
    "gap": lambda lang: table("runtimes", "gap", lang),
    "runtimes": lambda lang: str(len({one.cell.runtime for one in runtimes()})),
    "runtime_cells": lambda lang: str(len(runtimes())),
    "runtime_repeats": lambda lang: "–".join(map(str, sorted({len(o.rows) for o in runtimes()}))),
    "compared_values": lambda lang: str(compared().values),
    "compared_pairs": lambda lang: str(compared().pairs),
    "lines_of_a_runtime": lambda lang: str(lines_of_a_runtime()),
}


def fill(name: str, lang: str) -> str:
    """What belongs in a place.

    Raises:
        UnknownName: nothing fills a place of this name.
        EvidenceError: it is a claim that does not hold.
    """
    match name.split():
        case ["claim", claim]:
            found = claimed(claim)
            return claims.said(found.claim, lang, found.value)
        case ["value", claim]:
            return claims.written(claimed(claim).value)
    if name not in FILLS:
        raise UnknownName("fill", name, (*FILLS, "claim ID", "value ID"))
    return FILLS[name](lang)


def filled(page: str, lang: str) -> str:
    """The page's text with every place filled.

    Raises:
        As ``fill``, and ``places``.
    """
    old = (ROOT / page).read_text(encoding="utf-8")
    made, at = [], 0
    for name, begin, end in places(page, old):
        made += [old[at:begin], fill(name, lang)]
        at = end
    return "".join([*made, old[at:]])


def places(page: str, text: str) -> Iterator[tuple[str, int, int]]:
    """The name of each place to fill, and where what is filled in begins and ends.

    Raises:
        EvidenceError: a comment is no mark, a place has no end, or an end has no beginning.
    """
    name, begin = "", -1
    for mark in _COMMENT.finditer(text):
        line = text.count("\n", 0, mark.start()) + 1
        place, opened = f"{page}:{line}", begin >= 0
        if started := _BEGIN.fullmatch(mark[0]):
            if opened:
                raise EvidenceError(place, f"begins a place, but {name!r} has no end.", _MARKS)
            name, begin = started[1], mark.end()
        elif mark[0] != _END:
            raise EvidenceError(place, f"is no mark: {mark[0][:40]!r}.", _MARKS)
        elif not opened:
            raise EvidenceError(place, "ends a place that has no beginning.", _MARKS)
        else:
            yield name, begin, mark.start()
            begin = -1
    if begin >= 0:
        raise EvidenceError(page, f"ends, but {name!r} has no end.", _MARKS)


def figures() -> dict[str, bytes]:
    """The PNG of each figure in each language, by its path."""
    return {
        f"docs/figures/{name}.{lang}.png": figure.rendered(draw(evidence(folder), lang), ".png")
        for name, (draw, folder) in FIGURES.items()
        for lang in LANGS
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where one differs"
    )
    check = parser.parse_args().check
    try:
        made = {page: filled(page, lang).encode() for page, lang in PAGES.items()}
        made |= figures()
    except RcrError as error:
        print(error, file=sys.stderr)
        return error.exit_code
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
