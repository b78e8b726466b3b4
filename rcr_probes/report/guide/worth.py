"""The guide's section on what a recovery policy is worth: all cells of the plan ``faults``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from markupsafe import Markup

from rcr_probes.evidence.store import Evidence
from rcr_probes.report import figure, gated, outages
from rcr_probes.report import worth as tables
from rcr_probes.report.guide import appendix
from rcr_probes.report.guide.markup import details, joined, prose, table
from rcr_probes.report.guide.markup import figure as drawn
from rcr_probes.report.guide.material import Material
from rcr_probes.report.guide.runtimes import legend_of
from rcr_probes.report.notebook import facts
from rcr_probes.report.texts import text

FAULTS = "faults"
# Folders that are told of after it → the numbers that their text says.
FURTHER: Mapping[str, Callable[[Evidence], Mapping[str, int]]] = {
    "syscalls": lambda _: {},
    "power": outages.numbers,
    "power_local": lambda _: {},
}


def worth(material: Material) -> Markup | None:
    """What is counted, each policy's counts, what recovery did, and where nobody can tell."""
    evidence = material.folders.get(FAULTS)
    if evidence is None:
        return None
    lang = material.lang
    known = {**facts(evidence, lang), **tables.numbers(evidence)}

    def caption(name: str) -> str:
        return text(f"guide.worth.caption.{name}", lang)

    return joined(
        [
            prose("guide.worth.text", lang),
            legend_of(evidence, lang),
            table(tables.policies(evidence, lang), caption("policies")),
            prose("prose.worth_beside", lang, **known),
            drawn(
                figure.rendered(gated.compared(evidence, lang), ".svg", letters=True),
                "worth",
                caption("figure"),
                text("prose.worth_figure", lang),
                lang,
            ),
            prose("guide.worth.reading", lang),
            table(tables.outcomes(evidence, lang), caption("outcomes"), tools=True),
            prose("prose.worth_counted", lang, **known),
            prose("guide.worth.pairs", lang, **known),
            details(caption("pairs"), table(tables.pairs(evidence, lang), caption("pairs"))),
            prose("guide.worth.ablation", lang),
            details(
                caption("ablation"), table(tables.ablation(evidence, lang), caption("ablation"))
            ),
            appendix.sentences(material, "faults."),
            *(
                joined(
                    [
                        prose(f"guide.worth.{name}", lang, **count(material.folders[name])),
                        appendix.sentences(material, f"{name}."),
                    ]
                )
                for name, count in FURTHER.items()
                if name in material.folders
            ),
            prose("guide.worth.limits", lang),
        ]
    )
