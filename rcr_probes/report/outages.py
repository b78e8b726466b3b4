"""What a lost power left, and what recovery made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.rows import row
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.worth import weigh
from rcr_probes.model import Capture, Json
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import BASELINE, EVIDENCE_GATED, POWER_LOSSES, VERDICTS

FLUSHED = "fsync"  # the variant of the reference that flushes what it writes


def states(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """How many states the power may leave at each point, and what the store says in them.

    Returns:
        A row for each variant and point; columns variant, point, states that were explored, states
        of the model that were not, effects that exist, and each status with the number of states.

    Raises:
        EvidenceError: no power was lost.
    """
    seen: dict[tuple[str, str], dict[str, Capture]] = {}
    for capture in _lost(evidence):
        cell = capture.cell
        seen.setdefault((str(cell.variant), cell.point), {}).setdefault(cell.fault, capture)
    rows = []
    for (variant, point), found in seen.items():
        told = _told(next(iter(found.values())))
        first = [row(capture) for capture in found.values()]
        effects = sorted({str(one["effects_after_fault"]) for one in first})
        statuses = Counter(str(one["state_after_fault"]) for one in first)
        left = [point, told["states"], told["unexplored"], ", ".join(effects), _counts(statuses)]
        rows.append([variant, *left])
    names = ("variant", "point", "states", "unexplored", "effects", "store_says")
    return pd.DataFrame(rows, columns=[text(f"column.{name}", lang) for name in names])


def outcomes(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """What each recovery makes of what the power left, by what the store says and what exists.

    Returns:
        A row for each variant, number of effects and status after the fault; columns variant,
        effects, state after fault, states, then for each policy its verdicts with their numbers.

    Raises:
        EvidenceError: no power was lost.
    """
    groups: dict[tuple[str, int, str], dict[str, Counter[str]]] = {}
    policies: dict[str, None] = {}
    for capture in _lost(evidence):
        one = row(capture)
        key = (str(one["variant"]), int(one["effects_after_fault"] or 0))
        policy = str(one["policy"])
        policies[policy] = None
        group = groups.setdefault((*key, str(one["state_after_fault"])), {})
        group.setdefault(policy, Counter())[str(one["verdict"])] += 1
    rows = [
        [*key, max(c.total() for c in group.values()), *(_said(group, p, lang) for p in policies)]
        for key, group in sorted(groups.items())
    ]
    names = ("variant", "effects", "state_after_fault", "states")
    return pd.DataFrame(rows, columns=[*(text(f"column.{n}", lang) for n in names), *policies])


def numbers(evidence: Evidence) -> dict[str, int]:
    """What the prose says of the search, and of recovery by evidence.

    Returns:
        ``points``; of the baseline, which does not flush, ``explored`` disk states at a point (the
        most at any), ``fewest`` and ``most`` that were not explored at one; ``flushed``, how many
        were explored of the variant that flushes; ``gated_false_blocks`` under ``evidence_gated``.

    Raises:
        EvidenceError: no power was lost.
    """
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for capture in _lost(evidence):
        told = _told(capture)
        found = (int(str(told["states"] or 0)), int(str(told["unexplored"] or 0)))
        seen.setdefault((str(capture.cell.variant), capture.cell.point), found)
    unflushed = [found for (variant, _), found in seen.items() if variant == BASELINE]
    gated = (w for w in weigh(evidence.captures()) if w.capture.cell.policy == EVIDENCE_GATED)
    return {
        "points": len(unflushed),
        "explored": max((states for states, _ in unflushed), default=0),
        "fewest": min((left for _, left in unflushed), default=0),
        "most": max((left for _, left in unflushed), default=0),
        "flushed": sum(states for (variant, _), (states, _) in seen.items() if variant == FLUSHED),
        "gated_false_blocks": sum(w.false_block for w in gated),
    }


def _lost(evidence: Evidence) -> Iterable[Capture]:
    found = [capture for capture in evidence.captures() if capture.cell.kind in POWER_LOSSES]
    if not found:
        raise EvidenceError(CAPTURES, "holds no cell of a lost power.", "Run: rcr run power")
    return found


def _told(capture: Capture) -> dict[str, Json]:
    """What was told of the state that the power left."""
    told = (e.value for e in capture.measurement.events if "unexplored" in e.value)
    return dict(next(told, {"states": None, "unexplored": None}))


def _said(group: dict[str, Counter[str]], policy: str, lang: str) -> str:
    counted = group.get(policy, Counter())
    said = {text(f"verdict.{name}", lang): counted[name] for name in VERDICTS if counted[name]}
    return _counts(said)


def _counts(counted: dict[str, int] | Counter[str]) -> str:
    """Each word and how often it occurs, in order of appearance."""
    return ", ".join(f"{word} {number}" for word, number in counted.items())
