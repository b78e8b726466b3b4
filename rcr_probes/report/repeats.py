"""Cells that were measured more than once: one result for all repeats, or unstable; no mean.

A seed measures the same once more as well, under other names: it is taken as a repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from rcr_probes.evidence.exported import Rowed
from rcr_probes.evidence.rows import Row, Told, cell_of, whole
from rcr_probes.model import Cell
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import (
    BASELINE,
    FAULTS,
    NONE,
    POINTS,
    POLICIES,
    VERDICTS,
    VerdictName,
)

UNSTABLE = "unstable"
# After these there is nothing to change.
SOUND: tuple[VerdictName, ...] = ("consistent", "protected", "deduplicated", "no_effect", "held")
# What may differ between two measurements of the same cell.
_CIRCUMSTANCES = ("cell", "seed", "repeat", "start")
_ADAPTER = "rcr_probes.runtimes."
_NOTHING = "-"  # not known
# Axes that are shown only where cells differ in them.
_FURTHER = ("digest", "witness", "recovery_fault", "recoverers")
_FEW = 5  # repeats that are told one by one
# Who recovered; the last is no part of the others: nothing had failed.
WHO = (*POLICIES, "own", "control")
_GAP = ("runtime", "policy", "state_after_fault", "effects", "verdict", "eligibility")


@dataclass(frozen=True, slots=True)
class Repeated:
    """One cell and all that was measured of it.

    Attributes:
        cell: its first repeat.
        rows: the row of each repeat, in the order of the plan, as ``told``.
        differs: the columns in which the repeats differ; empty where the cell is stable.
    """

    cell: Cell
    rows: tuple[Row, ...]
    differs: tuple[str, ...]

    @property
    def result(self) -> str:
        """The verdict of every repeat, or that they differ."""
        return UNSTABLE if self.differs else str(self.rows[0]["verdict"])

    def each(self, column: str) -> str:
        """A column's value, or each repeat's where they differ; of many, how often each."""
        values = [_NOTHING if row[column] is None else str(row[column]) for row in self.rows]
        if column not in self.differs:
            return values[0]
        if len(values) <= _FEW:
            return " / ".join(values)
        return " / ".join(f"{value} ({count:,})" for value, count in Counter(values).items())

    @property
    def key(self) -> Cell:
        """What names it among the cells of its plan: all that it is, whichever repeat it is of."""
        return replace(self.cell, seed=0, repeat=0)


def repeated(evidence: Rowed) -> list[Repeated]:
    """Every cell once, with its repeats, in the order of the plan."""
    groups: dict[Cell, list[Told]] = {}
    cells: dict[int, Cell] = {}  # of a row that captures share, by what it is
    for told in evidence.told():
        first = told[0]
        cell = cells.get(id(first)) or cells.setdefault(id(first), cell_of(first))
        groups.setdefault(cell, []).append(told)
    return [_together(group) for group in groups.values()]


def _together(told: Sequence[Told]) -> Repeated:
    rows = [first for first, *_ in told]
    distinct = [*{id(one): one for one in rows}.values()]
    differs = tuple(
        column
        for column in rows[0]
        if column not in _CIRCUMSTANCES and len({one[column] for one in distinct}) > 1
    )
    return Repeated(cell_of(whole(told[0])), tuple(rows), differs)


def name_of(runtime: str) -> str:
    """A runtime's name for a reader: our own adapters go by their module."""
    module = runtime.partition(":")[0]
    return module.removeprefix(_ADAPTER) if module.startswith(_ADAPTER) else runtime


def configuration(cell: Cell) -> str:
    """A runtime and, where it is not the only one, its variant."""
    named = name_of(cell.runtime)
    return named if cell.variant in (None, BASELINE) else f"{named}, {cell.variant}"


def columns(found: Sequence[Repeated]) -> list[tuple[str, str]]:
    """Every point and fault that occurs, in the order of an operation's life."""
    points, faults = (NONE, *POINTS), (NONE, *FAULTS)
    places = {(one.cell.point, one.cell.fault) for one in found}
    known = [p for p in places if p[0] in points]
    others = sorted(p for p in places if p[0] not in points)
    return sorted(known, key=lambda p: (points.index(p[0]), faults.index(p[1]))) + others


