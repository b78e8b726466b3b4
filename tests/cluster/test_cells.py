"""The same cells on a Dask cluster: the same facts, and each cell once, whoever dies."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rcr_probes import cluster
from rcr_probes import run as runs
from rcr_probes.errors import RcrError, installing
from rcr_probes.evidence import form, write
from rcr_probes.evidence.check import check
from rcr_probes.model import Cell, Plan
from rcr_probes.pool import LeanWorker
from rcr_probes.worker import Job
from tests.cluster.conftest import CELLS, LONGEST, Cluster, children, ended, facts, verdict

pytest.importorskip("distributed", reason=installing("dask"))
pytestmark = pytest.mark.timeout(LONGEST + 60)
MINE = "tests.runtimes_under_test"


def environment(folder: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((folder / form.ENVIRONMENT).read_text())
    return found


def lines(said: dict[str, str]) -> list[int]:
    """Every line that is said to be somebody's."""
    found: list[int] = []
    for part in ", ".join(said.values()).split(", "):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return sorted(found)


def test_a_worker_that_is_killed_in_the_middle_costs_nothing(pair: Cluster, tmp_path: Path) -> None:
    """Every cell is there once, in the plan's order, with the facts of a run on one machine."""
    plan = Plan("swept", CELLS)
    seen: list[int] = []

    def kill(done: int, total: int) -> None:
        seen.append(done)
        if done == 8:
            os.kill(pair.workers[0].pid, signal.SIGKILL)

    begun = time.monotonic()
    there = runs.run(plan, tmp_path / "there", on=pair.address, progress=kill)
    assert time.monotonic() - begun < LONGEST
    here = runs.run(plan, tmp_path / "here")
    assert facts(there) == facts(here)
    assert seen == list(range(1, len(CELLS) + 1))
    assert check(there.folder).findings == ()
    assert [c.cell for c in there.captures()] == list(CELLS)
    said = environment(there.folder)["workers"]
    assert sorted(said) == ["worker-1", "worker-2"]
    assert lines(said) == list(range(len(CELLS)))
    assert "workers" not in environment(here.folder)
    assert ended(children(pair.workers[1].pid))


def test_a_cell_runs_in_a_lean_child_and_never_in_a_fork_of_the_workers(
    pair: Cluster, tmp_path: Path
) -> None:
    """Its parent is a process that neither we nor the Dask workers are."""
    plan = Plan("few", CELLS[:4])
    captures = list(runs.run(plan, tmp_path / "few", on=pair.address).captures())
    parents = {c.circumstances.parent or 0 for c in captures}
    assert not parents & {os.getpid(), *(w.pid for w in pair.workers)}
    assert len(parents) <= 2
    assert ended(sorted(parents))


def test_evidence_names_no_host(pair: Cluster, tmp_path: Path) -> None:
    """Neither an address, nor a host, nor Dask's own name of a worker."""
    folder = runs.run(Plan("few", CELLS[:4]), tmp_path / "few", on=pair.address).folder
    written = b"".join(path.read_bytes() for path in folder.iterdir()).decode()
    for name in ("127.0.0.1", "tcp:", socket.gethostname(), pair.address.rpartition(":")[2]):
        assert not re.search(rf'["/ :]{re.escape(name)}["/ :]', written)
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", written)


def test_an_interrupted_run_cancels_what_runs_there_and_resumes_anywhere(
    pair: Cluster, tmp_path: Path
) -> None:
    """What is measured stays; no process of the run is left on the workers."""
    plan = Plan("swept", CELLS[:12])

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.run(plan, tmp_path / "swept", on=pair.address, progress=stop)
    assert ended([child for worker in pair.workers for child in children(worker.pid)])
    assert lines(environment(tmp_path / "swept")["workers"]) == list(range(5))
    kept = (tmp_path / "swept" / form.CAPTURES).read_bytes()
    assert kept.count(b"\n") == 5
    with pytest.raises(KeyboardInterrupt):
        runs.run(plan, tmp_path / "swept", progress=lambda done, _: stop(done - 2, 0))
    there = runs.run(plan, tmp_path / "swept", on=pair.address)
    assert (there.folder / form.CAPTURES).read_bytes().startswith(kept)
    assert facts(there) == facts(runs.run(plan, tmp_path / "here"))
    said = environment(there.folder)["workers"]
    assert lines(said) == [*range(5), *range(7, 12)]
    assert set(said) <= {"worker-1", "worker-2", "worker-3", "worker-4"}
    assert check(there.folder).findings == ()


