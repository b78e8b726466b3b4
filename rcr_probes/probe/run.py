"""From a worker to sealed evidence: two controls, then every strike, each from fresh state."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rcr_probes import following, linux
from rcr_probes.errors import PlanError, RcrError, naming
from rcr_probes.evidence import seal, store, write
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.form import PLAN
from rcr_probes.evidence.received import DONE
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Cell, Plan
from rcr_probes.probe import drive, strike
from rcr_probes.probe.attribute import Attribution, acting, attribution
from rcr_probes.probe.command import FOLDER, Command, refuse_unknown
from rcr_probes.probe.drive import Commands, Course
from rcr_probes.probe.measure import circumstances, measurement
from rcr_probes.probe.trace import Target
from rcr_probes.receiver import Request, Settings
from rcr_probes.scratch import scratch

TIMEOUT = 30.0
_NAME = "probe"  # of the plan
_LONGEST = 600.0
_ROOM = 1 << 20  # bytes for the evidence
MOST_CALLS = 40  # cells of ``syscalls``: each takes about a second

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to probe.

    Attributes:
        worker: the command under the strikes.
        recover: run in a new process after each; None: the worker once more.
        setup: run before each, to prepare the fresh folder; None: nothing.
        request: strike at this request, from 1; None: at each that the control sends.
        settings: of the receiver that stands in for the remote API.
        timeout: seconds for each run of a command.
        syscalls: also kill at each call that changes a file below this path; None: do not.
    """

    worker: Command
    recover: Command | None = None
    setup: Command | None = None
    request: int | None = 1
    settings: Settings = field(default_factory=Settings)
    timeout: float = TIMEOUT
    syscalls: str | None = None

    @property
    def policy(self) -> str:
        return "again" if self.recover is None else "recover"


class ProbeError(RcrError):
    """A worker that cannot be probed as it is run."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of a probe.

    Attributes:
        evidence: sealed.
        left_out: how many calls that change files were not struck, because there are too many.
        failed: the first cell whose recovery failed, the control before all others; None where
            none did. What it printed is no part of the evidence.
    """

    evidence: Evidence
    left_out: int
    failed: Failed | None


@dataclass(frozen=True, slots=True)
class Failed:
    """A recovery that ended with an exit status other than 0.

    Attributes:
        cell: its id.
        printed: the last lines of what it printed.
    """

    cell: str
    printed: tuple[str, ...]


def probe(asked: Asked, into: Path, progress: Progress | None = None) -> Probed:
    """Probe a worker, and seal what was measured.

    To be called in a process that has no threads: it becomes the parent of whatever the worker
    leaves, and ends it.

    Args:
        asked: what to probe.
        into: the evidence folder; what it holds is moved to ``.previous`` beside it.
        progress: called with how many runs are done, and how many there are.

    Raises:
        ProbeError: the worker cannot be probed as it is run.
        RcrError: this is no Linux, a command cannot be started, or the setup failed.
        PlanError: the folder holds something that is no evidence.
        OSError: the folder cannot be made.
    """
    _refuse(asked, into)
    recovery = asked.recover or asked.worker
    commands = Commands(asked.worker, recovery, asked.setup, asked.settings, asked.timeout)
    linux.adopt_descendants()
    with scratch() as place:
        courses, left_out = _courses(asked, commands, place, progress or _silent)
    return Probed(_sealed(courses, into), left_out, _failed(courses))


def _refuse(asked: Asked, into: Path) -> None:
    linux.require()
    for command in (asked.worker, asked.recover, asked.setup):
        if command is not None:
            command.require()
    if asked.syscalls is not None:
        refuse_unknown(asked.syscalls, (FOLDER,))
        if why := following.without_strace():
            raise ProbeError(*why)
    answer = asked.settings.answer
    if answer is not None and not os.path.isfile(answer):
        raise ProbeError(
            f"There is no file {answer} to answer the worker with.",
            "Name with --answer, seen from here, the file that holds the API's JSON.",
        )
    if not 0 < asked.timeout <= _LONGEST:
        raise ProbeError(
            f"A timeout of {asked.timeout:g} s cannot be kept.",
            f"Give seconds, more than 0 and up to {_LONGEST:g}.",
        )
    if into.exists() and any(into.iterdir()) and not (into / PLAN).exists():
        raise PlanError(f"{into} is not empty and holds no plan.", "Name another with --into.")
    if (into / PLAN).exists() and store.read_plan(into).name != _NAME:
        raise PlanError(f"{into} holds another plan.", "Name another folder with --into.")
    place = into.absolute().parent
    while not place.exists():
        place = place.parent
    with naming(into), tempfile.TemporaryFile(dir=place) as file:
        file.write(bytes(_ROOM))  # better now than when everything has run
        file.flush()


