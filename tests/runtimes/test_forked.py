"""A worker in a forked child: it is waited for, with all that it forked, and its errors are its."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from rcr_probes.runtimes.forked import forked


def test_it_comes_back_only_when_what_the_child_forked_is_gone_too(tmp_path: Path) -> None:
    """A worker that is killed leaves its work-horse behind, which must not outlive the phase."""

    def work() -> None:
        if os.fork() == 0:
            time.sleep(0.3)
            (tmp_path / "horse").touch()
            os._exit(0)

    assert forked(work) == 0
    assert (tmp_path / "horse").exists()


def test_how_the_child_ended_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    """An error of the worker is printed by it; the phase goes on, as its caller would."""

    def fails() -> None:
        raise ValueError("the worker's own")

    assert forked(lambda: None) == 0
    assert forked(fails) == 1
    assert "the worker's own" in capfd.readouterr().err
    assert forked(lambda: os.kill(os.getpid(), signal.SIGKILL)) == -signal.SIGKILL


def test_the_child_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """A phase that is killed takes its worker with it."""

    def hangs() -> None:
        (tmp_path / "up").touch()
        time.sleep(600)

    here, theirs = os.pipe()
    phase = os.fork()
    if not phase:
        os.close(here)
        forked(hangs)
        os._exit(0)
    os.close(theirs)
    until = time.monotonic() + 10
    while not (tmp_path / "up").exists() and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(phase, signal.SIGKILL)
    os.waitpid(phase, 0)
    assert os.read(here, 1) == b""  # whoever held the other end is gone
    os.close(here)
