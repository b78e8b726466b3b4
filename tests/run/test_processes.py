"""Each phase is a process of its own, and none stays behind, however it ends."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes import worker
from rcr_probes.evidence import store
from rcr_probes.model import Cell, Plan
from rcr_probes.product import product
from rcr_probes.worker import Job
from tests.run.cells import CONTROL, MINE, P3, alive, ends, scratch, verdict


def test_each_phase_is_a_process_of_its_own(forked: store.Evidence, tmp_path: Path) -> None:
    """Two pids a cell and one for the forced call, each another than the parent's and ours."""
    spawned = runs.run(plans.read("article"), tmp_path / "article", start="spawn")
    for capture in (*forked.captures(), *spawned.captures()):
        pids = capture.circumstances.pids
        assert set(pids) == {"fault", "force", "recover"}
        everyone = {*pids.values(), capture.circumstances.parent, os.getpid()}
        assert len(everyone) == 5


def test_nothing_stays_behind(tmp_path: Path) -> None:
    """No process, and no folder in memory, when a run is over."""
    during: list[Path] = []
    before = children()
    runs.run("article", tmp_path / "article", progress=lambda *_: during.extend(scratch()))
    assert during
    assert scratch() == []
    assert children() <= before


def children() -> set[int]:
    """Of this process; one that nobody has waited for is one of them."""
    return {
        int(pid)
        for thread in Path("/proc/self/task").iterdir()
        for pid in (thread / "children").read_text().split()
    }


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_phase_that_overruns_is_ended_with_its_children(tmp_path: Path, start: str) -> None:
    """The verdict is unknown, for that reason, and the run goes on."""
    plan = Plan("two", (Cell(runtime=f"{MINE}:Hanging", **CONTROL), Cell(**P3)))
    begun = time.monotonic()
    hung, fine = runs.run(
        plan, tmp_path / "two", start=start, workers=1, deadline=2.0, keep=True
    ).captures()
    assert time.monotonic() - begun < 60
    assert "deadline_passed" in verdict(hung)[1]
    assert verdict(hung)[0] == "unknown"
    assert verdict(fine)[0] == "duplicate_effect"
    (noted,) = (tmp_path / "two.cells").glob("0000*/runtime/child")
    assert not alive(int(noted.read_text()))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_grandchild_in_a_group_of_its_own_is_ended_and_told(tmp_path: Path, start: str) -> None:
    """What a phase leaves behind makes the cell unknown: it could still have acted."""
    plan = Plan("one", (Cell(runtime=f"{MINE}:Daemon", **CONTROL),))
    (capture,) = runs.run(plan, tmp_path / "one", start=start, keep=True).captures()
    assert verdict(capture) == ("unknown", ("observation_damaged",))
    assert "outlived the phase" in " ".join(capture.measurement.observations[0].damage)
    (noted,) = (tmp_path / "one.cells").glob("*/runtime/child")
    assert not alive(int(noted.read_text()))


def test_a_worker_that_dies_costs_its_cell_and_no_other(tmp_path: Path) -> None:
    """The cell is unknown, a new worker goes on, and nothing is lost or done twice."""
    cells = list(product(**P3, seed=list(range(6))))
    cells[2] = Cell(runtime=f"{MINE}:Parricide", **CONTROL)
    captures = list(runs.run(Plan("six", tuple(cells)), tmp_path / "six", workers=2).captures())
    assert [c.cell for c in captures] == cells
    assert verdict(captures[2])[0] == "unknown"
    assert captures[2].measurement.observations[0].damage == ("harness: the worker process died",)
    assert [verdict(c)[0] for n, c in enumerate(captures) if n != 2] == ["duplicate_effect"] * 5


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_phase_dies_with_its_worker(tmp_path: Path, start: str) -> None:
    """Nobody is left who could still act, however the worker ended."""
    plan = Plan("one", (Cell(runtime=f"{MINE}:ParricideAndHang", **CONTROL),))
    (capture,) = runs.run(plan, tmp_path / "one", start=start, keep=True).captures()
    assert verdict(capture)[0] == "unknown"
    (noted,) = (tmp_path / "one.cells").glob("*/runtime/pid")
    assert ends(int(noted.read_text()))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_what_a_killed_worker_had_below_it_is_ended(tmp_path: Path, start: str) -> None:
    """Also in sessions of their own, and at once: what they hold open keeps nobody waiting."""
    plan = Plan("one", (Cell(runtime=f"{MINE}:ParricideOfTwo", **CONTROL),))
    begun = time.monotonic()
    (capture,) = runs.run(plan, tmp_path / "one", start=start, deadline=300, keep=True).captures()
    assert time.monotonic() - begun < 120  # and not until six phases' deadlines are over
    assert capture.measurement.observations[0].damage == ("harness: the worker process died",)
    for name in ("child", "forked"):
        (noted,) = (tmp_path / "one.cells").glob(f"*/runtime/{name}")
        assert ends(int(noted.read_text()))


def test_what_was_measured_survives_a_worker_that_dies_judging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies in the cell's folder before anything judges it, and is judged by somebody else."""

    def dies(measured: object) -> None:
        raise KeyboardInterrupt

    job = Job(Cell(**P3), str(tmp_path / "cell"), "fork", 30.0)
    with monkeypatch.context() as patched:
        patched.setattr(worker, "derive", dies)
        with pytest.raises(KeyboardInterrupt):
            worker.run_cell(job)
    assert verdict(worker.left_by(job))[0] == "duplicate_effect"
