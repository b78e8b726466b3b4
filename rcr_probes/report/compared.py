"""Two evidence folders compared, as lines for a reader."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from rcr_probes.errors import printable
from rcr_probes.evidence.compare import FACTS, Comparison, Difference
from rcr_probes.evidence.rows import Value
from rcr_probes.model import canonical_json
from rcr_probes.report.texts import text

_DIGEST = re.compile(r"(sha256:[0-9a-f]{12})[0-9a-f]+")


def lines(comparison: Comparison, lang: str = "en") -> list[str]:
    """Whether the facts are the same, then each difference, then what was not compared."""
    return [printable(line) for line in _lines(comparison, lang)]


def _lines(comparison: Comparison, lang: str) -> Iterator[str]:
    yield _summary(comparison, lang)
    ours, theirs = str(comparison.ours), str(comparison.theirs)
    for (mine, yours), found in groupby(comparison.differences, lambda one: (one.ours, one.theirs)):
        yield f"  {mine}" if mine == yours else f"  {mine} = {yours}"
        yield from (f"    {_difference(one, ours, theirs, lang)}" for one in found)
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


def _difference(found: Difference, ours: str, theirs: str, lang: str) -> str:
    if found.column == FACTS:  # its values are digests, of the part in which they differ
        part = text(f"compare.part.{str(found.our_value).partition(' ')[0]}", lang)
        return text("compare.facts", lang, part=part, ours=ours, theirs=theirs)
    return text(
        "compare.value",
        lang,
        column=found.column,
        ours=ours,
        our_value=_shown(found.our_value),
        theirs=theirs,
        their_value=_shown(found.their_value),
    )


def _summary(comparison: Comparison, lang: str) -> str:
    alone = len(comparison.only_ours) + len(comparison.only_theirs)
    same = "same_in_part" if alone else "same"
    found = "differ" if comparison.differences else same if comparison.same else "nothing"
    return text(
        f"compare.{found}",
        lang,
        differences=len(comparison.differences),
        pairs=comparison.pairs,
        values=comparison.values,
        alone=alone,
    )


def _shown(value: Value) -> str:
    """As JSON; of a digest, as much as tells it from another one."""
    return _DIGEST.sub(r"\1…", canonical_json(value).decode())
