"""A Dask cluster of one's own: its processes on 127.0.0.1, and the cells that it is given."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rcr_probes.evidence import store
from rcr_probes.model import Capture, Cell
from rcr_probes.product import product

ROOT = Path(__file__).resolve().parents[2]
CELLS = product(
    point=["after_action", "completion_audit"],
    fault=["exception", "kill"],
    policy=["again", "resume"],
    seed=range(6),
)
LONGEST = 120.0  # seconds that any run of these may take on a loaded machine


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


def verdict(capture: Capture) -> str:
    assert capture.judgement.verdict is not None
    return capture.judgement.verdict.verdict
