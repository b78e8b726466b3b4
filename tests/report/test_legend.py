"""The legend of codes: each that occurs is told, and none by another runtime's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rcr_probes.evidence import store
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import NONE, POLICIES, Plan
from rcr_probes.report import legend
from rcr_probes.report.repeats import name_of
from rcr_probes.report.texts import LANGS, text
from tests.report.conftest import ROOT

FOLDERS = ("article", "locations", "runtimes")


@pytest.fixture(params=FOLDERS)
def evidence(request: pytest.FixtureRequest) -> Evidence:
    """Each folder of committed evidence that was measured."""
    return store.read(ROOT / "evidence" / str(request.param))


@pytest.mark.parametrize("lang", LANGS)
def test_each_fault_and_each_decision_that_occurs_is_told_once(
    evidence: Evidence, lang: str
) -> None:
    """And nothing that does not occur."""
    shown = legend.codes(evidence, lang)
    told = list(shown[text("column.code", lang)])
    captures = list(evidence.captures())
    faults = {c.cell.fault for c in captures} - {NONE}
    decided = {c.judgement.decision.eligibility for c in captures if c.judgement.decision}
    assert sorted(told) == sorted([*faults, *(text(f"eligibility.{d}", lang) for d in decided)])
    assert all(shown[text("column.meaning", lang)])


@pytest.mark.parametrize("lang", LANGS)
def test_each_way_of_each_runtime_that_occurs_is_told_by_its_own_words(
    evidence: Evidence, lang: str
) -> None:
    """A new adapter's recovery is not left to the general sentence."""
    rows = legend.ways(evidence, lang).itertuples(index=False, name=None)
    told = {(runtime, way): said for way, names, said in rows for runtime in names.split(", ")}
    wanted = {(name_of(cell.runtime), cell.policy) for cell in evidence.plan.cells}
    assert set(told) == wanted
    general = {text("legend.ways.other", lang)}
    general |= {text(f"legend.ways.{way}", lang) for way in POLICIES}
    assert {way for (_, way), said in told.items() if said in general} <= set(POLICIES)


def test_a_runtime_of_somebody_is_not_told_by_the_words_of_one_of_ours() -> None:
    """Its module may be called as ours is."""
    evidence = store.read(ROOT / "evidence" / "runtimes")
    ours = next(c for c in evidence.plan.cells if "dbos" in c.runtime and c.policy == "launch")
    theirs = replace(ours, runtime="mine.dbos:runtime")
    other = replace(evidence, plan=Plan("mine", (ours, theirs)))
    said = {row[1]: row[2] for row in legend.ways(other).itertuples(index=False, name=None)}
    assert said["dbos"] == text("legend.ways.dbos.launch", "en")
    assert said["mine.dbos:runtime"] == text("legend.ways.other", "en")
