"""What recovery by evidence ends in, and the baseline beside it: real processes, real ends.

Each row is a cell and what stands there in the end. The rows of the baseline show what would have
been, so that a recovery that always stops, or never sees anything, passes nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence import consistency, store
from rcr_probes.evidence.check import check
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.vocabulary import DAMAGE, ORIGINALS, PERSONS, STALE_LOCKS

# point/fault/dedupe/digest/policy, then what else differs → verdict, effects, calls, state, error.
# gated stands for evidence_gated.
ROWS = """
# The article's probes.
start_audit/audit_is_directory/none/same/resume  : blocked 0 0 partial_failed APPROVAL_STATE_CONFLICT
start_audit/audit_is_directory/none/same/gated   : consistent 1 1 succeeded none
completion_audit/audit_is_directory/none/same/resume   : duplicate_effect 2 2 succeeded none
completion_audit/audit_is_directory/none/same/gated    : protected 1 1 succeeded none
completion_audit/audit_is_directory/none/changed/gated : protected 1 1 succeeded APPROVAL_STALE
after_action/kill/none/same/gated                      : protected 1 1 succeeded none
before_action/kill/none/same/gated                     : consistent 1 1 succeeded none
before_action/exception/none/changed/gated             : held 0 0 verification_required none
approval_audit/kill/none/same/resume                   : blocked 0 0 approved APPROVAL_BUSY
approval_audit/kill/none/same/gated                    : consistent 1 1 succeeded none

# Witnesses: without one that counts nobody knows; who can be asked is asked, what can be replayed is.
before_action/kill/none/same/gated/witness=lagging : held 0 0 verification_required none
after_action/kill/none/same/gated/witness=lagging  : held 1 1 verification_required none
after_action/kill/none/same/gated/witness=absent   : held 1 1 verification_required none
after_action/kill/none/same/gated/witness=damaged  : held 1 1 verification_required none
before_action/kill/none/same/gated/witness=damaged : held 0 0 verification_required none
after_action/kill/none/same/gated/witness=foreign  : held 1 1 verification_required none
after_action/kill/operation_key/same/gated/witness=absent  : consistent 1 1 succeeded none
before_action/kill/operation_key/same/gated/witness=absent : consistent 1 1 succeeded none
after_action/kill/late_key/same/gated/witness=absent       : deduplicated 1 2 succeeded none
after_action/kill/receiver_key/same/gated/witness=absent   : consistent 1 1 succeeded none

# A person.
after_action/kill/none/same/gated/witness=absent/recovery_fault=person_absent   : held 1 1 verification_required none
after_action/kill/none/same/gated/witness=absent/recovery_fault=person_present  : protected 1 1 succeeded none
before_action/kill/none/same/gated/witness=absent/recovery_fault=person_present : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=person_absent : unknown 1 1 succeeded none

# Struck, and run again.
before_action/kill/none/same/gated/recovery_fault=twice                 : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=kill@start_audit      : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=kill@before_action    : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=kill@after_action     : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=kill@completion_audit : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=exception@after_action : consistent 1 1 succeeded none
before_action/exception/none/same/resume/recovery_fault=exception@after_action : duplicate_effect 2 2 succeeded none
after_action/kill/none/same/gated/recovery_fault=kill@after_result      : protected 1 1 succeeded none
after_action/kill/none/same/gated/witness=absent/recovery_fault=kill@completion_audit : held 1 1 verification_required none
after_action/kill/none/same/gated/recovery_fault=kill@start_audit       : unknown 1 1 succeeded none
before_action/kill/pair_effect_key/same/gated/recovery_fault=kill@between_effects : consistent 2 2 succeeded none
before_action/kill/pair/same/gated/recovery_fault=kill@between_effects : unknown 1 1 verification_required none

# Two recoverers.
before_action/kill/none/same/gated/recovery_fault=held@start_audit/recoverers=2   : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=held@before_action/recoverers=2 : consistent 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=held@after_action/recoverers=2  : consistent 1 1 succeeded none
after_action/kill/none/same/gated/recovery_fault=held@after_result/recoverers=2   : protected 1 1 succeeded none
before_action/exception/none/same/resume/recovery_fault=held@before_action/recoverers=2 : consistent 1 1 succeeded none

# The original, alive or late.
none/none/none/same/resume/recovery_fault=original_alive : protected 1 1 succeeded APPROVAL_STATE_CONFLICT
none/none/none/same/gated/recovery_fault=original_alive  : protected 1 1 succeeded APPROVAL_BUSY
none/none/none/same/resume/recovery_fault=late_original  : duplicate_effect 2 2 succeeded none
none/none/none/same/resume/variant=fenced/recovery_fault=late_original : consistent 1 2 succeeded none
none/none/none/same/gated/recovery_fault=late_original   : held 1 1 verification_required none
none/none/none/same/gated/variant=fenced/recovery_fault=late_original  : consistent 1 2 succeeded none
none/none/operation_key/same/gated/witness=absent/recovery_fault=late_original : consistent 1 2 succeeded none