def table(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """Every cell with its repeats as one row: the matrix figure in words.

    Returns:
        Columns configuration, point, fault, dedupe, further axes in which cells differ, policy,
        calls and effects after the fault and after recovery, the state then, the verdict, what the
        evidence allowed, what to change. A value that differs between repeats is shown for each of
        them, with slashes between; of more than a few, how often each occurs.
    """
    found = repeated(evidence)
    others = {one.key: one for one in found}
    axes = [axis for axis in _FURTHER if len({getattr(one.cell, axis) for one in found}) > 1]
    rows = [_row(one, others, lang, axes) for one in found]
    return pd.DataFrame(rows).rename(columns=lambda name: text(f"column.{name}", lang))


def gap(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """The article's question, asked of each runtime: killed between the effect and its record.

    Of each runtime the configuration that comes first, with an executor that acts on every call.

    Returns:
        Columns configuration, policy, state after the fault, effects after the fault and after
        recovery, the verdict, what the evidence allowed; a row for each recovery.
    """
    first: dict[str, str | None] = {}
    rows = []
    for one in repeated(evidence):
        cell = one.cell
        chosen = first.setdefault(cell.runtime, cell.variant)
        struck = (cell.point, cell.fault, cell.dedupe) == ("after_action", "kill", NONE)
        if struck and cell.variant == chosen:
            row = _row(one, {}, lang)
            row["state_after_fault"] = one.each("state_after_fault")
            rows.append({name: row[name] for name in _GAP})
    frame = pd.DataFrame(rows, columns=list(_GAP))
    return frame.rename(columns=lambda name: text(f"column.{name}", lang))


def split(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """Who recovered where each verdict was reached, and where nothing had failed.

    Returns:
        A row for each verdict that occurs, unstable ones last; columns verdict, cells (the repeats
        of each taken together), how many of them under ``again``, under ``never`` and under a way
        of the runtime's own, and how many of all without a fault. Each cell is in one of the three.
    """
    found = repeated(evidence)
    rows = []
    for result in (*VERDICTS, UNSTABLE):
        here = [one for one in found if one.result == result]
        if here:
            by = {f"by_{who}": sum(recovered(one, who) for one in here) for who in WHO}
            named = text("matrix.unstable" if result == UNSTABLE else f"verdict.{result}", lang)
            rows.append({"verdict": named, "cells": len(here), **by})
    frame = pd.DataFrame(rows, columns=["verdict", "cells", *(f"by_{who}" for who in WHO)])
    return frame.rename(columns=lambda name: text(f"column.{name}", lang))


def recovered(one: Repeated, who: str) -> bool:
    """Whether this cell is recovered so, or has no fault: one of ``WHO``."""
    match who:
        case "control":
            return one.cell.fault == NONE
        case "own":
            return one.cell.policy not in POLICIES
    return one.cell.policy == who


def _row(
    one: Repeated, others: Mapping[Cell, Repeated], lang: str, axes: Sequence[str] = ()
) -> Row:
    cell = one.cell
    verdicts = one.each("verdict").split(" / ")
    said = " / ".join(text(f"verdict.{verdict}", lang) for verdict in verdicts)
    if one.differs:
        said = text("repeats.unstable", lang, verdicts=said)

    def allowed(name: str) -> str:
        return name if name == _NOTHING else text(f"eligibility.{name}", lang)

    return {
        "runtime": configuration(cell),
        "point": cell.point,
        "fault": cell.fault,
        "dedupe": cell.dedupe,
        **{axis: getattr(cell, axis) for axis in axes},
        "policy": cell.policy,
        "calls": f"{one.each('calls_after_fault')} → {one.each('calls_after_recovery')}",
        "effects": f"{one.each('effects_after_fault')} → {one.each('effects_after_recovery')}",
        "state_after_recovery": one.each("state_after_recovery"),
        "verdict": said,
        "eligibility": " / ".join(map(allowed, one.each("eligibility").split(" / "))),
        "change": change(one, others, lang),
    }


def change(one: Repeated, others: Mapping[Cell, Repeated], lang: str = "en") -> str:
    """One sentence on what to change, from what the same runtime's other cells showed.

    Args:
        one: the cell.
        others: every cell by its key.
        lang: of the sentence.
    """
    if one.differs:
        names = ", ".join(text(f"column.{name}", lang) for name in one.differs if _told(name))
        return text("repeats.explain", lang, columns=names or ", ".join(one.differs))
    if one.result in SOUND:
        return ""
    if one.result == "unknown":
        return text("action.unknown", lang)
    key = one.key
    sentences = []
    keyed = others.get(replace(key, dedupe="operation_key"))
    if key.dedupe == NONE and keyed is not None and keyed.result in SOUND:
        sentences.append(text("repeats.key", lang))
    ways = [
        other.cell.policy or ""
        for other in others.values()
        if replace(other.key, policy=key.policy) == key
        and other.result in SOUND
        and other.result != "protected"
    ]
    if ways:
        sentences.append(text("repeats.way", lang, ways=", ".join(dict.fromkeys(ways))))
    configurations = [
        other.cell.variant or ""
        for other in others.values()
        if replace(other.key, variant=key.variant) == key and other.result in SOUND
    ]
    if configurations:
        named = ", ".join(dict.fromkeys(configurations))
        sentences.append(text("repeats.variant", lang, variants=named))
    return " ".join(sentences) or text(f"action.{one.result}", lang)


def _told(column: str) -> bool:
    return column in ("verdict", "state_after_fault", "state_after_recovery") or column.startswith(
        ("effects_", "calls_")
    )
