"""Plans that a recording generates: each call and state exactly once, and the same each time."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rcr_probes import generated, power, strace
from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.errors import PlanError
from rcr_probes.evidence import store
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import rows
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.report.struck import step
from rcr_probes.vocabulary import CALL_FAULTS, FAULTS, POINTS, POWER_LOSSES
from tests.test_strace_cells import until

pytestmark = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)
# A part of the plan ``syscalls`` that runs with every test: the calls of the last transition, under
# the runtime's own way to recover.
PART = (
    "openat@lock#3", "write@lock#3", "openat@record.tmp#4", "write@record.tmp#4",
    "rename@record.tmp#4", "openat@audit.jsonl#4", "write@audit.jsonl#4", "unlink@lock#3",
)  # fmt: skip


@pytest.fixture(scope="module")
def syscalls() -> Plan:
    return plans.read("syscalls")


def part(plan: Plan, policy: str, dedupe: str = "none") -> Plan:
    cells = [c for c in plan.cells if c.point in PART and (c.policy, c.dedupe) == (policy, dedupe)]
    return plans.only(plan, [cell.id for cell in cells])


def test_a_generated_plan_is_the_same_each_time_and_is_listed_as_any_other(
    syscalls: Plan, tmp_path: Path
) -> None:
    """It is written to plan.json, so a run that is resumed must find the same one."""
    assert plans.read("syscalls") == syscalls
    assert plans.read("power") == plans.read("power")
    assert {*generated.NAMES} <= {*plans.shipped()}
    [first, *_] = part(syscalls, "resume").cells
    runs.run(plans.only(syscalls, [first.id]), tmp_path / "run")
    again = runs.run(plans.only(plans.read("syscalls"), [first.id]), tmp_path / "run")
    assert store.read_plan(again.folder).cells == (first,)


def test_every_call_is_struck_in_every_way_under_every_policy_once(syscalls: Plan) -> None:
    """The product is whole; an executor with a key joins where an effect may be there already."""
    calls = [c for v in ("baseline", "fsync") for c in generated.record(v).calls]
    assert {call[1] for call in calls} == {
        "mkdir", "openat", "write", "rename", "unlink", "fsync",
    }  # fmt: skip
    ways = {cell.policy for cell in syscalls.cells}
    assert {"again", "resume", "never"} <= ways
    counted = Counter((c.point, c.variant, c.dedupe) for c in syscalls.cells)
    assert set(counted.values()) == {len(CALL_FAULTS) * len(ways)}
    points = {point for point, variant, _ in counted if variant == "baseline"}
    assert points == {f"{c}@{f}#{n}" for _, c, f, n in generated.record("baseline").calls}
    keyed = {point for point, _, dedupe in counted if dedupe == "operation_key"}
    assert {p for p in keyed if not p.startswith("fsync")} == {*PART}
    assert {c.point.partition("@")[0] for c in syscalls.cells if c.variant == "fsync"} == {"fsync"}


def test_no_file_of_a_plan_has_a_name_of_one_run(syscalls: Plan) -> None:
    """An approval's id names files; the plan names them by what they are."""
    files = {cell.point.partition("@")[2].partition("#")[0] for cell in syscalls.cells}
    assert files == {
        ".", "approvals", "approvals/prepare.lock", "audit.jsonl", "lock", "record.tmp",
        "ticket.json.tmp",
    }  # fmt: skip


def test_the_part_that_is_run_here_strikes_at_each_of_its_calls(
    syscalls: Plan, tmp_path: Path
) -> None:
    """Every cell fires, the error is the kernel's, and the step of each call is told."""
    evidence = runs.run(part(syscalls, "resume"), tmp_path / "evidence")
    assert check(evidence.folder).findings == ()
    captures = list(evidence.captures())
    assert [c.judgement.fired for c in captures] == [True] * len(PART) * len(CALL_FAULTS)
    assert {(c.cell.point.partition("@")[0], step(c)) for c in captures} >= {
        ("rename", "after_action"), ("write", "completion_audit"), ("unlink", "completion_audit"),
    }  # fmt: skip
    for capture in captures:
        [struck] = [e.value for e in capture.measurement.events if "fault" in e.value]
        assert struck == {"point": capture.cell.point, "fault": capture.cell.fault}
        if capture.cell.fault == "kill":
            assert capture.measurement.observations[0].ended == FAULTS["kill"]
    made = rows(captures)
    harmed = {(row["point"], row["fault"]) for row in made if row["verdict"] == "duplicate_effect"}
    assert ("write@audit.jsonl#4", "io_error") in harmed  # as in the article's P3
    assert not [point for point, fault in harmed if fault == "kill"]


def test_a_refused_call_gives_its_caller_the_error_of_the_kernel(
    syscalls: Plan, tmp_path: Path
) -> None:
    """Where no catch of the runtime stands between; after the action one does."""
    cells = [
        c
        for c in syscalls.cells
        if c.point == "write@audit.jsonl#2" and (c.policy, c.dedupe) == ("never", "none")
    ]
    evidence = runs.run(plans.only(syscalls, [c.id for c in cells]), tmp_path / "evidence")
    assert {row["fault"]: row["caller_error"] for row in rows(evidence.captures())} == {
        "kill": "SIGKILL",
        "io_error": "EIO",
        "disk_full": "ENOSPC",
        "error_after_call": "EIO",
    }


