"""Publish evidence: one folder or one .zip that a stranger can check, the same bytes every time."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rcr_probes.errors import EvidenceError, NotEvidence, PlanError, RcrError
from rcr_probes.evidence import archive, check, store, strict
from rcr_probes.evidence.form import ENVIRONMENT, FILES, regular
from rcr_probes.evidence.rows import as_csv, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.publish import checker, crate, layout, provenance, signature
from rcr_probes.publish.layout import EVIDENCE, FIGURES, GUIDE, MANIFEST, TABLES
from rcr_probes.publish.origin import Origin, origin
from rcr_probes.publish.verify import Report, verify

_MADE_WITH = ("matplotlib", "rcr-probes", "rocrate")


@dataclass(frozen=True, slots=True)
class Published:
    """What was written.

    Attributes:
        place: the folder or the .zip.
        report: what a check of it found: nothing wrong.
        manifest_sha256: of its manifest, which stands for every other file.
        left_out: what a package may hold and this one does not.
    """

    place: Path
    report: Report
    manifest_sha256: str
    left_out: tuple[str, ...]


def publish(
    source: Path,
    into: Path,
    *,
    date: str | None = None,
    commit: str | None = None,
    key: Path | None = None,
) -> Published:
    """Write a package of evidence, and check it as its reader will before it stands there.

    Args:
        source: one evidence folder, or a folder of them with their claims and their guide.
        into: the package: a .zip where its name ends so, else a folder.
        date: its day; else that of the last commit which touched the evidence.
        commit: of its source; else git's, where there is one.
        key: an Ed25519 private key that signs it.

    Raises:
        NotEvidence: there is no evidence in the source.
        EvidenceError: some of it is not sound, or the claims or the guide do not follow from it.
        PlanError: ``into`` is there already, or lies in the source.
        RcrError: a library is missing, the key is none, or no day is known.
        OSError: it cannot be written.
    """
    found = _evidence(source)
    refuse_taken(into)
    if into.resolve().is_relative_to(source.resolve()):
        raise PlanError(f"{into} lies in {source}.", "Name a place outside of it with --into.")
    where = origin(source, date, commit)
    try:
        files, left_out = _files(source, found, where, signed=key is not None)
    except ImportError as error:
        raise RcrError(
            f"Publishing needs {error.name}, which is not installed.",
            "Install it with: pip install 'rcr-probes[publish]'",
        ) from error
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".rcr-publish-", dir=into.parent) as temporary:
        folder = Path(temporary, "package")
        report = _written(folder, files)
        if key is not None:
            files[layout.SIGNATURE] = _signed(files, report, key)
            report = _written(folder, files)
        if into.suffix.lower() == archive.SUFFIX:
            made = Path(temporary, "package.zip")
            archive.write(made, files)
            made.rename(into)
        else:
            folder.rename(into)
    return Published(into, report, report.digests[MANIFEST], left_out)


def refuse_taken(into: Path) -> None:
    """Refuse a place where something stands already; an empty folder is nothing.

    Raises:
        PlanError: it is taken.
    """
    empty = into.suffix.lower() != archive.SUFFIX and into.is_dir() and not any(into.iterdir())
    if os.path.lexists(into) and not empty:
        raise PlanError(f"{into} is there already.", "Name another place with --into.")


def _evidence(source: Path) -> dict[str, Evidence]:
    """The evidence in the source by its folder's name, all of it sound.

    Raises:
        NotEvidence, EvidenceError: as ``publish``.
    """
    found = {}
    for report in check.check_all(source):
        name = Path(os.path.abspath(report.folder)).name
        for finding in report.findings:
            remedy = f"See all that is wrong with: rcr check {source}"
            raise EvidenceError(f"{name}/{finding.place}", finding.problem, remedy)
        if not layout.named(name):
            raise NotEvidence(
                f"{name!r} cannot be a folder's name in a package.",
                "Rename it: a letter or a digit, then also . _ and -",
            )
        found[name] = store.read(report.folder)
    return found


def _files(
    source: Path, found: Mapping[str, Evidence], where: Origin, *, signed: bool
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Every file of the package but those that are about its manifest, and what is left out."""
    files = {
        f"{EVIDENCE}/{name}/{file}": (evidence.folder / file).read_bytes()
        for name, evidence in found.items()
        for file in FILES
    }
    beside = {f"{EVIDENCE}/{layout.CLAIMS}": source / layout.CLAIMS}
    beside |= {f"{GUIDE}/{page}": source / GUIDE / page for page in layout.PAGES}
    files |= {path: place.read_bytes() for path, place in beside.items() if regular(place)}
    for name, evidence in found.items():
        files[f"{TABLES}/{name}.csv"] = as_csv(rows(evidence.captures())).encode()
        files |= {f"{FIGURES}/{name}.{figure}": drawn for figure, drawn in _figures(evidence)}
    files[layout.CHECKER] = checker.program()
    files[layout.PROVENANCE] = _provenance(files, found, where)
    about = [MANIFEST, layout.SUMS, *([layout.SIGNATURE] if signed else [])]
    files[layout.CRATE] = crate.described(files, about, ", ".join(found), where.date)
    return files, tuple(path for path in beside if path not in files)


def _figures(evidence: Evidence) -> Iterator[tuple[str, bytes]]:
    """The figures that the evidence can bear, in both languages."""
    from rcr_probes.report import figure, matrix
    from rcr_probes.report.texts import LANGS

    for lang in LANGS:
        try:
            drawn = figure.causal_chain(evidence, lang)
        except EvidenceError:  # it has no events of P3
            continue
        yield f"causal_chain.{lang}.svg", figure.rendered(drawn, ".svg")
    judged = {cell.runtime for cell in evidence.plan.cells if cell.repeat is not None}
    for lang in LANGS if len(judged) > 1 else ():
        yield f"matrix.{lang}.svg", figure.rendered(matrix.matrix(evidence, lang), ".svg")


def _provenance(files: Mapping[str, bytes], found: Mapping[str, Evidence], where: Origin) -> bytes:
    described = {}
    for name, evidence in found.items():
        environment = strict.parsed(files[f"{EVIDENCE}/{name}/{ENVIRONMENT}"])
        cells = len(evidence.plan.cells)
        described[name] = provenance.described(name, _digests(files), cells, environment)
    made_with = {name: version(name) for name in _MADE_WITH}
    return provenance.written(where.date, where.commit, where.modified, made_with, described)


def _written(folder: Path, files: dict[str, bytes]) -> Report:
    """Write the package with its two lists, and check it.

    Raises:
        EvidenceError: it is not sound.
    """
    files[MANIFEST] = layout.manifest(_digests(files))
    files[layout.SUMS] = layout.sums(_digests(files))
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    report = verify(folder)
    for finding in report.findings:
        raise EvidenceError(finding.place, finding.problem, "Mend it, and publish again.")
    return report


def _signed(files: Mapping[str, bytes], report: Report, key: Path) -> bytes:
    """The envelope over the manifest: what was tested with what, and what passed."""
    passed: Sequence[str] = [
        *(f"{EVIDENCE}/{name}" for name in report.evidence),
        *(f"claim {outcome.claim.id}" for outcome in report.outcomes),
    ]
    digests = _digests(files)
    tested = [(path, digests[path]) for path in (layout.CHECKER, layout.PROVENANCE)]
    return signature.signed(files[MANIFEST], key, tested, passed)


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
