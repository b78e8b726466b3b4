"""The same facts everywhere: in each run, start method and surrounding."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes import worker
from rcr_probes.evidence import store
from rcr_probes.worker import Job
from tests.run.cells import facts


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
