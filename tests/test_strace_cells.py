"""Faults at system calls, placed by strace: what fires, what is proven, and what is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes import strace, traced
from rcr_probes.errors import PlanError, UnknownName
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.strace import CallPoint
from tests.faults.beside import needs_ptrace

ROOT = Path(__file__).parents[1]
PLAIN = "tests.runtimes_under_test:Plain"
needs_strace = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtimes of these tests are named from the root of the repository."""
    monkeypatch.chdir(ROOT)


def ran(into: Path, plan: Plan, **options: Any) -> tuple[list[Row], Evidence]:
    """Run a plan; its evidence is sound."""
    evidence = runs.run(plan, into / "evidence", **options)
    assert check(evidence.folder).findings == ()
    return rows(evidence.captures()), evidence


def plain(point: str, fault: str, **axes: Any) -> Cell:
    return Cell(runtime=PLAIN, point=point, fault=fault, **axes)


def lanes(capture: Capture) -> list[str]:
    return [e.lane for e in capture.measurement.events if e.phase == "fault"]


@needs_strace
def test_a_call_of_a_python_runtime_is_struck_in_each_of_the_three_ways(tmp_path: Path) -> None:
    """It is the phase's own process; the strike stands among the events where it happened."""
    cells = [plain("write@state#1", fault) for fault in ("kill", "io_error", "disk_full")]
    found, evidence = ran(tmp_path, Plan("calls", tuple(cells)))
    shown = ("fired", "caller_error", "state_after_fault", "effects_after_fault", "start")
    assert [tuple(row[name] for name in shown) for row in found] == [
        (True, "SIGKILL", "", 1, "spawn"),
        (True, "EIO", "done", 1, "spawn"),  # Python's buffer wrote it after all, on its way out
        (True, "ENOSPC", "done", 1, "spawn"),
    ]
    assert {row["verdict"] for row in found} == {"duplicate_effect"}
    killed, refused, _ = evidence.captures()
    before = ["point", "call", "effect", "point"]  # before_action, …, after_action
    assert lanes(killed) == [*before, "point", "fault", "state"]
    assert lanes(refused) == [*before, "point", "fault", "return", "state"]
    assert killed.measurement.observations[0].standing is None  # its wait status says it
    assert refused.measurement.observations[0].standing is True


@needs_strace
def test_a_point_that_is_not_reached_makes_the_cell_unknown_and_says_what_was_seen(
    tmp_path: Path,
) -> None:
    """Nothing was struck, and nothing is claimed."""
    cells = (plain("write@state#9", "kill"), plain("write@elsewhere#1", "io_error"))
    found, _ = ran(tmp_path, Plan("calls", cells), keep=True)
    kept = [path.name for path in tmp_path.glob("evidence.cells/*")]
    assert all(re.fullmatch(r"[\w.-]+", name, re.ASCII) for name in kept)  # also in a URI
    assert [(row["fired"], row["verdict"]) for row in found] == [(False, "unknown")] * 2
    said = [p.read_text() for p in sorted(tmp_path.glob("evidence.cells/*/harness/output.txt"))]
    assert "openat@state#1, close@state#1" in said[0].replace("write@state#1, ", "")
    assert "write@state#1" in said[0]
    assert "none at all" in said[1]


@needs_strace
@needs_jq
def test_the_example_in_shell_has_no_points_and_its_fault_is_found(tmp_path: Path) -> None:
    """The plan of the example, and of its refused calls one of each."""
    plan = plans.read("examples/shell-runtime/plan.toml")
    chosen = [c for c in plan.cells if (c.point[-1], c.fault) not in _ALIKE]
    found, _ = ran(tmp_path, Plan(plan.name, tuple(chosen)))
    assert [(row["point"], row["fault"], row["dedupe"], row["verdict"]) for row in found] == [
        ("none", "none", "none", "protected"),
        ("write@status#1", "disk_full", "none", "consistent"),
        ("write@status#2", "kill", "none", "duplicate_effect"),
        ("write@status#2", "io_error", "none", "duplicate_effect"),
        ("write@status#2", "kill", "operation_key", "deduplicated"),
    ]
    assert {row["fired"] for row in found} == {None, True}


@needs_strace
@needs_node
def test_the_example_in_node_is_struck_at_its_own_calls(tmp_path: Path) -> None:
    """A process below the phase's own is killed at its rename, or told that the disk is full."""
    found, evidence = ran(tmp_path, plans.read("examples/node-runtime/calls.toml"))
    assert [
        (row["fault"], row["policy"], row["caller_error"], row["verdict"]) for row in found
    ] == [
        ("kill", "resume", "SIGKILL", "duplicate_effect"),
        ("kill", "careful", "SIGKILL", "held"),
        ("io_error", "resume", "EIO", "duplicate_effect"),
        ("io_error", "careful", "EIO", "protected"),
        ("disk_full", "resume", "ENOSPC", "duplicate_effect"),
        ("disk_full", "careful", "ENOSPC", "protected"),
    ]
    assert {row["fired"] for row in found} == {True}
    first = next(evidence.captures()).measurement.observations[0]
    assert (first.ended, first.standing) == ("exit", True)  # the node process died, not the phase