# Damage.
after_action/kill/none/same/gated/recovery_fault=torn_line       : protected 1 1 succeeded none
after_action/kill/none/same/gated/recovery_fault=glued_records   : protected 1 1 succeeded none
after_action/kill/none/same/gated/recovery_fault=nulls           : protected 1 1 succeeded none
after_action/kill/none/same/gated/recovery_fault=raw_newline     : protected 1 1 succeeded none
after_action/kill/none/same/gated/recovery_fault=empty_record    : held 1 1 verification_required none
before_action/kill/none/same/gated/recovery_fault=empty_record   : held 0 0 verification_required none
after_action/kill/none/same/resume/recovery_fault=empty_record   : protected 1 1 unreadable APPROVAL_STORE_CORRUPT
after_action/kill/none/same/resume/recovery_fault=stored_failure : duplicate_effect 2 2 succeeded none
after_action/kill/none/same/gated/recovery_fault=stored_failure  : protected 1 1 succeeded none
before_action/kill/none/same/gated/recovery_fault=stored_failure : consistent 1 1 succeeded none
after_action/kill/none/same/resume/recovery_fault=contradiction  : duplicate_effect 2 2 succeeded none
after_action/kill/none/same/gated/recovery_fault=contradiction   : protected 1 1 succeeded APPROVAL_STATE_CONFLICT
before_action/kill/none/same/gated/recovery_fault=contradiction  : held 0 0 verification_required none
approval_audit/exception/none/same/gated/recovery_fault=glued_records : unknown 1 1 succeeded none
start_audit/torn_append/none/same/gated/recovery_fault=torn_line : unknown 1 1 succeeded none

