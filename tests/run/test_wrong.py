"""What is wrong on purpose is seen: executors, faults that do not fire, runtimes that err."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rcr_probes import pool
from rcr_probes import run as runs
from rcr_probes.evidence import form, store
from rcr_probes.evidence.check import check
from rcr_probes.model import Cell, Plan
from rcr_probes.runtime import load
from rcr_probes.vocabulary import POWER_LOSSES
from tests.run.cells import CONTROL, MINE, P3, ROOT, facts, one, verdict


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("runtime", "expected"),
    [("silent", "lost_effect"), ("twice", "duplicate_effect"), ("elsewhere", "wrong_effect")],
)
def test_an_executor_that_errs_on_purpose_changes_the_verdict(
    tmp_path: Path, runtime: str, expected: str, start: str
) -> None:
    """Without any fault: no effect, two effects, another effect."""
    assert verdict(one(tmp_path, start=start, runtime=runtime, **CONTROL))[0] == expected


@pytest.mark.parametrize(
    ("runtime", "point", "fault"),
    [
        ("Disarmed", "response", "exception"),
        ("Disarmed", "response", "kill"),
        ("Suicidal", "after_action", "kill"),
    ],
)
def test_a_fault_that_did_not_fire_makes_the_cell_unknown(
    tmp_path: Path, runtime: str, point: str, fault: str
) -> None:
    """A point that is never reached proves nothing; nor does somebody else's kill."""
    capture = one(tmp_path, runtime=runtime, point=point, fault=fault)
    assert capture.judgement.fired is False
    assert verdict(capture)[0] == "unknown"
    assert "fault_not_fired" in verdict(capture)[1]


def test_a_point_that_does_not_exist_is_told_and_not_passed_over(tmp_path: Path) -> None:
    """A misspelt point cannot pass for one that no fault came to."""
    capture = one(tmp_path, runtime="Misspelt", **CONTROL)
    assert verdict(capture)[0] == "unknown"
    assert "a point that does not exist" in " ".join(capture.measurement.observations[0].damage)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_phase_that_vanishes_is_a_crash(tmp_path: Path, start: str) -> None:
    """Status 0 without a return is no success."""
    capture = one(tmp_path, start=start, runtime="Vanishing", **CONTROL)
    assert "phase_crashed" in verdict(capture)[1]


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_signal_without_a_name_is_told_by_its_number(tmp_path: Path, start: str) -> None:
    """It is the phase's end and its caller's error, and nothing of the harness that broke."""
    capture = one(tmp_path, start=start, runtime="EndedByANumber", policy="never", **CONTROL)
    observed = capture.measurement.observations[0]
    assert (observed.ended, observed.error) == (f"SIGNAL_{signal.SIGRTMIN + 6}",) * 2
    assert verdict(capture) == ("unknown", ("phase_killed",))
    assert check(tmp_path / "one").findings == ()


# What a runtime does wrong → the verdict of its cell, whose policy is ``never`` or ``again``.
WRONGS = {
    "PrintsItsState": ("never", "protected"),
    "TextEvidence": ("never", "unknown"),
    "Subclassed": ("never", "unknown"),
    "Fickle": ("never", "unknown"),
    "Late": ("never", "duplicate_effect"),
    "Interrupts": ("never", "blocked"),
    "Denies": ("again", "blocked"),
    "Piped": ("never", "unknown"),
    "Interjects": ("never", "protected"),
    "InterjectsWhereAsked": ("never", "unknown"),
    "Vandal": ("again", "unknown"),
    "Stubborn": ("never", "protected"),
    "Floating": ("never", "unknown"),
    "Nested": ("never", "protected"),
    "Deep": ("never", "unknown"),
    "Huge": ("never", "unknown"),
    "Halved": ("never", "unknown"),
    "Exiting": ("never", "protected"),
    "Vanishing": ("never", "unknown"),
    "Forgets": ("again", "duplicate_effect"),
    "Unreadable": ("never", "unknown"),
    "Misspelt": ("never", "unknown"),
    "ClosesItsStreams": ("never", "protected"),
}


@pytest.fixture(scope="module")
def wrongs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, store.Evidence]:
    """Each of them before a cell of the reference, under both start methods, by one worker."""
    cells: list[Cell] = []
    for seed, (name, (policy, _)) in enumerate(WRONGS.items()):
        runtime = f"{MINE}:{name}"
        cells += [Cell(runtime=runtime, policy=policy, **CONTROL), Cell(**P3, seed=seed)]
    plan, place = Plan("wrongs", tuple(cells)), tmp_path_factory.mktemp("wrongs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return {s: runs.run(plan, place / s, start=s, workers=1) for s in ("fork", "spawn")}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_what_a_runtime_does_wrong_is_its_own_cells_matter(
    wrongs: dict[str, store.Evidence], start: str
) -> None:
    """Its cell gets the verdict that it deserves, its neighbours get theirs."""
    captures = list(wrongs[start].captures())
    assert {c.cell.runtime.split(":")[1]: verdict(c)[0] for c in captures[::2]} == {
        name: expected for name, (_, expected) in WRONGS.items()
    }
    assert {verdict(c)[0] for c in captures[1::2]} == {"duplicate_effect"}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_evidence_of_whatever_went_wrong_is_sound(
    wrongs: dict[str, store.Evidence], start: str
) -> None:
    """A run never seals what its own check would not trust."""
    assert check(wrongs[start].folder).findings == ()


