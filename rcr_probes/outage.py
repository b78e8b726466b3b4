"""The power goes: the private folder becomes a state that the recorded file operations leave open.

The phase runs under a recorder and is killed at the point; then its parent puts the state there.
What lies in the outside world is not ours to lose, and stays; unless the executor is a local one,
whose effects and keys are on the same disk.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rcr_probes import folder, ledger, power, recorder
from rcr_probes.contents import Change
from rcr_probes.ledger import EventLine
from rcr_probes.model import Cell, Json
from rcr_probes.vocabulary import FAULTS, POWER_LOSS_LOCAL, POWER_LOSSES, state_of

BEFORE = f"{folder.HARNESS}/before_outage"  # what lost something, as it stood, for a person to see
# What a local executor has on the disk, by name. The count of calls is the harness's, and stays.
_WORLD = {folder.EFFECTS: "effects", folder.KEYS: "keys", folder.TOKENS: "tokens"}


def under(place: str, cell: Cell) -> tuple[str, ...]:
    """What the fault phase of the cell in this folder is put behind; nothing for other faults."""
    if cell.kind not in POWER_LOSSES:
        return ()
    return tuple(recorder.words(os.path.join(place, folder.TRACE)))


def happen(place: str, cell: Cell, ended: str, files: Mapping[str, str]) -> bool:
    """Put the cell's state in place of its folders, and write down what was lost.

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
    if number is None or ended != FAULTS[cell.kind]:
        return False
    changes = changes_until(place, cell.kind)
    try:
        found = power.explored(changes)
        if power.standing(changes) != _tree(place, _tops(cell.kind)):
            raise power.BeyondModel("its folder holds other than what was recorded")
    except power.BeyondModel as error:
        return _not_done(place, f"{error}")
    if number >= len(found.states):
        return _not_done(place, f"{cell.point} has {len(found.states)} states, counted from 0")
    state = found.states[number]
    _put(place, state, _tops(cell.kind))
    names = _WORLD | {f"{folder.RUNTIME}/{path}": name for name, path in files.items()}
    told = power.told(changes, state)
    lost = [[names.get(path, path.removeprefix(f"{folder.RUNTIME}/")), word] for path, word in told]
    value = {
        "point": cell.point,
        "state": number,
        "states": len(found.states),
        "unexplored": found.unexplored,
        "lost": lost,
    }
    if cell.kind == POWER_LOSS_LOCAL:
        left = ledger.read(os.path.join(place, folder.EFFECTS), ledger.EffectLine)
        value["effects"] = len(left.lines)
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


def changes_until(place: str, kind: str, until: str | None = None) -> list[Change]:
    """What was done to what may be lost in a cell whose phase ran under the recorder.

    Args:
        place: the cell's folder.
        kind: of the power loss.
        until: the point up to which; the end of the phase where None is given.
    """
    with open(os.path.join(place, folder.TRACE), encoding="utf-8") as file:
        calls = recorder.made(file.read(), place)
    reached = [number for number, one in enumerate(calls) if recorder.point(one) == until]
    if until is not None:
        calls = calls[: reached[0]] if reached else []
    tops = _tops(kind)
    made = [*(Change("make", top) for top in tops), Change("flush", power.HERE)]
    done = (c for c in recorder.changes(calls, *tops) if c.path != folder.CALLS)
    # Half of an effect is none that anybody could count.
    return made + [replace(c, whole=True) if c.path in _WORLD else c for c in done]


def _tops(kind: str) -> tuple[str, ...]:
    """The folders that lose something, below the cell's own."""
    return (folder.RUNTIME, folder.WORLD) if kind == POWER_LOSS_LOCAL else (folder.RUNTIME,)


def _tree(place: str, tops: Sequence[str]) -> power.State:
    """What the folders hold; what is neither file nor folder is not what they were made of."""
    tree: dict[str, bytes | None] = dict.fromkeys(tops)
    for above, folders, files in itertools.chain(*(os.walk(os.path.join(place, t)) for t in tops)):
        for name in (*folders, *files):
            path = os.path.join(above, name)
            below = os.path.relpath(path, place)
            if os.path.islink(path) or not (os.path.isdir(path) or os.path.isfile(path)):
                raise power.BeyondModel(f"{below} is neither a file nor a folder")
            tree[below] = None if os.path.isdir(path) else _read(path)
    tree.pop(folder.CALLS, None)
    return tree


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _put(place: str, state: power.State, tops: Sequence[str]) -> None:
    """Move what stood there aside, and put the state in its place."""
    before = os.path.join(place, BEFORE)
    os.mkdir(before, 0o700)
    for top in tops:
        os.rename(os.path.join(place, top), os.path.join(before, top))
    for path in sorted(state):  # a folder comes before what lies in it
        whole, held = os.path.join(place, path), state[path]
        if held is None:
            os.mkdir(whole, 0o700)
            continue
        fd = os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(held)
    if folder.WORLD in tops:
        with contextlib.suppress(FileNotFoundError):
            os.rename(os.path.join(before, folder.CALLS), os.path.join(place, folder.CALLS))


def _not_done(place: str, why: str) -> bool:
    folder.note(place, f"no power was lost: {why}")
    return False
