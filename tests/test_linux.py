"""What only Linux offers, seen on children of the test's own."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from rcr_probes import linux
from rcr_probes.evidence.course import SIGNALS


def child(before: Callable[[], object]) -> int:
    """A child that does something, and waits a minute for a signal; it is ready on our return."""
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        before()
        signal.alarm(60)
        os.write(there, b".")
        while True:
            signal.pause()
    os.close(there)
    os.read(here, 1)
    os.close(here)
    return pid


def test_it_is_told_whether_a_process_ends_of_a_signal() -> None:
    """One that ignores it goes on, and one that has ended and was not reaped has ended."""
    pid = child(lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    assert not linux.ends_within(pid, 0)
    assert not linux.ends_within(pid, 0.05, signal.SIGTERM)
    assert linux.ends_within(pid, 60, signal.SIGKILL)
    assert linux.ends_within(pid, 0, signal.SIGTERM)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        linux.ends_within(pid, 0)


def test_a_signal_is_called_by_its_name_or_else_by_its_number() -> None:
    """The first and the last real-time signal have names, those between them have none."""
    names = [linux.signal_name(number) for number in range(1, signal.SIGRTMAX + 1)]
    assert names[signal.SIGKILL - 1] == "SIGKILL"
    assert names[signal.SIGRTMIN - 1 :][:2] == ["SIGRTMIN", f"SIGNAL_{signal.SIGRTMIN + 1}"]
    assert set(names) == SIGNALS


def test_what_carries_a_mark_is_killed_wherever_it_is() -> None:
    """A program in a session of its own; one that carries another mark is left alone."""
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    marked, other = (
        subprocess.Popen(words, env={**os.environ, "RCR_TEST": mark}, start_new_session=True)
        for mark in ("1", "12")
    )
    try:
        linux.kill_marked("RCR_TEST=1")
        assert marked.wait(60) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def fallen(parent: int) -> None:
    """Dies with its parent, and has a child in a group of its own that does not."""
    linux.die_with(parent)
    child(os.setsid)


def several(parents: int) -> None:
    here = os.getpid()
    for _ in range(parents):
        child(lambda: fallen(here))


def test_who_dies_with_its_parent_leaves_no_child_behind() -> None:
    """Killed from above, some would die of their parent's end, and their children be adopted."""
    end, held = os.pipe()  # which each of them holds open
    pid = child(lambda: several(30))
    os.close(held)
    linux.kill_with_all_below(pid)
    os.waitpid(pid, 0)
    assert select.select([end], [], [], 10) == ([end], [], [])
    os.close(end)
