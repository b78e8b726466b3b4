"""Whoever is held for an interleaving ends with the cell, or with its worker, however that ends."""

from __future__ import annotations

import atexit
import os
import signal
import time
from pathlib import Path

import pytest

from rcr_probes import executors, folder, held, linux, phase, process, recovery
from rcr_probes.model import Cell
from rcr_probes.recovery import Site
from rcr_probes.reference import approval
from rcr_probes.vocabulary import ORIGINALS
from tests.run.cells import alive, ends

DEADLINE = 10.0  # seconds


def made(tmp_path: Path, recovery_fault: str) -> tuple[str, Cell]:
    cell = Cell(point="none", fault="none", policy="resume", recovery_fault=recovery_fault)
    place = str(tmp_path / "cell")
    folder.make(place, cell)
    return place, cell


def never(site: Site) -> process.Ended:
    raise AssertionError("an original is run by itself")


def worker(place: str, cell: Cell, start: str, breaks: bool) -> None:
    """What a worker does with an original, up to the moment in which something goes wrong."""
    linux.die_with(os.getppid())  # a test that fails leaves nobody, either
    atexit._clear()  # what pytest does at its exit is not a phase's to do, and takes long
    linux.adopt_descendants()
    runtime, executor = approval(), executors.make(place, cell.dedupe, lambda *_: None)
    in_hand = phase.operation(cell, place, "recover", executor)
    site = Site(place, cell, start, DEADLINE, runtime, in_hand, {}, lambda: ())
    with recovery.original(site, never) as original:
        Path(place, "told.tmp").write_text(str(original.pid))
        Path(place, "told.tmp").rename(Path(place, "told"))
        if breaks:
            raise LookupError
        signal.pause()


@pytest.mark.parametrize("breaks", [False, True], ids=["killed", "raised"])
@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("recovery_fault", ORIGINALS)
def test_an_original_ends_with_its_worker(
    tmp_path: Path, recovery_fault: str, start: str, breaks: bool
) -> None:
    """The worker is killed, or its cell breaks: nobody stays who would act after that."""
    place, cell = made(tmp_path, recovery_fault)
    pid = os.fork()
    if pid == 0:
        try:
            worker(place, cell, start, breaks)
        finally:
            os._exit(0)
    told, until = Path(place, "told"), time.monotonic() + DEADLINE
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.01)
    original = int(told.read_text())
    if not breaks:
        assert alive(original)
        assert held.pid(place) == original
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert ends(original)
    assert not Path(place, folder.EFFECTS).exists()


def test_one_that_is_never_held_is_not_waited_for(tmp_path: Path) -> None:
    """It has ended before it came to be held, and the wait is over then."""
    place, _ = made(tmp_path, "none")
    held.prepare(place)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert held.awaited(place, pid, DEADLINE) is None
    os.waitpid(pid, 0)


def test_one_that_is_held_goes_on_when_it_is_released(tmp_path: Path) -> None:
    """And not before."""
    place, _ = made(tmp_path, "none")
    held.prepare(place)
    pid = os.fork()
    if pid == 0:
        held.wait(place, os.getppid())
        os._exit(7)
    assert held.awaited(place, pid, DEADLINE) == pid
    assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    held.release(place)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert held.pid(place) is None
