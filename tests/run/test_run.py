"""From plan to sealed evidence: what a run keeps, resumes, refuses, and leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes import worker
from rcr_probes.errors import EvidenceError, PlanError, UnknownName
from rcr_probes.evidence import form, rows, store
from rcr_probes.evidence.check import check
from rcr_probes.model import Cell, Plan
from rcr_probes.worker import Job
from tests.run.cells import P3, facts, verdict

# What recovery finds, and what is kept.


def test_recovery_erases_the_records_memory_of_the_first_effect(forked: store.Evidence) -> None:
    """The failed record has the first effect's evidence; after a changed digest it is gone."""
    changed = forked.capture("completion_audit/audit_is_directory/none/changed/resume")
    first, last = changed.measurement.observations
    assert first.recorded.status == "failed"
    assert first.recorded.evidence == ({"kind": "local-marker", "observed_count": 1},)
    assert (last.recorded.status, last.recorded.execution) == ("stale", "not_started")
    assert last.recorded.evidence == ()
    assert last.effects is not None
    assert len(last.effects) == 1
    assert "evidence_erased" in verdict(changed)[1]


def test_the_lifted_audit_has_its_saved_lines(tmp_path: Path) -> None:
    """What was audited before the fault is there after it, and recovery's lines follow."""
    plan = Plan("one", (Cell(**P3),))
    runs.run(plan, tmp_path / "one", keep=True)
    (audit,) = (tmp_path / "one.cells").glob("*/runtime/audit.jsonl")
    told = [line.split('"event":"')[1].split('"')[0] for line in audit.read_text().splitlines()]
    before = ["operation.prepared", "operation.approved", "operation.started"]
    assert told == [*before, "operation.started", "operation.succeeded"]
    assert [p.name for p in audit.parent.iterdir() if "saved" in p.name] == []


def test_what_was_measured_is_on_disk_before_anything_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that breaks yields unknown, and what was measured is kept."""

    def broken(measured: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(worker, "derive", broken)
    job = Job(Cell(**P3), str(tmp_path / "cell"), "spawn", 30.0)
    capture = worker.run_cell(job)
    assert verdict(capture) == ("unknown", ("judge_failed",))
    assert capture.measurement.observations[1].calls == 2
    left = worker.left_by(job)
    assert left.measurement == capture.measurement


# Folders.


def test_a_complete_folder_is_not_run_again(forked: store.Evidence) -> None:
    """It is returned as it is; nothing in it changes."""
    before = (forked.folder / form.CAPTURES).read_bytes()
    assert facts(runs.run("article", forked.folder)) == facts(forked)
    assert (forked.folder / form.CAPTURES).read_bytes() == before


def test_again_keeps_what_was_there_aside(tmp_path: Path) -> None:
    """The new evidence takes the folder, the one before is always ``.previous``, none is lost."""
    plan = Plan("one", (Cell(**P3),))
    first = next(runs.run(plan, tmp_path / "one").captures())
    second = next(runs.run(plan, tmp_path / "one", again=True).captures())
    third = next(runs.run(plan, tmp_path / "one", again=True).captures())
    for name, made in {"": third, ".previous": second, ".previous-2": first}.items():
        assert list(store.read(tmp_path / f"one{name}").captures()) == [made]
    assert len({made.circumstances.pids["fault"] for made in (first, second, third)}) == 3


def test_a_run_that_was_cut_short_is_resumed_where_it_stopped(tmp_path: Path) -> None:
    """Captures that were sealed stay as they are; the rest is run."""
    seen: list[int] = []

    def stop(done: int, total: int) -> None:
        seen.append(done)
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.run("article", tmp_path / "article", progress=stop)
    kept = (tmp_path / "article" / form.CAPTURES).read_bytes()
    assert kept.count(b"\n") == 3
    rest: list[int] = []
    runs.run("article", tmp_path / "article", progress=lambda done, _: rest.append(done))
    assert rest == [4, 5, 6]
    assert (tmp_path / "article" / form.CAPTURES).read_bytes().startswith(kept)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"start": "forkk"}, UnknownName),
        ({"workers": 0}, PlanError),
        ({"deadline": 0}, PlanError),
        ({"deadline": float("nan")}, PlanError),
        ({"deadline": float("inf")}, PlanError),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_anything_is_written(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception]
) -> None:
    """No folder is made for a run that cannot begin."""
    with pytest.raises(error):
        runs.run("article", tmp_path / "article", **arguments)
    assert not (tmp_path / "article").exists()


def test_a_run_is_not_set_aside_while_it_is_writing(tmp_path: Path) -> None:
    """Its folder stays where it is, and it goes on."""

    def again(done: int, total: int) -> None:
        if done == 2:
            with pytest.raises(PlanError, match="Another run is writing"):
                runs.run("article", tmp_path / "article", again=True)

    assert check(runs.run("article", tmp_path / "article", progress=again).folder).sound
    assert [p.name for p in tmp_path.iterdir()] == ["article"]


def test_a_folder_that_was_moved_under_a_run_is_not_sealed(tmp_path: Path) -> None:
    """Nobody's captures are sealed as somebody else's."""

    def move(done: int, total: int) -> None:
        if done == 2:
            (tmp_path / "article").rename(tmp_path / "moved")
            runs.run("article", tmp_path / "article")

    with pytest.raises(EvidenceError, match="moved or replaced"):
        runs.run("article", tmp_path / "article", progress=move)
    assert check(tmp_path / "article").sound
    runs.run("article", tmp_path / "moved")
    assert check(tmp_path / "moved").sound


def test_complete_evidence_that_was_changed_is_not_shown_as_it_is(tmp_path: Path) -> None:
    """A run that has nothing to do looks whether what it returns is what was sealed."""
    folder = runs.run("article", tmp_path / "article").folder
    with open(folder / form.CAPTURES, "ab") as file:
        file.write(b"\n")
    with pytest.raises(EvidenceError, match="changed after it was sealed"):
        runs.run("article", folder)


def test_the_current_directory_can_be_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands beside it is named after it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    runs.run("article", ".", keep=True)
    assert (tmp_path / "here.cells").is_dir()
    assert check(Path(".")).sound


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    """Neither written into, nor moved aside by again."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for again in (False, True):
        with pytest.raises(PlanError, match="holds no plan"):
            runs.run("article", tmp_path / "mine", again=again)
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_the_rows_of_a_run_are_the_articles(forked: store.Evidence) -> None:
    """Both tables, from the captures."""
    made = {r["cell"]: r for r in rows.rows(forked.captures())}
    table = [
        (r["recovery_error" if r["point"] == "none" else "caller_error"], r["state_after_fault"])
        for r in list(made.values())[:4]
    ]
    assert table == [
        ("APPROVAL_ALREADY_CONSUMED", "succeeded"),
        ("EISDIR", "approved"),
        ("EISDIR", "executing"),
        ("EISDIR", "failed"),
    ]
    restart = [
        tuple(
            r[c]
            for c in (
                "effects_after_fault",
                "effects_after_recovery",
                "calls_after_recovery",
                "recovery_error",
                "state_after_recovery",
            )
        )
        for r in list(made.values())[3:]
    ]
    assert restart == [
        (1, 2, 2, "none", "succeeded"),
        (1, 1, 2, "none", "succeeded"),
        (1, 1, 1, "APPROVAL_STALE", "stale"),
    ]
