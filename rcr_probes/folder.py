"""A cell's folder: what lies where while the cell runs.

runtime/   the runtime's private folder: its records, its audit, its caller's ticket
world/     the outside world of an executor: its effects, its keys, and the calls that came to it;
           or a receiver's folder
attempts/  the fence: a file for each attempt, locked while that may act
witness/   what a policy may read about the effect
harness/   what the harness writes: the cell, the events, what was measured
truth/     the copy in which one call is forced (docs/design.md §6)
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat

import msgspec

from rcr_probes import files
from rcr_probes.model import Cell
from rcr_probes.vocabulary import RECEIVED

RUNTIME = "runtime"
WORLD = "world"
EFFECTS = f"{WORLD}/effects.jsonl"
CALLS = f"{WORLD}/calls.jsonl"
KEYS = f"{WORLD}/keys.jsonl"
UNDER_WAY = f"{WORLD}/under_way"
TOKENS = f"{WORLD}/tokens.jsonl"
RECEIVER = f"{WORLD}/receiver"
HARNESS = "harness"
CELL = f"{HARNESS}/cell.json"
EVENTS = f"{HARNESS}/events.jsonl"
MEASURED = f"{HARNESS}/measured.json"
ATTEMPTS = "attempts"
WITNESS = "witness/effects.json"
HELD = f"{HARNESS}/held"
RELEASE = f"{HARNESS}/release"
FINDING = f"{HARNESS}/finding.json"
ADDRESS = f"{HARNESS}/receiver"
STRUCK = f"{HARNESS}/struck"
STRUCK_IN_RECOVERY = f"{HARNESS}/struck_in_recovery"
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
    for name in (RUNTIME, WORLD, HARNESS, ATTEMPTS):
        os.makedirs(os.path.join(folder, name), mode=0o700)
    with open(os.path.join(folder, CELL), "wb") as file:
        file.write(msgspec.json.encode(cell))


def read_cell(folder: str) -> Cell:
    """The cell whose folder this is."""
    return msgspec.json.decode(files.read(os.path.join(folder, CELL)), type=Cell)


def note(folder: str, said: str) -> None:
    """Say in the cell's output, for a person, why it came out as it did."""
    with open(os.path.join(folder, OUTPUT), "a", encoding="utf-8") as file:
        file.write(f"harness: {said}\n")


def copy_world(folder: str, cell: Cell) -> str:
    """Copy the cell's outside world to a folder of its own, and return that folder.

    A receiver's database is not among it: who runs the receiver has it make a copy.
    """
    copy = os.path.join(folder, TRUTH)
    make(copy, cell)
    world = os.path.join(folder, WORLD)
    own = {os.path.basename(RECEIVER)} if cell.dedupe in RECEIVED else set()
    for name in set(os.listdir(world)) - own:
        if not stat.S_ISREG(os.lstat(os.path.join(world, name)).st_mode):
            raise FolderDamaged(f"{WORLD}/{name} is no file")
        data = files.read(os.path.join(world, name))
        with open(os.path.join(copy, WORLD, name), "wb") as file:
            file.write(data)
    return copy


def remove(folder: str) -> None:
    """Remove a folder that somebody's program wrote into, as far as what it left there lets us.

    However deep it is: a folder that lies deeper is moved up first, so that no path grows longer
    than the kernel takes, and nothing here calls itself. What stays is no reason to end a worker.
    """
    waiting, moved = [folder], itertools.count()
    while waiting:
        place = waiting.pop()
        for entry in _entries(place):
            with contextlib.suppress(OSError):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                up = entry.path
                if place != folder:
                    up = os.path.join(folder, f".moved-{next(moved)}")
                    os.chmod(entry.path, 0o700)  # a folder that moves is written to: its ".."
                    os.rename(entry.path, up)
                waiting.append(up)
        if place != folder:
            with contextlib.suppress(OSError):
                os.rmdir(place)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _entries(place: str) -> list[os.DirEntry[str]]:
    try:
        os.chmod(place, 0o700)  # what is closed to its owner is opened again
        with os.scandir(place) as found:
            return list(found)
    except OSError:
        return []
