"""A package where evidence is wanted: it is taken in first, for nobody has checked it yet."""

from __future__ import annotations

from pathlib import Path

from rcr_probes.errors import NotEvidence
from rcr_probes.evidence import archive
from rcr_probes.publish.layout import is_package


def refuse(place: Path) -> None:
    """Refuse a package as evidence.

    Raises:
        NotEvidence: it is a package, or a .zip.
    """
    if is_package(place) or (place.suffix.lower() == archive.SUFFIX and place.is_file()):
        raise _untaken(place)


def refuse_published(place: Path) -> None:
    """Refuse a package that ``rcr publish`` made, where one in another form may be named.

    Raises:
        NotEvidence: it is such a package, or there is none at all.
        EvidenceError: it is a .zip that cannot be read.
    """
    if place.is_dir() or place.suffix.lower() == archive.SUFFIX:
        with archive.opened(place) as folder:
            if is_package(folder):
                raise _untaken(place)


def _untaken(place: Path) -> NotEvidence:
    into = Path("runs", place.stem if place.is_file() else place.resolve().name)
    return NotEvidence(
        f"{place} is a package, and no evidence yet.",
        f"Take it in, and name what comes of it: rcr import {place} --into {into}",
    )
