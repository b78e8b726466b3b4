"""The chooser as HTML: a form, and the table that it looks everything up in."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from rcr_probes.report.explain import ruled
from rcr_probes.report.guide.appendix import mention
from rcr_probes.report.guide.chooser import DECLARED, Choice, Cost
from rcr_probes.report.guide.markup import captured, code, details, joined, phrase, whole_table
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES, NONE

# What is chosen when the page opens, and whether several may be chosen.
_FIRST = {"identity": "valid", "effect": "unknown"}
_COLUMNS = ("identity", "effect", "capability", "decision", "reasons", "cost")


def chooser(made: Sequence[Choice], lang: str) -> Markup:
    """The form, which only scripts can use, and the table, which anybody can."""
    names = [text(f"guide.choose.column.{name}", lang) for name in _COLUMNS]
    caption = text("guide.choose.caption", lang)
    rows = [_row(one, lang) for one in made]
    every = whole_table(names, rows, caption, tools=True)
    return joined(
        [
            Markup('<h3 id="choose">{}</h3>').format(text("guide.choose.title", lang)),
            _form(lang),
            details(text("guide.choose.table", lang), every, name="decisions"),
        ]
    )


def _form(lang: str) -> Markup:
    identity = _options("identity", IDENTITIES, "radio", lang)
    effect = _options("effect", EFFECT_FACTS, "radio", lang)
    capability = _options("capability", DECLARED, "checkbox", lang)
    return Markup(
        '<form id="chooser" class="control" hidden>\n{}\n{}\n{}\n</form>\n'
        '<div id="decision" role="status" aria-label="{}" data-link="{}" hidden></div>'
    ).format(
        identity,
        effect,
        capability,
        text("guide.choose.answer", lang),
        text("guide.choose.link", lang),
    )


def _options(name: str, values: Sequence[str], kind: str, lang: str) -> Markup:
    labels = joined(
        Markup('<label><input type="{}" name="{}" value="{}"{}> {} {}</label>').format(
            kind,
            name,
            value,
            Markup(" checked") if _FIRST.get(name) == value else "",
            code(value),
            text(f"guide.choose.{name}_is.{value}", lang),
        )
        for value in values
    )
    legend = text(f"guide.choose.{name}", lang)
    return Markup("<fieldset><legend>{}</legend>\n{}\n</fieldset>").format(legend, labels)


def _row(one: Choice, lang: str) -> Markup:
    said, *reasons = ruled(one.decision, lang)
    listed = joined(
        Markup("<li>{}</li>").format(captured(reason.removeprefix("- "))) for reason in reasons
    )
    costs = joined(Markup("<p>{}</p>").format(_cost(cost, lang)) for cost in one.costs)
    if not one.costs:
        costs = Markup("<p>{}</p>").format(text("guide.choose.cost.none", lang))
    return Markup(
        '<tr id="{}" data-decision="{}" data-way="{}"><th scope="row">{}</th><td>{}</td>'
        "<td>{}</td><td>{}</td><td><ul>{}</ul></td><td>{}</td></tr>"
    ).format(
        one.anchor,
        one.decision.eligibility,
        one.decision.way or "",
        code(one.facts.identity),
        code(one.facts.effect),
        _declared(one.facts.capability, lang),
        said,
        listed,
        costs,
    )


def _cost(cost: Cost, lang: str) -> Markup:
    shown = phrase(
        f"guide.choose.cost.{cost.kind}",
        lang,
        capture=mention(cost.reference),
        effects=cost.effects,
        approved=cost.approved,
    )
    said = [shown]
    if cost.supposed is not None:
        said.insert(0, phrase(f"guide.choose.cost.if_{cost.supposed}", lang))
    if cost.facts is not None:
        said.append(
            phrase(
                "guide.choose.cost.nearest",
                lang,
                identity=code(cost.facts.identity),
                capability=_declared(cost.facts.capability, lang),
            )
        )
    return Markup(" ").join(said)


def _declared(capability: Sequence[str], lang: str) -> Markup:
    if not capability:
        return Markup('<span data-code="{}">{}</span>').format(
            NONE, text("guide.choose.undeclared", lang)
        )
    return Markup(", ").join(code(name) for name in capability)
