"""Check an evidence folder, or each one in a folder of evidence folders."""

from __future__ import annotations

import os
from pathlib import Path

from rcr_probes.evidence import meant
from rcr_probes.evidence.check import Finding, Report, check, plain
from rcr_probes.evidence.form import folders, holds_evidence


def check_all(folder: str | os.PathLike[str]) -> list[Report]:
    """Check an evidence folder, or each one in a folder of evidence folders.

    Raises:
        NotEvidence: there is no such folder, or no evidence in it.
    """
    place = Path(folder)
    if holds_evidence(place):
        return [check(place)]
    found = folders(place) if place.is_dir() else []
    if not found:
        raise meant.none(place)
    return [_outside(path) if path.is_symlink() else check(path) for path in found]


def _outside(link: Path) -> Report:
    said = "is a symbolic link; it was not followed."
    return Report(link, 0, (Finding(plain(link.name), said, "not_followed"),))
