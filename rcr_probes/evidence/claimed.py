"""Hold the claims of a folder of evidence folders against the captures that they name."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import claims, meant, store
from rcr_probes.evidence.claims import Claim, Outcome, Problem, Table
from rcr_probes.evidence.form import folders
from rcr_probes.evidence.rows import Row, row
from rcr_probes.evidence.store import Evidence

_LARGEST = 1 << 20  # bytes; a claims.toml is written by hand


@dataclass(frozen=True, slots=True)
class Reference:
    """One capture that something rests on.

    Attributes:
        evidence: its folder's name.
        number: its line in the captures, from 0; a page's anchor is ``capture-EVIDENCE-NUMBER``.
        cell: its cell's id.
        facts_sha256: the digest over its facts.
    """

    evidence: str
    number: int
    cell: str
    facts_sha256: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim, what became of it, and the captures that it rests on, in their order."""

    outcome: Outcome
    captures: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Unshown:
    """A table that cannot be what it says, and why."""

    table: Table
    problem: Problem
    about: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a claims.toml says over the evidence beside it.

    Attributes:
        place: the file.
        claims: every claim, in its order.
        unshown: the tables that lack something.
        unused: folder → its captures that no claim and no table uses; folders that have some.
    """

    place: Path
    claims: tuple[Claimed, ...]
    unshown: tuple[Unshown, ...]
    unused: Mapping[str, tuple[Reference, ...]]

    @property
    def sound(self) -> bool:
        """Whether every claim holds, and every table has what it shows."""
        return not self.unshown and all(one.outcome.holds for one in self.claims)


def held(folder: str | os.PathLike[str], known: Mapping[str, Evidence] | None = None) -> Report:
    """Evaluate every claim of ``claims.toml`` over all evidence that stands beside it.

    Args:
        folder: holds the file.
        known: folder's name → its evidence, where that is read already.

    Raises:
        NotEvidence: the folder has no such file.
        EvidenceError: the file cannot be read, or is not what it should be.
    """
    place = Path(folder) / claims.FILE
    text = _text(place)
    said, tables = claims.parsed(text, claims.FILE), claims.tables(text, claims.FILE)
    found = _Folders(Path(folder), known or {})
    grounds = claims.Grounds(found.rows, found.unread)
    claimed = tuple(found.claimed(grounds.outcome(claim)) for claim in said)
    unshown = [(table, grounds.lacks(table)) for table in tables]
    return Report(
        place,
        claimed,
        tuple(Unshown(table, *lacking) for table, lacking in unshown if lacking is not None),
        found.unused([*said, *tables]),
    )


class _Folders:
    """The evidence beside a claims.toml, each folder read once."""

    def __init__(self, beside: Path, known: Mapping[str, Evidence]) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.references: dict[str, list[Reference]] = {}
        self.unread: dict[str, str] = {}
        for path in folders(beside):
            if path.is_symlink():
                self.unread[path.name] = "It is a symbolic link; it was not followed."
            else:
                self._read(path, known.get(path.name))

    def _read(self, folder: Path, known: Evidence | None) -> None:
        rows: list[Row] = []
        references: list[Reference] = []
        try:  # one capture at a time: all of a large folder would fill the memory
            for number, capture in enumerate((known or store.read_whole(folder)).captures()):
                rows.append(row(capture))
                references.append(
                    Reference(folder.name, number, capture.cell.id, capture.facts_sha256)
                )
        except (EvidenceError, NotEvidence) as error:
            self.unread[folder.name] = error.cause
            return
        self.rows[folder.name] = rows
        self.references[folder.name] = references

    def claimed(self, outcome: Outcome) -> Claimed:
        """An outcome with the captures that it rests on."""
        references = self.references.get(outcome.claim.evidence, [])
        return Claimed(outcome, tuple(references[number] for number in outcome.numbers))

    def unused(self, asked: Iterable[Claim | Table]) -> dict[str, tuple[Reference, ...]]:
        """The captures of each folder that none of these uses."""
        used: dict[str, set[int]] = {}
        for one in asked:
            found = claims.places(one.where, self.rows.get(one.evidence, ()))
            used.setdefault(one.evidence, set()).update(found)
        left = {
            name: tuple(one for one in references if one.number not in used.get(name, ()))
            for name, references in self.references.items()
        }
        return {name: references for name, references in left.items() if references}


def _text(place: Path) -> str:
    """What the file holds.

    Raises:
        NotEvidence, EvidenceError: as ``held``.
    """
    try:
        found = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        if not place.parent.is_dir():
            raise meant.none(place.parent) from None
        raise NotEvidence(
            f"There is no {claims.FILE} in {place.parent}.",
            "Name the folder that holds it beside its evidence, such as evidence.",
        ) from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        raise EvidenceError(
            claims.FILE,
            f"is no regular file of at most {_LARGEST} bytes.",
            "Put the file itself there.",
        )
    try:
        return place.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise EvidenceError(claims.FILE, f"is no UTF-8 ({error}).", "Save it in UTF-8.") from None
