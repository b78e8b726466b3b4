"""Publish evidence: one folder or one .zip that a stranger can check, the same bytes every time."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rcr_probes.errors import EvidenceError, NotEvidence, NotInstalled, PlanError, naming
from rcr_probes.evidence import archive, names, store, strict
from rcr_probes.evidence.checked import check_all
from rcr_probes.evidence.form import ENVIRONMENT, FILES, regular
from rcr_probes.evidence.rows import as_csv, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.publish import checker, crate, layout, provenance, signature
from rcr_probes.publish.drawn import Borne
from rcr_probes.publish.layout import EVIDENCE, GUIDE, MANIFEST, TABLES
from rcr_probes.publish.origin import Origin, origin
from rcr_probes.publish.verify import Report, verify

Progress = Callable[[int, int], None]
_MADE_WITH = ("matplotlib", "rcr-probes")


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


class _Steps:
    """How far publishing is: each folder is checked, then drawn, and then the package is checked.

    Args:
        progress: is told.
        checks: how often the package will be checked.
    """

    def __init__(self, progress: Progress | None, checks: int) -> None:
        self._progress, self._checks = progress, checks
        self._done = self._of = 0

    def checked(self, folders: int, of: int) -> None:
        self._done, self._of = folders - 1, 2 * of + self._checks
        self.next()

    def next(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._of)


def publish(
    source: Path,
    into: Path,
    *,
    date: str | None = None,
    commit: str | None = None,
    key: Path | None = None,
    progress: Progress | None = None,
) -> Published:
    """Write a package of evidence, and check it as its reader will before it stands there.

    Args:
        source: one evidence folder, or a folder of them with their claims and their guide.
        into: the package: a .zip where its name ends so, else a folder.
        date: its day; else that of the last commit which touched the evidence.
        commit: of its source; else git's, where there is one.
        key: an Ed25519 private key that signs it.
        progress: called after each step with how many are done, and how many there are.

    Raises:
        NotEvidence: there is no evidence in the source.
        EvidenceError: some of it is not sound, or the claims or the guide do not follow from it.
        PlanError: ``into`` is there already, or lies in the source.
        RcrError: a library is missing, the key is none, or no day is known.
        OSError: it cannot be written.
    """
    _require()
    if key is not None:
        signature.require(key)
    refuse_taken(into)
    steps = _Steps(progress, checks=1 if key is None else 2)
    found = _evidence(source, steps)
    if into.resolve().is_relative_to(source.resolve()):
        raise PlanError(f"{into} lies in {source}.", "Name a place outside of it with --into.")
    taken, left_out = _taken(source, found)
    paths = [place.relative_to(source).as_posix() for place in taken.values()]
    where = origin(source, date, commit, paths)
    files = _files(taken, found, where, steps)
    into.parent.mkdir(parents=True, exist_ok=True)
    with (
        naming(into),
        tempfile.TemporaryDirectory(prefix=".rcr-publish-", dir=into.parent) as temporary,
    ):
        folder = Path(temporary, "package")
        report = _written(folder, _whole(files, found, where), steps)
        if key is not None:
            files[layout.SIGNATURE] = b""  # it is named by what it signs, and no byte of it is
            files[layout.SIGNATURE] = _signed(_whole(files, found, where), report, key)
            report = _written(folder, _whole(files, found, where), steps)
        if into.suffix.lower() == archive.SUFFIX:
            made = Path(temporary, "package.zip")
            archive.write(made, files)
            made.rename(into)
        else:
            folder.rename(into)
    return Published(into, report, report.digests[MANIFEST], left_out)


def _require() -> None:
    """Refuse to begin without what draws the figures: to check the evidence first takes a while.

    Raises:
        NotInstalled: it is not there.
    """
    try:
        import matplotlib  # noqa: F401 (whether it is there)

        for name in _MADE_WITH:
            version(name)
    except ImportError as error:
        raise NotInstalled(
            f"Publishing needs {error.name}, which is not installed.", "publish"
        ) from error


def refuse_taken(into: Path) -> None:
    """Refuse a place where something stands already; an empty folder is nothing.

    Raises:
        PlanError: it is taken, is a link, or lies in a package.
    """
    refuse_inside(into)
    if into.is_symlink():
        raise PlanError(f"{into} is a symbolic link.", "Name the place itself with --into.")
    empty = into.suffix.lower() != archive.SUFFIX and into.is_dir() and not any(into.iterdir())
    if os.path.lexists(into) and not empty:
        raise PlanError(f"{into} is there already.", "Name another place with --into.")


def refuse_inside(into: Path) -> None:
    """Refuse a place in a package, which would be none any more.

    Raises:
        PlanError: it lies in one.
    """
    if package := layout.enclosing(into.parent):
        raise PlanError(
            f"{into} lies in the package {package}.", "Name a place outside of it with --into."
        )


def _evidence(source: Path, steps: _Steps) -> dict[str, Evidence]:
    """The evidence in the source by its folder's name, all of it sound.

    Raises:
        NotEvidence, EvidenceError: as ``publish``.
    """
    found = {}
    for report in check_all(source, steps.checked):
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


def _taken(source: Path, found: Mapping[str, Evidence]) -> tuple[dict[str, Path], tuple[str, ...]]:
    """What is taken as it lies in the source, by its path in the package; and what is not there.

    Raises:
        EvidenceError: the claims or a page of the guide are no files of their own.
    """
    taken = {
        f"{EVIDENCE}/{name}/{file}": evidence.folder / file
        for name, evidence in found.items()
        for file in FILES
    }
    beside = {f"{EVIDENCE}/{layout.CLAIMS}": source / layout.CLAIMS}
    beside |= {f"{GUIDE}/{page}": source / GUIDE / page for page in layout.PAGES}
    there = {path: place for path, place in beside.items() if os.path.lexists(place)}
    for place in there.values():
        name = place.relative_to(source).as_posix()
        if any((source / one).is_symlink() for one in names.above(name)) or not regular(place):
            raise EvidenceError(
                name, "is no regular file, or lies behind a link.", "Put the file itself there."
            )
    return taken | there, tuple(path for path in beside if path not in there)


def _files(
    taken: Mapping[str, Path], found: Mapping[str, Evidence], where: Origin, steps: _Steps
) -> dict[str, bytes]:
    """Every file of the package but those that depend on all others."""
    files = {path: place.read_bytes() for path, place in taken.items()}
    for name, evidence in found.items():
        files[f"{TABLES}/{name}.csv"] = as_csv(rows(evidence.captures())).encode()
        files |= _figures(name, evidence)
        steps.next()
    files[layout.CHECKER] = checker.program()
    files[layout.PROVENANCE] = _provenance(files, found, where)
    return files


def _whole(
    files: dict[str, bytes], found: Mapping[str, Evidence], where: Origin
) -> dict[str, bytes]:
    """The files with those that depend on all others: the metadata, and the two lists."""
    sizes = {path: len(data) for path, data in files.items() if path != layout.CRATE}
    sizes |= dict.fromkeys((MANIFEST, layout.SUMS), 0)
    files[layout.CRATE] = crate.described(sizes, found, where.date)
    files[MANIFEST] = layout.manifest(_digests(files))
    files[layout.SUMS] = layout.sums(_digests(files))
    return files


def _figures(name: str, evidence: Evidence) -> dict[str, bytes]:
    """The figures that the evidence can bear, in each language, by their paths."""
    from rcr_probes.report import figure, matrix

    drawing = {layout.CHAIN: figure.causal_chain, layout.MATRIX: matrix.matrix}
    borne = Borne()
    for capture in evidence.captures():
        borne.see(capture)
    return {
        path: figure.rendered(drawing[one](evidence, lang), ".svg")
        for one in borne.figures
        for lang, path in zip(layout.PAGES.values(), layout.drawings(name, [one]), strict=True)
    }


def _provenance(files: Mapping[str, bytes], found: Mapping[str, Evidence], where: Origin) -> bytes:
    described, digests = {}, _digests(files)
    for name, evidence in found.items():
        environment = strict.parsed(files[f"{EVIDENCE}/{name}/{ENVIRONMENT}"])
        cells = len(evidence.plan.cells)
        described[name] = provenance.described(name, digests, cells, environment)
    made_with = {name: version(name) for name in _MADE_WITH}
    return provenance.written(where.date, where.commit, where.modified, made_with, described)


def _written(folder: Path, files: dict[str, bytes], steps: _Steps) -> Report:
    """Write the package, and check it.

    Raises:
        EvidenceError: it is not sound.
    """
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    report = verify(folder)
    for finding in report.findings:
        raise EvidenceError(finding.place, finding.problem, "Mend it, and publish again.")
    steps.next()
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
