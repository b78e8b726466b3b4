"""What became of an operation that was struck at each of its system calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from rcr_probes import strace
from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.rows import row
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.worth import Weighed, weigh
from rcr_probes.model import Capture, Cell
from rcr_probes.report.repeats import SOUND
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import BASELINE, NONE, POINTS, VERDICTS

HARMED = tuple(verdict for verdict in VERDICTS if verdict not in SOUND)
_NO_STEP = "-"  # before the first point


def step(capture: Capture) -> str:
    """The last point of its life that the operation came to before it was struck."""
    reached = _NO_STEP
    for event in capture.measurement.events:
        if event.lane == "fault":
            break
        if event.lane == "point" and event.value["point"] in POINTS:
            reached = str(event.value["point"])
    return reached


def calls(
    evidence: Evidence, lang: str = "en", *, dedupe: str = NONE, variant: str = BASELINE
) -> pd.DataFrame:
    """Every call, and under each policy the faults at it that did harm.

    Args:
        evidence: what was measured at calls.
        lang: of the words.
        dedupe: of the executor.
        variant: of the runtime.

    Returns:
        Columns step, call, file, number of the call, then one for each policy: each harmful verdict
        and the faults that led to it; blank where none did.

    Raises:
        EvidenceError: no cell was struck at a call so.
    """
    chosen = [
        capture
        for capture in evidence.captures()
        if capture.cell.dedupe == dedupe and capture.cell.variant == variant
    ]
    places: dict[str, tuple[str, str, str, int]] = {}
    faults = {capture.cell.fault for capture in chosen}
    harms: dict[tuple[str, str], dict[str, list[str]]] = {}
    for capture in chosen:
        at, found = strace.parse(capture.cell.point), row(capture)
        if at is None:
            continue
        places.setdefault(capture.cell.point, (step(capture), at.call, at.file, at.nth))
        there = harms.setdefault((capture.cell.point, str(found["policy"])), {})
        if found["verdict"] in HARMED:
            there.setdefault(str(found["verdict"]), []).append(capture.cell.fault)
    if not places:
        raise EvidenceError(CAPTURES, "holds no cell of a system call.", "Run: rcr run syscalls")
    policies = list(dict.fromkeys(policy for _, policy in harms))
    rows = [
        [*place, *(_harms(harms.get((point, policy), {}), faults, lang) for policy in policies)]
        for point, place in places.items()
    ]
    named = [text(f"column.{name}", lang) for name in ("step", "call", "file", "number")]
    return pd.DataFrame(rows, columns=[*named, *policies])


def counts(
    evidence: Evidence, lang: str = "en", *, by: Sequence[str] = ("variant", "dedupe", "policy")
) -> pd.DataFrame:
    """How many cells came to each harmful verdict, and how many to none.

    Args:
        evidence: what was measured.
        lang: of the words.
        by: the columns of the tidy table by which it is counted.

    Returns:
        These columns, how many cells there are, one column for each verdict that occurs anywhere
        and says that harm was done, and how many cells came to none of those; then, held against
        all cells that looked the same to whoever recovered, unsafe calls and false blocks.
    """
    captures = list(evidence.captures())
    worth = {weighed.capture.cell: weighed for weighed in weigh(captures)}
    verdicts = [c.judgement.verdict.verdict for c in captures if c.judgement.verdict]
    occurring = [verdict for verdict in HARMED if verdict in verdicts]
    groups: dict[tuple[str, ...], list[Capture]] = {}
    for capture in captures:
        one = row(capture)
        groups.setdefault(tuple(str(one[name]) for name in by), []).append(capture)
    rows = [
        [*key, len(group), *_harmed(group, occurring), *_weighed(group, worth)]
        for key, group in groups.items()
    ]
    names = [text(f"column.{name}", lang) for name in (*by, "cells")]
    names += [text(f"verdict.{verdict}", lang) for verdict in occurring]
    names += [text(f"column.{name}", lang) for name in ("unharmed", "unsafe", "false_block")]
    return pd.DataFrame(rows, columns=names)


def _harmed(group: Iterable[Capture], occurring: Sequence[str]) -> list[int]:
    verdicts = [str(row(capture)["verdict"]) for capture in group]
    harmed = [verdicts.count(verdict) for verdict in occurring]
    return [*harmed, len(verdicts) - sum(harmed)]


def _weighed(group: Iterable[Capture], worth: Mapping[Cell, Weighed]) -> list[int]:
    known = [worth[capture.cell] for capture in group if capture.cell in worth]
    return [sum(one.unsafe for one in known), sum(one.false_block for one in known)]


def _harms(found: dict[str, list[str]], faults: set[str], lang: str) -> str:
    """Each harmful verdict and its faults, the worst first."""
    every = text("value.every_fault", lang)
    return "; ".join(
        f"{text(f'verdict.{verdict}', lang)}: "
        + (every if faults == set(found[verdict]) else ", ".join(found[verdict]))
        for verdict in HARMED
        if verdict in found
    )
