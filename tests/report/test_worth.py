"""The tables of what recovery is worth: what their prose says beside its numbers is so."""

from __future__ import annotations

import pytest

from rcr_probes.evidence import store
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.worth import weigh
from rcr_probes.report import outages, worth
from rcr_probes.report.texts import LANGS, text
from rcr_probes.vocabulary import BASELINE, EVIDENCE_GATED
from tests.report.conftest import ROOT


@pytest.fixture(scope="module")
def faults() -> Evidence:
    return store.read(ROOT / "evidence" / "faults")


def test_each_cell_of_the_plan_is_counted_once(faults: Evidence) -> None:
    """With true facts, with false ones, as unknown, or as one with something around recovery."""
    shown = worth.policies(faults)
    columns = [text(f"column.{name}", "en") for name in ("true_facts", "false_facts", "unknown")]
    counted = int(shown[columns].to_numpy().sum())
    assert counted + worth.numbers(faults)["around"] == len(faults.plan.cells)


def test_what_is_said_of_the_policies_without_a_number_is_so(faults: Evidence) -> None:
    """That again never calls, where evidence_gated is unsafe, and over what it does nothing."""
    weighed = weigh(faults.captures())
    own = [w for w in weighed if w.capture.cell.policy == EVIDENCE_GATED]
    assert not any(w.called for w in weighed if w.capture.cell.policy == "again")
    assert {w.capture.cell.digest for w in own if w.unsafe} == {"coarse"}
    assert not any(w.true_facts for w in own if w.unsafe)
    left = [w for w in own if w.outcome == "left"]
    assert {w.existed for w in left} == {"one"}
    assert {w.capture.measurement.observations[0].recorded.status for w in left} == {"succeeded"}


def test_false_blocks_after_a_loss_of_power_are_where_the_text_says() -> None:
    """All without flushing, and none over the record that was written last."""
    power = store.read(ROOT / "evidence" / "power")
    blocked = [
        w.capture
        for w in weigh(power.captures())
        if w.false_block and w.capture.cell.policy == EVIDENCE_GATED
    ]
    assert len(blocked) == outages.numbers(power)["gated_false_blocks"]
    assert {capture.cell.variant for capture in blocked} == {BASELINE}
    states = {c.measurement.observations[0].recorded.status for c in blocked}
    assert states <= {"missing", "unreadable", "pending_approval", "approved"}


@pytest.mark.parametrize("lang", LANGS)
def test_no_row_of_lost_evidence_shows_the_same_decision_twice(faults: Evidence, lang: str) -> None:
    """Where the decision stays, its reason is what changed; and no two rows are alike."""
    shown = worth.ablation(faults, lang)
    before, after = (text(f"column.{name}", lang) for name in ("with_all", "without"))
    assert (shown[before] != shown[after]).all()
    assert not shown.duplicated([text("column.missing", lang), before, after]).any()
