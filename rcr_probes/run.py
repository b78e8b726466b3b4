"""The only orchestrator: a plan becomes sealed evidence."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from rcr_probes import plan as plans
from rcr_probes import worker
from rcr_probes.errors import PlanError, UnknownName
from rcr_probes.evidence import seal, store
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import STARTS, Capture, Cell, Plan
from rcr_probes.worker import Job

DEADLINE = 30.0
_MEMORY = "/dev/shm"  # a cell is about twice as fast there as on a disk (docs/design.md §8)
_AHEAD = 2  # jobs that a worker has in hand, so that it never waits for its parent

Progress = Callable[[int, int], None]


def run(
    plan: Plan | str | os.PathLike[str],
    into: str | os.PathLike[str] | None = None,
    *,
    start: str = "fork",
    workers: int | None = None,
    again: bool = False,
    keep: bool = False,
    deadline: float = DEADLINE,
    progress: Progress | None = None,
) -> Evidence:
    """Run every cell of a plan, each phase in a new process, and seal what was measured.

    A folder whose run did not come to its end is resumed; one that is complete is returned as it
    is, unless ``again``.

    Args:
        plan: a plan, the name of a shipped one, or the path of a TOML file.
        into: the evidence folder; default ``runs/`` and the plan's name.
        start: ``fork`` or ``spawn``.
        workers: processes that run cells side by side; default one for each core.
        again: run anew; what the folder holds is kept in ``<into>.previous``, or in
            ``<into>.previous-2`` and so on where that is taken.
        keep: keep each cell's folder, in ``<into>.cells``.
        deadline: seconds for each phase; one that overruns makes its cell ``unknown``.
        progress: called after each capture with how many are done, and how many there are.

    Raises:
        UnknownName: a name in the plan that nothing knows.
        PlanError: a plan that cannot be run, or a folder that cannot take it.
        OSError: the folder cannot be written.
    """
    checked = plans.validated(plan if isinstance(plan, Plan) else plans.read(plan))
    if start not in STARTS:
        raise UnknownName("start method", start, STARTS)
    if workers is not None and workers < 1:
        raise PlanError(f"workers = {workers} cannot run anything.", "Use 1 or more.")
    if not 0 < deadline < float("inf"):
        raise PlanError(f"deadline = {deadline} leaves no time.", "Give seconds, more than 0.")
    folder = Path(into) if into is not None else Path("runs", checked.name)
    if again and folder.exists():
        _set_aside(folder)
    if (folder / store.MANIFEST).exists() and store.read_plan(folder) == checked:
        return store.read(folder)
    with store.Writer(folder, checked) as writer, _scratch(folder, keep) as scratch:
        rest = checked.cells[writer.done :]
        jobs = (
            Job(cell, _folder(scratch, number, cell, keep), start, deadline, keep)
            for number, cell in enumerate(rest, writer.done)
        )
        for capture in _captures(jobs, min(workers or _cores(), len(rest) or 1)):
            writer.append(capture)
            if progress:
                progress(writer.done, len(checked.cells))
        return writer.seal()


def _captures(jobs: Iterator[Job], workers: int) -> Iterator[Capture]:
    """The captures of the jobs, in their order; each worker gets every n-th job."""
    pool = [_Worker() for _ in range(workers)]
    pending: deque[_Worker] = deque()
    try:
        for number, job in enumerate(jobs):
            if len(pending) == _AHEAD * workers:
                yield pending.popleft().receive()
            chosen = pool[number % workers]
            chosen.send(job)
            pending.append(chosen)
        while pending:
            yield pending.popleft().receive()
    finally:
        for one in pool:
            one.end()


class _Worker:
    """A lean process that runs cells: never this one, which may be a notebook or have threads."""

    def __init__(self) -> None:
        self._unanswered: deque[Job] = deque()
        self._process = self._started()

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", worker.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours to handle: we end it in good order
        )

    def send(self, job: Job) -> None:
        self._unanswered.append(job)
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # its death is noticed when we receive
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()

    def receive(self) -> Capture:
        """The capture of the oldest unanswered job; if the worker died over it, a broken one."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        job = self._unanswered.popleft()
        if line.endswith(b"\n"):
            return seal.decode(line, "worker")
        self.end()
        self._process = self._started()
        waiting, self._unanswered = self._unanswered, deque()
        for other in waiting:
            shutil.rmtree(other.folder, ignore_errors=True)
            self.send(other)
        return worker.broken(job, "the worker process died")

    def end(self) -> None:
        """End the process and whatever phase it is running; return when it is gone."""
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


@contextlib.contextmanager
def _scratch(folder: Path, keep: bool) -> Iterator[Path]:
    """Where cells stand while they run: in memory if there is some; beside the evidence to keep."""
    if keep:
        kept = folder.with_name(folder.name + ".cells")
        kept.mkdir(exist_ok=True)
        yield kept.absolute()
        return
    memory = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix=f"rcr-{os.getpid()}-", dir=memory) as scratch:
        yield Path(scratch)


def _folder(scratch: Path, number: int, cell: Cell, keep: bool) -> str:
    if not keep:
        return str(scratch / str(number))
    place = scratch / f"{number:04}-{cell.id.replace('/', '-').replace(':', '-')}"
    shutil.rmtree(place, ignore_errors=True)
    return str(place)


def _set_aside(folder: Path) -> None:
    if not (folder / store.PLAN).exists() and any(folder.iterdir()):
        raise PlanError(
            f"{folder} is not empty and holds no plan.", "Name another folder with --into."
        )
    previous = folder.with_name(folder.name + ".previous")
    others = (previous.with_name(f"{previous.name}-{n}") for n in itertools.count(2))
    folder.rename(next(p for p in itertools.chain([previous], others) if not p.exists()))


def _cores() -> int:
    return len(os.sched_getaffinity(0))