# Stale locks.
before_action/exception/none/same/resume/recovery_fault=lock_dead : blocked 0 0 failed APPROVAL_BUSY
before_action/exception/none/same/gated/recovery_fault=lock_dead     : consistent 1 1 succeeded none
before_action/exception/none/same/gated/recovery_fault=lock_recycled : consistent 1 1 succeeded none
before_action/exception/none/same/gated/recovery_fault=lock_zombie   : consistent 1 1 succeeded none
before_action/exception/none/same/gated/recovery_fault=lock_live     : blocked 0 0 failed APPROVAL_BUSY
after_action/exception/none/same/gated/recovery_fault=lock_live      : protected 1 1 failed APPROVAL_BUSY
"""  # noqa: E501


def rows() -> Mapping[Cell, tuple[str, int, int, str, str]]:
    """The cells in order, and what each ends in."""
    found = {}
    for line in ROWS.splitlines():
        if not line or line.startswith("#"):
            continue
        name, _, ends = line.partition(" : ")
        point, fault, dedupe, digest, policy, *rest = name.strip().split("/")
        axes: dict[str, Any] = dict(part.split("=") for part in rest)
        if "recoverers" in axes:
            axes["recoverers"] = int(axes["recoverers"])
        policy = policy.replace("gated", "evidence_gated")
        cell = Cell(point=point, fault=fault, dedupe=dedupe, digest=digest, policy=policy, **axes)
        verdict, effects, calls, state, error = ends.split()
        found[cell] = (verdict, int(effects), int(calls), state, error)
    return found


EXPECTED = rows()


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> store.Evidence:
    plan = Plan("recovered", tuple(EXPECTED))
    return runs.run(plan, tmp_path_factory.mktemp("forked") / "recovered", start="fork")


GATED = [cell for cell in EXPECTED if cell.policy == "evidence_gated"]  # the baseline may do harm


@pytest.fixture(scope="module")
def captures(forked: store.Evidence) -> Mapping[Cell, Capture]:
    return {c.cell: c for c in forked.captures()}


@pytest.mark.parametrize("cell", EXPECTED, ids=lambda cell: cell.id)
def test_what_stands_there_in_the_end(captures: Mapping[Cell, Capture], cell: Cell) -> None:
    """Verdict, effects, calls, state, and what the caller of recovery saw."""
    capture = captures[cell]
    last = capture.measurement.observations[1]
    verdict = capture.judgement.verdict
    assert verdict is not None
    ends = (verdict.verdict, len(last.effects or ()), last.calls, last.recorded.status, last.error)
    assert ends == EXPECTED[cell]


@pytest.mark.parametrize("cell", GATED, ids=lambda cell: cell.id)
def test_recovery_by_evidence_does_no_harm(captures: Mapping[Cell, Capture], cell: Cell) -> None:
    """It never makes a second effect or another one, and never calls without being allowed to."""
    verdict = captures[cell].judgement.verdict
    assert verdict is not None
    assert verdict.verdict not in ("duplicate_effect", "wrong_effect", "lost_effect")
    assert "called_without_eligibility" not in verdict.reasons


def test_every_word_is_measured() -> None:
    """Each recovery fault and each witness stands in some row, under recovery by evidence."""
    words = {str(cell.recovery_fault).partition("@")[0] for cell in GATED}
    assert words >= {*PERSONS, *ORIGINALS, *DAMAGE, *STALE_LOCKS}
    assert words >= {"none", "twice", "kill", "exception", "held"}
    assert {c.witness for c in GATED} == {"exact", "lagging", "absent", "damaged", "foreign"}


def test_the_evidence_is_sound(forked: store.Evidence, captures: Mapping[Cell, Capture]) -> None:
    """Whoever checks it finds nothing that cannot have happened."""
    assert check(forked.folder).findings == ()
    for capture in captures.values():
        assert list(consistency.problems(capture)) == []


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_facts_are_the_same_in_another_run(
    captures: Mapping[Cell, Capture], tmp_path: Path, start: str
) -> None:
    """Also where every phase is a new interpreter, and where processes are held for each other."""
    every = 1 if start == "fork" else 3
    cells = tuple(EXPECTED)[::every]
    again = runs.run(Plan("again", cells), tmp_path / "again", start=start)
    assert {c.cell.id: c.facts_sha256 for c in again.captures()} == {
        cell.id: captures[cell].facts_sha256 for cell in cells
    }


def told(capture: Capture, lane: str) -> list[Mapping[str, Any]]:
    recovery = (e for e in capture.measurement.events if e.phase == "recover")
    return [e.value for e in recovery if e.lane == lane]


def of(captures: Mapping[Cell, Capture], **axes: Any) -> Capture:
    return captures[Cell(**{"dedupe": "none", "policy": "evidence_gated", **axes})]


def test_what_recovery_repaired_or_stopped_for_is_audited_with_its_reasons(
    captures: Mapping[Cell, Capture],
) -> None:
    """A reconciled audit names what was seen; a stop names what was not."""
    p3 = of(captures, point="completion_audit", fault="audit_is_directory")
    assert told(p3, "audit") == [{"event": "operation.reconciled", "reasons": ["effect_present"]}]
    blind = of(captures, point="after_action", fault="kill", witness="absent")
    assert told(blind, "audit") == [
        {
            "event": "operation.verification_required",
            "reasons": ["effect_unknown", "no_capability"],
        }
    ]


@pytest.mark.parametrize("damage", ["torn_line", "glued_records", "nulls", "raw_newline"])
def test_a_damaged_audit_is_told_of_in_the_line_that_follows(
    captures: Mapping[Cell, Capture], damage: str
) -> None:
    """It is neither skipped in silence nor read as absence."""
    capture = of(captures, point="after_action", fault="kill", recovery_fault=damage)
    assert told(capture, "fault")[0]["fault"] == damage
    last = told(capture, "audit")[-1]
    assert last["event"] == "operation.reconciled"
    assert "audit_damaged" in last["reasons"]


def test_recovery_that_is_killed_really_dies(captures: Mapping[Cell, Capture]) -> None:
    """Its parent saw the signal, and no return of it is told."""
    killed = of(captures, point="before_action", fault="kill", recovery_fault="kill@after_action")
    assert told(killed, "fault") == [
        {"point": "after_action", "fault": "kill"},
        {"point": "after_action", "error": "SIGKILL"},
    ]
    assert [value["error"] for value in told(killed, "return")] == ["none"]
    pids = killed.circumstances.pids
    assert pids["recover"] != pids["recover_2"]


def test_a_recoverer_is_held_until_the_other_has_finished(captures: Mapping[Cell, Capture]) -> None:
    """The other is told that it is busy, and makes no call; then the first goes on."""
    two = of(
        captures,
        point="before_action",
        fault="kill",
        recovery_fault="held@before_action",
        recoverers=2,
    )
    recovery = [e for e in two.measurement.events if e.phase == "recover"]
    at = next(n for n, e in enumerate(recovery) if e.value.get("fault") == "held")
    assert [e.value for e in recovery[at + 1 :] if e.lane == "return"] == [
        {"error": "APPROVAL_BUSY"},
        {"error": "none"},
    ]
    assert [e.lane for e in recovery].index("call") > at


def test_a_late_original_is_refused_by_its_token_alone(captures: Mapping[Cell, Capture]) -> None:
    """Without one it acts after recovery has ended; with one the executor refuses it then."""
    axes = {"point": "none", "fault": "none", "recovery_fault": "late_original"}
    open_ = of(captures, policy="resume", **axes)
    assert told(open_, "fault") == [{"fault": "late_original"}]
    fenced = of(captures, policy="resume", variant="fenced", **axes)
    assert told(fenced, "fault") == [{"fault": "late_original"}, {"refused": "FENCED"}]


def test_a_person_is_recorded(captures: Mapping[Cell, Capture]) -> None:
    """The audit tells of the decision between the two recoveries."""
    decided = of(
        captures,
        point="before_action",
        fault="kill",
        witness="absent",
        recovery_fault="person_present",
    )
    assert [value["event"] for value in told(decided, "audit")] == [
        "operation.verification_required",
        "operation.decided",
        "operation.started",
        "operation.succeeded",
    ]
    assert set(decided.circumstances.pids) == {"fault", "force", "recover", "decide", "recover_2"}
