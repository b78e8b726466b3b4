"""The guide's section on real runtimes: the same faults, and what each recovery left."""

from __future__ import annotations

from markupsafe import Markup

from rcr_probes.evidence.store import Evidence
from rcr_probes.report import figure, legend, matrix, repeats
from rcr_probes.report.guide import appendix
from rcr_probes.report.guide.markup import details, joined, prose, table
from rcr_probes.report.guide.markup import figure as drawn
from rcr_probes.report.guide.material import Material
from rcr_probes.report.notebook import facts
from rcr_probes.report.texts import text

RUNTIMES = "runtimes"


def legend_of(evidence: Evidence, lang: str) -> Markup:
    """What the codes in the tables of a folder mean, folded away."""
    title = text("table.legend", lang)
    return details(title, table(legend.codes(evidence, lang), title))


def runtimes(material: Material) -> Markup | None:
    """What is asked, the codes in words, the gap, who called again, the matrix, every cell."""
    evidence = material.folders.get(RUNTIMES)
    if evidence is None:
        return None
    lang, known = material.lang, facts(evidence, material.lang)

    def shown(name: str) -> str:
        return text(f"table.{name}", lang)

    ways = table(legend.ways(evidence, lang), shown("ways"))
    variants = table(legend.variants(evidence, lang), shown("variants"))
    every = table(repeats.table(evidence, lang), shown("repeats"), tools=True)
    return joined(
        [
            prose("prose.runtimes_question", lang, **known),
            prose("prose.runtimes_legend", lang),
            legend_of(evidence, lang),
            details(shown("ways"), ways),
            details(shown("variants"), variants),
            prose("prose.runtimes_gap", lang),
            table(repeats.gap(evidence, lang), shown("gap"), tools=True),
            prose("prose.runtimes_split", lang, **known),
            table(repeats.split(evidence, lang), shown("split")),
            prose("prose.runtimes_matrix", lang),
            drawn(
                figure.rendered(matrix.matrix(evidence, lang), ".svg", letters=True),
                "runtimes-matrix",
                text("guide.figure.matrix", lang),
                text("prose.runtimes_figure", lang, **known),
                lang,
            ),
            prose("prose.runtimes_table", lang),
            details(shown("repeats"), every),
            appendix.sentences(material, "runtimes."),
            prose("prose.runtimes_limits", lang),
        ]
    )
