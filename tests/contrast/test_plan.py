"""The plan ``contrast``: every verdict is the expected one, and what was seen is what is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.conformance import conformance
from rcr_probes.errors import PlanError
from rcr_probes.evidence import store
from rcr_probes.evidence.check import check
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.report.audit_policies import DRAIN, POLICIES, SUBMISSION, Seen, seen
from rcr_probes.vocabulary import FAULT_POINTS, NONE, POINTS
from tests.evidence.forging import Change, put
from tests.evidence.test_relabelled import found, told_as
from tests.test_expected import tables

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "evidence" / "contrast"
KINDS = ("reversible", "irreversible")
ABSENT = "–"


def expected() -> Iterator[tuple[str, str]]:
    """Cell id → verdict, as the tables of docs/design.md §10 give them."""
    for head, *rows in tables():
        for row in rows:
            given = dict(zip(head, row, strict=True))
            if head[0] == "audit policy":
                for kind in KINDS:
                    variant = f"{given['audit policy']}_{kind}"
                    where: dict[str, Any] = {n: given[n] for n in ("point", "fault", "dedupe")}
                    for policy in ("again", "never"):
                        cell = Cell(runtime=POLICIES, variant=variant, policy=policy, **where)
                        yield cell.id, given[f"{kind} {policy}"]
            elif head[0] == "variant":
                runtime = SUBMISSION if "digest" in head else DRAIN
                where = {name: given[name] for name in head if name not in ("again", "never")}
                for policy in ("again", "never"):
                    yield Cell(runtime=runtime, policy=policy, **where).id, given[policy]


EXPECTED = {cell: verdict for cell, verdict in expected() if verdict != ABSENT}


def verdicts(evidence: Evidence) -> dict[str, str]:
    return {
        c.cell.id: c.judgement.verdict.verdict for c in evidence.captures() if c.judgement.verdict
    }


def one(evidence: Evidence, runtime: str, variant: str, **axes: Any) -> Capture:
    """The capture of one cell."""
    return evidence.capture(Cell(runtime=runtime, variant=variant, **axes).id)


def first(capture: Capture) -> Seen:
    return seen(capture.measurement.observations[0])


def test_the_tables_have_every_cell_of_the_plan() -> None:
    """No cell without an expectation, and no expectation without a cell."""
    assert set(EXPECTED) == {cell.id for cell in plans.read("contrast").cells}


def test_a_run_gives_the_expected_verdicts_and_is_sound(contrast: Evidence) -> None:
    """Every fault fired, each promised cell is there once, and the check finds nothing."""
    assert verdicts(contrast) == EXPECTED
    captures = list(contrast.captures())
    assert [c.cell for c in captures] == list(contrast.plan.cells)
    assert all(c.judgement.fired is not False for c in captures)
    assert check(contrast.folder).findings == ()


def test_the_committed_evidence_is_what_a_run_gives(contrast: Evidence) -> None:
    """Fact for fact."""
    theirs = {c.cell: c.facts_sha256 for c in store.read_whole(COMMITTED).captures()}
    assert {c.cell: c.facts_sha256 for c in contrast.captures()} == theirs


# One cell of each kind: a refusal before and after, two requests in one process, an answer lost.
SOME = (
    Cell(runtime=POLICIES, variant="rollback_irreversible", point="after_action",
         fault="result_refused"),
    Cell(runtime=POLICIES, variant="audit_first_reversible", point="start_audit",
         fault="result_refused"),
    Cell(runtime=POLICIES, variant="fail_closed_irreversible", point="after_action", fault="kill"),
    Cell(runtime=DRAIN, variant="generation_newer", point="after_action", fault="result_refused"),
    Cell(runtime=DRAIN, variant="audit_first_overlap", point=NONE, fault=NONE, policy="never"),
    Cell(runtime=DRAIN, variant="generation", point="after_result", fault="exception"),
    Cell(runtime=SUBMISSION, variant="durable", point="response", fault="response_lost"),
    Cell(runtime=SUBMISSION, variant="memory_resent", point="response", fault="exception",
         policy="never"),
)  # fmt: skip


def test_the_start_method_changes_no_fact(contrast: Evidence, tmp_path: Path) -> None:
    """A forked process and a new interpreter see the same."""
    spawned = runs.run(Plan("some", SOME), tmp_path / "some", start="spawn")
    for capture in spawned.captures():
        assert capture.facts_sha256 == contrast.capture(capture.cell.id).facts_sha256


@pytest.mark.parametrize("runtime", [POLICIES, DRAIN, SUBMISSION])
def test_each_keeps_the_contract_of_a_runtime(runtime: str) -> None:
    """In every variant, at every point that it declares."""
    assert [wrong for result in conformance(runtime) for wrong in result.wrong] == []


@pytest.mark.parametrize("point", [p for p in POINTS if p not in FAULT_POINTS["result_refused"]])
def test_a_refusal_where_no_audit_is_next_is_refused(point: str) -> None:
    """There the runtime writes no result and no audit."""
    cell = Cell(
        runtime=POLICIES, variant="rollback_reversible", point=point, fault="result_refused"
    )
    with pytest.raises(PlanError, match="cannot strike"):
        plans.validated(Plan("mine", (cell,)))


def test_one_refused_row_of_several_leaves_none(contrast: Evidence) -> None:
    """In one transaction; written one by one, those before it stay."""
    axes = {"point": "after_action", "fault": "result_refused"}
    together = first(one(contrast, DRAIN, "generation_one_row", **axes))
    apart = first(one(contrast, DRAIN, "row_by_row_one_row", **axes))
    assert together.audit == ()
    assert [row["tenant"] for row in apart.audit] == ["tenant-1"]
    assert together.kept["drain"] == apart.kept["drain"] == "not_draining"


def test_a_newer_change_stands_after_the_restore_that_asks(contrast: Evidence) -> None:
    """Where it does not ask, the hold is gone of which the audit says that it was started."""
    axes = {"point": "after_action", "fault": "result_refused"}
    guarded = first(one(contrast, DRAIN, "generation_newer", **axes))
    overwritten = first(one(contrast, DRAIN, "unguarded_newer", **axes))
    assert (guarded.kept["drain"], guarded.kept["by"]) == ("draining", "other")
    assert overwritten.kept["drain"] == "not_draining"
    assert {row["audit"] for row in (*guarded.audit, *overwritten.audit)} == {"started"}


def test_overlapping_requests_part_the_audit_from_the_state(contrast: Evidence) -> None:
    """In either order of steps; a generation in the row tells which change was the newer one."""
    axes = {"point": NONE, "fault": NONE, "policy": "never"}
    changed_first = first(one(contrast, DRAIN, "generation_overlap", **axes))
    audited_first = first(one(contrast, DRAIN, "audit_first_overlap", **axes))
    assert (changed_first.audit[-1]["audit"], changed_first.kept["drain"]) == (
        "started",
        "not_draining",
    )
    newest = max(changed_first.audit, key=lambda row: int(row["generation"]))
    assert (newest["audit"], newest["generation"]) == ("stopped", changed_first.kept["generation"])
    assert (audited_first.audit[-1]["audit"], audited_first.kept["drain"]) == (
        "stopped",
        "draining",
    )
    assert not any("generation" in row for row in audited_first.audit)


def test_a_publication_that_fails_is_logged_and_not_told(contrast: Evidence) -> None:
    """The hold is committed; the caller sees a success."""
    capture = one(contrast, DRAIN, "generation", point="after_result", fault="exception")
    told = first(capture)
    assert (told.error, told.log, told.effects) == (NONE, ("INJECTED_FAULT",), 0)
    assert told.kept["drain"] == "draining"


def test_a_stored_submission_is_the_same_before_its_object_and_after(contrast: Evidence) -> None:
    """So no answer of the server's own can be right for both; the evidence tells them apart."""
    before, after = (
        one(contrast, SUBMISSION, "durable", point=point, fault="kill")
        for point in ("before_action", "after_action")
    )
    kept = [c.measurement.observations[0].recorded for c in (before, after)]
    assert kept[0] == kept[1]
    assert [c.judgement.decision and c.judgement.decision.eligibility for c in (before, after)] == [
        "reexecute",
        "reconcile",
    ]


