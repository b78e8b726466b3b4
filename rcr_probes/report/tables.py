"""Tables of evidence in pandas: the tidy one, and the views of it that readers are shown."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.exported import Rowed
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.rows import (
    PUBLISHED_VERDICT,
    WHOLE,
    YES_OR_NO,
    Row,
    columns,
    named,
)
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import MATCHED, P3, Json, Observation
from rcr_probes.report.explain import happened
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import AGAIN, DEDUPES, DIGESTS, FAULTS, NONE, POINTS, VERDICTS

Key = tuple[str, ...]  # the value of each axis of MATCHED

PROBES: Mapping[str, Key] = {
    "P0": (NONE, NONE, NONE, "same", AGAIN),
    "P1": ("approval_audit", *P3[1:]),
    "P2": ("start_audit", *P3[1:]),
    "P3": P3,
}
# P3 under three executors: the name of the executor's text, and the cell.
EXECUTORS: Mapping[str, Key] = {
    "none_same": P3,
    "operation_key_same": (*P3[:2], "operation_key", "same", P3[4]),
    "none_changed": (*P3[:2], NONE, "changed", P3[4]),
}

_PHASES = ("fault", "recovery")
_IN_WORDS = {"effect": "effect_fact", "eligibility": "eligibility", "call_harm": "harm"}
# The axes beside MATCHED are shown only where rows would look alike without them.
_FURTHER = ("runtime", "variant", "witness", "recovery_fault", "recoverers", "seed", "repeat")
_COUNTED = ("seed", "repeat")  # of these, those that only measure the same once more
_ORDER: Mapping[str, Sequence[str]] = {
    "point": (NONE, *POINTS),
    "fault": (NONE, *FAULTS),
    "dedupe": DEDUPES,
    "digest": DIGESTS,
}


def tidy(evidence: Rowed) -> pd.DataFrame:
    """One row a capture, in the order of the plan.

    Returns:
        Shape (captures, len(COLUMNS)), and one column more where rows were published by others.
        Every dtype is nullable (string, Int64, boolean); ``<NA>`` is not known or not published.

    Raises:
        EvidenceError: the captures cannot be read, or are not those of the plan.
    """
    places: dict[int, int] = {}  # of a row that captures share, by what it is
    made: list[Row] = []
    chosen = array("q")
    cells: list[str] = []
    seeds: list[int | None] = []
    repeats: list[int | None] = []
    for told in evidence.told():
        first, seed, repeat = told
        place = places.setdefault(id(first), len(made))
        if place == len(made):
            made.append(first)
        chosen.append(place)
        cells.append(named(told))
        seeds.append(seed)
        repeats.append(repeat)
    frame = _frame(made).take(chosen).reset_index(drop=True)
    for name, values in {"cell": cells, "seed": seeds, "repeat": repeats}.items():
        frame[name] = pd.Series(values, dtype=_dtype(name))
    return frame


def _frame(rows: Sequence[Row]) -> pd.DataFrame:
    published = any(PUBLISHED_VERDICT in row for row in rows)
    return pd.DataFrame(
        {
            name: pd.Series([row.get(name) for row in rows], dtype=_dtype(name))
            for name in columns(published)
        }
    )


def fault_locations(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """P0 to P3: what the caller saw, what was persisted, and how many effects exist.

    P0 is read after its recovery, the further submission that must be refused; P1 to P3 are read
    after the fault.

    Returns:
        A row for each probe that the evidence holds; columns probe, caller sees, persisted state,
        effects, and whatever tells several rows of one probe apart.

    Raises:
        EvidenceError: it holds none of them.
    """
    found = _chosen(evidence, "probe", PROBES)
    control = found["probe"] == "P0"
    found["caller_sees"] = found["recovery_error"].where(control, found["caller_error"])
    for name, read in {"persisted_state": "state", "effects": "effects"}.items():
        found[name] = found[f"{read}_after_recovery"].where(control, found[f"{read}_after_fault"])
    return _view(found, ["probe"], ["caller_sees", "persisted_state", "effects"], lang)


def restart(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """P3 under three executors, recovered in a new process.

    Returns:
        A row for each executor that the evidence holds; columns executor, effects after fault,
        after recovery in a new process, calls, recovery (the error that its caller saw, or else the
        state), and whatever tells several rows of one executor apart.

    Raises:
        EvidenceError: it holds none of them.
    """
    found = _executors(evidence, lang)
    found = found[found["calls_after_recovery"].notna()]  # else nobody published a recovery
    if found.empty:
        raise _nothing("a recovery from P3")
    refused = found["recovery_error"].fillna(NONE) != NONE
    found["recovery"] = found["recovery_error"].where(refused, found["state_after_recovery"])
    found["calls"] = found["calls_after_recovery"]
    shown = ["effects_after_fault", "effects_after_recovery", "calls", "recovery"]
    return _view(found, ["executor"], shown, lang)


def three_facts(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """State, effect and eligibility after P3's fault, under three executors.

    Returns:
        A row for each executor that the evidence holds; columns executor, state after fault,
        effect, eligibility, harm of one more call (as measured).

    Raises:
        EvidenceError: it holds none of them.
    """
    found = _executors(evidence, lang)
    for name, section in _IN_WORDS.items():
        found[name] = _said(found[name], section, lang)
    shown = ["state_after_fault", "effect", "eligibility", "call_harm"]
    return _view(found, ["executor"], shown, lang)


def retained(evidence: Evidence, lang: str = "en") -> pd.DataFrame:
    """What P3's record itself still holds of the first effect, before and after recovery.

    Returns:
        A row for each executor that the evidence holds; columns executor, then state and evidence
        in the record, each after the fault and after recovery.

    Raises:
        EvidenceError: it holds none of them.
    """
    found = _executors(evidence, lang)
    captures = list(evidence.captures())
    measured = [captures[position].measurement for position in found.index]
    phases: tuple[tuple[Literal["fault", "recover"], str], ...]
    phases = (("fault", "fault"), ("recover", "recovery"))
    for verb, phase in phases:
        held = [_held(one.after(verb), lang) for one in measured]
        found[f"evidence_after_{phase}"] = pd.Series(held, found.index, dtype="string")
    shown = [f"{what}_after_{phase}" for phase in _PHASES for what in ("state", "evidence")]
    return _view(found, ["executor"], shown, lang)


def verdicts(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """The verdict of every cell, as a matrix.

    Returns:
        Index point, fault, dedupe, digest, in the order of an operation's life, and whatever else
        tells cells apart; a column for each policy; ``<NA>`` where the plan has no such cell.

    Raises:
        EvidenceError: no cell was judged; rows that were published by others are not.
    """
    judged = _judged(evidence)
    index = [name for name in MATCHED if name != "policy"]
    index += _further(judged, [*index, "policy"])
    judged = judged.sort_values([*_ORDER], key=_rank, kind="stable")
    judged = judged.assign(verdict=_said(judged["verdict"], "verdict", lang))
    named = judged.set_index([*index, "policy"])["verdict"]
    matrix: pd.DataFrame = named.unstack("policy", sort=False)
    matrix.index.names = [text(f"column.{name}", lang) for name in index]
    matrix.columns.name = text("column.policy", lang)
    return matrix


def counted(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """How often each verdict was reached, and what a person should do who sees it.

    Returns:
        A row for each verdict that occurs, in the order in which verdicts are judged; columns
        verdict, cells, what to do.

    Raises:
        EvidenceError: no cell was judged.
    """
    count = _judged(evidence)["verdict"].value_counts()
    found = pd.DataFrame({"verdict": [name for name in VERDICTS if name in count.index]})
    found["cells"] = pd.array([int(count[name]) for name in found["verdict"]], dtype="Int64")
    found["action"] = [text(f"action.{name}", lang) for name in found["verdict"]]
    found["verdict"] = _said(found["verdict"], "verdict", lang)
    return _named(found, lang)


def states(evidence: Rowed, lang: str = "en") -> pd.DataFrame:
    """What each recorded state meant: the effects, and what one more call would have done.

    Returns:
        A row for each state that was recorded after a fault, in order of appearance; columns state
        after fault, cells, effect exists, no effect, a call would harm, a call was needed and would
        not. Cells without a fault, or without a measured truth, are left out.

    Raises:
        EvidenceError: no cell is left.
    """
    frame = tidy(evidence)
    frame = frame[(frame["point"] != NONE) & frame["call_harm"].notna()]
    if frame.empty:
        raise _nothing("a fault after which a call was forced")
    exists = frame["effects_after_fault"] > 0
    harmless = frame["call_harm"] == NONE
    marked = pd.DataFrame(
        {
            "state_after_fault": frame["state_after_fault"],
            "cells": True,
            "effect_present": exists,
            "effect_absent": ~exists,
            "call_harmful": frame["call_harm"].isin(["duplicate", "wrong"]),
            "call_needed": frame["call_needed"] & harmless,
        }
    )
    summed = marked.groupby("state_after_fault", sort=False).sum().astype("Int64").reset_index()
    return _named(summed, lang)


def events(
    evidence: Evidence, lang: str = "en", *, executor: str = "none_same", phase: str | None = None
) -> pd.DataFrame:
    """What happened in P3 under one executor, event by event.

    Args:
        evidence: holds the cell.
        lang: of its words.
        executor: one of ``EXECUTORS``.
        phase: ``fault`` or ``recover``; both when None.

    Returns:
        A row for each event; columns no., phase, lane, what happened.

    Raises:
        EvidenceError: it does not hold the cell, or no such events.
    """
    found = _chosen(evidence, "executor", {executor: EXECUTORS[executor]})
    captures = list(evidence.captures())
    seen = [
        event
        for position in found.index
        for event in captures[position].measurement.events
        if phase in (None, event.phase)
    ]
    if not seen:
        raise _nothing("events of that cell")
    made = [(event.seq, *happened(event, lang)) for event in seen]
    return _named(pd.DataFrame(made, columns=["seq", "phase", "lane", "value"]), lang)


def behind(evidence: Rowed) -> pd.DataFrame:
    """The tidy rows turned on their side: a row for each column, a column for each cell's id."""
    turned = tidy(evidence).astype("object").set_index("cell").T
    turned.columns.name = None
    return turned


