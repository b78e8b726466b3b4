"""The claims with what they rest on, and the captures themselves, whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from rcr_probes.evidence import claims as claimed
from rcr_probes.evidence.claimed import Claimed, Reference
from rcr_probes.evidence.claims import written
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.model import Capture
from rcr_probes.report.claims import problem
from rcr_probes.report.explain import verdict_of
from rcr_probes.report.guide.explained import explained, observed
from rcr_probes.report.guide.markup import (
    captured,
    code,
    details,
    joined,
    link,
    phrase,
    whole_table,
)
from rcr_probes.report.guide.material import Material, anchored, shown
from rcr_probes.report.texts import text

_FEW = 6  # captures that a sentence links to; of more it says how many they are
_COLUMNS = ("claim", "value", "expect", "holds")


def sentences(material: Material, *prefixes: str) -> Markup:
    """The claims whose ids begin so, as a list: each sentence and its captures."""
    chosen = [one for one in material.claims.claims if one.outcome.claim.id.startswith(prefixes)]
    if not chosen:
        return Markup("")
    items = joined(
        Markup("<li>{} {} {}</li>").format(
            _said(one, material.lang),
            link(f"claim-{one.outcome.claim.id}", one.outcome.claim.id),
            _links(material, one, many=_FEW),
        )
        for one in chosen
    )
    heading = text("guide.page.claims", material.lang)
    return Markup('<p class="claims">{}</p>\n<ul class="claims">\n{}\n</ul>').format(heading, items)


def claims_table(material: Material) -> Markup:
    """Every claim: its sentence, what it gives and must give, and its captures."""
    lang = material.lang
    names = [text(f"guide.claims.column.{name}", lang) for name in _COLUMNS]
    rows = [_claim(material, one) for one in material.claims.claims]
    caption = text("guide.claims.label.caption", lang)
    return whole_table(names, rows, caption, tools=True)


def captures(material: Material, used: Iterable[Reference]) -> Markup:
    """Every capture that is used, folded away under its folder's name."""
    wanted: dict[str, list[Reference]] = {}
    for reference in sorted(set(used), key=lambda one: (one.evidence, one.number)):
        wanted.setdefault(reference.evidence, []).append(reference)
    return joined(_folder(material, name, found) for name, found in wanted.items())


def mention(reference: Reference) -> Markup:
    """A link to a capture, as it is called in a sentence."""
    return link(anchored(reference), f"{reference.evidence} {reference.number + 1}")


def _claim(material: Material, one: Claimed) -> Markup:
    lang, outcome, claim = material.lang, one.outcome, one.outcome.claim
    why = problem(one, lang)
    holds = text("explain.yes" if why is None else "explain.no", lang)
    notes = [
        text("claim.not_shown", lang, said=claim.not_shown(lang)),
        phrase("claim.source", lang, source=_english(claim.source)),
        *([] if why is None else [why]),
    ]
    said = joined(
        [
            Markup("<strong>{}</strong> {} {}").format(
                captured(claim.id), _said(one, lang), _links(material, one)
            ),
            *(Markup('<p class="note">{}</p>').format(captured(note)) for note in notes),
        ]
    )
    return Markup(
        '<tr id="claim-{}"><th scope="row">{}</th>'
        '<td class="n">{}</td><td class="n">{}</td><td>{}</td></tr>'
    ).format(
        claim.id,
        said,
        captured(written(outcome.value)),
        captured(written(claim.expect)),
        holds,
    )


def _english(said: str) -> Markup:
    """Words that stand in the claims in English alone."""
    return Markup('<span lang="en">{}</span>').format(captured(said))


def _said(one: Claimed, lang: str) -> Markup:
    return captured(claimed.said(one.outcome.claim, lang, one.outcome.value))


def _links(material: Material, one: Claimed, many: int | None = None) -> Markup:
    """The captures of a claim, each as a link; of more than ``many``, how many they are.

    Where a cell was measured more than once, also of how many cells they are.
    """
    lang, listed, cells = material.lang, shown(one), material.cells(one)
    repeated = cells != len(one.captures)
    kind = "repeated" if repeated else "count"
    count = phrase(f"guide.claims.label.{kind}", lang, count=len(one.captures), cells=cells)
    if many is not None and len(one.captures) > many:
        return Markup('<span class="refs">{}</span>').format(count)
    links = Markup(", ").join(_numbered(reference) for reference in listed)
    after = [count] if repeated else []
    if left := len(one.captures) - len(listed):
        after.insert(0, phrase("guide.claims.label.more", lang, more=left))
    more = Markup("").join(Markup("; {}").format(said) for said in after)
    name = captured(one.outcome.claim.evidence)
    return Markup('<span class="refs">{} {}{}</span>').format(name, links, more)


def _numbered(reference: Reference) -> Markup:
    """A link to a capture in a list of some, after the name of their folder."""
    return Markup('<a href="#{}" aria-label="{} {}">{}</a>').format(
        anchored(reference), reference.evidence, reference.number + 1, reference.number + 1
    )


def _folder(material: Material, name: str, references: Sequence[Reference]) -> Markup:
    evidence, found = material.folders[name], material.captures(name)
    digest = evidence.manifest.files.get(CAPTURES, "")
    heading = text("guide.captures.label.file", material.lang, folder=name, digest=digest)
    body = joined(_capture(found[one.number], one, material.lang) for one in references)
    return Markup('<h3 class="file">{}</h3>\n{}').format(captured(heading), body)


def _capture(capture: Capture, reference: Reference, lang: str) -> Markup:
    number = f"{reference.evidence} {reference.number + 1}"
    title = Markup("{} {} <strong>{}</strong>").format(
        captured(number), code(capture.cell.id), captured(verdict_of(capture, lang))
    )
    parts = [_gist(capture, reference, lang), explained(capture, lang)]
    return details(title, joined(parts), name=anchored(reference))


def _gist(capture: Capture, reference: Reference, lang: str) -> Markup:
    """What a reader sees who only points at a link to the capture."""
    lines = [observed(one, lang) for one in capture.measurement.observations]
    runtime = Markup("{} · {}").format(
        code(capture.cell.runtime), captured(capture.measurement.source)
    )
    digest = Markup("{} {}").format(
        text("guide.captures.label.facts", lang), code(capture.facts_sha256)
    )
    return Markup('<div class="gist">{}</div>').format(
        joined(Markup("<p>{}</p>").format(line) for line in (*lines, runtime, digest))
    )
