"""Record what a fault phase does to the files of its private folder when nothing strikes.

An entry point of its own: it forks, so nobody with threads may do this work. It prints one JSON
object: the calls in their order, and how many states a power loss leaves at each point.
"""

from __future__ import annotations

import json
import os
import sys

from rcr_probes import executors, folder, linux, outage, phase, power, process, recorder
from rcr_probes.errors import RcrError
from rcr_probes.model import Cell, Json
from rcr_probes.runtime import load, offered
from rcr_probes.scratch import scratch
from rcr_probes.vocabulary import NONE, POWER_LOSSES

DEADLINE = 60.0  # seconds
# Where a phase is struck that never comes there: so it runs as it does where a call is struck, and
# those that count are the runtime's own.
_NOWHERE = "fsync@.#65535"
FAILED = 1


def record(place: str, runtime: str, variant: str) -> dict[str, Json] | str:
    """What was recorded; or else what the phase printed, which did not come to its end.

    Args:
        place: the cell's folder; it does not exist yet.
        runtime: its name.
        variant: its configuration.

    Returns:
        ``calls``: step, call, file and number of each call that can change a file, or make a
        change last; the step is the last point before it. ``states``: kind of
        power loss → point → how many states.
    """
    files = offered(load(runtime), "files")
    cell = Cell(point=_NOWHERE, fault="kill", runtime=runtime, variant=variant, policy="never")
    folder.make(place, cell)
    log = os.path.join(place, folder.TRACE)
    ended = process.run_phase("spawn", place, "fault", DEADLINE, recorder.words(log))
    if ended.how != "exit":
        with open(os.path.join(place, folder.OUTPUT), encoding="utf-8", errors="replace") as file:
            return file.read() or ended.how
    executor = executors.make(place, NONE, lambda lane, value: None)
    operation = phase.operation(cell, place, "recover", executor)
    names = {path: name for name, path in files(operation).items()}
    with open(log, encoding="utf-8") as file:
        made = recorder.made(file.read(), place)
    calls, step = [], NONE
    reached: list[str] = []
    for one in made:
        if point := recorder.point(one):
            step = point
            reached.append(point)
        if recorder.within(one.file, folder.RUNTIME) and one.changes:
            path = recorder.own(one.file, folder.RUNTIME)
            calls.append([step, one.call, names.get(path, path), one.nth])
    states = {
        kind: {
            point: len(power.explored(outage.changes_until(place, kind, until=point)).states)
            for point in dict.fromkeys(reached)
        }
        for kind in POWER_LOSSES
    }
    return {"calls": calls, "states": states}


def main(parent: int, runtime: str, variant: str) -> int:
    """Record, and print what was recorded."""
    linux.die_with(parent)
    linux.adopt_descendants()
    try:
        with scratch() as place:
            found = record(str(place / "cell"), runtime, variant)
    except RcrError as error:
        found = error.cause
    if isinstance(found, str):
        print(found, file=sys.stderr)
        return FAILED
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3]))
