"""Doubt a published package: its files, and then whatever follows from its captures.

A sound report says that the package is whole and agrees with itself: no file was changed, added,
left out or renamed, every judgement, table and claim follows from the captures, and the guide says
what they give. That the whole was not made up, it cannot say. Standard library alone: the package's
own checker embeds this module as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import check, claims, form, names, strict
from rcr_probes.evidence.check import Finding
from rcr_probes.evidence.claims import Grounds, Outcome
from rcr_probes.evidence.form import CAPTURES, ENVIRONMENT, FILES, regular, sha256, too_large
from rcr_probes.evidence.names import MOST_IN_ALL
from rcr_probes.evidence.rows import Row, as_csv, row
from rcr_probes.model import Capture, Json
from rcr_probes.publish import crate, listed, page, provenance, statement
from rcr_probes.publish.drawn import Borne
from rcr_probes.publish.layout import (
    CLAIMS,
    CRATE,
    DRAWN,
    EVIDENCE,
    GUIDE,
    MANIFEST,
    PAGES,
    PROVENANCE,
    SIGNATURE,
    TABLES,
    drawings,
    most,
    named,
)


@dataclass(slots=True)
class Report:
    """What was found in one package; sound when no finding is.

    Attributes:
        folder: the package.
        digests: path → SHA-256 of the files that could be read.
        evidence: folder of evidence → how many captures were read in it.
        tables: how many tables are what the captures give.
        outcomes: what became of each claim.
        pages: how many pages of the guide say what the claims give.
        signed: whether a signature lies beside the manifest; nothing here verifies it.
        findings: every reason not to trust the package.
    """

    folder: Path
    digests: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, int] = field(default_factory=dict)
    tables: int = 0
    outcomes: tuple[Outcome, ...] = ()
    pages: int = 0
    signed: bool = False
    findings: list[Finding] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return not self.findings


def verify(folder: Path) -> Report:
    """Check a package. What is wrong with it is never an error here: it becomes findings.

    Raises:
        NotEvidence: there is no such folder.
    """
    if not os.path.isdir(folder):  # false of a name that no system takes, too
        raise NotEvidence(f"There is no folder {folder}.", "Name the folder of a package.")
    report = Report(folder)
    try:
        report.findings.extend(check.first(_examine(report)))
    except OSError as error:
        said = f"cannot be read ({error.strerror or error})."
        report.findings.append(Finding(Path(error.filename or folder).name, said, "unreadable"))
    return report


def _examine(report: Report) -> Iterator[Finding]:
    found = names.walked(report.folder)
    yield from listed.named(found)
    if not found.whole:
        return
    places = {path: report.folder / path for path in found.files if not names.wrong(path)}
    if sum(place.lstat().st_size for place in places.values()) > MOST_IN_ALL:
        yield listed.too_large(".", MOST_IN_ALL)
        return
    for path, place in places.items():
        if too_large(place, most(path)):
            yield listed.too_large(path, most(path))
        elif not regular(place):
            yield Finding(path, "is no regular file.", "irregular")
        else:
            report.digests[path] = sha256(place)
    evidence = _folders(report.folder)
    yield from listed.parts(report.digests, evidence)
    yield from listed.lists(report.folder, report.digests)
    rows: dict[str, list[Row]] = {}
    unread: dict[str, str] = {}
    for name in evidence:
        yield from _evidence(report, name, rows, unread)
    for name in rows:
        yield from _table(report, name, rows[name])
    yield from _claims(report, Grounds(rows, unread))
    yield from _guide(report)
    yield from _about(report, evidence)
    yield from _signature(report)


def _folders(folder: Path) -> list[str]:
    """The folders of evidence in the package, whole or not."""
    place = folder / EVIDENCE
    if place.is_symlink() or not place.is_dir():
        return []
    return [p.name for p in form.folders(place) if not p.is_symlink() and named(p.name)]


def _evidence(
    report: Report, name: str, rows: dict[str, list[Row]], unread: dict[str, str]
) -> Iterator[Finding]:
    """Everything that ``rcr check`` finds in the folder; where nothing, its rows and figures.

    Of a folder that has no rows, ``unread`` is told where the first is that was found in it.
    """
    folder = report.folder / EVIDENCE / name
    report.evidence[name] = 0
    for path in (f"{EVIDENCE}/{name}/{file}" for file in FILES):
        if too_large(report.folder / path, most(path)):
            unread[name] = path
            return  # which was found already
    found = check.check(folder)
    report.evidence[name] = found.captures
    findings = [_placed(finding, f"{EVIDENCE}/{name}") for finding in found.findings]
    yield from findings
    if findings:
        unread[name] = findings[0].place
        return
    rows[name], borne = [], Borne()
    for capture in _captures(folder):
        rows[name].append(row(capture))
        borne.see(capture)
    yield from _figures(report, name, borne)


def _placed(finding: Finding, folder: str) -> Finding:
    """The same in a package, which has lists of its own under the same names."""
    values, problem = dict(finding.values), finding.problem
    if "list" in values:
        values["list"] = f"{folder}/{values['list']}"
        problem = problem.replace(str(finding.values["list"]), str(values["list"]))
    return replace(finding, place=f"{folder}/{finding.place}", problem=problem, values=values)


def _captures(folder: Path) -> Iterator[Capture]:
    with open(folder / CAPTURES, "rb") as file:
        for line in file:
            yield strict.decoded(line, Capture)


def _figures(report: Report, name: str, borne: Borne) -> Iterator[Finding]:
    """The figures that the captures bear are there, and no other; what they show is not asked."""
    wanted = drawings(name, borne.figures)
    for path in drawings(name, DRAWN):
        if path in wanted and path not in report.digests:
            yield Finding(path, "is missing.", "missing")
        elif path not in wanted and path in report.digests:
            yield Finding(path, "was added: it is no file of a package.", "stray")


def _table(report: Report, name: str, rows: list[Row]) -> Iterator[Finding]:
    """The table is what the captures give, to the byte."""
    path = f"{TABLES}/{name}.csv"
    if path not in report.digests:
        return
    wanted = as_csv(rows).encode()
    data = (report.folder / path).read_bytes()
    if data == wanted:
        report.tables += 1
        return
    given, follows = data.splitlines(keepends=True), wanted.splitlines(keepends=True)
    same = (one == other for one, other in zip(given, follows, strict=False))
    line = next((n for n, equal in enumerate(same, 1) if not equal), min(len(given), len(follows)))
    yield Finding(f"{path}:{line}", "is not what the captures give.", "table")


def _claims(report: Report, grounds: Grounds) -> Iterator[Finding]:
    path = f"{EVIDENCE}/{CLAIMS}"
    if path not in report.digests:
        return
    try:
        text = (report.folder / path).read_bytes().decode()
        claimed, tables = claims.parsed(text, path), claims.tables(text, path)
    except UnicodeDecodeError as error:
        yield Finding(path, f"cannot be read ({error}).", "unreadable")
        return
    except EvidenceError as error:
        yield Finding(path, error.cause.removeprefix(f"{path}: "), "not_claims")
        return
    report.outcomes = tuple(map(grounds.outcome, claimed))
    for outcome in report.outcomes:
        if not outcome.holds:
            place = f"{path} {outcome.claim.id}"
            yield Finding(place, _unheld(outcome), "claim", _values(outcome))
    for table in tables:
        if lacking := grounds.lacks(table):
            values = {"problem": lacking[0], "about": lacking[1], "evidence": table.evidence}
            place = f"{path} {table.name} ({table.page})"
            yield Finding(place, f"cannot be shown: {lacking[0]}.", "claim", values)


def _unheld(outcome: Outcome) -> str:
    claim = outcome.claim
    expected, given = claims.written(claim.expect), claims.written(outcome.value)
    return (
        f"does not hold: it expects {expected}, and the captures of {claim.evidence} give {given}."
    )


def _values(outcome: Outcome) -> dict[str, object]:
    """What the text of a claim's problem is filled with."""
    claim = outcome.claim
    return {
        "problem": outcome.problem,
        "about": outcome.about,
        "evidence": claim.evidence,
        "take": claim.take,
        "expect": claims.written(claim.expect),
        "value": claims.written(outcome.value),
    }


