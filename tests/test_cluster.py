"""The same cells on a Dask cluster: the same facts, and each cell once, whoever dies.

Scheduler and workers are processes on 127.0.0.1; a whole run has two minutes at most.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rcr_probes import cluster
from rcr_probes import run as runs
from rcr_probes.cli import main
from rcr_probes.errors import PlanError, RcrError, installing
from rcr_probes.evidence import form, store, write
from rcr_probes.evidence.check import check
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.pool import LeanWorker
from rcr_probes.product import product
from rcr_probes.worker import Job

pytest.importorskip("distributed", reason=installing("dask"))

ROOT = Path(__file__).resolve().parents[1]
MINE = "tests.runtimes_under_test"
CELLS = product(
    point=["after_action", "completion_audit"],
    fault=["exception", "kill"],
    policy=["again", "resume"],
    seed=range(6),
)
LONGEST = 120.0  # seconds that any run of these may take on a loaded machine
pytestmark = pytest.mark.timeout(LONGEST + 60)


class Cluster:
    """A scheduler and its workers on 127.0.0.1, each a process that this test has started."""

    def __init__(self, place: Path, workers: int) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._place = place
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", self.address.rpartition(":")[2],
            "--no-dashboard",
        )  # fmt: skip
        self.workers = [self.worker() for _ in range(workers)]
        self._wait()

    def worker(self) -> subprocess.Popen[bytes]:
        """One worker more, with one thread and without a nanny that would start it again."""
        return self._start(
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
            "--host", "127.0.0.1", "--local-directory", str(self._place),
        )  # fmt: skip

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with open(self._place / "log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def _wait(self) -> None:
        """Until the scheduler listens: on a loaded machine that takes a while."""
        host, _, port = self.address.removeprefix("tcp://").partition(":")
        until = time.monotonic() + LONGEST
        while time.monotonic() < until:
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection((host, int(port)), timeout=10).close()
                return
            time.sleep(0.1)
        self.end()
        raise TimeoutError("the scheduler does not come up")

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers."""
    made = Cluster(tmp_path_factory.mktemp("dask"), 2)
    try:
        yield made
    finally:
        made.end()


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes of these tests lie in the current directory."""
    monkeypatch.chdir(ROOT)


def facts(evidence: store.Evidence) -> list[tuple[Cell, str]]:
    return [(c.cell, c.facts_sha256) for c in evidence.captures()]


def children(pid: int) -> list[int]:
    """The processes that this one has."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for found in lists for child in found.read_text().split()]


def ended(pids: list[int]) -> bool:
    """Whether all of them end before long."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.05)
    return False


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


def verdict(capture: Capture) -> str:
    assert capture.judgement.verdict is not None
    return capture.judgement.verdict.verdict


@pytest.mark.parametrize("whom", ["scheduler", "everything"])
def test_a_scheduler_that_dies_ends_the_run_and_the_same_command_goes_on(
    pair: Cluster, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, whom: str
) -> None:
    """Within a minute it says so, and how to go on; what was sealed stays, byte for byte."""
    plan, folder = Plan("swept", CELLS), tmp_path / "swept"

    def end(done: int, total: int) -> None:
        if done == 3:
            pair.scheduler.kill() if whom == "scheduler" else pair.end()

    begun = time.monotonic()
    with pytest.raises(RcrError, match=r"scheduler.*is gone") as said:
        runs.run(plan, folder, on=pair.address, progress=end)
    assert time.monotonic() - begun < LONGEST / 2
    assert "What is measured is kept" in said.value.remedy
    assert f"dask worker {pair.address}" in said.value.remedy
    kept = (folder / form.CAPTURES).read_bytes()
    assert 3 <= kept.count(b"\n") < len(CELLS)
    assert not (folder / form.MANIFEST).exists()
    other = Cluster(tmp_path_factory.mktemp("other"), 1)
    try:
        runs.run(plan, folder, on=other.address)
    finally:
        other.end()
    assert (folder / form.CAPTURES).read_bytes().startswith(kept)
    assert check(folder).findings == ()


def test_a_scheduler_that_says_nothing_any_more_is_gone(
    pair: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection stands, as where its machine is stuck: nobody waits for it for ever."""
    monkeypatch.setattr(cluster, "_LOOK", 0.5)
    monkeypatch.setattr(cluster, "_LOST", 3.0)
    monkeypatch.setattr(cluster, "_FOR_ENDING", 2.0)

    def freeze(done: int, total: int) -> None:
        if done == 3:
            pair.scheduler.send_signal(signal.SIGSTOP)

    begun = time.monotonic()
    with pytest.raises(RcrError, match=r"scheduler.*is gone"):
        runs.run(Plan("swept", CELLS), tmp_path / "swept", on=pair.address, progress=freeze)
    assert time.monotonic() - begun < LONGEST / 2
    assert (tmp_path / "swept" / form.CAPTURES).read_bytes().count(b"\n") >= 3


