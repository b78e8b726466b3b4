"""What a notebook shows of a noun that a cell ends with: words, and the same as HTML.

The nouns know nothing of it: they are embedded in checkers, and their processes are to stay small.
``%load_ext rcr_probes.report`` registers it with the notebook's own shell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from rcr_probes.errors import UnknownName, printable
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Cell, Decision, Plan, Verdict
from rcr_probes.report.explain import explain, judged, ruled, verdict_of
from rcr_probes.report.guide.explained import explained, listed
from rcr_probes.report.guide.markup import captured, code, joined
from rcr_probes.report.texts import LANGS, text

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class Shown(NamedTuple):
    """What is shown of one kind of noun.

    Attributes:
        lines: in words; the first stands for the whole in a list of such nouns.
        html: the same as HTML, of nothing but these lines where it is None.
    """

    lines: Callable[[Any, str], Sequence[str]]
    html: Callable[[Any, str], Markup] | None = None


def register(shell: InteractiveShell, lang: str = "en") -> None:
    """Have the shell show each noun in words, and as HTML where there is somebody to draw it.

    Raises:
        UnknownName: there is no such language.
    """
    if lang not in LANGS:
        raise UnknownName("language", lang, LANGS)
    drawn: Any = shell.display_formatter  # its formatters are untyped traits
    formatters = drawn.formatters
    for kind, shown in SHOWN.items():
        formatters["text/plain"].for_type(kind, partial(_print, shown, lang))
        formatters["text/html"].for_type(kind, partial(_html, shown, lang))


def _print(shown: Shown, lang: str, noun: object, printer: Any, _cycle: bool) -> None:
    """Write it to a printer of IPython's, which has no types."""
    lines = [printable(line) for line in shown.lines(noun, lang)]
    inside = len(printer.stack) > 1  # a list of captures is no wall of their events
    printer.text(lines[0] if inside else "\n".join(lines))


def _html(shown: Shown, lang: str, noun: object) -> str:
    if shown.html is not None:
        return shown.html(noun, lang)
    first, *rest = shown.lines(noun, lang)
    return Markup("<p>{}</p>").format(captured(first)) + (listed(rest) if rest else "")


def _capture_lines(capture: Capture, lang: str) -> Sequence[str]:
    name, *rest = explain(capture, lang)
    return [f"{name}: {verdict_of(capture, lang)}", *rest]


def _capture_html(capture: Capture, lang: str) -> Markup:
    heading = Markup("<p>{} <strong>{}</strong></p>").format(
        code(capture.cell.id), captured(verdict_of(capture, lang))
    )
    return joined([heading, explained(capture, lang)])


def _plan(plan: Plan, lang: str) -> Sequence[str]:
    first, last = plan.cells[0].id, plan.cells[-1].id
    return [
        text("display.plan", lang, name=plan.name, cells=len(plan.cells), first=first, last=last)
    ]


def _evidence(evidence: Evidence, lang: str) -> Sequence[str]:
    plan = evidence.plan
    told_of = {"name": plan.name, "cells": len(plan.cells), "folder": evidence.folder}
    return [
        text("display.evidence", lang, **told_of),
        text("display.rows", lang),
        text("display.one", lang, cell=plan.cells[0].id),
    ]


SHOWN: Mapping[type, Shown] = {
    Cell: Shown(lambda cell, _: [cell.id]),
    Plan: Shown(_plan),
    Capture: Shown(_capture_lines, _capture_html),
    Decision: Shown(ruled),
    Verdict: Shown(judged),
    Evidence: Shown(_evidence),
}