def _guide(report: Report) -> Iterator[Finding]:
    """Each page says each claim with the value that the captures give."""
    for name, lang in PAGES.items():
        path = f"{GUIDE}/{name}"
        if path not in report.digests:
            continue
        try:
            text = (report.folder / path).read_bytes().decode()
        except UnicodeDecodeError as error:
            yield Finding(path, f"cannot be read ({error}).", "unreadable")
            continue
        told = list(_page(path, lang, page.Page(text), report.outcomes))
        yield from told
        report.pages += not told


def _page(
    path: str, lang: str, shown: page.Page, outcomes: tuple[Outcome, ...]
) -> Iterator[Finding]:
    for outcome in outcomes:
        name = outcome.claim.id
        if not shown.says(outcome, lang):
            said = f"does not say of claim {name} what {CLAIMS} and its captures give."
            yield Finding(path, said, "page", {"claim": name})
    for name in sorted(shown.claims - {outcome.claim.id for outcome in outcomes}):
        said = f"speaks of claim {check.plain(name)}, which no capture bears out."
        yield Finding(path, said, "page", {"claim": check.plain(name)})


def _about(report: Report, evidence: list[str]) -> Iterator[Finding]:
    """What the package says of itself is so; of its source and its day, nothing here can tell."""
    if PROVENANCE not in report.digests:
        return
    try:
        told = provenance.read((report.folder / PROVENANCE).read_bytes())
        wanted = _described(report, evidence)
    except strict.Unreadable as error:
        yield Finding(PROVENANCE, f"cannot be read ({error}).", "unreadable")
        return
    for name in sorted(wanted.keys() | told.evidence.keys()):
        said, meant = (strict.encoded(one.get(name)) for one in (told.evidence, wanted))
        if said != meant:  # to the byte: 6.0 is not 6
            problem = f"does not describe {EVIDENCE}/{check.plain(name)} as it is."
            yield Finding(PROVENANCE, problem, "provenance", {"evidence": check.plain(name)})
    if CRATE in report.digests:
        sizes = {path: (report.folder / path).lstat().st_size for path in report.digests}
        del sizes[CRATE]
        if (report.folder / CRATE).read_bytes() != crate.described(sizes, evidence, told.date):
            yield Finding(CRATE, "does not describe the package as it is.", "crate")


def _described(report: Report, evidence: list[str]) -> dict[str, Json]:
    """What provenance must say of each folder of evidence.

    Raises:
        Unreadable: an environment cannot be read.
    """
    found: dict[str, Json] = {}
    for name in evidence:
        path = f"{EVIDENCE}/{name}/{ENVIRONMENT}"
        if path in report.digests:
            environment = strict.parsed((report.folder / path).read_bytes())
            captures = report.evidence[name]
            found[name] = provenance.described(name, report.digests, captures, environment)
    return found


def _signature(report: Report) -> Iterator[Finding]:
    """An envelope is about this manifest; who signed it is not asked here."""
    if SIGNATURE not in report.digests:
        return
    report.signed = True
    try:
        envelope = statement.read(report.folder)
    except strict.Unreadable as error:
        yield Finding(SIGNATURE, f"cannot be read ({error}).", "unreadable")
        return
    if envelope.manifest_sha256 != report.digests.get(MANIFEST):
        yield Finding(SIGNATURE, f"is about another {MANIFEST}.", "other_manifest")