@pytest.mark.parametrize("whom", ["run", "everything"])
def test_a_run_that_is_killed_is_resumed_where_it_stopped(
    pair: Cluster, tmp_path_factory: pytest.TempPathFactory, whom: str, tmp_path: Path
) -> None:
    """SIGKILL to whoever typed the command, or to scheduler and workers too: nothing is lost."""
    code = (
        "from rcr_probes.run import run; from tests.test_cluster import CELLS\n"
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


def test_a_cell_that_is_out_of_time_over_there_is_not_waited_for(
    pair: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it raised is of the same class as a look that is over; the run would look for ever."""

    def stalls(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr(cluster, "run_there", stalls)
    looks = iter([1])  # as it fails, one look may have seen it waiting
    monkeypatch.setattr(cluster._Asked, "threads", lambda _: next(looks))
    here, names = write.environment(), iter(["worker-1"])
    with (
        cluster.reached(pair.address) as there,
        cluster.lanes(there, 1, None, [CELLS[0].runtime], here, names) as lanes,
    ):
        lanes[0].send(Job(CELLS[0], "", "fork", 30.0))
        with pytest.raises(RcrError, match="TimeoutError"):
            lanes[0].receive()


@pytest.mark.parametrize(
    ("on", "cause"),
    [
        ("localhost:8786", "no address"),
        ("tcp://localhost", "no address"),
        ("tcp://:8786", "no address"),
        ("tls://localhost:8786", "no address"),
    ],
)
def test_what_is_no_address_is_refused_before_anything_is_written(
    tmp_path: Path, on: str, cause: str
) -> None:
    """And so is keeping folders that lie elsewhere."""
    with pytest.raises(PlanError, match=cause):
        runs.run("article", tmp_path / "article", on=on)
    with pytest.raises(PlanError, match="cannot be kept"):
        runs.run("article", tmp_path / "article", on="tcp://127.0.0.1:1", keep=True)
    assert list(tmp_path.iterdir()) == []


def test_nobody_there_is_said_with_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No scheduler; and one without workers. Nothing is begun, and with --again nothing moved."""
    monkeypatch.setattr(cluster, "_CONNECT", 2.0)
    runs_in, log = tmp_path / "runs", tmp_path / "log"
    log.mkdir()
    run = ["run", "article", "--into", str(runs_in / "article"), "--on"]
    assert main([*run, "tcp://127.0.0.1:9"]) == 2
    # started as it says, it listens there and nowhere else
    assert "dask scheduler --host 127.0.0.1 --port 9\n" in capsys.readouterr().err
    assert not runs_in.exists()
    alone = Cluster(log, 0)
    try:
        monkeypatch.setattr(cluster, "_CONNECT", 5.0)
        assert main([*run, alone.address]) == 2
        assert f"dask worker {alone.address}" in capsys.readouterr().err
    finally:
        alone.end()
    assert not runs_in.exists()
    monkeypatch.setattr(cluster, "_CONNECT", 2.0)
    measured = runs.run("article", runs_in / "article", workers=1)
    assert main([*run, "tcp://127.0.0.1:9", "--again"]) == 2
    assert list(runs_in.iterdir()) == [measured.folder]
    assert check(measured.folder).findings == ()


def test_another_environment_is_refused(tmp_path: Path, pair: Cluster) -> None:
    """What the evidence says of its environment is true of every capture, wherever it was made."""
    names = iter(["worker-1"])
    here = {**write.environment(), "python": "2.7.18"}
    runtime = CELLS[0].runtime
    with (
        cluster.reached(pair.address) as there,
        cluster.lanes(there, 1, None, [runtime], here, names) as lanes,
    ):
        lanes[0].send(Job(CELLS[0], "", "fork", 30.0))
        with pytest.raises(RcrError, match=r"python: 3\.\d+\.\d+ there, 2\.7\.18 here"):
            lanes[0].receive()


def test_without_dask_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an extra, and nothing else needs it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RcrError, match=re.escape(installing("dask"))):
        runs.run("article", tmp_path / "article", on="tcp://127.0.0.1:8786")
