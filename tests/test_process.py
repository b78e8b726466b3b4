"""The fence around a process and its orphan: who may still act is known, not guessed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rcr_probes import fence, folder, linux, process
from rcr_probes.model import Cell
from rcr_probes.probe.process import Running
from rcr_probes.room import Watch

# In a session of its own; those below it would go on once it is gone, and say so.
HEIRS = """
import ctypes, os, signal
told, here = os.pipe()
if os.fork():
    for _ in range(30):  # until the heirs are there
        os.read(told, 1)
    os._exit(0)
os.setsid()
def inherits(*_):
    with open("inherited", "a") as file:
        file.write("x")
for _ in range(30):
    if os.fork() == 0:
        signal.signal(signal.SIGUSR1, inherits)
        ctypes.CDLL(None).prctl(1, signal.SIGUSR1, 0, 0, 0)
        os.write(here, b".")
        signal.alarm(60)
        while True:
            signal.pause()
signal.alarm(60)
signal.pause()
"""


def test_a_fence_is_free_when_nobody_who_inherited_it_is_alive(tmp_path: Path) -> None:
    """Held by a process, then by its orphan alone, then by nobody."""
    place = str(tmp_path / "cell")
    folder.make(place, Cell(point="none", fault="none"))
    attempts = os.path.join(place, folder.ATTEMPTS)
    assert fence.all_over(attempts)
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        fence.enter(attempts)
        orphan = os.fork()
        if orphan == 0:
            signal.pause()
        os.write(tell, orphan.to_bytes(4, "big"))
        os._exit(0)
    orphan = int.from_bytes(os.read(told, 4), "big")
    try:
        os.waitpid(pid, 0)
        assert not fence.all_over(attempts)
    finally:
        os.kill(orphan, signal.SIGKILL)
        os.close(told)
        os.close(tell)
    while not fence.all_over(attempts):  # the kernel frees it when the orphan is gone
        os.sched_yield()


def _end_phase(words: list[str]) -> None:
    os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)
    process.end_orphans(0.0)


def _end_command(words: list[str]) -> None:
    with Running(words, os.environ, "output", Watch(".")) as running:
        running.end(60)


ENDS: Mapping[str, Callable[[list[str]], None]] = {"phase": _end_phase, "command": _end_command}


@pytest.mark.parametrize("whose", ENDS)
def test_nobody_goes_on_where_another_was_ended(whose: str, tmp_path: Path) -> None:
    """What is left is stopped before one of it is killed: what forks at an end would outrun us."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            linux.adopt_descendants()
            os.chdir(tmp_path)
            ENDS[whose]([sys.executable, "-c", HEIRS])
            status = 0 if linux.children(os.getpid()) == [] else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not (tmp_path / "inherited").exists()