def test_what_goes_wrong_goes_wrong_alike_under_fork_and_spawn(
    wrongs: dict[str, store.Evidence],
) -> None:
    """Threads and exit handlers come to their end in both; only a state made of pids differs."""
    forked_facts, spawned_facts = (facts(wrongs[start]) for start in ("fork", "spawn"))
    differing = {cell for cell in forked_facts if forked_facts[cell] != spawned_facts[cell]}
    assert {cell.split(":")[1].split("/")[0] for cell in differing} <= {"Fickle"}


@pytest.mark.parametrize("name", ["Deep", "Floating", "Halved", "Huge"])
def test_what_cannot_be_a_fact_costs_the_state_and_not_the_worker(
    wrongs: dict[str, store.Evidence], name: str
) -> None:
    """What its cell did is observed all the same."""
    (capture,) = (c for c in wrongs["fork"].captures() if c.cell.runtime.endswith(f":{name}"))
    first = capture.measurement.observations[0]
    assert len(first.effects or ()) == 1
    assert first.damage == ("record: cannot be read (RuntimeUnusable)",)


def test_paths_never_enter_facts(wrongs: dict[str, store.Evidence]) -> None:
    """Not even where a runtime exits with one."""
    assert b"somewhere" not in (wrongs["fork"].folder / form.CAPTURES).read_bytes()


def test_a_state_that_never_comes_does_not_hang_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is ended when it has had time for all of its phases; the run goes on."""
    monkeypatch.setattr(pool, "_GRACE", 3.0)
    plan = Plan("two", (Cell(runtime=f"{MINE}:Sleepless", **CONTROL), Cell(**P3)))
    hung, fine = runs.run(plan, tmp_path / "two", workers=1, deadline=1.0).captures()
    assert verdict(hung)[0] == "unknown"
    assert verdict(fine)[0] == "duplicate_effect"


@pytest.mark.parametrize("name", ["json.py", "token.py", "select.py", "msgspec.py", "signal.py"])
def test_a_file_of_the_users_is_not_taken_for_a_library(tmp_path: Path, name: str) -> None:
    """The current directory is importable, and comes last."""
    (tmp_path / name).write_text("raise RuntimeError('not the library')\n")
    code = "from rcr_probes.run import run; e = run('article', 'article', workers=1)\n"
    code += "assert all(c.judgement.verdict.verdict != 'unknown' for c in e.captures())"
    subprocess.run([sys.executable, "-P", "-c", code], cwd=tmp_path, check=True, timeout=60)


def test_an_exit_is_what_the_caller_sees(tmp_path: Path) -> None:
    """A runtime that exits has answered its caller, if badly."""
    capture = one(tmp_path, runtime="Exiting", **CONTROL)
    assert capture.measurement.observations[0].error == "SystemExit"
    assert verdict(capture)[0] == "duplicate_effect"  # it starts anew without looking


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_runtime_may_close_its_streams(tmp_path: Path, start: str) -> None:
    """The phase ends as any other, and its process never takes its parent's place."""
    capture = one(tmp_path, start=start, runtime="ClosesItsStreams", policy="never", **CONTROL)
    assert verdict(capture) == ("protected", ("no_recovery",))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_harness_that_breaks_is_not_seen_by_the_runtime(tmp_path: Path, start: str) -> None:
    """An event that cannot be written ends the phase; it is no failure of the operation."""
    capture = one(tmp_path, start=start, runtime="Unwritable", **CONTROL)
    assert verdict(capture)[0] == "unknown"
    assert "phase_crashed" in verdict(capture)[1]


@pytest.mark.parametrize("runtime", ["Floating", "Huge", "Halved"])
def test_evidence_that_cannot_be_a_fact_is_damage(tmp_path: Path, runtime: str) -> None:
    """A clock in it would make every run differ from every other; the rest cannot be written."""
    capture = one(tmp_path, runtime=runtime, **CONTROL)
    assert verdict(capture) == ("unknown", ("observation_damaged",))
    assert "RuntimeUnusable" in " ".join(capture.measurement.observations[0].damage)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_what_a_runtime_prints_is_no_capture(tmp_path: Path, start: str) -> None:
    """Its streams are kept in the cell's folder, away from ours."""
    plan = Plan("one", (Cell(runtime=f"{MINE}:Talkative", policy="never", **CONTROL),))
    (capture,) = runs.run(plan, tmp_path / "one", start=start, keep=True).captures()
    assert verdict(capture)[0] == "protected"
    (kept,) = (tmp_path / "one.cells").glob("*/harness/output.txt")
    assert kept.read_text() == '{"this": "is no capture"}\nnor is this\n'


def test_a_state_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """It is never taken for a state."""
    capture = one(tmp_path, runtime="Unreadable", **CONTROL)
    assert verdict(capture) == ("unknown", ("observation_damaged",))


def test_every_kind_of_fault_fires_at_every_point_that_the_reference_declares(
    tmp_path: Path,
) -> None:
    """Each with its proof; a power loss, which needs strace, with the first of its states."""
    declared = [
        (point, fault)
        for point, kinds in load(Cell(**CONTROL).runtime).points.items()
        for fault in sorted(kinds)
    ]
    assert len(declared) == 7 * 5 + 3 * 7 + 1
    cells = tuple(
        Cell(point=point, fault=f"{fault}#0" if fault in POWER_LOSSES else fault, policy="never")
        for point, fault in declared
        if fault not in POWER_LOSSES or shutil.which("strace")
    )
    captures = list(runs.run(Plan("all", cells), tmp_path / "all").captures())
    assert {(c.cell.id, c.judgement.fired) for c in captures} == {(c.id, True) for c in cells}
