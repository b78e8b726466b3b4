"""The only orchestrator: a plan becomes sealed evidence."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from rcr_probes import cluster, linux, pool, room
from rcr_probes import plan as plans
from rcr_probes.errors import PlanError, UnknownName
from rcr_probes.evidence import form, store, write
from rcr_probes.evidence.store import Evidence
from rcr_probes.folder import remove
from rcr_probes.model import Cell, Plan
from rcr_probes.pool import Lane
from rcr_probes.scratch import scratch
from rcr_probes.versions import versions
from rcr_probes.vocabulary import STARTS
from rcr_probes.worker import Job, lacked_room

DEADLINE = 30.0
_NO_NAME = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 200  # bytes of a folder's name; the kernel takes 255
_LONGEST = 86_400  # a day: no phase is meant to run longer, and the kernel's timers hold it

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
    on: str | None = None,
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
        again: run anew; what the folder holds is kept in ``<into>.previous``, and what an earlier
            run left there in ``<into>.previous-2``, and so on.
        keep: keep each cell's folder, in ``<into>.cells``.
        deadline: seconds for each phase; one that overruns makes its cell ``unknown``.
        on: the scheduler of a Dask cluster that is to run them, ``tcp://HOST:PORT``; ``workers`` is
            then how many cells run there at a time, by default one for each of its threads.
        progress: called after each capture with how many are done, and how many there are.

    Raises:
        UnknownName: a name in the plan that nothing knows.
        PlanError: a plan that cannot be run, or a folder that cannot take it.
        RcrError: the cells are to run on this machine, and it is no Linux; or the cluster is not
            there, of which nothing is written, or is gone, and what was measured is kept.
        NoRoom: there is too little space where cells stand.
        OSError: the folder cannot be written.
    """
    checked = plans.validated(plan if isinstance(plan, Plan) else plans.read(plan))
    if start not in STARTS:
        raise UnknownName("start method", start, STARTS)
    if workers is not None and workers < 1:
        raise PlanError(f"workers = {workers} cannot run anything.", "Use 1 or more.")
    if not 0 < deadline <= _LONGEST:
        raise PlanError(
            f"deadline = {deadline} cannot be kept.", f"Give seconds, more than 0 to {_LONGEST}."
        )
    if on is not None:
        cluster.check(on)
        if keep:
            raise PlanError(
                "The folders of cells that run on a cluster cannot be kept.",
                "Run the cell here to look into its folder: --only CELL --keep",
            )
    folder = Path(into) if into is not None else Path("runs", checked.name)
    if not again and (folder / form.PLAN).exists() and store.read_plan(folder) != checked:
        raise PlanError(
            f"{folder} holds another plan than this one, whose name is {checked.name!r}.",
            "Its name is that of its folder below runs/: change name in its TOML, or name a folder "
            "with --into; or run with --again, and what the folder holds is kept aside.",
        )
    if not again and (folder / form.MANIFEST).exists():
        return store.read_whole(folder)
    if on is None:
        linux.require()
    runtimes = tuple(dict.fromkeys(cell.runtime for cell in checked.cells))
    with (
        contextlib.nullcontext() if on is None else cluster.reached(on) as there,
        _writer(folder, checked, runtimes, again) as writer,  # once it is clear who is to run it
        _place(folder, keep) as place,
        _lanes(writer, len(checked.cells) - writer.done, workers, there, runtimes) as lanes,
    ):
        jobs = (
            Job(cell, _folder(place, number, cell, keep), start, deadline, keep)
            for number, cell in enumerate(
                itertools.islice(checked.cells, writer.done, None), writer.done
            )
        )
        for capture, worker in pool.captures(jobs, lanes):
            if lacked_room(capture):
                raise room.lacking(place.parent)
            room.require(place.parent)  # else what was measured is perhaps how a full disk fails
            writer.append(capture, worker)
            if progress:
                progress(writer.done, len(checked.cells))
        return writer.seal()


def _writer(folder: Path, plan: Plan, runtimes: Sequence[str], again: bool) -> write.Writer:
    """What writes the folder; with ``again``, what it holds is set aside before."""
    packages = versions(runtimes)
    if again and folder.exists():
        write.set_aside(folder)
    return write.Writer(folder, plan, packages)


def _lanes(
    writer: write.Writer, cells: int, workers: int | None, there: cluster.Reached | None,
    runtimes: Sequence[str],
) -> AbstractContextManager[Sequence[Lane]]:  # fmt: skip
    """What runs the cells that are left: this machine, or a cluster."""
    if there is None:
        return pool.local(min(workers or _cores(), cells or 1))
    names = writer.where.unused()
    return cluster.lanes(there, cells, workers, runtimes, writer.environment, names)


@contextlib.contextmanager
def _place(folder: Path, keep: bool) -> Iterator[Path]:
    """Where the cells stand while they run; beside the evidence where they are to be kept."""
    if not keep:
        with scratch() as place:
            yield place
        return
    kept = write.beside(folder, ".cells")
    try:
        str(kept).encode()
    except UnicodeEncodeError as error:
        raise PlanError(
            f"{folder} is no UTF-8 text, so cells cannot be kept beside it.",
            "Name a folder with --into whose path is; or set a locale that can read it: "
            "LC_ALL=C.UTF-8",
        ) from error
    kept.mkdir(exist_ok=True)
    yield kept


def _folder(place: Path, number: int, cell: Cell, keep: bool) -> str:
    if not keep:
        return str(place / str(number))
    # A name that needs no quoting anywhere: a runtime may well put its path into a URI.
    kept = place / f"{number:04}-{_NO_NAME.sub('-', cell.id)[:_LONGEST_NAME]}"
    remove(str(kept))
    return str(kept)


def _cores() -> int:
    return len(os.sched_getaffinity(0))
