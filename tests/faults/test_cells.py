"""Every fault at every point of the reference: what its caller sees, and what is proven."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes import strace
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.vocabulary import AUDIT_FAULTS, AUDIT_POINTS, FAULTS, INNER_POINTS, POINTS
from tests.faults.beside import needs_ptrace

ROOT = Path(__file__).parents[2]
POLICIES = ("again", "resume", "never")
BLOCKED, PROTECTED = ("blocked",) * 3, ("protected",) * 3
LOOKED_FOR = ("blocked", "consistent", "blocked")
REPEATED = ("protected", "duplicate_effect", "protected")
# Where a process ends or goes no further: the state there, the effects, the verdict by policy.
ENDED: Mapping[str, tuple[str, int, tuple[str, ...]]] = {
    "approval_audit": ("approved", 0, BLOCKED),
    "start_audit": ("executing", 0, BLOCKED),
    "before_action": ("executing", 0, BLOCKED),
    "after_action": ("executing", 1, PROTECTED),
    "after_result": ("succeeded", 1, PROTECTED),
    "completion_audit": ("succeeded", 1, PROTECTED),
    "response": ("succeeded", 1, PROTECTED),
}
# Where the audit append fails.
FAILED: Mapping[str, tuple[str, int, tuple[str, ...]]] = {
    "approval_audit": ("approved", 0, LOOKED_FOR),
    "start_audit": ("executing", 0, BLOCKED),
    "completion_audit": ("failed", 1, REPEATED),
}


def expected() -> dict[tuple[str, str], tuple[str, str, int, tuple[str, ...]]]:
    """Point and fault → what the caller sees, the state and the effects then, the verdicts."""
    table = {(point, "hang"): ("HUNG", *ENDED[point]) for point in POINTS}
    for point in AUDIT_POINTS:
        table[point, "torn_append"] = ("SIGKILL", *ENDED[point])
        for fault in AUDIT_FAULTS:
            table[point, fault] = (FAULTS[fault], *FAILED[point])
        table[point, "lost_append"] = ("none", "succeeded", 1, PROTECTED)
    table["response", "response_lost"] = ("RESPONSE_LOST", "succeeded", 1, PROTECTED)
    return table


def ran(into: Path, plan: Plan, **options: Any) -> tuple[list[Row], Evidence]:
    """Run a plan; its evidence is sound."""
    evidence = runs.run(plan, into / "evidence", **options)
    assert check(evidence.folder).findings == ()
    return rows(evidence.captures()), evidence


@pytest.fixture(scope="module")
def all_of_them(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Row], Evidence]:
    cells = [
        Cell(point=point, fault=fault, policy=policy)
        for point, fault in expected()
        for policy in POLICIES
    ]
    return ran(tmp_path_factory.mktemp("all"), Plan("faults", tuple(cells)))


@needs_ptrace
def test_every_fault_at_every_point_is_proven_and_leaves_what_it_leaves(
    all_of_them: tuple[list[Row], Evidence],
) -> None:
    """The caller's error is the kernel's; the verdicts are those of the same place and effect."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in all_of_them[0]:
        found.setdefault((str(row["point"]), str(row["fault"])), []).append(row)
    shown = ("caller_error", "state_after_fault", "effects_after_fault")
    told = {
        key: (*(of[0][name] for name in shown), tuple(row["verdict"] for row in of))
        for key, of in found.items()
    }
    assert told == expected()
    assert {row["fired"] for row in all_of_them[0]} == {True}


@needs_ptrace
def test_an_audit_line_that_was_lost_is_told_and_no_other_fault_loses_one(
    all_of_them: tuple[list[Row], Evidence],
) -> None:
    """The operation reports success, and its trail has no line of the step."""
    lost = {
        (row["point"], row["fault"])
        for row in all_of_them[0]
        if "audit_lost" in str(row["reasons"])
    }
    assert lost == {(point, "lost_append") for point in AUDIT_POINTS}


