"""The guide's section on audit failure: why no single policy fits every operation."""

from __future__ import annotations

from markupsafe import Markup

from rcr_probes.report import audit_policies
from rcr_probes.report.demands import demands
from rcr_probes.report.guide import appendix
from rcr_probes.report.guide.markup import details, joined, prose, table
from rcr_probes.report.guide.material import Material
from rcr_probes.report.guide.runtimes import legend_of
from rcr_probes.report.notebook import facts
from rcr_probes.report.texts import text

CONTRAST = "contrast"


def policies(material: Material) -> Markup | None:
    """Each policy with an effect of either kind, what it kept; the drain, and a lost response."""
    evidence = material.folders.get(CONTRAST)
    if evidence is None:
        return None
    lang = material.lang
    known = facts(evidence, lang)

    def shown(name: str) -> str:
        return text(f"contrast.{name}", lang)

    def struck(name: str, caption: str) -> Markup:
        return table(audit_policies.outcomes(evidence, lang, struck=name), shown(caption))

    drains = table(audit_policies.drains(evidence, lang), shown("drains"), tools=True)
    responses = table(audit_policies.responses(evidence, lang), shown("responses"), tools=True)
    return joined(
        [
            *([prose("prose.reserve", lang, **known)] if known["unknown"] else []),
            prose("prose.policies_question", lang, **known),
            legend_of(evidence, lang),
            prose("prose.policies_refused", lang),
            struck("audit_refused", "refused"),
            prose("prose.policies_reading", lang),
            prose("prose.policies_killed", lang),
            struck("killed_after", "killed_after"),
            prose("prose.policies_before", lang),
            struck("killed_before", "killed_before"),
            prose("prose.policies_demands", lang),
            table(demands(evidence, lang), shown("demands")),
            prose("prose.policies_drain", lang),
            details(shown("drains"), drains),
            prose("prose.policies_responses", lang),
            details(shown("responses"), responses),
            appendix.sentences(material, "contrast."),
            prose("prose.policies_limits", lang),
        ]
    )
