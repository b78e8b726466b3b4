"""Claims for a reader: each with its query, its captures, its value, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator

from rcr_probes.errors import printable
from rcr_probes.evidence import claims
from rcr_probes.evidence.claimed import Claimed, Reference, Report
from rcr_probes.evidence.claims import Claim, Where, written
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.model import Json
from rcr_probes.report.texts import text

_SHOWN = 3  # captures that are listed one by one where a claim rests on many


def lines(report: Report, lang: str) -> list[str]:
    """Every claim: what it says, asks and takes, the captures, the value, and whether it holds."""
    found: list[str] = []
    for one in report.claims:
        found += ["", *_lines(one, lang)] if found else _lines(one, lang)
    return [printable(line) for line in found]


def objects(report: Report) -> list[dict[str, Json]]:
    """Every claim as an object of JSON; its sentences are filled in."""
    return [_object(one) for one in report.claims]


def problem(one: Claimed, lang: str) -> str | None:
    """Why a claim does not hold, in one sentence; None where it does."""
    outcome = one.outcome
    if outcome.problem is None:
        return None
    return text(
        f"claim.problem.{outcome.problem}",
        lang,
        about=outcome.about,
        evidence=outcome.claim.evidence,
        take=outcome.claim.take,
        expect=written(outcome.claim.expect),
        value=written(outcome.value),
    )


def problems(report: Report, lang: str = "en") -> list[str]:
    """Every reason why the claims are not to be trusted: a line for each."""
    found = [(one.outcome.claim.id, problem(one, lang)) for one in report.claims]
    found += [
        (
            f"{one.table.name} ({one.table.page})",
            text(
                f"claim.problem.{one.problem}",
                lang,
                about=one.about,
                evidence=one.table.evidence,
            ),
        )
        for one in report.unshown
    ]
    return [
        printable(text("checked.finding", lang, place=name, said=said))
        for name, said in found
        if said is not None
    ]


def notes(report: Report, lang: str = "en") -> list[str]:
    """What nothing uses: no reason to distrust anything, and a line for each folder."""
    return [
        printable(text("claim.unused", lang, evidence=name, captures=_places(references)))
        for name, references in report.unused.items()
    ]


def asked(where: Where, lang: str) -> str:
    """A query in words: ``column = value, column = value | value``."""
    columns = (f"{name} = {' | '.join(map(written, values))}" for name, values in where.items())
    return ", ".join(columns) or text("claim.every", lang)


def _lines(one: Claimed, lang: str) -> list[str]:
    claim = one.outcome.claim
    why = problem(one, lang)
    held = text("claim.holds" if why is None else "claim.fails", lang)
    return [
        text("checked.finding", lang, place=claim.id, said=held),
        *(f"  {line}" for line in _body(one, claim, lang)),
        *([] if why is None else [f"  {why}"]),
        f"  {text('claim.not_shown', lang, said=claim.not_shown(lang))}",
        f"  {text('claim.source', lang, source=claim.source)}",
    ]


def _body(one: Claimed, claim: Claim, lang: str) -> Iterator[str]:
    value = one.outcome.value
    yield claims.said(claim, lang, value)
    where = asked(claim.where, lang)
    yield text("claim.query", lang, evidence=claim.evidence, where=where, take=claim.take)
    yield text(
        "claim.value",
        lang,
        value=written(value),
        expect=written(claim.expect),
        captures=len(one.captures),
    )
    for found in one.captures[:_SHOWN]:
        yield "  " + text(
            "claim.capture",
            lang,
            place=_place(found),
            cell=found.cell,
            digest=found.facts_sha256,
        )
    if len(one.captures) > _SHOWN:
        yield "  " + text("claim.more", lang, captures=len(one.captures) - _SHOWN)


def _object(one: Claimed) -> dict[str, Json]:
    outcome, claim = one.outcome, one.outcome.claim
    return {
        "claim": claim.id,
        "en": claims.said(claim, "en", outcome.value),
        "zh": claims.said(claim, "zh", outcome.value),
        "evidence": claim.evidence,
        "where": {name: list(values) for name, values in claim.where.items()},
        "take": claim.take,
        "captures": [
            {"place": _place(found), "cell": found.cell, "facts_sha256": found.facts_sha256}
            for found in one.captures
        ],
        "value": outcome.value,
        "expect": claim.expect,
        "holds": outcome.holds,
        "problem": problem(one, "en"),
        "not_shown_en": claim.not_shown_en,
        "not_shown_zh": claim.not_shown_zh,
        "source": claim.source,
    }


def _place(found: Reference) -> str:
    """Where the capture stands, as ``rcr check`` names it: lines from 1."""
    return f"{found.evidence}/{CAPTURES}:{found.number + 1}"


def _places(references: tuple[Reference, ...]) -> str:
    named = ", ".join(found.cell for found in references[:_SHOWN])
    return f"{len(references)} ({named}{', …' if len(references) > _SHOWN else ''})"