def _dtype(column: str) -> str:
    if column in WHOLE:
        return "Int64"
    return "boolean" if column in YES_OR_NO else "string"


def _judged(evidence: Rowed) -> pd.DataFrame:
    """The tidy rows that have a verdict."""
    frame = tidy(evidence)
    judged = frame[frame["verdict"].notna()]
    if judged.empty:
        raise EvidenceError(
            CAPTURES,
            "holds no verdict: what others published is not judged.",
            "Name evidence that was measured, such as runs/article.",
        )
    return judged


def _chosen(evidence: Rowed, name: str, keys: Mapping[str, Key]) -> pd.DataFrame:
    """The tidy rows of these cells in the order of ``keys``, which are named in a column before.

    The index is each row's position among the captures. A policy that was not published matches.
    """
    frame = tidy(evidence)
    parts = []
    for label, key in keys.items():
        wanted = pd.Series(True, index=frame.index)
        for axis, value in zip(MATCHED, key, strict=True):
            wanted &= frame[axis].fillna(value) == value
        parts.append(frame[wanted].assign(**{name: label}))
    found = pd.concat(parts)
    if found.empty:
        raise _nothing(", ".join("/".join(key) for key in keys.values()))
    return found


def _executors(evidence: Rowed, lang: str) -> pd.DataFrame:
    found = _chosen(evidence, "executor", EXECUTORS)
    found["executor"] = _said(found["executor"], "executor", lang)
    return found


