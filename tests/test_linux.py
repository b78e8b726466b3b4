"""What only Linux offers, seen on children of the test's own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from rcr_probes import linux


def child(before: Callable[[], object]) -> int:
    """A child that does something, and then waits for a signal; it is ready when this returns."""
    here, there = os.pipe()
    pid = os.fork()
    if not pid:
        before()
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
