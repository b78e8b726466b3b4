"""A published package as a notebook reviews it: its files, its timeline, its rows in our form."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rcr_probes.evidence import archive, timeline
from rcr_probes.evidence.package import Package
from rcr_probes.evidence.published import import_package
from rcr_probes.evidence.store import Evidence
from rcr_probes.report.execute import NOTEBOOKS
from rcr_probes.report.texts import text
from rcr_probes.witness import Timeline

_DIGITS = 16  # of a digest: enough to tell files apart by eye


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What came of a package.

    Attributes:
        package: the package, none of whose files was changed.
        timeline: its envelopes.
        evidence: its rows, as captures in memory.
        left_out: what was published and not imported, each with its reason.
    """

    package: Package
    timeline: Timeline
    evidence: Evidence
    left_out: tuple[str, ...]

    @property
    def counts(self) -> Mapping[str, object]:
        """What the prose says of the package."""
        package = self.package
        return {
            "package": package.folder.name,
            "listed": len(package.files) + len(package.absent),
            "verified": len(package.files),
            "absent": len(package.absent),
            "unlisted": len(package.unlisted),
            "left_out": len(self.left_out),
        }


def reviewed(package: str) -> Reviewed:
    """Import a package and read its timeline; what is written on the way is removed again.

    Args:
        package: its folder or its .zip; where there is none, seen from the folder of the notebooks.

    Raises:
        NotEvidence: it is no package.
        EvidenceError: a file was changed, is absent but needed, or contradicts another.
    """
    place = Path(package) if Path(package).exists() else NOTEBOOKS / package
    with archive.opened(place) as folder, tempfile.TemporaryDirectory(prefix="rcr-") as scratch:
        imported = import_package(folder, Path(scratch, "evidence"))
        evidence = imported.evidence
        return Reviewed(
            imported.package,
            timeline.of_package(imported.package),
            evidence.in_memory(),
            imported.left_out,
        )


def files(given: Reviewed, lang: str = "en") -> pd.DataFrame:
    """Every file of the package, and of its manifest.

    Returns:
        Columns file, what is known of it, the beginning of the SHA-256 that was verified.
    """
    package = given.package
    found = [(path, "verified", digest[:_DIGITS]) for path, digest in package.files.items()]
    found += [(path, "absent", "") for path in package.absent]
    found += [(path, "unlisted", "") for path in package.unlisted]
    rows = [(path, text(f"review.{known}", lang), digest) for path, known, digest in found]
    names = [text(f"review.{name}", lang) for name in ("file", "known", "digest")]
    return pd.DataFrame(rows, columns=names)
