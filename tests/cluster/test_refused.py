"""What is said where cells cannot run on a cluster, or cannot go on there."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import pytest

from rcr_probes import cluster
from rcr_probes import run as runs
from rcr_probes.cli import main
from rcr_probes.errors import PlanError, RcrError, installing
from rcr_probes.evidence import form, write
from rcr_probes.evidence.check import check
from rcr_probes.model import Plan
from rcr_probes.worker import Job
from tests.cluster.conftest import CELLS, LONGEST, Cluster

pytest.importorskip("distributed", reason=installing("dask"))
pytestmark = pytest.mark.timeout(LONGEST + 60)


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
