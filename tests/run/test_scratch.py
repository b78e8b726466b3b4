"""Where cells stand while they run is cleared away, whatever became of their run."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO

import pytest

from rcr_probes import run as runs
from rcr_probes.scratch import PREFIX, clear
from rcr_probes.scratch import scratch as scratch_folder
from tests.run.cells import scratch


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