def _courses(
    asked: Asked, commands: Commands, place: Path, progress: Progress
) -> tuple[list[Course], int]:
    first_cell, second_cell = strike.controls(asked.policy)
    first = drive.drive(first_cell, place / "0", commands, None)
    _check_first(first)
    sample = _sent(first)[0]
    second = drive.drive(second_cell, place / "1", commands, sample)
    _check_second(first, second)
    came = len(_sent(first))
    cells: list[tuple[Cell, Target | None]] = [
        (cell, None) for cell in strike.at_requests(_requests(asked, came), asked.policy)
    ]
    left_out = 0
    if asked.syscalls is not None:
        found = drive.changes(asked.syscalls, place / "calls", commands)
        if not found:
            raise ProbeError(
                f"The worker makes no call that changes a file below {asked.syscalls}.",
                "Name the folder, or the file, where it keeps its state, such as {folder}.",
            )
        left_out = max(0, len(found) - MOST_CALLS)
        cells += [(strike.at_call(str(one.point), asked.policy), one) for one in found[:MOST_CALLS]]
    courses = [first, second]
    for number, (cell, target) in enumerate(cells, 2):
        progress(number, len(cells) + 2)
        courses.append(drive.drive(cell, place / str(number), commands, sample, target))
    return courses, left_out


def _requests(asked: Asked, came: int) -> list[int]:
    if asked.request is None:
        return list(range(1, came + 1))
    if not 1 <= asked.request <= came:
        raise ProbeError(
            f"There is no request {asked.request}: without a strike the worker sends {came}.",
            f"Give a number from 1 to {came}, or all.",
        )
    return [asked.request]


def _sent(course: Course) -> list[Request]:
    """What the worker sent that can make an effect, before any recovery."""
    return acting(course.after_fault.requests)


def _check_first(control: Course) -> None:
    """Refuse a worker that does not do its job where nothing strikes."""
    status, said = control.worker.status, drive.told(control.printed)
    if status == "deadline":
        raise ProbeError(
            f"The worker did not end within {control.worker.seconds:.0f} s, though nothing struck.",
            "Have it end once its jobs are done, or give it longer with --timeout." + said,
        )
    if status != DONE:
        raise ProbeError(
            f"The worker ended with {status}, though nothing struck.",
            "Where it wants another answer of the API, give it by --answer FILE and --status N."
            + said,
        )
    if not control.after_fault.effects:
        outcomes = ", ".join(str(request.outcome) for request in _sent(control))
        raise ProbeError(
            f"None of the worker's requests took effect, though nothing struck: {outcomes}.",
            "An Idempotency-Key must be one text of 1 to 255 printable characters; --key-header "
            "names the field where it is another one." + said,
        )


def _check_second(first: Course, second: Course) -> None:
    """Refuse a worker whose second run, from fresh state, is not like its first."""
    came = [len(_sent(course)) for course in (first, second)]
    if not came[1]:
        raise ProbeError(
            "In a second run from fresh state the worker sent nothing: it remembers the first one "
            "outside the fresh folder.",
            "Have it keep all its state in {folder} (the environment variable RCR_FOLDER), or "
            "reset it with --setup." + drive.told(second.printed),
        )
    made = [len(course.after_fault.effects) for course in (first, second)]
    if came[0] != came[1] or made[0] != made[1]:
        raise ProbeError(
            f"Two runs without a strike differ: {came[0]} requests and {made[0]} effects, then "
            f"{came[1]} and {made[1]}. So nobody can say what is one too many.",
            "Give it one job, and the same one each time, with --setup.",
        )


def _sealed(courses: list[Course], into: Path) -> Evidence:
    told = _told(courses)
    if into.exists():
        write.set_aside(into)
    plan = Plan(_NAME, tuple(course.cell for course in courses))
    with write.Writer(into, plan) as writer:
        for course in courses:
            measured = measurement(course, told)
            judged = derive(measured)
            writer.append(seal.seal(measured, judged, circumstances(course, os.getpid())))
        return writer.seal()


def _told(courses: list[Course]) -> Attribution:
    first, second, *others = courses
    by_id = {request.id: request for request in first.after_fault.requests}
    return attribution(
        [first.after_fault.requests, second.after_fault.requests],
        [by_id[effect.request] for effect in first.after_fault.effects],
        [_sent(course)[: strike.nth(course.cell)] for course in others],
    )


def _failed(courses: list[Course]) -> Failed | None:
    for course in courses:
        if course.recovery.code:
            return Failed(course.cell.id, course.recovery_printed)
    return None


def _silent(done: int, of: int) -> None:
    return None
