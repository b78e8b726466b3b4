"""From plan to sealed evidence: real processes, real faults, the same facts everywhere."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import pool, worker
from rcr_probes import run as runs
from rcr_probes.errors import EvidenceError, PlanError, UnknownName
from rcr_probes.evidence import rows, store
from rcr_probes.evidence.check import check
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.runtime import load
from rcr_probes.scratch import PREFIX, clear
from rcr_probes.scratch import scratch as scratch_folder
from rcr_probes.vocabulary import POWER_LOSSES
from rcr_probes.worker import Job

ROOT = Path(__file__).parents[1]
MINE = "tests.runtimes_under_test"
P3: dict[str, Any] = {
    "point": "completion_audit",
    "fault": "audit_is_directory",
    "policy": "resume",
}
CONTROL: dict[str, Any] = {"point": "none", "fault": "none"}


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases find the runtimes of these tests as they find a user's: in the current directory."""
    monkeypatch.chdir(ROOT)


def one(into: Path, *, start: str = "fork", deadline: float = 30.0, **axes: Any) -> Capture:
    """Run one cell to its capture."""
    if "runtime" in axes:
        axes["runtime"] = f"{MINE}:{axes['runtime']}"
    plan = Plan("one", (Cell(**axes),))
    return next(runs.run(plan, into / "one", start=start, deadline=deadline).captures())


def verdict(capture: Capture) -> tuple[str, tuple[str, ...]]:
    judged = capture.judgement.verdict
    assert judged is not None
    return judged.verdict, judged.reasons


def alive(pid: int) -> bool:
    """Whether it can still act; one that nobody has waited for yet cannot."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def ends(pid: int) -> bool:
    """Whether it ends before long."""
    until = time.monotonic() + 10
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


def scratch(pid: int | None = None) -> list[Path]:
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [found for p in places for found in p.glob(f"{PREFIX}{pid or os.getpid()}-*")]


def facts(evidence: store.Evidence) -> dict[str, str]:
    return {c.cell.id: c.facts_sha256 for c in evidence.captures()}


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> store.Evidence:
    return runs.run("article", tmp_path_factory.mktemp("forked") / "article", start="fork")


# The same facts everywhere.


def test_fork_and_spawn_measure_the_same_facts(forked: store.Evidence, tmp_path: Path) -> None:
    """How a phase's process is made is a circumstance."""
    spawned = runs.run("article", tmp_path / "article", start="spawn")
    assert facts(spawned) == facts(forked)
    assert {c.circumstances.start for c in spawned.captures()} == {"spawn"}


@pytest.mark.parametrize(
    "changes",
    [
        {"TZ": "Pacific/Kiritimati"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LANG": "zh_CN.UTF-8"},
        {"HOME": "/nonexistent", "PYTHONHASHSEED": "1"},
    ],
    ids=["time zone", "C locale", "Chinese locale", "no home"],
)
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_facts_do_not_depend_on_the_surroundings(
    forked: store.Evidence, tmp_path: Path, changes: dict[str, str], start: str
) -> None:
    """Another time zone, locale, home or hash seed; a path with spaces and Chinese characters."""
    place = tmp_path / "证据 与 空格"
    place.mkdir()
    code = f"from rcr_probes.run import run; run('article', 'article', start={start!r})"
    subprocess.run(
        [sys.executable, "-c", code], cwd=place, env={**os.environ, **changes}, check=True,
        timeout=120,
    )  # fmt: skip
    assert facts(store.read(place / "article")) == facts(forked)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_facts_do_not_depend_on_being_root(forked: store.Evidence, tmp_path: Path) -> None:
    """An unprivileged user measures the same: no fault leans on root's rights."""
    place = Path("/var/tmp", f"rcr-probes-test-{os.getpid()}")
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)
    try:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                # That user may not be able to read this interpreter: no new one is started, and
                # what is imported at first use has been used before.
                worker.run_cell(Job(forked.plan.cells[0], str(tmp_path / "warm"), "fork", 30.0))
                os.setgid(65534)
                os.setuid(65534)
                measured = [
                    worker.run_cell(Job(cell, str(place / str(n)), "fork", 30.0))
                    for n, cell in enumerate(forked.plan.cells)
                ]
                (place / "facts").write_text(" ".join(c.facts_sha256 for c in measured))
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        assert (place / "facts").read_text().split() == list(facts(forked).values())
    finally:
        shutil.rmtree(place)


def test_the_number_of_workers_changes_neither_facts_nor_their_order(
    forked: store.Evidence, tmp_path: Path
) -> None:
    """Captures stand in the order of the plan, whoever made them."""
    for workers in (1, 2, 5):
        again = runs.run("article", tmp_path / str(workers), workers=workers)
        assert list(facts(again).items()) == list(facts(forked).items())
    assert list(facts(forked)) == [c.id for c in plans.read("article").cells]


# Processes.


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
    runs.run("article", tmp_path / "article", progress=lambda *_: during.extend(scratch()))
    assert during
    assert scratch() == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


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
    cells = list(plans.product(**P3, seed=list(range(6))))
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
    assert verdict(worker.recovered(job))[0] == "duplicate_effect"