@needs_ptrace
def test_what_hangs_is_ended_once_it_has_told_and_not_at_the_deadline(
    all_of_them: tuple[list[Row], Evidence],
) -> None:
    """Its phase takes as long as others do, where the deadline is half a minute."""
    hung = [c for c in all_of_them[1].captures() if c.cell.fault == "hang"]
    assert len(hung) == len(POINTS) * len(POLICIES)
    for capture in hung:
        assert capture.measurement.observations[0].ended == "hang"
        assert capture.circumstances.seconds["fault"] < 10
    for capture in all_of_them[1].captures():
        if capture.cell.fault != "hang":
            assert capture.measurement.observations[0].ended != "hang"


@needs_ptrace
def test_nothing_was_left_behind_and_every_attempt_is_over(
    all_of_them: tuple[list[Row], Evidence],
) -> None:
    """No tracer counts as a process of the phase; no observation is damaged."""
    for capture in all_of_them[1].captures():
        for observed in capture.measurement.observations:
            assert observed.settled is True
            assert observed.damage == ()


@needs_ptrace
def test_a_torn_line_is_there_when_recovery_comes(
    all_of_them: tuple[list[Row], Evidence],
) -> None:
    """It is not lifted: an audit line that recovery appends stands on a line of its own."""
    (torn,) = (
        c
        for c in all_of_them[1].captures()
        if (c.cell.point, c.cell.fault, c.cell.policy) == ("start_audit", "torn_append", "again")
    )
    assert lines(torn, "fault") == ["operation.prepared", "operation.approved"]
    assert lines(torn, "recover") == []  # it was refused: the lock of the dead is there


def lines(capture: Capture, phase: str) -> list[Any]:
    events = capture.measurement.events
    return [e.value["event"] for e in events if (e.lane, e.phase) == ("audit", phase)]


@needs_ptrace
def test_facts_are_the_same_under_fork_and_spawn_and_in_two_runs(tmp_path: Path) -> None:
    """One point of each kind, and a call; also what is counted of calls is the same."""
    chosen = {fault: (point, fault) for point, fault in expected() if point != "approval_audit"}
    cells = [Cell(point=point, fault=fault, policy="resume") for point, fault in chosen.values()]
    cells.append(Cell(point="write@audit.jsonl#4", fault="error_after_call", policy="resume"))
    plan = Plan("faults", tuple(cells))
    facts = [
        [c.facts_sha256 for c in ran(tmp_path / str(n), plan, start=start)[1].captures()]
        for n, start in enumerate(("fork", "spawn", "fork"))
    ]
    assert facts[0] == facts[1] == facts[2]


# A call, in the order of the operation's life → what the caller sees, state, effects, verdicts.
CALLS: Mapping[str, tuple[str, str, int, tuple[str, ...]]] = {
    "mkdir@approvals#1": ("EIO", "missing", 0, BLOCKED),
    "openat@audit.jsonl#1": ("EIO", "missing", 0, BLOCKED),
    "write@audit.jsonl#2": ("EIO", "approved", 0, LOOKED_FOR),
    "close@audit.jsonl#3": ("EIO", "executing", 0, BLOCKED),
    "write@audit.jsonl#4": ("none", "failed", 1, REPEATED),
    "rename@ticket.json.tmp#2": ("EIO", "approved", 0, ("consistent", "consistent", "blocked")),
}


@needs_ptrace
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="another machine renames by other calls")
def test_a_call_that_is_done_and_reported_failed_is_done(tmp_path: Path) -> None:
    """Its error comes to the runtime, which treats it as a call that was not made."""
    cells = tuple(
        Cell(point=point, fault="error_after_call", policy=policy)
        for point in CALLS
        for policy in POLICIES
    )
    found, evidence = ran(tmp_path, Plan("calls", cells))
    assert {row["fired"] for row in found} == {True}
    shown = ("caller_error", "state_after_fault", "effects_after_fault")
    for number, (point, seen) in enumerate(CALLS.items()):
        three = found[3 * number : 3 * number + 3]
        told = (*(three[0][name] for name in shown), tuple(row["verdict"] for row in three))
        assert (point, told) == (point, seen)
    done = {c.cell.point: lines(c, "fault") for c in evidence.captures()}
    kept = ["operation.prepared", "operation.approved", "operation.started"]
    assert done["write@audit.jsonl#2"] == kept[:2]  # the line of the call that failed is there
    assert done["write@audit.jsonl#4"] == [*kept, "operation.succeeded", "operation.failed"]
    assert all("audit_lost" not in str(row["reasons"]) for row in found)


