"""The legend of codes: each that occurs is told, and none by another runtime's words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rcr_probes.evidence import store
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Plan
from rcr_probes.report import legend
from rcr_probes.report.repeats import name_of
from rcr_probes.report.texts import LANGS, text
from rcr_probes.vocabulary import NONE, POLICIES
from tests.report.conftest import ROOT

FOLDERS = ("article", "locations", "runtimes")


@pytest.fixture(params=FOLDERS)
def evidence(request: pytest.FixtureRequest) -> Evidence:
    """Each folder of committed evidence that was measured."""
    return store.read(ROOT / "evidence" / str(request.param))


@pytest.mark.parametrize("lang", LANGS)
def test_each_code_that_occurs_is_told_once(evidence: Evidence, lang: str) -> None:
    """Of each axis that tables show, and each decision; and nothing that does not occur."""
    columns = [text(f"column.{name}", lang) for name in ("used_as", "code", "meaning")]
    shown = legend.codes(evidence, lang)[columns]
    told = [(used, code) for used, code, _ in shown.itertuples(index=False, name=None)]
    captures = list(evidence.captures())
    wanted = {
        (text(f"column.{axis}", lang), value)
        for axis in ("point", "fault", "dedupe", "digest")
        for value in {getattr(c.cell, axis) for c in captures}
        if value != NONE or axis == "dedupe"
    }
    decided = {c.judgement.decision.eligibility for c in captures if c.judgement.decision}
    wanted |= {(text("column.eligibility", lang), text(f"eligibility.{d}", lang)) for d in decided}
    seen = text("column.caller_sees", lang)
    assert sorted(one for one in told if one[0] != seen) == sorted(wanted)
    errors = {o.error for c in captures for o in c.measurement.observations}
    assert {code for used, code in told if used == seen} <= errors
    assert all(shown[columns[-1]])


@pytest.mark.parametrize("folder", ["article", "locations", "faults", "contrast", "syscalls"])
def test_every_error_of_our_own_runtimes_is_told(folder: str) -> None:
    """Whatever a caller saw; the errors of others' runtimes are theirs to explain."""
    evidence = store.read(ROOT / "evidence" / folder)
    shown = legend.codes(evidence)
    told = set(shown[shown[text("column.used_as", "en")] == text("column.caller_sees", "en")].code)
    captures = evidence.captures()
    assert told == {o.error for c in captures for o in c.measurement.observations} - {None}


def test_what_may_follow_a_code_is_shown_and_witnesses_where_they_differ() -> None:
    """The point of a strike on recovery, the state of a lost power: one row for all of them."""
    told = list(legend.codes(store.read(ROOT / "evidence" / "faults"))[text("column.code", "en")])
    assert {"held@…", "kill@…", "power_loss#…", "nulls", "lagging"} <= set(told)
    assert len([code for code in told if code.startswith("held")]) == 1


@pytest.mark.parametrize("lang", LANGS)
def test_every_configuration_of_a_real_runtime_is_told(lang: str) -> None:
    """Each once, under the name that the tables give its runtime."""
    evidence = store.read(ROOT / "evidence" / "runtimes")
    rows = list(legend.variants(evidence, lang).itertuples(index=False, name=None))
    assert {(runtime, variant) for runtime, variant, _ in rows} == {
        (name_of(cell.runtime), cell.variant) for cell in evidence.plan.cells
    }
    assert len({(runtime, variant) for runtime, variant, _ in rows}) == len(rows)


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
