"""A cell's folder: what lies where while the cell runs.

runtime/   the runtime's private folder: its records, its audit, its caller's ticket
world/     the outside world of a local executor: its effects, and the calls that came to it
harness/   what the harness writes: the cell, the events, what was measured, the fence
truth/     the copy in which one call is forced (docs/design.md §6)
"""

from __future__ import annotations

import contextlib
import os
import stat

import msgspec

from rcr_probes.model import Cell

RUNTIME = "runtime"
WORLD = "world"
EFFECTS = f"{WORLD}/effects.jsonl"
CALLS = f"{WORLD}/calls.jsonl"
HARNESS = "harness"
CELL = f"{HARNESS}/cell.json"
EVENTS = f"{HARNESS}/events.jsonl"
OBSERVATIONS = f"{HARNESS}/observations.jsonl"
MEASURED = f"{HARNESS}/measured.json"
FENCE = f"{HARNESS}/fence"
STRUCK = f"{HARNESS}/struck"
STATE = f"{HARNESS}/state.json"
OUTPUT = f"{HARNESS}/output.txt"
TRACE = f"{HARNESS}/strace.log"
TRUTH = "truth"


class FolderDamaged(Exception):
    """Something lies in a cell's folder that nobody of the harness put there."""

    code = "FOLDER_DAMAGED"


def make(folder: str, cell: Cell) -> None:
    """Make the folder of a cell that is about to run.

    Raises:
        OSError: it is there already, or cannot be made.
    """
    for name in (RUNTIME, WORLD, HARNESS):
        os.makedirs(os.path.join(folder, name), mode=0o700)
    with open(os.path.join(folder, CELL), "wb") as file:
        file.write(msgspec.json.encode(cell))


def read_cell(folder: str) -> Cell:
    """The cell whose folder this is."""
    with open(os.path.join(folder, CELL), "rb") as file:
        return msgspec.json.decode(file.read(), type=Cell)


def copy_world(folder: str, cell: Cell) -> str:
    """Copy the cell's outside world to a folder of its own, and return that folder."""
    copy = os.path.join(folder, TRUTH)
    make(copy, cell)
    world = os.path.join(folder, WORLD)
    for name in os.listdir(world):
        if not stat.S_ISREG(os.lstat(os.path.join(world, name)).st_mode):
            raise FolderDamaged(f"{WORLD}/{name} is no file")
        with open(os.path.join(world, name), "rb") as file:
            data = file.read()
        with open(os.path.join(copy, WORLD, name), "wb") as file:
            file.write(data)
    return copy


def remove(folder: str) -> None:
    """Remove a cell's folder, as far as what a runtime left in it lets us.

    What stays goes with the scratch folder of the run: it is no reason to end a worker.
    """
    with contextlib.suppress(OSError):
        for place, folders, files in os.walk(folder, topdown=False):
            for name in files:
                os.unlink(os.path.join(place, name))
            for name in folders:
                path = os.path.join(place, name)
                (os.unlink if os.path.islink(path) else os.rmdir)(path)
        os.rmdir(folder)
