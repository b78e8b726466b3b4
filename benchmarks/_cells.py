"""A worker's process that runs cells, or their floors, and says how long each took.

It imports what a lean worker does, and freezes it alike, so that its forks cost what a worker's do.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
from collections.abc import Callable
from functools import partial

from benchmarks import _replay
from rcr_probes import executors, linux, observe, phase, worker
from rcr_probes import folder as layout
from rcr_probes.model import Cell, Forced
from rcr_probes.process import Ended
from rcr_probes.runtime import load
from rcr_probes.worker import Job

P3 = Cell(point="completion_audit", fault="audit_is_directory", policy="resume")
Act = Callable[[], object]
VERBS = ("fault", "force", "recover")


def run_cell(folder: str) -> None:
    worker.run_cell(Job(P3, folder, "fork", 30.0))
    layout.remove(folder)


def run_bare(folder: str) -> None:
    """A cell of two phases: the forced call and its copy of the world are left out."""
    kept = worker._force
    setattr(worker, "_force", lambda job, served: _FORCED)  # noqa: B010 (a function's own name)
    try:
        run_cell(folder)
    finally:
        setattr(worker, "_force", kept)  # noqa: B010


RUNS = {"cell": run_cell, "bare": run_bare}
_FORCED = (Forced((), "none"), Ended(1, "exit", 0.0, 0))


def recorded(folder: str) -> dict[str, list[_replay.Operation]]:
    """The file operations of a P3 cell's phases, as CPython's own audit events tell them.

    What lifts the fault before recovery is told as the recovery's own.
    """
    layout.make(folder, P3)
    seen: dict[str, list[_replay.Operation]] = {}
    for verb in VERBS:
        place = layout.copy_world(folder, P3) if verb == "force" else folder
        note = f"{folder}.{verb}.json"
        lift = partial(_lift, folder) if verb == "recover" else None
        _replay.in_child(partial(_noted, place, verb, os.getpid(), note, lift))
        with open(note, encoding="utf-8") as file:
            seen[verb] = [(name, paths, flags) for name, paths, flags in json.load(file)]
        os.unlink(note)
    return seen


def _lift(folder: str) -> None:
    executor = executors.make(folder, P3.dedupe, lambda *_: None)
    in_hand = phase.operation(P3, folder, "recover", executor)
    struck = observe.strike(observe.written(folder).lines, load(P3.runtime), in_hand)
    assert struck is not None
    struck.lift()


def _noted(place: str, verb: str, parent: int, note: str, lift: partial[None] | None) -> None:
    operations: list[_replay.Operation] = []

    def hear(name: str, args: tuple[object, ...]) -> None:
        if name == "open" and isinstance(args[0], str) and isinstance(args[2], int):
            operations.append((name, [args[0]], args[2]))
        elif name in ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.listdir"):
            operations.append((name, [str(a) for a in args if isinstance(a, str)], 0))

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # where a phase tells a developer of an error
    with open(note, "w", encoding="utf-8") as file:
        sys.addaudithook(hear)
        if lift is not None:
            lift()
        phase.perform(place, verb, parent)
        kept = [one for one in operations if one[1] and one[1][0].startswith(place)]
        json.dump(kept, file)


def write_floors(scratch: str) -> int:
    """Note both floors, of two phases and of three; how many operations three have."""
    top = os.path.join(scratch, "floor")
    seen = recorded(top)
    layout.remove(top)
    layout.make(top, P3)
    layout.copy_world(top, P3)
    standing: list[tuple[str, str | None]] = []
    for place, _, names in os.walk(top):
        standing.append((place, None))
        for name in names:
            with open(os.path.join(place, name), encoding="utf-8") as file:
                standing.append((os.path.join(place, name), file.read()))
    for name, verbs in (("two", ("fault", "recover")), ("three", VERBS)):
        with open(os.path.join(scratch, name), "w", encoding="utf-8") as file:
            json.dump((top, standing, [seen[verb] for verb in verbs]), file)
    return sum(map(len, seen.values()))


def main(scratch: str) -> None:
    linux.adopt_descendants()
    place = os.path.join(scratch, "cell")
    count = write_floors(scratch)
    with open(os.path.join(scratch, "count"), "w", encoding="ascii") as file:
        file.write(str(count))
    run_cell(place)
    gc.collect()
    gc.freeze()

    def nothing() -> None:
        """A cell makes its folder itself."""

    used: dict[str, list[float]] = {}

    def counted(name: str, ready: Act, act: Act) -> tuple[Act, Act]:
        return ready, partial(_use, used, name, act)

    floors = {name: _replay.floor(os.path.join(scratch, name)) for name in ("two", "three")}
    cells = {name: counted(name, nothing, partial(run, place)) for name, run in RUNS.items()}
    _replay.serve({**{name: counted(name, *floor) for name, floor in floors.items()}, **cells})
    mean = {name: [total / n for total in totals] for name, (n, *totals) in used.items()}
    with open(os.path.join(scratch, "used"), "w", encoding="ascii") as file:
        json.dump(mean, file)


def _use(used: dict[str, list[float]], name: str, act: Act) -> None:
    """Do it, and add up what it used: times, and then ours and our children's, as in ``_usage``."""
    before = _usage()
    act()
    spent = [1.0, *(now - then for now, then in zip(_usage(), before, strict=True))]
    used[name] = [a + b for a, b in zip(used.get(name, [0.0] * len(spent)), spent, strict=True)]


def _usage() -> list[float]:
    """Page faults of this process and of its children, then seconds of both in user and kernel."""
    own, below = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    user, system = own.ru_utime + below.ru_utime, own.ru_stime + below.ru_stime
    return [own.ru_minflt, below.ru_minflt, user, system]


if __name__ == "__main__":
    main(sys.argv[1])