_ALIKE = {("1", "kill"), ("1", "io_error"), ("2", "disk_full")}
ACTING_AFTER = """
import os
from rcr_probes import Operation, Recorded
class Runtime:
    points = {}
    recoveries = ()
    says = {"done": "done", "missing": "open", "": "open"}
    def start(self, operation):
        operation.executor(operation.key, operation.request)
        path = operation.folder / "state"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(fd, b"done")
        os.CALL(fd)
    def recover(self, operation, way):
        if self.state(operation).status != "done":
            self.start(operation)
    def state(self, operation):
        path = operation.folder / "state"
        return Recorded(path.read_text() if path.exists() else "missing")
"""


@needs_strace
@pytest.mark.parametrize("call", ["fsync", "close"])
def test_an_error_after_a_write_took_effect_is_one_of_the_call_that_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """What was written stands, and the caller is told that it failed: as on a failing disk."""
    (tmp_path / f"acting_{call}.py").write_text(ACTING_AFTER.replace("CALL", call))
    monkeypatch.chdir(tmp_path)
    cell = Cell(runtime=f"acting_{call}:Runtime", point=f"{call}@state#1", fault="io_error")
    (found,), _ = ran(tmp_path, Plan("calls", (cell,)))
    assert (found["caller_error"], found["state_after_fault"]) == ("EIO", "done")
    assert (found["fired"], found["effects_after_recovery"]) == (True, 1)


STRUCK_BELOW = """
import os, signal, threading
from rcr_probes import Operation, Recorded
class Thread:
    points = {}
    recoveries = ()
    says = {"done": "done", "missing": "open", "": "open"}
    def start(self, operation):
        operation.executor(operation.key, operation.request)
        self.store(operation.folder / "state")
    def store(self, path):
        writing = threading.Thread(target=path.write_text, args=("done",))
        writing.start()
        writing.join()
    def recover(self, operation, way):
        pass
    def state(self, operation):
        path = operation.folder / "state"
        return Recorded(path.read_text() if path.exists() else "missing")
class Child(Thread):
    def store(self, path):
        if not os.fork():
            super().store(path)
            os._exit(0)
        os.wait()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@needs_strace
@pytest.mark.parametrize("runtime", ["Thread", "Child"])
def test_a_kill_is_the_phases_own_only_where_its_own_thread_was_struck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    """Where it was a thread of a child, and then somebody killed the phase, nothing is known."""
    (tmp_path / "struck_below.py").write_text(STRUCK_BELOW)
    monkeypatch.chdir(tmp_path)
    cell = Cell(runtime=f"struck_below:{runtime}", point="write@state#1", fault="kill")
    (found,), _ = ran(tmp_path, Plan("calls", (cell,)))
    own = runtime == "Thread"
    assert (found["caller_error"], found["effects_after_fault"]) == ("SIGKILL", 1)
    assert ("observation_damaged" in str(found["reasons"])) is not own
    assert (found["verdict"] == "unknown") is not own


@needs_strace
def test_a_phase_under_strace_that_overruns_is_ended_with_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracer ends when what it watches has."""
    hanging = ACTING_AFTER.replace("os.CALL(fd)", "__import__('time').sleep(600)")
    (tmp_path / "hanging.py").write_text(hanging)
    monkeypatch.chdir(tmp_path)
    cell = Cell(runtime="hanging:Runtime", point="write@state#1", fault="io_error", policy="never")
    slow = Cell(runtime="hanging:Runtime", point="write@state#2", fault="io_error", policy="never")
    found, _ = ran(tmp_path, Plan("calls", (cell, slow)), deadline=8)
    assert [row["reasons"] for row in found][1] == "fault_not_fired,deadline_passed"
    assert not tracers(tmp_path)


@needs_strace
def test_a_worker_that_is_killed_takes_what_is_under_strace_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its phase dies with it, and so the tracer has nothing left to watch."""
    told = tmp_path / "told"
    hanging = ACTING_AFTER.replace(
        "os.CALL(fd)",
        f"open({str(told)!r}, 'w').write(str(os.getpid())); __import__('time').sleep(600)",
    )
    (tmp_path / "hanging.py").write_text(hanging)
    job = {
        "cell": {"point": "write@state#2", "fault": "io_error", "runtime": "hanging:Runtime"},
        "folder": str(tmp_path / "cell"),
        "start": "fork",
        "deadline": 60.0,
    }
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "rcr_probes.worker", str(os.getpid()), "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    assert worker.stdin
    with worker, worker.stdin as jobs:
        jobs.write(json.dumps(job).encode() + b"\n")
        jobs.flush()
        try:
            until(lambda: told.exists() and told.read_text() != "")
        finally:
            worker.send_signal(signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{told.read_text()}"))
    until(lambda: not tracers(tmp_path))


def tracers(place: Path) -> list[str]:
    """The processes whose command names a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"strace") and any(bytes(place) in word for word in words):
            found.append(process.name)
    return found


