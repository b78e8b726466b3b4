"""An evidence folder, written: captures as they are sealed, then the manifest that closes it."""

from __future__ import annotations

import fcntl
import itertools
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from rcr_probes.errors import EvidenceError, PlanError, naming
from rcr_probes.evidence import seal, store, whereabouts
from rcr_probes.evidence.form import (
    CAPTURES,
    ENVIRONMENT,
    LARGEST,
    LISTED,
    MANIFEST,
    PLAN,
    SCHEMA,
    Manifest,
    sha256,
)
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.whereabouts import Whereabouts
from rcr_probes.model import Capture, Json, Plan


def environment(versions: Mapping[str, str] | None = None) -> dict[str, Json]:
    """What the run depended on: versions and the class of platform; no user, host or path.

    Args:
        versions: of what the runtimes under probe depend on.
    """
    ours = {name: version(name) for name in ("msgspec", "rcr-probes", "rfc8785")}
    return {
        "schema": SCHEMA,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {**ours, **(versions or {})},
    }


_SURELY = 2  # times the size of those before: captures of one plan differ by less
_NOTED = 500  # captures after which it is noted where they were measured


class Writer:
    """Writes one evidence folder, one capture after another in the order of the plan.

    It holds a kernel lock on the captures for as long as it is open. An unsealed folder is resumed:
    the captures that it already holds stay, and a half-written last line is kept aside.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        plan: Plan,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Open the folder, and hold it.

        Args:
            folder: made where there is none.
            plan: what it will hold.
            versions: of what the plan's runtimes depend on.

        Raises:
            PlanError: the folder holds another plan, is sealed already, is being written, or was
                begun under other versions than these.
            EvidenceError: what it holds is no capture of this plan, or no file of evidence.
            OSError: it cannot be written.
        """
        self._folder = Path(folder)
        self._plan = plan
        self.environment = environment(versions)
        self.where, self.done, self._noted = Whereabouts(), 0, 0
        self._folder.mkdir(parents=True, exist_ok=True)
        self._refuse_sealed()
        if (self._folder / PLAN).exists():
            if store.read_plan(self._folder) != plan:
                raise PlanError(f"{folder} holds another plan.", "Name another folder with --into.")
        elif not self._just_begun():
            raise PlanError(
                f"{folder} is not empty and holds no plan.", "Name another folder with --into."
            )
        captures = store.own(self._folder, CAPTURES)
        self._file = open(captures, "ab")  # noqa: SIM115 (closed by __exit__)
        try:
            _hold(self._file, self._folder)
            self._refuse_sealed()  # it may have been sealed while we waited for the lock
            if not (self._folder / PLAN).exists():
                put(self._folder / PLAN, written(plan))
            self._keep_environment()
            self.done = self._resume()
            self.where.forget(self.done)
        except BaseException:
            self._file.close()
            raise

    def _refuse_sealed(self) -> None:
        if (self._folder / MANIFEST).exists():
            raise PlanError(
                f"{self._folder} holds sealed evidence already.",
                "Name another folder with --into, or move this one away.",
            )

    def _keep_environment(self) -> None:
        """What the run depends on is written when it begins, and holds for every capture."""
        path, now = self._folder / ENVIRONMENT, self.environment
        if path.exists():
            begun = store.decoded(self._folder, ENVIRONMENT, dict[str, Json])
            self._remember(begun.pop(whereabouts.KEY, {}))
            if begun != now:
                raise PlanError(
                    f"{self._folder} was begun under other versions than are installed now.",
                    "Run anew with --again; what it holds is kept aside.",
                )
            return
        self._write_environment()

    def _remember(self, said: Json) -> None:
        """Where the captures that are there already were measured."""
        try:
            self.where = Whereabouts.parsed(said if isinstance(said, dict) else {"": said})
        except ValueError as error:
            raise store.unreadable(ENVIRONMENT, error) from error

    def _write_environment(self) -> None:
        where = {whereabouts.KEY: self.where.said()} if self.where.ranges else {}
        _write_json(self._folder / ENVIRONMENT, {**self.environment, **where})
        self._noted = self.done

    def _just_begun(self) -> bool:
        """Whether it holds no more than a run leaves that was killed at its very start."""
        sizes = {path.name: path.stat().st_size for path in self._folder.iterdir()}
        return sizes.pop(CAPTURES, 0) == 0 and sizes.keys() <= {_temporary(PLAN)}

    def _resume(self) -> int:
        """How many captures are there; a torn last line goes to a file beside the folder."""
        cells, done, whole = iter(self._plan.cells), 0, 0
        with open(self._folder / CAPTURES, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    put(_free(beside(self._folder, ".torn")), [line])
                    self._file.truncate(whole)
                    break
                place, cell = f"{CAPTURES}:{done + 1}", next(cells, None)
                found = seal.decode(line, place).cell
                if found != cell:
                    planned = cell.id if cell else "no cell"
                    raise EvidenceError(
                        place,
                        f"holds {found.id}, but the plan has {planned} there.",
                        "Move the folder away and run again.",
                    )
                done, whole = done + 1, whole + len(line)
        return done

    def append(self, capture: Capture, worker: str | None = None) -> None:
        """Append the next capture.

        Args:
            capture: of the next cell.
            worker: the name that we gave the worker of a cluster; None is this machine.

        Raises:
            PlanError: the plan's captures take more than a file of evidence may: nobody could read
                the folder. By the first one it is said, where that is plain.
        """
        line = seal.encode(capture)
        whole = self._file.tell() + len(line)
        if max(whole, whole // (self.done + 1) * len(self._plan.cells) // _SURELY) > LARGEST:
            raise PlanError(
                f"The captures of {len(self._plan.cells)} cells take more than {LARGEST >> 30} GiB,"
                " which is the most that a folder of evidence holds.",
                "Make several plans of it, each with a range of its seeds or repeats.",
            )
        with naming(self._folder):
            self._file.write(line)
            self._file.flush()
        if worker is not None:
            self.where.note(self.done, worker)
        self.done += 1
        if self.where.ranges and self.done - self._noted >= _NOTED:
            self._write_environment()

    def seal(self) -> Evidence:
        """Close the folder with its manifest. Nothing can be appended after.

        Raises:
            EvidenceError: the plan promises captures that are not there.
        """
        if self.done != len(self._plan.cells):
            raise EvidenceError(
                CAPTURES,
                f"has {self.done} of {len(self._plan.cells)} captures.",
                "Run the plan again to resume.",
            )
        self._file.flush()
        os.fsync(self._file.fileno())
        if not self._is_ours():
            raise EvidenceError(
                CAPTURES,
                "is not the file that this run wrote: the folder was moved or replaced.",
                "What was measured went with it; move it back, and run the plan again to resume.",
            )
        self._write_environment()
        manifest = write_manifest(self._folder, self._plan)
        return Evidence(self._folder, self._plan, manifest, store.versions(self._folder))

    def _is_ours(self) -> bool:
        """Whether the folder still holds the file that we write."""
        there = self._folder / CAPTURES
        ours = os.fstat(self._file.fileno())
        return there.exists() and os.path.samestat(ours, there.stat())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.where.ranges and self._noted != self.done and self._is_ours():
            self._write_environment()
        with naming(self._folder):  # on a full disk it tries once more what could not be written
            self._file.close()


def set_aside(folder: Path) -> None:
    """Move a folder of a run to ``.previous`` beside it, so that this is always the one before.

    What stood there moves on to ``.previous-2``, and so on: nothing is lost. An empty folder
    holds nothing that could be lost, and stays.

    Raises:
        PlanError: it is no folder of a run, or a run is writing to it.
        EvidenceError: its captures are no file of evidence.
        OSError: it cannot be moved.
    """
    if not any(folder.iterdir()):
        return
    if not (folder / PLAN).exists():
        raise PlanError(
            f"{folder} is not empty and holds no plan.", "Name another folder with --into."
        )
    with open(store.own(folder, CAPTURES), "ab") as captures:
        _hold(captures, folder)
        before = beside(folder, ".previous")
        _move_on(before)
        os.rename(os.path.abspath(folder), before)


def beside(folder: Path, suffix: str) -> Path:
    """The path beside a folder that has its name and this suffix."""
    whole = Path(os.path.abspath(folder))
    return whole.with_name(whole.name + suffix)


def _move_on(path: Path) -> None:
    """Free this path: what stands there takes the next number, and so does what stands there."""
    taken = sum(1 for _ in itertools.takewhile(os.path.lexists, _numbered(path)))
    names = list(itertools.islice(_numbered(path), taken + 1))
    for one, after in reversed(list(itertools.pairwise(names))):
        os.rename(one, after)


def _free(path: Path) -> Path:
    """This path, or the first of its name with a number that is not taken: nothing is lost."""
    return next(one for one in _numbered(path) if not os.path.lexists(one))


def _numbered(path: Path) -> Iterator[Path]:
    """This path, and then those of its name with the numbers from 2 on."""
    yield path
    yield from (path.with_name(f"{path.name}-{number}") for number in itertools.count(2))


def _hold(captures: IO[bytes], folder: Path) -> None:
    """Lock the captures against every other run.

    Raises:
        PlanError: another run holds them.
    """
    try:
        fcntl.flock(captures, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise PlanError(
            f"Another run is writing to {folder}.", "Wait for its end, or use another --into."
        ) from error


def write_manifest(folder: Path, plan: Plan) -> Manifest:
    """Seal the folder: the manifest is written last, and appears whole or not at all."""
    files = {name: sha256(folder / name) for name in LISTED}
    manifest = Manifest(SCHEMA, plan.name, len(plan.cells), files)
    _write_json(folder / MANIFEST, manifest)
    return manifest


def written(plan: Plan) -> Iterator[bytes]:
    """The bytes of plan.json, a cell at a time: what ``encoded`` gives of a plan of few cells."""
    head, _, tail = encoded({"name": plan.name, "cells": [0]}).rpartition(b"0")
    yield head
    for number, cell in enumerate(plan.cells):
        yield (b",\n    " if number else b"") + encoded(cell).rstrip().replace(b"\n", b"\n    ")
    yield tail


def encoded(value: Json) -> bytes:
    """The one byte form of the folder's small JSON files, indented for a reader."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _write_json(path: Path, value: Json) -> None:
    put(path, [encoded(value)])


def put(path: Path, parts: Iterable[bytes]) -> None:
    """Write a file that appears whole, in place of what stood there, or not at all.

    Raises:
        OSError: it cannot be written; what stood there stands.
    """
    temporary = path.with_name(_temporary(path.name))
    try:
        with naming(path):
            temporary.unlink(missing_ok=True)  # a link leads elsewhere, and a pipe waits
            with open(temporary, "xb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _temporary(name: str) -> str:
    return f"{name}.new"
