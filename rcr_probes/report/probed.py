"""What a probe of a worker is shown as: one table, and one sentence for each strike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture
from rcr_probes.report.sentences import AT_CALL, STRUCK, said, sentence, struck
from rcr_probes.report.terminal import Drawn, why
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import BASELINE, NONE, WORKER

# After these, effects are too many, others than they should be, or missing and said to be done.
HARM = ("wrong_effect", "duplicate_effect", "lost_effect", "state_effect_split")
_NUMBERS = ("requests", "keys")
_COLUMNS = ("fault", *_NUMBERS, "effects", "worker", "recovery", "verdict")


def is_probe(evidence: Evidence) -> bool:
    """Whether this is the evidence of a worker."""
    return all(cell.runtime == WORKER for cell in evidence.plan.cells)


def drawn(evidence: Evidence, lang: str) -> Drawn:
    """The table: what each strike measured. The second control is left out where it is alike."""
    columns = {text(f"probe.column.{name}", lang): name in _NUMBERS for name in _COLUMNS}
    several = _several(evidence)
    rows = [_row(capture, lang, several) for capture in shown(evidence)]
    return Drawn(text("probe.title", lang), columns, rows)


def sentences(evidence: Evidence, lang: str) -> list[str]:
    """One sentence for each strike, and how effects were told apart."""
    captures, several = shown(evidence), _several(evidence)
    found = [said(sentence(one), lang, _strike(one, lang, several)) for one in captures]
    return [*dict.fromkeys(found), "", text(f"probe.told.{_level(captures)}", lang)]


def shown(evidence: Evidence) -> list[Capture]:
    """The captures that are shown: the control once, and every strike.

    Raises:
        EvidenceError: it lacks what every probe has: its two controls, and of each capture an
            observation after either phase, and a verdict.
    """
    captures = list(evidence.captures())
    whole = (len(c.measurement.observations) == 2 and c.judgement.verdict for c in captures)
    if len(captures) < 2 or not all(whole):
        raise EvidenceError(
            CAPTURES,
            "holds no probe of a worker: a control, an observation or a verdict is missing.",
            f"See what is wrong with: rcr check {evidence.folder}",
        )
    first, second = captures[:2]
    alike = _row(first, "en") == _row(second, "en")
    return [first, *captures[2:]] if alike else captures


def exit_code(evidence: Evidence) -> int:
    """1 where an effect is too many, wrong, or falsely said done; else 3 where one is unknown."""
    verdicts = [c.judgement.verdict.verdict for c in evidence.captures() if c.judgement.verdict]
    if any(verdict in HARM for verdict in verdicts):
        return 1
    return 3 if "unknown" in verdicts else 0


def advice(
    evidence: Evidence, left_out: int, failed: tuple[str, Sequence[str]] | None, lang: str
) -> Iterator[str]:
    """What else a person should know, and what to type to see why.

    Args:
        evidence: of the probe.
        left_out: how many calls that change files were not struck.
        failed: the first cell whose recovery failed, and the last lines that this printed.
        lang: of the answer.
    """
    if failed is not None:
        cell, printed = failed
        capture = evidence.capture(cell)
        state = capture.measurement.observations[1].recorded.status
        found = "printed" if printed else "printed_nothing"
        named = _strike(capture, lang, _several(evidence))
        yield text(f"probe.{found}", lang, struck=named, state=state)
        yield from (f"    {line}" for line in printed)
    if left_out:
        yield text("probe.left_out", lang, calls=left_out)
    yield why(evidence, _worst(shown(evidence)).cell.id, lang)


@contextmanager
def progress() -> Iterator[Callable[[int, int], None] | None]:
    """A counter on stderr while a probe runs, where that is a terminal. It makes no thread."""
    if not sys.stderr.isatty():
        yield None
        return

    def show(done: int, of: int) -> None:
        print(f"\r\033[K{done}/{of}", end="", file=sys.stderr, flush=True)

    try:
        show(0, 2)
        yield show
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _worst(captures: Sequence[Capture]) -> Capture:
    """The first capture with the verdict that a person should look at first."""
    order = [*HARM, "unknown"]
    ranks = {c.cell.id: c.judgement.verdict.verdict for c in captures if c.judgement.verdict}
    return min(captures, key=lambda c: (*order, ranks[c.cell.id]).index(ranks[c.cell.id]))


def _row(capture: Capture, lang: str, several: bool = False) -> list[str]:
    measured, verdict = capture.measurement, capture.judgement.verdict
    first, last = measured.observations
    calls = [event.value for event in measured.events if event.lane == "call"]
    keys = {call["key"] for call in calls} - {None}
    effects = [len(observed.effects or ()) for observed in (first, last)]
    return [
        _strike(capture, lang, several),
        str(len(calls)),
        str(len(keys)),
        f"{effects[0]} → {effects[1]}",
        first.recorded.status,
        last.recorded.status,
        text(f"verdict.{verdict.verdict}", lang) if verdict else "",
    ]


def _several(evidence: Evidence) -> bool:
    """Whether other requests than the first were struck, so that each strike must say at which."""
    return any(cell.variant not in (None, BASELINE) for cell in evidence.plan.cells)


def _strike(capture: Capture, lang: str, several: bool) -> str:
    """How a strike is called, with its request where that is not the first, or one of several."""
    found = sentence(capture)
    name = struck(found, lang)
    variant = capture.cell.variant or BASELINE
    first = variant == BASELINE
    if first and (not several or found.struck in (STRUCK[NONE, NONE], AT_CALL)):
        return name
    nth = "1" if first else variant.rpartition("_")[2]
    return text("probe.request", lang, struck=name, nth=nth)


def _level(captures: Sequence[Capture]) -> str:
    """How effects were told apart, by the labels of their requests."""
    calls = (e.value for c in captures for e in c.measurement.events if e.lane == "call")
    label = str(next(calls, {}).get("payload", "count"))
    return label.partition("-")[0]
