"""The power goes at a named point: what stands there then is a state that the recording allows."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import outage, power, strace
from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.errors import PlanError, UnknownName
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Cell, Json, Plan

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)
AT = "completion_audit"
RECORD = f"{hashlib.sha256(b'operation-0').hexdigest()[:32]}.json"


def lost(state: int, point: str = AT, **axes: Any) -> Cell:
    return Cell(point=point, fault=f"power_loss#{state}", **axes)


def told(capture: Capture) -> Mapping[str, Json]:
    """What the capture tells of the state that the power left."""
    [event] = [e.value for e in capture.measurement.events if "unexplored" in e.value]
    return event


def ran(into: Path, *cells: Cell, **options: Any) -> tuple[list[Row], Evidence]:
    """Run cells; their evidence is sound."""
    evidence = runs.run(Plan("lost", cells), into / "evidence", **options)
    assert check(evidence.folder).findings == ()
    return rows(evidence.captures()), evidence


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Capture], list[Path]]:
    """Every eighth state at one point, and its folder, in which nobody recovered."""
    into = tmp_path_factory.mktemp("kept")
    cells = [lost(state, policy="never") for state in range(0, power.MOST, 8)]
    _, evidence = ran(into, *cells, keep=True)
    return list(evidence.captures()), sorted(into.glob("evidence.cells/*"))


def tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
    }


def below(place: Path, top: str) -> dict[str, bytes | None]:
    return {f"{top}/{path}": held for path, held in tree(place / top).items()}


def test_the_folder_is_the_planned_state_of_what_was_recorded(
    kept: tuple[list[Capture], list[Path]],
) -> None:
    """What stood there when the power went is what was recorded; what stands there is the state."""
    for capture, place in zip(*kept, strict=True):
        changes = outage.changes_until(str(place), "power_loss")
        found = power.explored(changes)
        value = told(capture)
        assert tree(place / outage.BEFORE) == power.standing(changes)
        assert {"runtime": None, **below(place, "runtime")} == found.states[value["state"]]
        assert (value["states"], value["unexplored"]) == (len(found.states), found.unexplored)
        assert value["lost"] == [] or value["state"] > 0
        assert capture.measurement.observations[0].ended == "SIGKILL"


def test_the_outside_world_survives(kept: tuple[list[Capture], list[Path]]) -> None:
    """The effect is not on the disk that lost its power."""
    for capture, place in zip(*kept, strict=True):
        first = capture.measurement.observations[0]
        assert len(first.effects or ()) == first.calls == 1
        assert (place / "world" / "effects.jsonl").read_bytes().count(b"\n") == 1


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Capture, Path]]:
    """The states of record and effect at once, where all of the record was flushed; their folders.

    The key of an executor that keeps one after the effect is on that disk, too.
    """
    into = tmp_path_factory.mktemp("local")
    axes: dict[str, Any] = {"point": "response", "policy": "again", "variant": "fsync"}
    cells = [Cell(fault=f"power_loss_local#{n}", **axes) for n in range(10)]
    cells += [Cell(fault=f"power_loss_local#{n}", dedupe="late_key", **axes) for n in range(12)]
    _, evidence = ran(into, *cells, keep=True)
    places = into.glob("evidence.cells/*")
    return list(zip(evidence.captures(), sorted(places), strict=True))


def test_a_local_executor_loses_effects_and_keys_with_the_rest(
    local: list[tuple[Capture, Path]],
) -> None:
    """What its event says is lost is lost; the calls, which the harness counts, are not."""
    seen = set()
    for capture, place in local:
        first, value = capture.measurement.observations[0], told(capture)
        lost = dict(value["lost"])
        seen |= {(name, lost.get(name)) for name in ("effects", "keys")}
        assert value["effects"] == len(first.effects or ()) == (0 if "effects" in lost else 1)
        assert (first.calls, first.recorded.status, first.damage) == (1, "succeeded", ())
        assert (place / outage.BEFORE / "world/effects.jsonl").read_bytes().count(b"\n") == 1
    assert seen == {(n, word) for n in ("effects", "keys") for word in (None, "gone", "empty")}


def test_an_effect_that_was_lost_may_be_made_again(local: list[tuple[Capture, Path]]) -> None:
    """A record that says succeeded is no effect; and a key without its effect is none either."""
    shown = {
        ("effects" in dict(told(c)["lost"]), row["call_needed"], row["call_harm"])
        for (c, _), row in zip(local, rows(c for c, _ in local), strict=True)
        if c.cell.dedupe == "none"
    }
    assert shown == {(False, False, "duplicate"), (True, True, "none")}
    kept = {
        (*(name in dict(told(c)["lost"]) for name in ("effects", "keys")), row["call_harm"])
        for (c, _), row in zip(local, rows(c for c, _ in local), strict=True)
        if c.cell.dedupe == "late_key"
    }
    assert kept == {
        (False, False, "none"),
        (True, True, "none"),
        (True, False, "useless"),  # the key is there, and its effect is not: it is never made
        (False, True, "duplicate"),  # the effect is there, and its key is not
    }


def losing(place: Path, point: str, *losses: tuple[str, str]) -> list[int]:
    """The states at a point in which one of these losses occurred."""
    changes = outage.changes_until(str(place), "power_loss", until=point)
    words = [dict(power.told(changes, state)) for state in power.explored(changes).states]
    folder = "runtime/approvals/"
    own = {"record": folder + RECORD, "lock": folder + RECORD.replace("json", "lock")}
    return [
        number
        for number, word in enumerate(words)
        if any(word.get(own.get(name, f"runtime/{name}")) == loss for name, loss in losses)
    ]


def test_what_flushing_buys_and_what_it_does_not(tmp_path: Path) -> None:
    """The record is whole and is the last one; the gap between it and the effect is as it was."""
    cells = [lost(n, "after_action", policy="resume", variant="fsync") for n in range(4)]
    flushed, evidence = ran(tmp_path, *cells)
    assert {told(c)["unexplored"] for c in evidence.captures()} == {0}
    assert {row["state_after_fault"] for row in flushed} == {"executing"}
    assert {row["effects_after_fault"] for row in flushed} == {1}
    assert {row["eligibility"] for row in flushed} == {"reconcile"}
    # A lock whose removal was not flushed is there again.
    assert {row["recovery_error"] for row in flushed} == {
        "APPROVAL_STATE_CONFLICT",
        "APPROVAL_BUSY",
    }


def test_without_flushing_an_older_record_is_taken_for_the_last(
    tmp_path: Path, kept: tuple[list[Capture], list[Path]]
) -> None:
    """The record says approved over an effect, and the runtime's own recovery makes another one."""
    older = losing(kept[1][0], "after_action", ("record", "older"))
    locked = losing(kept[1][0], "after_action", ("lock", "back"))
    free = [number for number in older if number not in locked]
    cells = [lost(n, "after_action", policy="resume") for n in free]
    found, _ = ran(tmp_path, *cells)
    assert {row["fired"] for row in found} == {True}
    harmed = [row for row in found if row["verdict"] == "duplicate_effect"]
    assert harmed
    assert {row["state_after_fault"] for row in harmed} == {"approved"}
    assert {"split_after_fault" in str(row["reasons"]) for row in harmed} == {True}


