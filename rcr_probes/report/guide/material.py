"""What the guide is made of: every capture of a folder of evidence, and what is claimed of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import store
from rcr_probes.evidence.claimed import Claimed, Reference, Report, held
from rcr_probes.evidence.form import folders
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture
from rcr_probes.report.guide.chooser import Choice, choices

# A claim that rests on more captures than MANY is shown with its FIRST ones alone.
MANY, FIRST = 60, 6


@dataclass(frozen=True, slots=True)
class Material:
    """What one page says, and in which language.

    Attributes:
        lang: of the page.
        folders: name → evidence, its captures in memory; in the order of their names.
        claims: what is claimed of them, and what became of it.
        choices: every combination of facts, and what the captures show of it.
    """

    lang: str
    folders: Mapping[str, Evidence]
    claims: Report
    choices: Sequence[Choice] = ()

    def captures(self, folder: str) -> tuple[Capture, ...]:
        """The captures of a folder, in their order; none where it is not there."""
        evidence = self.folders.get(folder)
        return tuple(evidence.captures()) if evidence else ()

    def references(self) -> Iterator[tuple[Reference, Capture]]:
        """Every capture of every folder, and how it is referred to."""
        for name in self.folders:
            for number, capture in enumerate(self.captures(name)):
                yield Reference(name, number, capture.cell.id, capture.facts_sha256), capture

    def cells(self, claim: Claimed) -> int:
        """How many cells the captures of a claim are of: repeats of one are one cell."""
        evidence = claim.outcome.claim.evidence
        captures = self.captures(evidence)
        return len({replace(captures[one.number].cell, repeat=0) for one in claim.captures})

    def anchor(self, folder: str, cell: str) -> str:
        """Where the capture of this cell stands in the page.

        Raises:
            EvidenceError: the folder has no such cell.
        """
        for number, capture in enumerate(self.captures(folder)):
            if capture.cell.id == cell:
                return place(folder, number)
        raise EvidenceError(folder, f"has no cell {cell}.", "Build the guide over whole evidence.")


def read(folder: Path, lang: str) -> Material:
    """Read a folder of evidence folders and its claims.

    Raises:
        NotEvidence: the folder has no claims, or no evidence.
        EvidenceError: one of them cannot be read, or captures were changed after they were sealed.
    """
    there = folders(folder) if folder.is_dir() else []  # else the claims say what is missing
    own = [path for path in there if not path.is_symlink()]
    found = {path.name: store.read_whole(path).in_memory() for path in own}
    claims = held(folder, found)
    if not found:
        raise NotEvidence(f"{folder} holds no evidence.", "Name a folder such as evidence.")
    made = Material(lang, found, claims)
    return replace(made, choices=tuple(choices(made.references())))


def place(folder: str, number: int) -> str:
    """The anchor of a capture: its folder, and its line in the captures from 0."""
    return f"capture-{folder}-{number}"


def anchored(reference: Reference) -> str:
    return place(reference.evidence, reference.number)


def shown(claim: Claimed) -> tuple[Reference, ...]:
    """The captures of a claim that the page links to."""
    return claim.captures if len(claim.captures) <= MANY else claim.captures[:FIRST]
