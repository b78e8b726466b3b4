"""Two evidence folders compared, as lines for a reader."""

from __future__ import annotations

from collections.abc import Iterator

from rcr_probes.errors import printable
from rcr_probes.evidence.compare import Comparison
from rcr_probes.evidence.rows import Value
from rcr_probes.model import canonical_json
from rcr_probes.report.texts import text


def lines(comparison: Comparison, lang: str = "en") -> list[str]:
    """Whether the facts are the same, then each difference, then what was not compared."""
    return [printable(line) for line in _lines(comparison, lang)]


def _lines(comparison: Comparison, lang: str) -> Iterator[str]:
    yield _summary(comparison, lang)
    ours, theirs = str(comparison.ours), str(comparison.theirs)
    for found in comparison.differences:
        yield (
            f"  {found.ours}" if found.ours == found.theirs else f"  {found.ours} = {found.theirs}"
        )
        said = text(
            "compare.value",
            lang,
            column=found.column,
            ours=ours,
            our_value=_shown(found.our_value),
            theirs=theirs,
            their_value=_shown(found.their_value),
        )
        yield f"    {said}"
    for side, folder in (("ours", ours), ("theirs", theirs)):
        absent = [one for one in comparison.not_given if one.side == side]
        if absent:
            yield text("compare.not_given", lang, folder=folder)
        for one in absent:
            counted = {"pairs": one.pairs, "all": comparison.pairs}
            yield f"  {text('compare.column', lang, column=one.column, **counted)}"
    for folder, cells in ((ours, comparison.only_ours), (theirs, comparison.only_theirs)):
        if cells:
            yield text("compare.only", lang, folder=folder)
        yield from (f"  {cell}" for cell in cells)


def _summary(comparison: Comparison, lang: str) -> str:
    found = "differ" if comparison.differences else "same" if comparison.same else "nothing"
    return text(
        f"compare.{found}",
        lang,
        differences=len(comparison.differences),
        pairs=comparison.pairs,
        values=comparison.values,
    )


def _shown(value: Value) -> str:
    return canonical_json(value).decode()