@pytest.mark.parametrize(
    ("point", "state"),
    [("fsync@record.tmp#2", "pending_approval"), ("fsync@approvals#2", "approved")],
)
def test_a_flush_that_fails_may_come_after_what_it_was_to_make_last(
    tmp_path: Path, point: str, state: str
) -> None:
    """Before the rename the old record stands, after it the new one; EIO is seen of both."""
    cell = Cell(point=point, fault="io_error", policy="never", variant="fsync")
    evidence = runs.run(Plan("flush", (cell,)), tmp_path / "evidence")
    [found] = rows(evidence.captures())
    assert (found["fired"], found["caller_error"]) == (True, "EIO")
    assert found["state_after_fault"] == state


def test_facts_are_equal_in_two_runs_and_under_fork_and_spawn(
    syscalls: Plan, tmp_path: Path
) -> None:
    """Each call once, and each way, though not each with every other."""
    cells = part(syscalls, "resume", "operation_key").cells
    ways = itertools.cycle(CALL_FAULTS)
    chosen = {point: next(ways) for point in dict.fromkeys(cell.point for cell in cells)}
    plan = plans.only(syscalls, [c.id for c in cells if chosen[c.point] == c.fault])
    facts = [
        [c.facts_sha256 for c in runs.run(plan, tmp_path / name, start=start).captures()]
        for name, start in {"one": "fork", "two": "fork", "three": "spawn"}.items()
    ]
    assert facts[0] == facts[1] == facts[2]


@pytest.mark.parametrize(
    ("kind", "name", "points"),
    [
        ("power_loss", "power", POINTS),
        ("power_loss_local", "power_local", ("after_action", "response")),
    ],
)
def test_a_power_plan_has_every_state_of_its_points_once(
    kind: str, name: str, points: tuple[str, ...]
) -> None:
    """As many as the recording says, from state 0 on."""
    cells = plans.read(name).cells
    assert tuple(dict.fromkeys(c.point for c in cells)) == points
    for variant in ("baseline", "fsync"):
        states = generated.record(variant).states[kind]
        assert tuple(states) == POINTS
        for point, count in states.items():
            own = [c for c in cells if (c.point, c.variant) == (point, variant)]
            wanted = [f"{kind}#{number}" for number in range(count)]
            for policy in {c.policy for c in own}:
                assert [c.fault for c in own if c.policy == policy] == wanted
            assert 0 < count <= power.MOST


@pytest.mark.parametrize("kind", POWER_LOSSES)
def test_a_recorded_count_is_the_one_that_the_struck_phase_has(kind: str, tmp_path: Path) -> None:
    """Nobody strikes in the recording; one that is killed has made the same calls until then."""
    cells = [Cell(point=p, fault=f"{kind}#0", policy="never", variant="fsync") for p in POINTS]
    evidence = runs.run(Plan("lost", tuple(cells)), tmp_path / "evidence")
    found = {c.cell.point: told(c) for c in evidence.captures()}
    assert found == generated.record("fsync").states[kind]


def told(capture: Capture) -> int:
    [states] = [e.value["states"] for e in capture.measurement.events if "unexplored" in e.value]
    return int(states)


def test_what_cannot_be_recorded_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that fails by itself, and a machine without strace."""
    with pytest.raises(PlanError, match=r"could not be recorded: .*'NoSuchRuntime'"):
        generated.record("baseline", "rcr_probes.reference:NoSuchRuntime")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlanError, match="sudo apt install strace"):
        plans.read("syscalls")


HANGING = """
import os, time
from rcr_probes import Recorded
class Runtime:
    points = {}
    recoveries = ()
    says = {"missing": "open"}
    def start(self, operation):
        with open(TOLD, "w") as file:
            file.write(str(os.getpid()))
        time.sleep(600)
    def recover(self, operation, way):
        pass
    def state(self, operation):
        return Recorded("missing")
"""


def test_a_recording_that_is_killed_takes_all_of_it_along(tmp_path: Path) -> None:
    """Neither the phase nor the tracer outlives whoever asked for the plan."""
    told = tmp_path / "told"
    (tmp_path / "hanging.py").write_text(HANGING.replace("TOLD", repr(str(told))))
    program = "from rcr_probes import generated; generated.record('baseline', 'hanging:Runtime')"
    asking = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    try:
        until(lambda: told.exists() and told.read_text() != "")
        phase = told.read_text()
        [tracer] = re.findall(r"TracerPid:\t(\d+)", Path("/proc", phase, "status").read_text())
        assert tracer != "0"
    finally:
        asking.kill()
        asking.wait()
    for pid in (phase, tracer):
        until(lambda pid=pid: not os.path.exists(f"/proc/{pid}"))