@needs_ptrace
@pytest.mark.skipif(shutil.which(strace.PROGRAM) is None, reason="strace is not installed")
@pytest.mark.parametrize("call", ["openat", "write"])
def test_the_tracer_and_strace_count_alike_and_count_the_runtimes_calls_alone(
    tmp_path: Path, call: str
) -> None:
    """The operation appends four times; what the harness reads for its events is none of that."""
    cells = [
        Cell(point=f"{call}@audit.jsonl#{number}", fault=fault, policy="never")
        for fault in ("io_error", "error_after_call")
        for number in (1, 2, 3, 4, 6)  # the failure of the fourth makes a fifth
    ]
    found, _ = ran(tmp_path, Plan("calls", tuple(cells)))
    struck = [row["fired"] for row in found]
    assert struck[:5] == struck[5:] == [True, True, True, True, False]
    errors = [row["caller_error"] for row in found]
    assert errors[:5] == errors[5:] == ["EIO", "EIO", "EIO", "none", "none"]


@needs_ptrace
@pytest.mark.skipif(shutil.which(strace.PROGRAM) is None, reason="strace is not installed")
def test_a_file_whose_closing_failed_is_closed_where_the_call_was_made(tmp_path: Path) -> None:
    """A call that is refused leaves it open, and locked: the next append waits for itself."""
    cells = [
        Cell(point="close@audit.jsonl#4", fault=fault, policy="never")
        for fault in ("error_after_call", "io_error")
    ]
    found, _ = ran(tmp_path, Plan("calls", tuple(cells)), deadline=6)
    assert [row["fired"] for row in found] == [True, True]
    assert [row["state_after_fault"] for row in found] == ["failed", "failed"]
    assert ["deadline_passed" in str(row["reasons"]) for row in found] == [False, True]


SILENT = """
from rcr_probes import Recorded, reach
class Runtime:
    points = {"response": frozenset({"response_lost", "hang"})}
    recoveries = ()
    says = {"done": "done", "missing": "open"}
    def start(self, operation):
        operation.executor(operation.key, operation.request)
        try:
            reach("response")
        except Exception:
            pass
        (operation.folder / "state").write_text("done")
        RETURNS
    def recover(self, operation, way):
        pass
    def state(self, operation):
        state = operation.folder / "state"
        return Recorded(state.read_text() if state.exists() else "missing")
"""


@pytest.mark.parametrize("returns", ["return 1", "raise KeyError", "__import__('os')._exit(0)"])
def test_an_answer_is_lost_whatever_it_was_and_nothing_is_done_to_the_runtime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, returns: str
) -> None:
    """It comes to its end, also where it would have caught an error; but one must have come."""
    name = f"silent_{len(returns)}"
    (tmp_path / f"{name}.py").write_text(SILENT.replace("RETURNS", returns))
    monkeypatch.chdir(tmp_path)
    cell = Cell(point="response", fault="response_lost", runtime=f"{name}:Runtime", policy="never")
    (found,), _ = ran(tmp_path, Plan("lost", (cell,)))
    answered = "_exit" not in returns
    assert (found["fired"], found["state_after_fault"]) == (answered, "done")
    assert found["caller_error"] == ("RESPONSE_LOST" if answered else None)


@pytest.mark.parametrize(
    ("point", "dedupe"), [(p, dedupe) for dedupe, points in INNER_POINTS.items() for p in points]
)
def test_an_executor_can_hang_at_its_own_points(tmp_path: Path, point: str, dedupe: str) -> None:
    """What it had done by then stands."""
    cell = Cell(point=point, fault="hang", dedupe=dedupe, policy="never")
    (found,), _ = ran(tmp_path, Plan("inner", (cell,)))
    assert (found["fired"], found["caller_error"]) == (True, "HUNG")
    assert found["effects_after_fault"] == (0 if point == "after_claim" else 1)
