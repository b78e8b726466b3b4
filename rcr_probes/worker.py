"""One lean process that runs cells, one after another: measure, derive, seal.

Its parent writes one cell a line to its stdin and reads one capture a line from its stdout. It is
single-threaded and warm, so that a forked phase starts in the state that an interpreter reaches
after its imports; docs/design.md §4 says what must not be imported here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import msgspec

from rcr_probes import (
    executors,
    files,
    folder,
    linux,
    observe,
    outage,
    phase,
    process,
    receiving,
    recovery,
    request,
    traced,
)
from rcr_probes.errors import code_of
from rcr_probes.evidence import seal
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.form import LONGEST
from rcr_probes.ledger import EventLine
from rcr_probes.model import (
    Capture,
    Cell,
    Circumstances,
    Forced,
    Json,
    Judgement,
    Measurement,
    Observation,
    Recorded,
    Verdict,
)
from rcr_probes.process import Ended
from rcr_probes.receiving import Served
from rcr_probes.recovery import Original, Site
from rcr_probes.room import FolderTooLarge, NoRoom
from rcr_probes.runtime import load, offered
from rcr_probes.vocabulary import HANG, MEASURED, POWER_LOSSES, UNREADABLE, Lane

READY = b"ready\n"  # what a worker says first; one that does not could not even start


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


@dataclass(frozen=True, slots=True)
class Measured:
    """A cell that is measured and not judged yet, as it lies in the cell's folder."""

    measurement: Measurement
    circumstances: Circumstances


def run_cell(job: Job) -> Capture:
    """Run one cell to its sealed capture. What breaks on the way makes its verdict ``unknown``."""
    ended: dict[str, Ended] = {}
    try:
        measurement = _measure(job, ended)
    except Exception as error:
        process.end_orphans(0.0)  # of a phase that was broken off
        return broken(job, str(error) if isinstance(error, FolderTooLarge) else code_of(error))
    circumstances = Circumstances(
        start=_start_of_fault(job),
        parent=os.getpid(),
        pids={verb: end.pid for verb, end in ended.items()},
        seconds={verb: round(end.seconds, 6) for verb, end in ended.items()},
    )
    data = msgspec.json.encode(Measured(measurement, circumstances))
    # On disk before anything judges it: whatever the judge does, no data is lost.
    path = os.path.join(job.folder, folder.MEASURED)
    with contextlib.suppress(OSError):  # a runtime may have put something there, such as a pipe
        os.unlink(path)
    with open(path, "xb") as file:
        file.write(data)
    return _sealed(msgspec.json.decode(data, type=Measured))  # judged is what a reader will read


def left_by(job: Job) -> Capture:
    """The capture of a cell whose worker died over it: of what it had measured, if it had."""
    try:
        data = files.read(os.path.join(job.folder, folder.MEASURED))
        measured = msgspec.json.decode(data, type=Measured)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        measured = None
    if measured is None or measured.measurement.cell != job.cell:
        return broken(job, "the worker process died")
    capture = _sealed(measured)
    return capture if len(seal.encode(capture)) <= LONGEST else _too_long(job)


def lacked_room(capture: Capture) -> bool:
    """Whether a cell was broken off because the disk was full: that says nothing of the cell."""
    said = {f"harness: {code}" for code in (NoRoom.code, "ENOSPC", "EDQUOT")}
    return any(said.intersection(seen.damage) for seen in capture.measurement.observations)


def broken(job: Job, why: str) -> Capture:
    """What is left of a cell that the harness could not measure: nothing, and it says so."""
    damage = (f"harness: {why}",)
    nothing = Recorded(UNREADABLE)
    measurement = Measurement(
        cell=job.cell,
        source=MEASURED,
        approved=request.approved(job.cell),
        says={},
        events=(),
        observations=(
            Observation("fault", 0, nothing, None, None, damage=damage),
            Observation("recover", 0, nothing, None, None, damage=damage),
        ),
        forced=Forced((), "crash"),
    )
    circumstances = Circumstances(start=_start_of_fault(job), parent=os.getpid())
    return _sealed(Measured(measurement, circumstances))


def _sealed(measured: Measured) -> Capture:
    try:
        judged = derive(measured.measurement)
    except Exception:  # a judge that breaks yields unknown
        judged = Judgement(verdict=Verdict("unknown", ("judge_failed",)))
    return seal.seal(measured.measurement, judged, measured.circumstances)


def _measure(job: Job, ended: dict[str, Ended]) -> Measurement:
    """Fault phase, first observation, measured truth, fault lifted, recovery, second one."""
    cell, place = job.cell, job.folder
    runtime = load(cell.runtime)
    folder.make(place, cell)
    in_hand = phase.operation(cell, place, "recover", executors.make(place, cell.dedupe, _mute))
    named = offered(runtime, "files")(in_hand)
    with receiving.before(place, cell) as served:
        site = Site(place, cell, job.start, job.deadline, runtime, in_hand, named, served.settle)
        with recovery.original(site, _strike) as original:
            ended["fault"] = original.ended
            first, last, forced, lines = _observed(site, served, original, ended)
    return Measurement(
        cell=cell,
        source=MEASURED,
        approved=request.approved(cell),
        says=dict(runtime.says),
        events=observe.events(lines),
        observations=(first, last),
        forced=forced,
    )