def until(holds: Any) -> None:
    """Wait for a state; the test fails where it does not come about."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


REFUSED: Mapping[str, tuple[str, str, type[Exception], str]] = {
    "an unknown call": ("wriet@state#1", "kill", UnknownName, "Did you mean 'write'"),
    "no number": ("write@state", "kill", PlanError, "CALL@FILE#N"),
    "number 0": ("write@state#0", "kill", PlanError, "N counts from 1"),
    "a number that strace cannot count to": ("write@state#65536", "kill", PlanError, "N counts"),
    "a file elsewhere": ("write@../world/effects.jsonl#1", "kill", PlanError, "private folder"),
    "an absolute file": ("write@/etc/passwd#1", "kill", PlanError, "private folder"),
    "no file": ("write@#1", "kill", PlanError, "CALL@FILE#N"),
    "a write to a folder": ("write@.#1", "kill", PlanError, "a file where the call takes no"),
    "a fault of points": ("write@state#1", "exception", PlanError, "disk_full, error_after_call"),
    "a fault of calls": ("after_action", "disk_full", PlanError, "CALL@FILE#N"),
    "no fault": ("write@state#1", "none", PlanError, "A fault needs a point"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_call_at_which_nothing_can_strike_is_refused(why: str) -> None:
    """Before anything runs, and it says how a point is written."""
    point, fault, kind, said = REFUSED[why]
    with pytest.raises(kind, match=said):
        plans.validated(Plan("calls", (plain(point, fault),)))


@needs_strace
def test_a_call_on_the_folder_itself_is_a_point() -> None:
    """A program may sync the folder in which it has renamed a file."""
    cell = plain("fsync@.#1", "io_error")
    assert plans.validated(Plan("calls", (cell,))).cells == (cell,)


def test_without_strace_a_plan_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before anything runs."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlanError, match="sudo apt install strace"):
        plans.validated(Plan("calls", (plain("write@state#1", "kill"),)))


BELOW = """
import sys
from rcr_probes import generated, plan
from rcr_probes.errors import PlanError
from rcr_probes.model import Cell, Plan
for read in (
    lambda: plan.validated(Plan("p", (Cell(point="write@state#1", fault="kill"),))),
    lambda: plan.validated(Plan("p", (Cell(point="after_action", fault="power_loss#0"),))),
    lambda: plan.validated(Plan("p", (Cell(point="start_audit", fault="torn_append"),))),
    lambda: plan.read("syscalls"),
    lambda: plan.read("power"),
):
    try:
        read()
        print("read")
    except PlanError as refused:
        print(refused.cause, refused.remedy)
"""


@needs_strace
@needs_ptrace
def test_below_another_tracer_whatever_must_follow_is_refused_and_says_why() -> None:
    """It is installed there, and may not follow: its cells would all be unknown."""
    words = (strace.PROGRAM, "-f", "-o", os.devnull, sys.executable, "-c", BELOW)
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    said = done.stdout.splitlines()
    assert len(said) == 5, done
    assert all("may not follow" in line and "no other tracer" in line for line in said), said


LOG = """\
11 100.000001 openat(AT_FDCWD</w>, "/cell/runtime/state", O_WRONLY) = 3</cell/runtime/state>
12 100.000002 write(3</cell/runtime/state>, ""..., 4 <unfinished ...>
11 100.000003 write(3</cell/runtime/state>, ""..., 4) = 4
12 100.000004 <... write resumed>) = -1 EIO (Input/output error) (INJECTED)
11 100.000005 write(4</cell/runtime/state.new>, ""..., 4) = -1 EIO (Input/output error) (INJECTED)
11 100.000006 write(3</cell/runtime/state>, ""..., 4 <unfinished ...>
11 100.000007 <... write resumed>) = ?
11 100.000008 +++ killed by SIGKILL +++
"""


@pytest.mark.parametrize(
    ("point", "struck"),
    [
        ("write@state#1", [(12, 100.000002)]),
        ("write@state#2", [(11, 100.000006)]),
        ("write@state.new#1", [(11, 100.000005)]),
        ("openat@state#1", []),
    ],
)
def test_a_log_proves_a_strike_on_its_own_file_and_number_alone(
    point: str, struck: list[tuple[int, float]]
) -> None:
    """Calls that interleave are put together, and each process counts its own."""
    at = strace.parse(point)
    assert at is not None
    assert [(s.pid, s.at) for s in traced.strikes(LOG, at, "/cell/runtime")] == struck


def test_a_call_that_did_not_return_is_no_proof_where_nothing_was_killed() -> None:
    """A log may end in the middle of a call."""
    log = "".join(LOG.splitlines(keepends=True)[:-1])
    point = CallPoint("write", "state", 2)
    assert traced.strikes(log, point, "/cell/runtime") == []
