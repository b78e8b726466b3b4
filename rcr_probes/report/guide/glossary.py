"""The words of the guide in both languages: nouns, fault locations, verdicts, codes, reasons."""

from __future__ import annotations

from markupsafe import Markup

from rcr_probes.report.guide.markup import code, joined, phrase, whole_table
from rcr_probes.report.tables import PROBES
from rcr_probes.report.texts import LANGS, table, text
from rcr_probes.vocabulary import POINTS, VERDICTS


def words(lang: str) -> Markup:
    """A table for each: nouns, fault locations, verdicts, other codes, reasons."""
    return joined([_terms(lang), _points(lang), _verdicts(lang), _codes(lang), _reasons(lang)])


def _terms(lang: str) -> Markup:
    """The page's own language first."""
    order = sorted(LANGS, key=lambda one: one != lang)
    names = [*(_label({"en": "english", "zh": "chinese"}[one], lang) for one in order)]
    keys = [key.removesuffix(".name") for key in table() if key.startswith("guide.term.")]
    rows = [
        _row(
            _in(lang, text(f"{key}.name", lang)),
            _in(order[1], text(f"{key}.name", order[1])),
            phrase(f"{key}.meaning", lang),
        )
        for key in keys
        if not key.endswith(".meaning")
    ]
    return whole_table([*names, _label("meaning", lang)], rows, _label("terms", lang))


def _points(lang: str) -> Markup:
    probes = {key[0]: probe for probe, key in PROBES.items()}
    told = [key for key in table() if key.startswith(("guide.point.", "legend.points."))]
    keys = {**{name: f"guide.point.{name}" for name in POINTS}}
    keys |= {key.rpartition(".")[2]: key for key in told}
    rows = [
        _row(code(name), Markup(probes.get(name, "")), phrase(key, lang))
        for name, key in keys.items()
    ]
    names = [_label(name, lang) for name in ("point", "probe", "meaning")]
    return whole_table(names, rows, _label("points", lang))


def _verdicts(lang: str) -> Markup:
    rows = [
        _row(code(name), _in("zh", text(f"verdict.{name}", "zh")), text(f"action.{name}", lang))
        for name in VERDICTS
    ]
    names = [text("column.verdict", lang), _label("chinese", lang), text("column.action", lang)]
    return whole_table(names, rows, _label("verdicts", lang))


def _codes(lang: str) -> Markup:
    """What is allowed, what is known of the effect, what one more call does."""
    sections = {
        "eligibility": "legend.decisions",
        "effect_fact": "guide.choose.effect_is",
        "harm": "guide.glossary.harm",
    }
    rows = [
        _row(
            code(key.removeprefix(f"{section}.")),
            _in("zh", text(key, "zh").partition("（")[0]),
            text(f"{meaning}.{key.removeprefix(f'{section}.')}", lang),
        )
        for section, meaning in sections.items()
        for key in table()
        if key.startswith(f"{section}.")
    ]
    names = [text("column.code", lang), _label("chinese", lang), _label("meaning", lang)]
    return whole_table(names, rows, _label("codes", lang))


def _reasons(lang: str) -> Markup:
    """Every code of a reason, of a decision or of a verdict."""
    rows = [
        Markup('<th scope="row">{}</th><td>{}</td>').format(
            code(key.removeprefix("reason.")), text(key, lang)
        )
        for key in table()
        if key.startswith("reason.")
    ]
    names = [text("column.code", lang), _label("meaning", lang)]
    return whole_table(names, rows, _label("reasons", lang))


def _row(first: Markup, second: Markup, third: Markup | str) -> Markup:
    return Markup('<th scope="row">{}</th><td>{}</td><td>{}</td>').format(first, second, third)


def _in(lang: str, said: str) -> Markup:
    """Words of one language, for a screen reader that speaks another."""
    return Markup('<span lang="{}">{}</span>').format(lang, said)


def _label(name: str, lang: str) -> str:
    return text(f"guide.glossary.label.{name}", lang)