def _strike(site: Site) -> Ended:
    """Run the fault phase."""
    cell, place = site.cell, site.place
    under = (*traced.under(place, cell, site.files), *outage.under(place, cell))
    hung = partial(observe.hung, place) if cell.fault == HANG else None
    return process.run_phase(_start_of_fault(site), place, "fault", site.deadline, under, hung)


def _observed(
    site: Site, served: Served, original: Original, ended: dict[str, Ended]
) -> tuple[Observation, Observation, Forced, Sequence[EventLine]]:
    """What follows the fault phase of a cell, with what was seen after each; and every event."""
    cell, place, runtime, in_hand = site.cell, site.place, site.runtime, site.in_hand
    apart = not phase.asks(cell, runtime)
    ask = partial(observe.ask, place, site.start, site.deadline)
    traced.note(place, cell, ended["fault"], site.files)
    dark = outage.happen(place, cell, ended["fault"].how, site.files)
    asked = ask("fault") if apart or dark else None
    in_flight = served.settle()
    served.age()
    lines = observe.written(place)
    first = observe.observe(
        place, lines, runtime, in_hand, "fault", ended["fault"], asked, cell, in_flight
    )
    forced, ended["force"] = _force(site, served)
    struck = observe.strike(lines.lines, runtime, in_hand)
    if struck is not None:
        struck.lift()
    recoveries: dict[str, Ended] = {}
    if cell.policy != "never":
        recoveries = recovery.recover(site)
        ended |= recoveries
        original.let_go()
        asked = ask("recover") if apart else None
    in_flight = served.settle()
    lines = observe.written(place, since=lines)
    whole = recovery.last(recoveries, cell, original)
    last = observe.observe(place, lines, runtime, in_hand, "recover", whole, asked, cell, in_flight)
    return first, last, forced, lines.lines


def _start_of_fault(one: Job | Site) -> str:
    """How the fault phase is started: strace is put before a new interpreter alone."""
    stracing = traced.by_strace(one.cell) or one.cell.kind in POWER_LOSSES
    return "spawn" if stracing else one.start


def _force(site: Site, served: Served) -> tuple[Forced, Ended]:
    """Force one call in a copy of the cell's outside world, and see what stands there after.

    The executor is called past the runtime, so the world is all that the copy needs.
    """
    copy = folder.copy_world(site.place, site.cell)
    with served.copied(copy) as there:
        ended = process.run_phase(site.start, copy, "force", site.deadline)
        in_flight = there.settle()
    stands, damage = observe.effects(copy, site.cell)
    if damage or in_flight:
        return Forced(stands, "damaged"), ended
    answer = observe.returned(observe.written(copy).lines, "force")
    return Forced(stands, answer or ("deadline" if ended.how == "deadline" else "crash")), ended


def _mute(lane: Lane, value: Mapping[str, Json]) -> None:
    """The parent has the operation in hand, and calls nothing."""


def serve(jobs: BinaryIO, captures: BinaryIO, idle: int = 0) -> None:
    """Say that we are there, then run every job that arrives, in order, until there are no more.

    Args:
        jobs: one a line.
        captures: where their captures go, one a line.
        idle: seconds without a job after which this process ends, with SIGALRM; 0 is never.
    """
    captures.write(READY)
    captures.flush()
    linux.adopt_descendants()
    signal.signal(signal.SIGTERM, _end)
    gc.collect()
    gc.freeze()  # a forked phase then touches, and copies, fewer pages
    for line in _awaited(jobs, idle):
        job = msgspec.json.decode(line, type=Job)
        captures.write(_line(job))
        captures.flush()
        if not job.keep:
            folder.remove(job.folder)


def _end(*_: object) -> None:
    """End the phase in hand on the way out, which no second signal is to break off."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


def _line(job: Job) -> bytes:
    """The capture of a cell as a line that a reader takes."""
    line = seal.encode(run_cell(job))
    if len(line) <= LONGEST:
        return line
    return seal.encode(_too_long(job))


def _too_long(job: Job) -> Capture:
    return broken(job, f"what was measured takes more than {LONGEST} bytes")


def _awaited(jobs: BinaryIO, idle: int) -> Iterator[bytes]:
    """Every line, until there are no more, or nobody sends one for so long."""
    while True:
        signal.alarm(idle)
        line = jobs.readline()
        signal.alarm(0)
        if not line:
            return
        yield line


if __name__ == "__main__":
    linux.die_with(int(sys.argv[1]))
    # A runtime may print where it is loaded or asked for its state: captures go where it cannot.
    private = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(private, "wb") as captures:
        os.register_at_fork(after_in_child=captures.close)  # a phase has nothing to say there
        serve(sys.stdin.buffer, captures, int(sys.argv[2]))