def test_a_record_that_nobody_can_read_is_a_fact_and_no_broken_measurement(
    tmp_path: Path, kept: tuple[list[Capture], list[Path]]
) -> None:
    """The store says so itself; what became of the effect is known all the same."""
    torn = losing(kept[1][0], AT, ("record", "cut"), ("record", "empty"), ("ticket.json", "cut"))
    found, evidence = ran(tmp_path, *(lost(n, policy="resume") for n in torn[:4]))
    assert {row["state_after_fault"] for row in found} == {"unreadable"}
    assert {row["recovery_error"] for row in found} == {"APPROVAL_STORE_CORRUPT"}
    assert {row["identity"] for row in found} == {"unknown"}
    assert {row["verdict"] for row in found} == {"protected"}
    assert not any(o.damage for c in evidence.captures() for o in c.measurement.observations)


def test_facts_are_equal_in_two_runs_and_under_fork_and_spawn(tmp_path: Path) -> None:
    """Times and pids are in the bytes that are cut, and not in what is told of them."""
    cells = [lost(n, p) for p in ("approval_audit", "after_result") for n in (1, 7)]
    facts = []
    for number, start in enumerate(("fork", "fork", "spawn")):
        _, evidence = ran(tmp_path / str(number), *cells, start=start)
        facts.append([c.facts_sha256 for c in evidence.captures()])
    assert facts[0] == facts[1] == facts[2]


def test_a_state_that_there_is_not_makes_the_cell_unknown_and_says_how_many_there_are(
    tmp_path: Path,
) -> None:
    """A written plan cannot know; the generated one does."""
    (found,), _ = ran(tmp_path, lost(40, variant="fsync"), keep=True)
    assert (found["fired"], found["verdict"]) == (False, "unknown")
    said = next(tmp_path.glob("evidence.cells/*/harness/output.txt")).read_text()
    assert "completion_audit has 3 states, counted from 0" in said


