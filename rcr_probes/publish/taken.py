"""Take in a package: check it as it lies there, and only then copy its evidence out of it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from rcr_probes.errors import EvidenceError, PlanError, naming
from rcr_probes.evidence import names
from rcr_probes.publish.build import refuse_taken
from rcr_probes.publish.layout import EVIDENCE
from rcr_probes.publish.verify import Report, verify


def take(folder: Path, into: Path) -> Report:
    """Copy the evidence of a package, with its claims, where nothing stands yet.

    Args:
        folder: the package.
        into: the folder of evidence folders that comes of it; made whole, or not at all.

    Returns:
        What the check found: nothing wrong.

    Raises:
        EvidenceError: something in the package is not as it should be; nothing was written.
        PlanError: ``into`` is there already, or lies in the package.
        OSError: it cannot be written.
    """
    report = verify(folder)
    for finding in report.findings:
        raise EvidenceError(
            finding.place,
            finding.problem,
            "Do not trust this package; see all that is wrong with it: rcr check PACKAGE",
        )
    refuse_taken(into)
    if into.resolve().is_relative_to(folder.resolve()):
        raise PlanError(f"{into} lies in {folder}.", "Name a place outside of it with --into.")
    into.parent.mkdir(parents=True, exist_ok=True)
    with (
        naming(into),
        tempfile.TemporaryDirectory(prefix=".rcr-import-", dir=into.parent) as temporary,
    ):
        made = Path(temporary, "evidence")
        for path in names.walked(folder / EVIDENCE).files:  # bytes alone: modes are a stranger's
            (made / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / EVIDENCE / path, made / path)
        made.rename(into)
    return report
