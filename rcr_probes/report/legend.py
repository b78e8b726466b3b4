"""What the codes in the tables of some evidence mean: a row for each that occurs there."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from rcr_probes.evidence.store import Evidence
from rcr_probes.model import FAULTS, NONE
from rcr_probes.report.repeats import name_of
from rcr_probes.report.texts import table, text

_OURS = "rcr_probes."  # only of our own runtimes do the texts know the ways


def codes(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The faults and the decisions that occur.

    Returns:
        A row for each, faults first; columns what it stands for, code, meaning. A fault that has
        no text is left out.
    """
    captures = list(evidence.captures())
    struck = {capture.cell.kind for capture in captures} - {NONE}
    decided = {c.judgement.decision.eligibility for c in captures if c.judgement.decision}
    rows = [
        ("fault", name, text(f"legend.faults.{name}", lang))
        for name in (*FAULTS, *sorted(struck - FAULTS.keys()))
        if name in struck and f"legend.faults.{name}" in table()
    ]
    rows += [
        ("eligibility", text(f"eligibility.{name}", lang), text(f"legend.decisions.{name}", lang))
        for name in ("reexecute", "reconcile", "stop")
        if name in decided
    ]
    said = [(text(f"column.{column}", lang), name, meaning) for column, name, meaning in rows]
    return _frame(said, ("used_as", "code", "meaning"), lang)


def ways(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The policies that occur, and what each means.

    Returns:
        A row for each policy and meaning; columns policy, the runtimes that mean it so, meaning;
        what holds for several runtimes first.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for runtime, policy in dict.fromkeys(_used(evidence)):
        found.setdefault((policy, _way(runtime, policy, lang)), []).append(name_of(runtime))
    several = sorted(found, key=lambda one: len(found[one]) == 1)
    rows = [(policy, ", ".join(found[policy, said]), said) for policy, said in several]
    return _frame(rows, ("policy", "runtime", "meaning"), lang)


def _used(evidence: Evidence) -> Iterator[tuple[str, str]]:
    for cell in evidence.plan.cells:
        if cell.policy is not None:
            yield cell.runtime, cell.policy


def _way(runtime: str, policy: str, lang: str) -> str:
    """What a policy means for a runtime: as its adapter has it, or else in general."""
    module = runtime.partition(":")[0]
    own = f"legend.ways.{module.rpartition('.')[2]}.{policy}"
    if module.startswith(_OURS) and own in table():
        return text(own, lang)
    general = f"legend.ways.{policy}"
    return text(general if general in table() else "legend.ways.other", lang)


def _frame(
    rows: list[tuple[str, str, str]], names: tuple[str, str, str], lang: str
) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=[text(f"column.{name}", lang) for name in names])
