"""What each recovery policy is worth, as tables: unsafe calls, false blocks, lost evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pandas as pd

from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.worth import (
    EVIDENCE,
    EXISTED,
    OUTCOMES,
    Weighed,
    ambiguous,
    weigh,
    without,
)
from rcr_probes.model import Capture, Decision
from rcr_probes.report.texts import table, text
from rcr_probes.vocabulary import EVIDENCE_GATED, NONE

_TAKEN = tuple(name for name in EVIDENCE if name != "fence")
_NOTHING = "-"  # no such cell


def policies(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """Each policy over all cells of which something is known.

    Returns:
        A row for each policy in the order of the plan; columns policy; of the cells whose facts are
        true: how many, calls, unsafe calls, false blocks; of the others: how many, unsafe calls,
        false blocks; and how many of its cells are unknown, which are in none of these.
    """
    captures = list(evidence.captures())
    weighed = weigh(captures)
    rows = []
    for policy in _policies(captures):
        own = [w for w in weighed if w.capture.cell.policy == policy]
        true, false = ([w for w in own if w.true_facts is kept] for kept in (True, False))
        planned = sum(c.cell.policy == policy and c.cell.recovery_fault == NONE for c in captures)
        rows.append(
            {
                "policy": policy,
                "true_facts": len(true),
                "true_facts_called": sum(w.called for w in true),
                "true_facts_unsafe": sum(w.unsafe for w in true),
                "true_facts_block": sum(w.false_block for w in true),
                "false_facts": len(false),
                "false_facts_unsafe": sum(w.unsafe for w in false),
                "false_facts_block": sum(w.false_block for w in false),
                "unknown": planned - len(own),
            }
        )
    return _frame(rows, lang)


def outcomes(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """What recovery did under each policy, by how many effects there were before it.

    Returns:
        A row for each policy and number of effects that occurs; columns policy, effects that
        existed, and for each outcome how many cells. Cells whose facts are false are among them.
    """
    captures = list(evidence.captures())
    counted = Counter((w.capture.cell.policy or "", w.existed, w.outcome) for w in weigh(captures))
    rows = [
        {
            "policy": policy,
            "existed": text(f"existed.{existed}", lang),
            **{outcome: counted[policy, existed, outcome] for outcome in OUTCOMES},
        }
        for policy in _policies(captures)
        for existed in EXISTED
        if any(counted[policy, existed, outcome] for outcome in OUTCOMES)
    ]
    return _frame(rows, lang)


def ablation(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """Which decisions change where one kind of evidence is taken away.

    Returns:
        A row for each kind of evidence and each change that occurs; columns what is missing, the
        decision with all, the decision without it, in how many cells; the reasons too, where they
        alone changed. A cell is one world: policies do not multiply it. The fence has no row of its
        own: without it the decision is what it is without the settled mark, by construction.
    """
    worlds = _worlds(weigh(evidence.captures()))
    rows = []
    for missing in _TAKEN:
        flips: Counter[tuple[str, str]] = Counter()
        for capture in worlds:
            decided = capture.judgement.decision
            left = without(capture, missing)
            if decided is not None and left != decided:
                flips[_flip(decided, left, lang)] += 1
        rows += [
            {"missing": text(f"missing.{missing}", lang), "with_all": a, "without": b, "cells": n}
            for (a, b), n in sorted(flips.items())
        ]
    return _frame(rows, lang)


def pairs(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """The worlds that look the same to whoever recovers, though one needs the call it harms.

    Returns:
        A row for each such view; columns the cell that needs the call, the one that it harms, the
        stored state, and how many cells of each policy called there.
    """
    captures = list(evidence.captures())
    called = Counter((w.view, w.capture.cell.policy or "") for w in weigh(captures) if w.called)
    rows = [
        {
            "needs": _world(one.needs),
            "harmed": _world(one.harmed),
            "state_after_fault": one.needs.measurement.observations[0].recorded.status,
            **{policy: called[one.view, policy] for policy in _policies(captures)},
        }
        for one in ambiguous(captures)
    ]
    return _frame(rows, lang)


def around(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """What happened around recovery, and what each policy made of it.

    Returns:
        A row for each recovery fault under each world in which it was placed; columns recovery
        fault, the world, its variant, the verdict under each policy; a dash where there is no such
        cell.
    """
    rows: dict[tuple[str, str, str], dict[str, object]] = {}
    for capture in evidence.captures():
        cell, verdict = capture.cell, capture.judgement.verdict
        if cell.recovery_fault in (None, NONE) or verdict is None:
            continue
        key = (str(cell.recovery_fault), _world(capture), str(cell.variant))
        named = dict(zip(("recovery_fault", "world", "variant"), key, strict=True))
        rows.setdefault(key, {**named})[cell.policy or ""] = text(
            f"verdict.{verdict.verdict}", lang
        )
    policies = dict.fromkeys(name for row in rows.values() for name in list(row)[3:])
    shown = [{**dict.fromkeys(policies, _NOTHING), **row} for row in rows.values()]
    columns = ("recovery_fault", "world", "variant", *policies)
    return _frame([{name: row[name] for name in columns} for row in shown], lang)


def numbers(evidence: Evidence) -> dict[str, int]:
    """What the prose says of it, counted.

    Returns:
        ``views``: how many are ambiguous; ``around``: cells in which something happens around
        recovery; of ``evidence_gated``, over cells with true facts and with false ones:
        ``gated_unsafe``, and ``gated_replays``, which reconcile by a call.
    """
    captures = list(evidence.captures())
    gated = [w for w in weigh(captures) if w.capture.cell.policy == EVIDENCE_GATED]
    return {
        "views": len(ambiguous(captures)),
        "around": sum(c.cell.recovery_fault not in (None, NONE) for c in captures),
        "gated_unsafe": sum(w.unsafe for w in gated),
        "gated_replays": sum(w.called and w.outcome == "reconciled" for w in gated),
    }


def _policies(captures: Iterable[Capture]) -> list[str]:
    return list(dict.fromkeys(c.cell.policy or "" for c in captures))


def _worlds(weighed: Sequence[Weighed]) -> list[Capture]:
    """Of the cells that differ in their policy alone, one."""
    worlds: dict[tuple[str | None, ...], Capture] = {}
    for one in weighed:
        cell = one.capture.cell
        key = (cell.runtime, cell.variant, cell.point, cell.fault, cell.dedupe, cell.digest)
        worlds.setdefault((*key, cell.witness, cell.recovery_fault), one.capture)
    return list(worlds.values())


def _world(capture: Capture) -> str:
    """A cell without its policy, which comes after what the world was like."""
    cell = capture.cell
    return f"{cell.point}/{cell.fault}/{cell.dedupe}/{cell.digest}"


def _flip(decided: Decision, left: Decision, lang: str) -> tuple[str, str]:
    """Both decisions in words; where these are the same, with the reasons that are not."""
    said = _said(decided, lang), _said(left, lang)
    if said[0] != said[1]:
        return said
    both = set(decided.reasons) & set(left.reasons)
    because = [", ".join(r for r in one.reasons if r not in both) for one in (decided, left)]
    return (f"{said[0]}: {because[0]}", f"{said[1]}: {because[1]}")


def _said(decision: Decision, lang: str) -> str:
    named = text(f"eligibility.{decision.eligibility}", lang)
    if decision.way is None:
        return named
    return text("way.said", lang, decision=named, way=text(f"way.{decision.way}", lang))


def _frame(rows: Sequence[dict[str, object]], lang: str) -> pd.DataFrame:
    """The rows under their headings; a policy's name is its own."""
    headed = {name: f"column.{name}" for row in rows for name in row}
    named = {name: text(key, lang) for name, key in headed.items() if key in table()}
    return pd.DataFrame(list(rows)).rename(columns=named)