def _view(found: pd.DataFrame, first: list[str], rest: list[str], lang: str) -> pd.DataFrame:
    """Some columns of the rows under a reader's names, numbered anew; what is alike, once."""
    axes = [axis for axis in _FURTHER if axis not in _COUNTED]
    found = found.drop_duplicates([*first, *axes, *rest])
    return _named(found[[*first, *_further(found, first), *rest]].reset_index(drop=True), lang)


def _further(frame: pd.DataFrame, keys: list[str]) -> list[str]:
    """The axes that must be shown so that no two rows with the same keys look alike."""
    if not frame.duplicated(keys).any():
        return []
    return [axis for axis in _FURTHER if frame[axis].nunique(dropna=False) > 1]


def _named(frame: pd.DataFrame, lang: str) -> pd.DataFrame:
    return frame.rename(columns=lambda name: text(f"column.{name}", lang))


def _said(column: pd.Series[str], section: str, lang: str) -> pd.Series[str]:
    """The same column in the reader's words."""
    return column.map(lambda name: text(f"{section}.{name}", lang), na_action="ignore")


def _rank(column: pd.Series[str]) -> pd.Series[int]:
    """Where each value of an axis stands; what nothing knows comes last, as it appears."""
    known = dict.fromkeys([*_ORDER[str(column.name)], *column])
    return column.map({value: place for place, value in enumerate(known)})


def _held(observed: Observation | None, lang: str) -> str | None:
    """What the record holds as evidence, as the executor worded it."""
    if observed is None or observed.recorded.evidence is None:
        return None
    return "; ".join(_pairs(e) for e in observed.recorded.evidence) or text("value.empty", lang)


def _pairs(value: Mapping[str, Json]) -> str:
    """A JSON object in one line: names and values, nested ones in brackets."""
    return " · ".join(f"{name}: {_one(inner)}" for name, inner in value.items())


def _one(value: Json) -> str:
    if isinstance(value, Mapping):
        return f"({_pairs(value)})"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_one(inner) for inner in value) + "]"
    return str(value)


def _nothing(wanted: str) -> EvidenceError:
    return EvidenceError(
        CAPTURES, f"holds no capture of: {wanted}.", "Run a plan that has them, such as article."
    )