def test_ctrl_c_ends_a_cell_that_hangs_there(pair: Cluster, tmp_path: Path) -> None:
    """The command ends at once, and so does the cell, long before its deadline."""
    toml = tmp_path / "hangs.toml"
    toml.write_text(
        f'[[cells]]\nruntime = "{MINE}:Hanging"\npoint = "none"\nfault = "none"\n'
        "seed = { from = 0, to = 3 }\n"
    )
    words = ["run", str(toml), "--into", str(tmp_path / "hangs"), "--on", pair.address]
    begun = time.monotonic()
    run = subprocess.Popen(
        [sys.executable, "-m", "rcr_probes.cli", *words, "--deadline", "600"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        lean: list[int] = []
        while len(lean) < 2 and time.monotonic() - begun < LONGEST:
            lean = [child for worker in pair.workers for child in children(worker.pid)]
            time.sleep(0.1)
        time.sleep(2)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=40)
    finally:
        run.kill()
    assert run.returncode == 130, err
    assert b"--on" in err
    assert ended(lean)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_was_still_in_the_queue_of_a_run_that_has_ended_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Nobody would end it: a cell that hangs would stand there until its deadline."""
    made: list[LeanWorker] = []

    def lean(idle: int) -> LeanWorker:
        made.append(LeanWorker(idle))
        cluster.end_there(when)
        return made[-1]

    monkeypatch.setattr(cluster, "LeanWorker", lean)
    if when == "before":
        cluster.end_there(when)
    with pytest.raises(RcrError, match="has ended"), cluster._of_this_thread(when):
        pass
    assert [one._process.poll() is not None for one in made] == [True]


def test_a_cell_that_takes_its_lean_worker_with_it_costs_itself_alone(
    pair: Cluster, tmp_path: Path
) -> None:
    """As on one machine."""
    cells = (Cell(runtime=f"{MINE}:Parricide", point="none", fault="none"), *CELLS[:2])
    captures = list(runs.run(Plan("three", cells), tmp_path / "three", on=pair.address).captures())
    assert verdict(captures[0]) == "unknown"
    assert captures[0].measurement.observations[0].damage == ("harness: the worker process died",)
    assert "unknown" not in [verdict(c) for c in captures[1:]]


@pytest.mark.parametrize("whom", ["run", "everything"])
def test_a_run_that_is_killed_is_resumed_where_it_stopped(
    pair: Cluster, tmp_path_factory: pytest.TempPathFactory, whom: str, tmp_path: Path
) -> None:
    """SIGKILL to whoever typed the command, or to scheduler and workers too: nothing is lost."""
    code = (
        "from rcr_probes.run import run; from tests.cluster.conftest import CELLS\n"
        "from rcr_probes.model import Plan; import sys\n"
        "run(Plan('swept', CELLS), sys.argv[1], on=sys.argv[2])"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "swept"), pair.address]
    killed = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    captures = tmp_path / "swept" / form.CAPTURES
    until = time.monotonic() + LONGEST
    while time.monotonic() < until and not (
        captures.exists() and captures.read_bytes().count(b"\n") >= 4
    ):
        time.sleep(0.02)
    lean = [child for worker in pair.workers for child in children(worker.pid)]
    killed.kill()
    if whom == "everything":
        pair.end()
        assert ended(lean)
    killed.wait()
    kept = captures.read_bytes()
    kept = kept[: kept.rfind(b"\n") + 1]
    assert 4 <= kept.count(b"\n") < len(CELLS)
    other = pair if whom == "run" else Cluster(tmp_path_factory.mktemp("other"), 2)
    try:
        there = runs.run(Plan("swept", CELLS), tmp_path / "swept", on=other.address)
    finally:
        other.end()
    assert captures.read_bytes().startswith(kept)
    assert facts(there) == facts(runs.run(Plan("swept", CELLS), tmp_path / "here"))
    assert check(there.folder).findings == ()


def test_a_cell_that_takes_every_dask_worker_with_it_is_unknown(
    pair: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scheduler gives it up; the run goes on."""
    from distributed.scheduler import KilledWorker

    def gives_up(*_: object) -> None:
        raise KilledWorker("the task", None, 3)

    monkeypatch.setattr(cluster._Remote, "_result", gives_up)
    here, names = write.environment(), iter(["worker-1"])
    with (
        cluster.reached(pair.address) as there,
        cluster.lanes(there, 1, None, [CELLS[0].runtime], here, names) as lanes,
    ):
        lanes[0].send(Job(CELLS[0], "", "fork", 30.0))
        received = lanes[0].receive()
    assert verdict(received.capture) == "unknown"
    assert received.worker is None