WILD = """
import mmap, os
from rcr_probes import Recorded, reach
class Runtime:
    points = {"after_action": frozenset({"power_loss"})}
    recoveries = ()
    says = {"there": "open", "missing": "open"}
    def start(self, operation):
        fd = os.open(operation.folder / "state", os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(fd, 4)
        operation.executor(operation.key, operation.request)
        LAST
        reach("after_action")
    def recover(self, operation, way):
        pass
    def state(self, operation):
        return Recorded("there" if (operation.folder / "state").exists() else "missing")
"""


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("mmap.mmap(fd, 4)[:] = b'wild'", "other than what was recorded"),
        ("os.symlink('state', operation.folder / 'link')", "link is neither a file nor a folder"),
        ("os.mkfifo(operation.folder / 'pipe')", "pipe is neither a file nor a folder"),
        (
            "os.mkdir(operation.folder / 'd'); "
            "os.rename(operation.folder / 'state', operation.folder / 'd' / 'state')",
            "goes to another folder",
        ),
    ],
)
def test_what_the_model_does_not_know_is_no_power_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, said: str
) -> None:
    """It is not guessed: the cell is unknown, its folder is left as it is, its output says why."""
    (tmp_path / "wild.py").write_text(WILD.replace("LAST", last))
    monkeypatch.chdir(tmp_path)
    cell = lost(0, "after_action", runtime="wild:Runtime", policy="never")
    (found,), _ = ran(tmp_path, cell, keep=True)
    assert (found["fired"], found["verdict"]) == (False, "unknown")
    place = next(tmp_path.glob("evidence.cells/*"))
    assert said in (place / "harness" / "output.txt").read_text()
    assert not (place / outage.BEFORE).exists()


def test_another_runtime_loses_its_power_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the declaration is asked of it."""
    (tmp_path / "wild.py").write_text(WILD.replace("LAST", "os.pwrite(fd, b'wild', 0)"))
    monkeypatch.chdir(tmp_path)
    cells = [lost(n, "after_action", runtime="wild:Runtime", policy="never") for n in range(2)]
    found, evidence = ran(tmp_path, *cells)
    assert [row["state_after_fault"] for row in found] == ["there", "missing"]
    assert [told(c)["lost"] for c in evidence.captures()] == [[], [["state", "gone"]]]


REFUSED: Mapping[str, tuple[Cell, type[Exception], str]] = {
    "no state": (Cell(point=AT, fault="power_loss"), PlanError, "power_loss#N"),
    "a state too far": (lost(power.MOST), PlanError, "counted from 0"),
    "a number that is written otherwise": (
        Cell(point=AT, fault="power_loss#01"), UnknownName, "power_loss#01",
    ),
    "a number below": (Cell(point=AT, fault="power_loss#-1"), UnknownName, "power_loss#-1"),
    "of a receiver": (
        Cell(point=AT, fault="power_loss_local#0", dedupe="receiver_key"),
        PlanError,
        "Write power_loss#N",
    ),
    "of an executor, no state": (Cell(point=AT, fault="power_loss_local"), PlanError, "_local#N"),
    "a call": (lost(0, "write@audit.jsonl#1"), PlanError, "cannot strike at a system call"),
    "a runtime without it": (
        lost(0, "after_action", runtime="tests.runtimes_under_test:Plain"),
        PlanError,
        "does not support",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_a_power_loss_that_cannot_be_is_refused(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything runs."""
    monkeypatch.chdir(ROOT)
    cell, kind, said = REFUSED[why]
    with pytest.raises(kind, match=said.replace("+", r"\+")):
        plans.validated(Plan("lost", (cell,)))


def test_without_strace_a_plan_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recorder is strace."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlanError, match="sudo apt install strace"):
        plans.validated(Plan("lost", (lost(0),)))


def test_no_process_and_no_log_is_left_of_a_power_loss(tmp_path: Path) -> None:
    """The tracer ends with what it recorded; the log goes with the cell's folder."""
    ran(tmp_path, lost(1))
    left = [
        name
        for name in os.listdir("/proc")
        if name.isdigit() and str(tmp_path).encode() in _words(name)
    ]
    assert left == []
    assert not list(tmp_path.rglob("strace.log"))
    assert json.loads((tmp_path / "evidence" / "plan.json").read_text())["name"] == "lost"


def _words(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "cmdline").read_bytes()
    except OSError:
        return b""


def test_the_state_that_the_plan_faults_names_is_the_one_that_it_means(tmp_path: Path) -> None:
    """The number is one of an enumeration; what the plan wants is the loss of one audit line."""
    cell = next(c for c in plans.read("faults").cells if c.kind == "power_loss")
    _, evidence = ran(tmp_path, cell)
    (capture,) = evidence.captures()
    assert told(capture)["lost"] == [["audit.jsonl", "shorter"]]
