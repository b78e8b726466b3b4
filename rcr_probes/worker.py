"""One lean process that runs cells, one after another: measure, derive, seal.

Its parent writes one cell a line to its stdin and reads one capture a line from its stdout. It is
single-threaded and warm, so that a forked phase starts in the state that an interpreter reaches
after its imports; docs/design.md §4 says what must not be imported here.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

import msgspec

from rcr_probes import ledger, observe, phase, process, request
from rcr_probes.errors import code_of
from rcr_probes.evidence import seal
from rcr_probes.evidence.derive import derive
from rcr_probes.executor import MarkerExecutor
from rcr_probes.model import (
    Capture,
    Cell,
    Circumstances,
    Forced,
    Judgement,
    Measurement,
    Observation,
    Recorded,
    Verdict,
)
from rcr_probes.process import Ended
from rcr_probes.runtime import load


@dataclass(frozen=True, slots=True)
class Job:
    """One cell to run: how, and where.

    Attributes:
        cell: what to run.
        folder: the cell's folder; it does not exist yet.
        start: ``fork`` or ``spawn``.
        deadline: seconds for each phase.
        keep: whether the folder stays when the cell is done.
    """

    cell: Cell
    folder: str
    start: str
    deadline: float
    keep: bool = False


def run_cell(job: Job) -> Capture:
    """Run one cell to its sealed capture. What breaks on the way makes its verdict ``unknown``."""
    ended: dict[str, Ended] = {}
    try:
        measured = _measure(job, ended)
    except Exception as error:
        return broken(job, code_of(error), ended)
    return _sealed(job, measured, ended)


def broken(job: Job, why: str, ended: Mapping[str, Ended] | None = None) -> Capture:
    """What is left of a cell that the harness could not measure: nothing, and it says so."""
    damage = (f"harness: {why}",)
    nothing = Recorded(ledger.UNREADABLE)
    measured = Measurement(
        cell=job.cell,
        source="measured",
        approved=request.approved(job.cell),
        says={},
        events=(),
        observations=(
            Observation("fault", 0, nothing, None, None, damage=damage),
            Observation("recovery", 0, nothing, None, None, damage=damage),
        ),
        forced=Forced((), "crash"),
    )
    return _sealed(job, measured, ended or {})


def _sealed(job: Job, measured: Measurement, ended: Mapping[str, Ended]) -> Capture:
    try:
        judged = derive(measured)
    except Exception:  # a judge that breaks yields unknown, and loses nothing that was measured
        judged = Judgement(verdict=Verdict("unknown", ("judge_failed",)))
    circumstances = Circumstances(
        start=job.start,
        parent=os.getpid(),
        pids={verb: end.pid for verb, end in ended.items()},
        seconds={verb: round(end.seconds, 6) for verb, end in ended.items()},
    )
    return seal.seal(measured, judged, circumstances)


def _measure(job: Job, ended: dict[str, Ended]) -> Measurement:
    """Fault phase, first observation, measured truth, fault lifted, recovery, second one."""
    cell, folder = job.cell, job.folder
    runtime = load(cell.runtime)
    _prepare(folder, cell, private=True)
    in_hand = phase.operation(cell, folder, "recover", MarkerExecutor(folder, cell.dedupe, _mute))

    ended["fault"] = process.run_phase(job.start, folder, "fault", job.deadline)
    first = observe.observe(folder, runtime, in_hand, "fault", ended["fault"])
    _write(folder, first)
    forced, ended["call"] = _force(job)
    struck = observe.strike(folder)
    if struck is not None:
        struck.lift()
    if cell.policy != "never":
        ended["recover"] = process.run_phase(job.start, folder, "recover", job.deadline)
    last = observe.observe(folder, runtime, in_hand, "recovery", ended.get("recover"))
    _write(folder, last)
    return Measurement(
        cell=cell,
        source="measured",
        approved=request.approved(cell),
        says=dict(runtime.says),
        events=observe.events(folder),
        observations=(first, last),
        forced=forced,
    )


def _force(job: Job) -> tuple[Forced, Ended]:
    """Force one call in a copy of the cell's outside world, and see what stands there after.

    The executor is called past the runtime, so the world is all that the copy needs.
    """
    copy = os.path.join(job.folder, "truth")
    _prepare(copy, job.cell, private=False)
    world = os.path.join(job.folder, ledger.WORLD)
    for name in os.listdir(world):
        with open(os.path.join(world, name), "rb") as file:
            data = file.read()
        with open(os.path.join(copy, ledger.WORLD, name), "wb") as file:
            file.write(data)
    ended = process.run_phase(job.start, copy, "call", job.deadline)
    stands, damage = observe.effects(copy)
    if ended.how != "exit" or damage:
        return Forced(stands, "damaged" if damage else ended.how), ended
    returned = [e.value["error"] for e in observe.events(copy) if e.lane == "return"]
    return Forced(stands, returned[0] if returned else "crash"), ended


def _prepare(folder: str, cell: Cell, *, private: bool) -> None:
    for name in (ledger.HARNESS, ledger.WORLD, *((ledger.RUNTIME,) if private else ())):
        os.makedirs(os.path.join(folder, name), mode=0o700)
    with open(os.path.join(folder, phase.CELL), "wb") as file:
        file.write(msgspec.json.encode(cell))


def _write(folder: str, observed: Observation) -> None:
    """On disk before anything judges it: a judge that breaks loses no data."""
    ledger.append(os.path.join(folder, ledger.HARNESS, "observations.jsonl"), observed)


def _mute(lane: object, value: object) -> None:
    """The parent has the operation in hand, and calls nothing."""


def remove(folder: str) -> None:
    """Remove a cell's folder, whatever a runtime left in it."""
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(place, name))
        for name in folders:
            path = os.path.join(place, name)
            (os.unlink if os.path.islink(path) else os.rmdir)(path)
    os.rmdir(folder)


def serve(jobs: BinaryIO, captures: BinaryIO) -> None:
    """Run every job that arrives, in order, until there are no more."""
    process.adopt_descendants()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the phase in hand on its way out
    gc.collect()
    gc.freeze()  # a forked phase then touches, and copies, fewer pages
    for line in jobs:
        job = msgspec.json.decode(line, type=Job)
        captures.write(seal.encode(run_cell(job)))
        captures.flush()
        if not job.keep:
            remove(job.folder)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
