"""The sections of the guide, one function each: what it says of the evidence, as HTML.

A section whose evidence is not there is left out. One that is more than a screen of code is a
module of its own, which this one lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pandas as pd
from markupsafe import Markup

from rcr_probes.evidence.claimed import Reference
from rcr_probes.evidence.compare import compare
from rcr_probes.model import MATCHED, P3
from rcr_probes.report import figure, tables
from rcr_probes.report.guide import appendix, glossary
from rcr_probes.report.guide.audit_policies import policies
from rcr_probes.report.guide.decisions import chooser
from rcr_probes.report.guide.markup import (
    captured,
    code,
    details,
    joined,
    link,
    phrase,
    prose,
    table,
)
from rcr_probes.report.guide.markup import figure as drawn
from rcr_probes.report.guide.material import Material, place, shown
from rcr_probes.report.guide.runtimes import legend_of, runtimes
from rcr_probes.report.guide.worth import worth
from rcr_probes.report.notebook import facts
from rcr_probes.report.texts import text

ARTICLE, LOCATIONS, PUBLISHED = "article", "locations", "rcr-20260831"
_P3 = "/".join(P3)
# The three facts of the picture: a small drawing of each, of 24 units square.
_DRAWINGS = {
    "state": '<path d="M6 3h9l4 4v14H6zM9 11l6 6m0-6l-6 6"/>',
    "effect": '<circle cx="12" cy="12" r="8" class="full"/>',
    "call": '<path d="M6 3h12v18H6zM9 8h6M9 12h2m-2 4l2 2 4-5"/>',  # a record, looked through
}


def verdict(material: Material) -> Markup:
    """What the verdict sentence, which is the page's title, says; its picture; where to go on."""
    lead, readers = (prose(f"guide.verdict.{name}", material.lang) for name in ("lead", "readers"))
    return joined([lead, _picture(material), readers])


def locations(material: Material) -> Markup | None:
    """P0 to P3, beside what was published of them."""
    evidence, published = (material.folders.get(name) for name in (ARTICLE, PUBLISHED))
    if evidence is None:
        return None
    lang = material.lang
    frame = tables.fault_locations(evidence, lang)
    name = text("column.probe", lang)
    cells = {probe: "/".join(key) for probe, key in tables.PROBES.items()}
    links = [{name: material.anchor(ARTICLE, cells[str(probe)])} for probe in frame[name]]
    parts = [
        prose("guide.locations.text", lang),
        table(frame, text("table.fault_locations", lang), links=links),
        appendix.sentences(material, "E-A0.P0", "E-A0.P1", "E-A0.P2", "E-A0.P3"),
        prose("guide.locations.reading", lang),
    ]
    if published is not None:
        found = compare(evidence, published)
        numbers = {"pairs": found.pairs, "values": found.values}
        differences = len(found.differences)
        parts.append(prose("guide.locations.published", lang, differences=differences, **numbers))
    return joined(parts)


def chain(material: Material) -> Markup | None:
    """The causal figure of P3, how to read it, and every event."""
    evidence = material.folders.get(ARTICLE)
    if evidence is None:
        return None
    lang, known = material.lang, facts(evidence, material.lang)
    said = text("prose.chain_figure", lang, **known)
    label = text("guide.chain.label.events", lang)
    events = table(tables.events(evidence, lang), label, tools=True)
    return joined(
        [
            prose("guide.chain.text", lang),
            drawn(
                figure.rendered(figure.causal_chain(evidence, lang), ".svg", letters=True),
                "chain",
                text("guide.chain.label.figure", lang),
                said,
                lang,
            ),
            prose("prose.chain_reading", lang, **known),
            details(label, events),
        ]
    )


def controls(material: Material) -> Markup | None:
    """P3 under its executors: what recovery left, what it knew, what the record remembers."""
    evidence = material.folders.get(ARTICLE)
    if evidence is None:
        return None
    lang = material.lang
    parts = [prose("guide.controls.text", lang)]
    shown = {"restart": tables.restart, "facts": tables.three_facts, "retained": tables.retained}
    for name, make in shown.items():
        frame = make(evidence, lang)
        caption = text(f"guide.controls.caption.{name}", lang)
        parts += [
            prose(f"prose.restart_{'table' if name == 'restart' else name}", lang),
            table(frame, caption, links=_executors(material, frame)),
        ]
    parts += [appendix.sentences(material, "E-A1."), prose("guide.controls.reading", lang)]
    return joined(parts)


def everywhere(material: Material) -> Markup | None:
    """What the states say over all cells, the verdict of each, and how many of them there are."""
    evidence = material.folders.get(LOCATIONS)
    if evidence is None:
        return None
    lang, known = material.lang, facts(evidence, material.lang)
    verdicts = tables.verdicts(evidence, lang)
    return joined(
        [
            prose("prose.locations_states", lang, **known),
            table(tables.states(evidence, lang), text("guide.matrix.caption.states", lang)),
            prose("prose.locations_verdicts", lang, **known),
            legend_of(evidence, lang),
            table(
                _policies(verdicts, lang),
                text("table.verdicts", lang),
                links=_verdict_links(material, verdicts, lang),
                tools=True,
            ),
            prose("prose.locations_counted", lang),
            table(tables.counted(evidence, lang), text("guide.matrix.caption.counted", lang)),
            appendix.sentences(material, "locations."),
        ]
    )


