"""An evidence folder: write captures as they are sealed, close it with a manifest, read it back."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from rcr_probes.errors import EvidenceError, NotEvidence, PlanError, UnknownName
from rcr_probes.evidence import seal
from rcr_probes.model import Capture, Json, Plan

SCHEMA = 1
PLAN = "plan.json"
CAPTURES = "captures.jsonl"
ENVIRONMENT = "environment.json"
MANIFEST = "manifest.json"
LISTED = (
    CAPTURES,
    ENVIRONMENT,
    PLAN,
)  # what the manifest of our own evidence lists: all but itself


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the folder holds: each file's SHA-256 in hex, and how many captures.

    Attributes:
        schema: version of the folder's format.
        plan: the plan's name.
        captures: how many captures the plan promised, and the folder holds.
        files: file name → SHA-256 of its bytes.
    """

    schema: int
    plan: str
    captures: int
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sealed folder: every capture that a plan promised."""

    folder: Path
    plan: Plan
    manifest: Manifest

    def captures(self) -> Iterator[Capture]:
        """Every capture, in the order of the plan.

        Raises:
            EvidenceError: the file cannot be read, or a line of it is no capture.
        """
        try:
            with open(self.folder / CAPTURES, "rb") as file:
                for number, line in enumerate(file, 1):
                    yield seal.decode(line, f"{CAPTURES}:{number}")
        except OSError as error:
            raise _unreadable(CAPTURES, error) from error

    def capture(self, cell: str) -> Capture:
        """The capture of the cell with this id.

        Raises:
            UnknownName: the plan has no such cell.
        """
        for capture in self.captures():
            if capture.cell.id == cell:
                return capture
        raise UnknownName("cell", cell, (c.id for c in self.plan.cells))


def read(folder: str | os.PathLike[str]) -> Evidence:
    """Open sealed evidence. What it says is taken at its word: ``check`` is what doubts it.

    Raises:
        NotEvidence: there is no such folder, or it holds no plan and no captures.
        EvidenceError: the run that made it did not come to its end, or a file cannot be read.
    """
    place = Path(folder)
    if not place.is_dir():
        raise NotEvidence(f"There is no folder {place}.", "Make evidence with: rcr run article")
    if not (place / PLAN).is_file():
        raise NotEvidence(
            f"{place} holds no evidence: it has no {PLAN}.",
            "Name a folder that rcr run or rcr import made, such as runs/article.",
        )
    if not (place / MANIFEST).is_file():
        raise EvidenceError(
            MANIFEST,
            "is missing: the run did not come to its end.",
            "Run the plan again to resume.",
        )
    manifest = _decoded(place, MANIFEST, Manifest)
    if manifest.schema != SCHEMA:
        raise EvidenceError(
            MANIFEST,
            f"is of format {manifest.schema}; this version reads format {SCHEMA}.",
            "Read it with the version of rcr-probes that made it.",
        )
    return Evidence(place, read_plan(place), manifest)


def read_plan(folder: Path) -> Plan:
    """The plan that the folder promises to hold.

    Raises:
        EvidenceError: it cannot be read.
    """
    return _decoded(folder, PLAN, Plan)


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def environment() -> dict[str, Json]:
    """What the run depended on: versions and the class of platform; no user, host or path."""
    return {
        "schema": SCHEMA,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: version(name) for name in ("msgspec", "rcr-probes", "rfc8785")},
    }


class Writer:
    """Writes one evidence folder, one capture after another in the order of the plan.

    It holds a kernel lock on the captures for as long as it is open. An unsealed folder is resumed:
    the captures that it already holds stay, and a half-written last line is kept aside.
    """

    def __init__(self, folder: str | os.PathLike[str], plan: Plan) -> None:
        """Open the folder, and hold it.

        Raises:
            PlanError: the folder holds another plan, is sealed already, or is being written.
            OSError: it cannot be written.
        """
        self._folder = Path(folder)
        self._plan = plan
        self._folder.mkdir(parents=True, exist_ok=True)
        if (self._folder / MANIFEST).exists():
            raise PlanError(
                f"{folder} holds sealed evidence already.",
                "Name another folder with --into, or move this one away.",
            )
        if (self._folder / PLAN).exists():
            if read_plan(self._folder) != plan:
                raise PlanError(f"{folder} holds another plan.", "Name another folder with --into.")
        elif not self._just_begun():
            raise PlanError(
                f"{folder} is not empty and holds no plan.", "Name another folder with --into."
            )
        self._file = open(self._folder / CAPTURES, "ab")  # noqa: SIM115 (closed by __exit__)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise PlanError(
                f"Another run is writing to {folder}.", "Wait for its end, or use another --into."
            ) from error
        try:
            _write_json(self._folder / PLAN, plan)
            self.done = self._resume()
        except BaseException:
            self._file.close()
            raise

    def _just_begun(self) -> bool:
        """Whether it holds no more than a run leaves that was killed at its very start."""
        sizes = {path.name: path.stat().st_size for path in self._folder.iterdir()}
        return sizes.pop(CAPTURES, 0) == 0 and sizes.keys() <= {_temporary(PLAN)}

    def _resume(self) -> int:
        """How many captures are there; a torn last line goes to a file beside the folder."""
        path = self._folder / CAPTURES
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            aside = self._folder.with_name(self._folder.name + ".torn")
            aside.write_bytes(data[whole:])
            self._file.truncate(whole)
        lines = data[:whole].splitlines()
        for number, (line, cell) in enumerate(zip(lines, self._plan.cells, strict=False), 1):
            found = seal.decode(line, f"{CAPTURES}:{number}").cell
            if found != cell:
                raise EvidenceError(
                    f"{CAPTURES}:{number}",
                    f"holds {found.id}, but the plan has {cell.id} there.",
                    "Move the folder away and run again.",
                )
        return len(lines)

    def append(self, capture: Capture) -> None:
        """Append the next capture."""
        self._file.write(seal.encode(capture))
        self._file.flush()
        self.done += 1

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
        _write_json(self._folder / ENVIRONMENT, environment())
        write_manifest(self._folder, self._plan)
        return read(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def write_manifest(folder: Path, plan: Plan) -> None:
    """Seal the folder: the manifest is written last, and appears whole or not at all."""
    files = {name: sha256(folder / name) for name in LISTED}
    _write_json(folder / MANIFEST, Manifest(SCHEMA, plan.name, len(plan.cells), files))


def encoded(value: Json) -> bytes:
    """The one byte form of the folder's small JSON files, indented for a reader."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _write_json(path: Path, value: Json) -> None:
    """Replace a small JSON file atomically."""
    temporary = path.with_name(_temporary(path.name))
    with open(temporary, "wb") as file:
        file.write(encoded(value))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _temporary(name: str) -> str:
    return f"{name}.new"


def _unreadable(name: str, error: Exception) -> EvidenceError:
    return EvidenceError(
        name, f"cannot be read ({error}).", "Restore the file, or run the plan again."
    )


T = TypeVar("T")


def _decoded(folder: Path, name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode((folder / name).read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise _unreadable(name, error) from error
