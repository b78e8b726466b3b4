"""Check an evidence folder, or each one in a folder of evidence folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import meant
from rcr_probes.evidence.check import Finding, Report, check, plain
from rcr_probes.evidence.form import folders, holds_evidence


def check_all(
    folder: str | os.PathLike[str], checked: Callable[[int, int], None] | None = None
) -> list[Report]:
    """Check an evidence folder, or each one in a folder of evidence folders.

    Args:
        folder: either.
        checked: called after each with how many are checked, and how many there are.

    Raises:
        NotEvidence: there is no such folder, or no evidence in it.
    """
    place = Path(folder)
    if holds_evidence(place):
        found = [place]
    else:
        found = folders(place) if place.is_dir() else []
    if not found:
        raise meant.none(place)
    reports = []
    for path in found:
        link = path.is_symlink() and path != place
        reports.append(_outside(path) if link else check(path))
        if checked is not None:
            checked(len(reports), len(found))
    return reports


def refuse_unsound(folder: Path) -> None:
    """Refuse evidence that somebody made up, where it was taken at its word and did not bear it.

    Raises:
        NotEvidence: there is none.
        EvidenceError: it is not sound.
    """
    if not all(report.sound for report in check_all(folder)):
        raise EvidenceError(
            str(folder),
            "says what no run measures, and cannot be shown.",
            f"See what is wrong with: rcr check {folder}",
        )


def _outside(link: Path) -> Report:
    said = "is a symbolic link; it was not followed."
    return Report(link, 0, (Finding(plain(link.name), said, "not_followed"),))