def state_of(name: str, value: Any) -> Change:
    """Say something else of what was stored, in the first observation alone."""
    return put(f"measurement.observations.0.recorded.{name}", value)


def moved(data: Any) -> None:
    """Tell a refusal after the action as one before it."""
    measured = data["measurement"]
    measured["cell"]["point"] = "start_audit"
    for event in measured["events"]:
        if event["lane"] == "fault":
            event["value"]["point"] = "start_audit"


FORGED: dict[str, tuple[Change, str]] = {
    "an audit row that was not written": (
        state_of("evidence", [{"setting": "on"}, {"audit": "changed"}]), "evidence recorded after"
    ),
    "a state that was not stored": (state_of("status", "done"), "its state after fault"),
    "a refusal at another point": (moved, "no event before it says"),
    "a refusal that did not stand": (
        put("measurement.observations.0.standing", None), "whether the fault still stood"
    ),
    "a refusal as a kill": (told_as("kill"), "below its phase was killed; its runtime has none"),
    "a caller who saw a success": (
        put("measurement.observations.0.error", NONE), "its caller saw 'none'"
    ),
    "a point where nothing is refused": (
        put("measurement.cell.point", "before_action"), "cannot strike at 'before_action'"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", FORGED)
def test_a_forged_capture_is_found(contrast: Evidence, way: str) -> None:
    """Also by a forger who derives the judgement and the seal anew."""
    change, problem = FORGED[way]
    capture = contrast.capture(SOME[0].id)
    assert found(capture, lambda data: None) == []
    said = found(capture, change)
    assert any(problem in one for one in said), said
