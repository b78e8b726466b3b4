"""The tidy table: one row a capture, the same names in pandas, JSON and CSV (docs/design.md §7)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, TextIO, TypeAlias

from rcr_probes.errors import printable
from rcr_probes.model import Capture, Cell, Observation
from rcr_probes.vocabulary import NONE

Value = str | int | bool | None
Row = dict[str, Value]
# A row as in seed 0 and repeat 0, and then both: so there is one row for a thousand of a sweep.
Told: TypeAlias = tuple[Row, int | None, int | None]

COLUMNS = (
    "cell",
    "source",
    "runtime",
    "variant",
    "point",
    "fault",
    "dedupe",
    "digest",
    "policy",
    "witness",
    "recovery_fault",
    "recoverers",
    "seed",
    "repeat",
    "start",
    "fired",
    "caller_error",
    "state_after_fault",
    "effects_after_fault",
    "calls_after_fault",
    "identity",
    "effect",
    "capability",
    "eligibility",
    "call_needed",
    "call_harm",
    "recovery_error",
    "state_after_recovery",
    "effects_after_recovery",
    "calls_after_recovery",
    "verdict",
    "reasons",
)
_PHASES = ("fault", "recovery")
# What makes a spreadsheet compute a cell; the quote before it is OWASP's advice on CSV injection.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
# Columns that are no text: whole numbers, and yes or no.
WHOLE = frozenset(
    ["recoverers", "seed", "repeat"]
    + [f"{counted}_after_{phase}" for counted in ("effects", "calls") for phase in _PHASES]
)
YES_OR_NO = frozenset(["fired", "call_needed"])
PUBLISHED_VERDICT = "published_verdict"  # one column more, where rows were published by others


def columns(published: bool) -> tuple[str, ...]:
    """The columns of rows of which some have a published verdict, or none has."""
    return (*COLUMNS, PUBLISHED_VERDICT) if published else COLUMNS


def row(capture: Capture) -> Row:
    """One capture as a row: every column of ``COLUMNS``, in order.

    ``none`` says that there was nothing (no error, no capability, no reason); null says that it is
    not known or was not published. Lists are joined by commas.
    """
    measured, judged = capture.measurement, capture.judgement
    cell = measured.cell
    first, last = measured.after("fault"), measured.after("recover")
    facts, truth, verdict = judged.facts, judged.truth, judged.verdict
    made: Row = {
        "cell": cell.id,
        "source": measured.source,
        "runtime": cell.runtime,
        "variant": cell.variant,
        "point": cell.point,
        "fault": cell.fault,
        "dedupe": cell.dedupe,
        "digest": cell.digest,
        "policy": cell.policy,
        "witness": cell.witness,
        "recovery_fault": cell.recovery_fault,
        "recoverers": cell.recoverers,
        "seed": cell.seed,
        "repeat": cell.repeat,
        "start": capture.circumstances.start,
        "fired": judged.fired,
        "caller_error": first.error if first else None,
        **_counts(first, "fault"),
        "identity": facts.identity if facts else None,
        "effect": facts.effect if facts else None,
        "capability": _joined(facts.capability) if facts else None,
        "eligibility": judged.decision.eligibility if judged.decision else None,
        "call_needed": truth.call_needed if truth else None,
        "call_harm": truth.call_harm if truth else None,
        "recovery_error": last.error if last else None,
        **_counts(last, "recovery"),
        "verdict": verdict.verdict if verdict else None,
        "reasons": _joined(verdict.reasons) if verdict else None,
    }
    if measured.published_verdict is not None:
        made[PUBLISHED_VERDICT] = measured.published_verdict
    return made


def named(told: Told) -> str:
    """The id of a cell, which ends with its seed and its repeat."""
    first, seed, repeat = told
    numbers = (("seed", seed), ("repeat", repeat))
    return "/".join([str(first["cell"]), *(f"{name}={n}" for name, n in numbers if n)])


def whole(told: Told) -> Row:
    """The row that these are the parts of."""
    first, seed, repeat = told
    return {**first, "cell": named(told), "seed": seed, "repeat": repeat}


def cell_of(row: Row) -> Cell:
    """The cell that a row is of."""
    axes: dict[str, Any] = {f.name: row[f.name] for f in fields(Cell)}
    return Cell(**axes)


def rows(captures: Iterable[Capture]) -> list[Row]:
    """Every capture as a row, in order."""
    return [row(capture) for capture in captures]


def as_csv(rows: Sequence[Row]) -> str:
    """Rows as CSV, with every column that any of them has."""
    text = io.StringIO()
    write_csv(text, rows, list(dict.fromkeys(name for row in rows for name in row)))
    return text.getvalue()


def write_csv(to: TextIO, rows: Iterable[Row], columns: Sequence[str]) -> None:
    """Write rows as CSV, one after another: null is empty, true and false are as in JSON.

    A text that a spreadsheet would compute, or a terminal obey, is spelled out: one of evidence
    that is sound never is. JSON has it as it is.
    """
    writer = csv.writer(to, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = (row.get(name) for name in columns)
        writer.writerow(str(v).lower() if isinstance(v, bool) else _inert(v) for v in values)


def _inert(value: Value) -> Value:
    """The value; a text as one that is no formula."""
    if not isinstance(value, str):
        return value
    return printable(f"'{value}" if value.startswith(_FORMULA) else value)


def _counts(observed: Observation | None, phase: str) -> Row:
    effects = observed.effects if observed else None
    return {
        f"state_after_{phase}": observed.recorded.status if observed else None,
        f"effects_after_{phase}": None if effects is None else len(effects),
        f"calls_after_{phase}": observed.calls if observed else None,
    }


def _joined(words: Sequence[str]) -> str:
    return ",".join(words) or NONE
