"""Doubt a published package: its files, and then whatever follows from its captures.

A sound report says that the package is whole and agrees with itself: no file was changed, added,
left out or renamed, every judgement, table and claim follows from the captures, and the guide says
what they give. That the whole was not made up, it cannot say. Standard library alone: the package's
own checker embeds this module as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import check, claims, names, strict
from rcr_probes.evidence.check import Finding
from rcr_probes.evidence.claims import Claim, Outcome, Problem
from rcr_probes.evidence.form import CAPTURES, ENVIRONMENT, FILES, regular, sha256, too_large
from rcr_probes.evidence.names import MOST_BYTES, MOST_FILES, MOST_IN_ALL
from rcr_probes.evidence.rows import Row, as_csv, row
from rcr_probes.model import Capture, Json
from rcr_probes.publish import page, provenance, statement
from rcr_probes.publish.layout import (
    CLAIMS,
    EVIDENCE,
    GUIDE,
    MANIFEST,
    NEEDED,
    PAGES,
    PROVENANCE,
    SIGNATURE,
    SUMS,
    TABLES,
    UNLISTED,
    Manifest,
    belongs,
    manifest,
    named,
    sums,
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
    if not folder.is_dir():
        raise NotEvidence(f"There is no folder {folder}.", "Name the folder of a package.")
    report = Report(folder)
    try:
        report.findings.extend(_examine(report))
    except OSError as error:
        said = f"cannot be read ({error.strerror or error})."
        report.findings.append(Finding(Path(error.filename or folder).name, said, "unreadable"))
    return report


def _examine(report: Report) -> Iterator[Finding]:
    files, links = names.walked(report.folder)
    yield from _names(files, links)
    if len(files) > MOST_FILES:
        return
    found = {path: report.folder / path for path in files if not names.wrong(path)}
    if sum(place.lstat().st_size for place in found.values()) > MOST_IN_ALL:
        yield _too_large(".", MOST_IN_ALL)
        return
    for path, place in found.items():
        if too_large(place, MOST_BYTES):
            yield _too_large(path, MOST_BYTES)
        elif not regular(place):
            yield Finding(path, "is no regular file.", "irregular")
        else:
            report.digests[path] = sha256(place)
    evidence = _folders(report.folder)
    yield from _parts(report, evidence)
    yield from _manifest(report)
    yield from _sums(report)
    rows: dict[str, list[Row]] = {}
    for name in evidence:
        yield from _evidence(report, name, rows)
    for name in rows:
        yield from _table(report, name, rows[name])
    yield from _claims(report, rows)
    yield from _guide(report)
    yield from _provenance(report, evidence)
    yield from _signature(report)


def _too_large(path: str, most: int) -> Finding:
    return Finding(path, f"has more than {most} bytes.", "too_large", {"bytes": most})


def _names(files: list[str], links: list[str]) -> Iterator[Finding]:
    for path in links:
        yield Finding(check.plain(path), "is a symbolic link; it was not followed.", "not_followed")
    if len(files) > MOST_FILES:
        said = f"holds more than {MOST_FILES} files."
        yield Finding(".", said, "too_many", {"files": MOST_FILES})
        return
    for path in files:
        if problem := names.wrong(path):
            yield Finding(check.plain(path), f"has a name that {problem}.", "odd_name")
    if twice := names.clash(files):
        other, path = map(check.plain, twice)
        yield Finding(path, f"clashes with {other} on some systems.", "clash", {"other": other})


def _folders(folder: Path) -> list[str]:
    """The folders of evidence in the package, whatever they hold."""
    place = folder / EVIDENCE
    if place.is_symlink() or not place.is_dir():
        return []
    return sorted(
        p.name for p in place.iterdir() if p.is_dir() and not p.is_symlink() and named(p.name)
    )


def _parts(report: Report, evidence: list[str]) -> Iterator[Finding]:
    """What a package must have, and nothing that it has no place for."""
    for path in (*NEEDED, *(f"{TABLES}/{name}.csv" for name in evidence)):
        if path not in report.digests:
            yield Finding(path, "is missing.", "missing")
    for path in report.digests:
        if not belongs(path, evidence):
            yield Finding(path, "was added: it is no file of a package.", "stray")
    if not evidence:
        yield Finding(EVIDENCE, "holds no folder of evidence.", "no_evidence")


def _manifest(report: Report) -> Iterator[Finding]:
    """Each listed file is there with its digest, and each that is there is listed."""
    if MANIFEST not in report.digests:
        return
    data = (report.folder / MANIFEST).read_bytes()
    try:
        found = strict.decoded(data, Manifest)
    except strict.Unreadable as error:
        yield Finding(MANIFEST, f"cannot be read ({error}).", "unreadable")
        return
    there = {path: d for path, d in report.digests.items() if path not in UNLISTED}
    listed = {entry.path: entry.sha256 for entry in found.files}
    if data == manifest(there):
        return
    told = list(_compared(MANIFEST, there, listed))
    yield from told
    if not told:
        yield Finding(MANIFEST, "is not in the form that publishing writes.", "form")


def _compared(place: str, there: Mapping[str, str], listed: Mapping[str, str]) -> Iterator[Finding]:
    for path in sorted(listed.keys() | there.keys()):
        shown = check.plain(path)
        if path not in there:
            said = f"is missing, though {place} lists it."
            yield Finding(shown, said, "missing_listed", {"list": place})
        elif path not in listed:
            said = f"was added or renamed: {place} does not list it."
            yield Finding(shown, said, "unlisted", {"list": place})
        elif listed[path] != there[path]:
            said = f"was changed: its SHA-256 is not the one that {place} gives."
            yield Finding(shown, said, "changed", {"list": place})


def _sums(report: Report) -> Iterator[Finding]:
    if SUMS not in report.digests:
        return
    data = (report.folder / SUMS).read_bytes()
    if data == sums(report.digests):
        return
    there = {path: digest for path, digest in report.digests.items() if path != SUMS}
    lines = [line.partition("  ") for line in data.decode(errors="replace").splitlines()]
    told = list(_compared(SUMS, there, {path: digest for digest, _, path in lines}))
    yield from told
    if not told:
        yield Finding(SUMS, "is not in the form that publishing writes.", "form")


def _evidence(report: Report, name: str, rows: dict[str, list[Row]]) -> Iterator[Finding]:
    """Everything that ``rcr check`` finds in the folder; its rows, where it is sound."""
    folder = report.folder / EVIDENCE / name
    report.evidence[name] = 0
    if any(too_large(folder / file, MOST_BYTES) for file in FILES):
        return  # which was found already
    found = check.check(folder)
    report.evidence[name] = found.captures
    for finding in found.findings:
        yield replace(finding, place=f"{EVIDENCE}/{name}/{finding.place}")
    if found.sound:
        rows[name] = [row(capture) for capture in _captures(folder)]


def _captures(folder: Path) -> Iterator[Capture]:
    with open(folder / CAPTURES, "rb") as file:
        for line in file:
            yield strict.decoded(line, Capture)


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


def _claims(report: Report, rows: Mapping[str, list[Row]]) -> Iterator[Finding]:
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
    report.outcomes = tuple(_outcome(claim, report, rows) for claim in claimed)
    for outcome in report.outcomes:
        if not outcome.holds:
            place = f"{path} {outcome.claim.id}"
            yield Finding(place, _unheld(outcome), "claim", _values(outcome))
    for table in tables:
        lacking = _refused(table.evidence, report, rows) or claims.lacks(
            table.where, rows[table.evidence]
        )
        if lacking:
            values = {"problem": lacking[0], "about": lacking[1], "evidence": table.evidence}
            place = f"{path} {table.name} ({table.page})"
            yield Finding(place, f"cannot be shown: {lacking[0]}.", "claim", values)


def _outcome(claim: Claim, report: Report, rows: Mapping[str, list[Row]]) -> Outcome:
    refused = _refused(claim.evidence, report, rows)
    if refused is not None:
        return Outcome(claim, None, (), *refused)
    return claims.evaluate(claim, rows[claim.evidence])


def _refused(
    name: str, report: Report, rows: Mapping[str, list[Row]]
) -> tuple[Problem, str] | None:
    """Why there are no rows of this folder; None where there are."""
    if name in rows:
        return None
    return ("not_read", name) if name in report.evidence else ("no_folder", name)


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
        claim = outcome.claim
        sentence = claims.said(claim, lang, outcome.value)
        numbers = claims.written(outcome.value), claims.written(claim.expect)
        if not shown.says(claim.id, sentence, *numbers):
            said = f"does not say of claim {claim.id} what its captures give."
            yield Finding(path, said, "page", {"claim": claim.id})
    for name in sorted(shown.claims - {outcome.claim.id for outcome in outcomes}):
        said = f"speaks of claim {check.plain(name)}, which no capture bears out."
        yield Finding(path, said, "page", {"claim": check.plain(name)})


def _provenance(report: Report, evidence: list[str]) -> Iterator[Finding]:
    """What it says of the evidence is so; what it says of the source, nothing here can tell."""
    if PROVENANCE not in report.digests:
        return
    try:
        told = provenance.evidence((report.folder / PROVENANCE).read_bytes())
        wanted = _described(report, evidence)
    except strict.Unreadable as error:
        yield Finding(PROVENANCE, f"cannot be read ({error}).", "unreadable")
        return
    for name in sorted(wanted.keys() | told.keys()):
        if wanted.get(name) != told.get(name):
            said = f"does not describe {EVIDENCE}/{check.plain(name)} as it is."
            yield Finding(PROVENANCE, said, "provenance", {"evidence": check.plain(name)})


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
        envelope = statement.opened((report.folder / SIGNATURE).read_bytes())
    except strict.Unreadable as error:
        yield Finding(SIGNATURE, f"cannot be read ({error}).", "unreadable")
        return
    if envelope.manifest_sha256 != report.digests.get(MANIFEST):
        yield Finding(SIGNATURE, f"is about another {MANIFEST}.", "other_manifest")
