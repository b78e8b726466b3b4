"""An evidence folder, read back: its plan, its captures, and the rows that they make."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard, TypeVar

import msgspec

from rcr_probes.errors import EvidenceError, UnknownName
from rcr_probes.evidence import alike, meant, planned, seal
from rcr_probes.evidence.form import (
    CAPTURES,
    ENVIRONMENT,
    MANIFEST,
    PLAN,
    SCHEMA,
    Manifest,
    regular,
    sha256,
)
from rcr_probes.evidence.planned import Planned
from rcr_probes.evidence.promised import OtherForm, apart
from rcr_probes.evidence.rows import PUBLISHED_VERDICT, Row, Told, columns, named, row, whole
from rcr_probes.model import Capture, Cell, Json, Plan


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sealed folder: every capture that a plan promised.

    Attributes:
        folder: where it stands.
        plan: what was promised.
        manifest: what the folder holds.
        versions: what the captures depend on, package or program → version; empty where the
            environment cannot be read, which ``check`` then says.
        remembered: the captures, where they were read before (``in_memory``).

    Raises:
        EvidenceError: what is remembered is not what the plan promises.
    """

    folder: Path
    plan: Plan
    manifest: Manifest
    versions: Mapping[str, str] = field(default_factory=dict)
    remembered: tuple[Capture, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        kept = self.remembered
        if kept is not None and tuple(one.cell for one in kept) != self.plan.cells:
            raise self._unpromised(f"is in memory as {len(kept)} captures")

    def captures(self) -> Iterator[Capture]:
        """Every capture, in the order of the plan.

        Raises:
            EvidenceError: the file cannot be read, a line of it is no capture, or the captures are
                not those that the plan promises: what is left of them would say too much.
        """
        if self.remembered is not None:
            yield from self.remembered
            return
        number, cells = 0, iter(self.plan.cells)
        for number, line in enumerate(self._lines(), 1):
            capture = seal.decode(line, f"{CAPTURES}:{number}")
            if next(cells, None) != capture.cell:
                raise self._unpromised(f"holds {capture.cell.id} as capture {number}")
            yield capture
        if number != len(self.plan.cells):
            raise self._unpromised(f"ends after {number} captures")

    def in_memory(self) -> Evidence:
        """The same, its captures read once and kept: the folder may then go.

        Raises:
            EvidenceError: as ``captures``.
        """
        return replace(self, remembered=tuple(self.captures()))

    def rows(self) -> Iterator[Row]:
        """Every capture as a row of the tidy table.

        Raises:
            EvidenceError: as ``captures``.
        """
        return map(whole, self.told())

    def told(self) -> Iterator[Told]:
        """Every capture as the row of its cell in seed 0 and repeat 0, its seed, and its repeat.

        Captures that say the same have the very same row: what is made of rows is made of few.

        Raises:
            EvidenceError: as ``captures``.
        """
        if self.remembered is not None:
            yield from map(_told, self.captures())
            return
        known: alike.Shared[tuple[Row, Cell]] = alike.Shared()
        number, promised = 0, planned.numbered(self.plan)
        for number, line in enumerate(self._lines(), 1):
            parts = alike.cut(line)
            found = None if parts is None else known.find(*parts[:2])
            if parts is None or found is None:
                capture = seal.decode(line, f"{CAPTURES}:{number}")
                made, seed, repeat = _told(capture)
                cell = apart(capture.cell)[0]
                if parts is not None:
                    known.keep(*parts[:2], (made, cell), filter(_is_text, made.values()))
            else:
                (made, cell), (_, seed, repeat) = found, parts
            if next(promised, None) != (cell, seed, repeat):
                raise self._unpromised(f"holds {named((made, seed, repeat))} as capture {number}")
            yield made, seed, repeat
        if number != len(self.plan.cells):
            raise self._unpromised(f"ends after {number} captures")

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the rows; to know whether others published a verdict, all are read once.

        Raises:
            EvidenceError: as ``captures``.
        """
        return columns(any(row.get(PUBLISHED_VERDICT) is not None for row in self.rows()))

    def _lines(self) -> Iterator[bytes]:
        try:
            with open(own(self.folder, CAPTURES), "rb") as file:
                yield from file
        except OSError as error:
            raise unreadable(CAPTURES, error) from error

    def _unpromised(self, found: str) -> EvidenceError:
        return EvidenceError(
            CAPTURES,
            f"{found}, which is not what the plan promises.",
            f"See what is wrong with: rcr check {self.folder}",
        )

    def capture(self, cell: str) -> Capture:
        """The capture of the cell with this id.

        Raises:
            UnknownName: the plan has no such cell.
        """
        for capture in self.captures():
            if capture.cell.id == cell:
                return capture
        raise UnknownName("cell", cell, (c.id for c in self.plan.cells))


def _told(capture: Capture) -> Told:
    """The row of a capture as if it were seed 0 and repeat 0 of its cell, and which they are."""
    cell, seed, repeat = apart(capture.cell)
    made = row(replace(capture, measurement=replace(capture.measurement, cell=cell)))
    return made, seed, repeat


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str)


def read(folder: str | os.PathLike[str]) -> Evidence:
    """Open sealed evidence. What it says is taken at its word: ``check`` is what doubts it.

    Raises:
        NotEvidence: there is no such folder, or it holds no plan and no captures.
        EvidenceError: the run that made it did not come to its end, or a file cannot be read.
    """
    place = Path(folder)
    if not (place / PLAN).is_file():
        raise meant.none(place)
    if not (place / MANIFEST).is_file():
        raise EvidenceError(
            MANIFEST,
            "is missing: the run did not come to its end.",
            "Run the plan again to resume.",
        )
    manifest = decoded(place, MANIFEST, Manifest)
    if manifest.schema != SCHEMA:
        raise EvidenceError(
            MANIFEST,
            f"is of format {manifest.schema}; this version reads format {SCHEMA}.",
            "Read it with the version of rcr-probes that made it.",
        )
    plan = read_plan(place)
    if not isinstance(plan.cells, Planned) and len(set(plan.cells)) != len(plan.cells):
        raise EvidenceError(
            PLAN, "holds a cell twice.", f"See what is wrong with: rcr check {place}"
        )
    return Evidence(place, plan, manifest, versions(place))


def read_plan(folder: Path) -> Plan:
    """The plan that the folder promises to hold.

    Raises:
        EvidenceError: it cannot be read.
    """
    try:
        return planned.read(own(folder, PLAN))
    except (OtherForm, OSError):
        return decoded(folder, PLAN, Plan)


def versions(folder: Path) -> Mapping[str, str]:
    """What the captures depend on, package or program → version; nothing where none can be read."""
    try:
        packages = decoded(folder, ENVIRONMENT, dict[str, Json]).get("packages")
    except EvidenceError:
        return {}
    return packages if isinstance(packages, dict) else {}


def read_whole(folder: str | os.PathLike[str]) -> Evidence:
    """Open sealed evidence whose captures are still those that were sealed.

    Raises:
        NotEvidence, EvidenceError: as ``read``; or the captures were changed.
    """
    evidence = read(folder)
    if sha256(own(evidence.folder, CAPTURES)) != evidence.manifest.files.get(CAPTURES):
        raise EvidenceError(
            CAPTURES,
            "was changed after it was sealed.",
            "See rcr check; to measure anew and keep it aside: --again",
        )
    return evidence


def own(folder: Path, name: str) -> Path:
    """The path of a file that may be opened: a pipe would keep its reader waiting.

    Raises:
        EvidenceError: something is there that is no file of evidence.
    """
    path = folder / name
    if os.path.lexists(path) and not regular(path):
        raise EvidenceError(
            name,
            "is no regular file, or larger than any evidence.",
            f"See what is wrong with: rcr check {folder}",
        )
    return path


def unreadable(name: str, error: Exception) -> EvidenceError:
    return EvidenceError(
        name, f"cannot be read ({error}).", "Restore the file, or run the plan again."
    )


T = TypeVar("T")


def decoded(folder: Path, name: str, kind: type[T]) -> T:
    """A small JSON file of the folder.

    Raises:
        EvidenceError: it cannot be read.
    """
    try:
        return msgspec.json.decode(own(folder, name).read_bytes(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise unreadable(name, error) from error