def eligibility(material: Material) -> Markup:
    """What another call needs, and the chooser."""
    form = chooser(material.choices, material.lang)
    return joined([prose("guide.eligibility.text", material.lang), form])


def limits(material: Material) -> Markup:
    """What is not shown."""
    return prose("guide.limits.text", material.lang)


def recheck(material: Material) -> Markup:
    """How to check it, in a minute, in ten, and fully."""
    return prose("guide.recheck.text", material.lang, cell=_P3)


def claims(material: Material) -> Markup:
    """Every claim in one table."""
    return joined([prose("guide.claims.text", material.lang), appendix.claims_table(material)])


def words(material: Material) -> Markup:
    """The words of both languages."""
    lang = material.lang
    return joined([prose("guide.glossary.text", lang), glossary.words(lang)])


def captures(material: Material) -> Markup:
    """Every capture that the page uses, whole."""
    return joined(
        [
            prose("guide.captures.text", material.lang),
            appendix.captures(material, _used(material)),
        ]
    )


# In the order of the page.
SECTIONS: Mapping[str, Callable[[Material], Markup | None]] = {
    "verdict": verdict,
    "locations": locations,
    "chain": chain,
    "controls": controls,
    "matrix": everywhere,
    "eligibility": eligibility,
    "worth": worth,
    "runtimes": runtimes,
    "policies": policies,
    "limits": limits,
    "recheck": recheck,
    "claims": claims,
    "glossary": words,
    "captures": captures,
}


def _picture(material: Material) -> Markup:
    """P3 after its fault: what was recorded, what exists, and what was allowed."""
    numbered = enumerate(material.captures(ARTICLE))
    number, capture = next(((n, c) for n, c in numbered if c.cell.id == _P3), (0, None))
    if capture is None:
        return Markup("")
    lang, judged = material.lang, capture.judgement
    assert judged.truth is not None
    harm = text(f"harm.{judged.truth.call_harm}", lang)
    first = capture.measurement.after("fault")
    assert first is not None
    assert judged.decision is not None
    values = {
        "state": code(first.recorded.status),
        "effect": captured(len(first.effects or ())),
        "call": captured(text(f"eligibility.{judged.decision.eligibility}", lang)),
    }
    tiles = Markup('\n<span class="unequal">≠</span>\n').join(
        Markup(
            '<div class="tile"><p>{}</p><svg viewBox="0 0 24 24" aria-hidden="true">{}</svg>'
            '<p class="value">{}</p><p class="note">{}</p></div>'
        ).format(
            text(f"guide.verdict.tile.{name}", lang),
            Markup(_DRAWINGS[name]),
            value,
            phrase(
                f"guide.verdict.tile.{name}_note",
                lang,
                harm=harm,
            ),
        )
        for name, value in values.items()
    )
    caption = phrase(
        "guide.verdict.picture",
        lang,
        capture=link(place(ARTICLE, number), f"{ARTICLE} {number + 1}"),  # as appendix.mention
    )
    return Markup(
        '<figure class="picture"><div class="tiles">\n{}\n</div>'
        "<figcaption>{}</figcaption></figure>"
    ).format(tiles, caption)


def _executors(material: Material, frame: pd.DataFrame) -> list[dict[str, str]]:
    """For each row the capture of its executor."""
    name = text("column.executor", material.lang)
    cells = {
        text(f"executor.{executor}", material.lang): "/".join(key)
        for executor, key in tables.EXECUTORS.items()
    }
    return [{name: material.anchor(ARTICLE, cells[str(said)])} for said in frame[name]]


def _policies(verdicts: pd.DataFrame, lang: str) -> pd.DataFrame:
    return verdicts.rename(columns=lambda policy: text("table.policy", lang, policy=policy))


def _verdict_links(material: Material, verdicts: pd.DataFrame, lang: str) -> list[dict[str, str]]:
    """For each row of the matrix, policy → the capture of its cell."""
    anchors = {
        tuple(getattr(capture.cell, axis) for axis in MATCHED): place(LOCATIONS, number)
        for number, capture in enumerate(material.captures(LOCATIONS))
    }
    axes = len(MATCHED) - 1
    return [
        {
            text("table.policy", lang, policy=policy): anchors[key]
            for policy in verdicts.columns
            if (key := (*tuple(index)[:axes], policy)) in anchors
        }
        for index in verdicts.index
    ]


def _used(material: Material) -> Iterator[Reference]:
    """The captures that this page links to."""
    for claim in material.claims.claims:
        yield from shown(claim)
    whole = (ARTICLE, LOCATIONS)
    costs = {cost.reference for choice in material.choices for cost in choice.costs}
    for reference, _ in material.references():
        if reference.evidence in whole or reference in costs:
            yield reference