def test_scratch_of_a_run_that_was_killed_is_cleared_by_the_next(tmp_path: Path) -> None:
    """It lies in memory, and nobody else would."""
    run = "from rcr_probes.run import run; run('locations', 'locations', start='spawn')"
    killed = subprocess.Popen([sys.executable, "-c", run], cwd=tmp_path)
    try:
        until = time.monotonic() + 60
        while not scratch(killed.pid) and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        killed.kill()
        killed.wait()
    assert scratch(killed.pid)
    runs.run("article", tmp_path / "article")
    assert not scratch(killed.pid)


# A run that is killed just after it has made its folder, and just before it holds its lock.
AFTER_MAKING = "made = tempfile.mkdtemp; tempfile.mkdtemp = lambda **its: die(made(**its))"
BEFORE_HOLDING = "fcntl.flock = die"


@pytest.mark.parametrize(("moment", "leaves"), [(AFTER_MAKING, 0), (BEFORE_HOLDING, 1)])
def test_scratch_that_was_made_and_not_held_yet_is_cleared(
    tmp_path: Path, moment: str, leaves: int
) -> None:
    """Nobody uses it: its run was killed at that very moment."""
    code = f"""
import fcntl, os, signal, tempfile
from rcr_probes.scratch import scratch
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
os.environ["TMPDIR"] = {str(tmp_path)!r}
import rcr_probes.scratch
rcr_probes.scratch.MEMORY = {str(tmp_path)!r}
{moment}
with scratch():
    pass
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    assert len(list(left.iterdir())) == leaves
    clear(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("moment", ["made", "locked"])
def test_scratch_that_is_cleared_before_it_is_held_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """By another run that starts at the same time: nobody works in a folder that is gone."""
    monkeypatch.setattr("rcr_probes.scratch.MEMORY", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, flock = tempfile.mkdtemp, fcntl.flock
    cleared: list[Path] = []

    def clearing() -> None:
        if not cleared:
            cleared.extend(tmp_path.iterdir())
            clear(tmp_path)

    def make(**its: str) -> str:
        there = made(**its)
        if moment == "made":
            clearing()
        return there

    def lock(file: IO[bytes], how: int) -> None:
        if moment == "locked" and how == fcntl.LOCK_EX:
            clearing()
        flock(file, how)

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    monkeypatch.setattr(fcntl, "flock", lock)
    with scratch_folder() as place:
        assert list(tmp_path.iterdir()) == [place]
        assert len(cleared) == 1
        assert cleared != [place]
        clear(tmp_path)
        assert place.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_only_what_a_run_left_is_cleared(tmp_path: Path) -> None:
    """A name says nothing: neither another folder of that name goes, nor one that is in use."""
    for name in ("rcr-20260831-01", f"{PREFIX}20260831-01"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_text("precious")
    used = tmp_path / f"{PREFIX}1-used"
    used.mkdir()
    with open(used / "held", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        clear(tmp_path)
        assert len(list(tmp_path.iterdir())) == 3
    clear(tmp_path)
    assert not used.exists()
    assert len(list(tmp_path.glob("*/notes"))) == 2


# Negative controls: what is wrong on purpose must be seen.


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
    "Vandal": ("again", "unknown"),
    "Stubborn": ("never", "protected"),
    "Floating": ("never", "unknown"),
    "Exiting": ("never", "protected"),
    "Vanishing": ("never", "unknown"),
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


def test_paths_never_enter_facts(wrongs: dict[str, store.Evidence]) -> None:
    """Not even where a runtime exits with one."""
    assert b"somewhere" not in (wrongs["fork"].folder / store.CAPTURES).read_bytes()


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


def test_evidence_that_cannot_be_a_fact_is_damage(tmp_path: Path) -> None:
    """A clock in the evidence would make every run differ from every other."""
    capture = one(tmp_path, runtime="Floating", **CONTROL)
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


def test_an_observation_is_on_disk_before_anything_is_judged(
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
    assert (tmp_path / "cell/harness/observations.jsonl").read_bytes().count(b"\n") == 2


# Folders.


def test_a_complete_folder_is_not_run_again(forked: store.Evidence) -> None:
    """It is returned as it is; nothing in it changes."""
    before = (forked.folder / store.CAPTURES).read_bytes()
    assert facts(runs.run("article", forked.folder)) == facts(forked)
    assert (forked.folder / store.CAPTURES).read_bytes() == before


def test_again_keeps_what_was_there_aside(tmp_path: Path) -> None:
    """The new evidence takes the folder, the old one stands beside it."""
    plan = Plan("one", (Cell(**P3),))
    first = next(runs.run(plan, tmp_path / "one").captures())
    second = next(runs.run(plan, tmp_path / "one", again=True).captures())
    third = next(runs.run(plan, tmp_path / "one", again=True).captures())
    for name, made in {"": third, ".previous": first, ".previous-2": second}.items():
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
    kept = (tmp_path / "article" / store.CAPTURES).read_bytes()
    assert kept.count(b"\n") == 3
    rest: list[int] = []
    runs.run("article", tmp_path / "article", progress=lambda done, _: rest.append(done))
    assert rest == [4, 5, 6]
    assert (tmp_path / "article" / store.CAPTURES).read_bytes().startswith(kept)


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
    with open(folder / store.CAPTURES, "ab") as file:
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
