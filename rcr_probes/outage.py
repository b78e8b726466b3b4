"""The power goes: the private folder becomes a state that the recorded file operations leave open.

The phase runs under a recorder and is killed at the point; then its parent puts the state there.
What lies in the outside world is not ours to lose, and stays.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from rcr_probes import folder, ledger, power, recorder
from rcr_probes.ledger import EventLine
from rcr_probes.model import FAULTS, POWER_LOSS, Cell, Json, state_of

BEFORE = f"{folder.HARNESS}/before_outage"  # the private folder as it stood, for a person to see


def under(place: str, cell: Cell) -> tuple[str, ...]:
    """What the fault phase of the cell in this folder is put behind; nothing for other faults."""
    if cell.kind != POWER_LOSS:
        return ()
    return tuple(recorder.words(os.path.join(place, folder.TRACE)))


def happen(place: str, cell: Cell, ended: str, files: Mapping[str, str]) -> bool:
    """Put the cell's state in place of its private folder, and write down what was lost.

    Called when nothing of the phase is alive. Where the state cannot be made, nothing is changed,
    the event is not there, and the cell's output says why.

    Args:
        place: the cell's folder.
        cell: what is planned.
        ended: how its fault phase ended.
        files: the names that its runtime gives to files, each with the file's path.

    Returns:
        Whether the power is gone.
    """
    number = state_of(cell.fault)
    if number is None or ended != FAULTS[POWER_LOSS]:
        return False
    changes = recorded(place)
    private = os.path.join(place, folder.RUNTIME)
    try:
        found = power.explored(changes)
        if power.standing(changes) != _tree(private):
            raise power.BeyondModel("the folder holds other than what was recorded")
    except power.BeyondModel as error:
        return _not_done(place, f"{error}")
    if number >= len(found.states):
        return _not_done(place, f"{cell.point} has {len(found.states)} states, counted from 0")
    state = found.states[number]
    os.rename(private, os.path.join(place, BEFORE))
    _put(private, state)
    names = {path: name for name, path in files.items()}
    lost = [[names.get(path, path), word] for path, word in power.told(changes, state)]
    value = {
        "point": cell.point,
        "state": number,
        "states": len(found.states),
        "unexplored": found.unexplored,
        "lost": lost,
    }
    _tell(place, value)
    return True


def _tell(place: str, value: dict[str, Json]) -> None:
    """Write down what was lost, and how many audit lines are left: those that come are news."""
    path = os.path.join(place, folder.EVENTS)
    seen = (line.path for line in ledger.read(path, EventLine).lines if line.path is not None)
    audit = next(seen, None)
    left = _read(audit).count(b"\n") if audit is not None and os.path.exists(audit) else 0
    told = {**value, "lines": left}
    ledger.append(path, EventLine("fault", "fault", told, os.getpid(), audit, time.time()))


def recorded(place: str, until: str | None = None) -> list[power.Change]:
    """What was done in the private folder of a cell whose phase ran under the recorder.

    Args:
        place: the cell's folder.
        until: the point up to which; the end of the phase where None is given.
    """
    with open(os.path.join(place, folder.TRACE), encoding="utf-8") as file:
        calls = recorder.made(file.read(), place)
    reached = [number for number, one in enumerate(calls) if recorder.point(one) == until]
    if until is not None:
        calls = calls[: reached[0]] if reached else []
    return recorder.below(recorder.changes(calls, folder.RUNTIME), folder.RUNTIME)


def _tree(private: str) -> power.State:
    """What the folder holds; what is neither file nor folder is not what it was made of."""
    tree: dict[str, bytes | None] = {}
    for above, folders, files in os.walk(private):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            below = os.path.relpath(path, private)
            if os.path.islink(path) or not (os.path.isdir(path) or os.path.isfile(path)):
                raise power.BeyondModel(f"{below} is neither a file nor a folder")
            tree[below] = None if os.path.isdir(path) else _read(path)
    return tree


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _put(private: str, state: power.State) -> None:
    os.mkdir(private, 0o700)
    for path in sorted(state):  # a folder comes before what lies in it
        whole, held = os.path.join(private, path), state[path]
        if held is None:
            os.mkdir(whole, 0o700)
            continue
        fd = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(held)


def _not_done(place: str, why: str) -> bool:
    with open(os.path.join(place, folder.OUTPUT), "a", encoding="utf-8") as file:
        file.write(f"harness: no power was lost: {why}\n")
    return False
