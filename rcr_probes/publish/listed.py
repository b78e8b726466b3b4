"""Doubt the files of a package: their names and kinds, and the two lists that give their digests.

Standard library alone: the package's own checker embeds this module as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from rcr_probes.evidence import names, strict
from rcr_probes.evidence.check import Finding, plain
from rcr_probes.evidence.names import MOST_FILES, Walked
from rcr_probes.publish.layout import (
    EVIDENCE,
    MANIFEST,
    NEEDED,
    SUMS,
    TABLES,
    UNLISTED,
    Manifest,
    belongs,
    manifest,
    sums,
)


def named(found: Walked) -> Iterator[Finding]:
    """Names that mean one file everywhere; no link, and no folder that holds nothing."""
    for path in found.links:
        yield Finding(plain(path), "is a symbolic link; it was not followed.", "not_followed")
    if not found.whole:
        said = f"holds more than {MOST_FILES} files and folders."
        yield Finding(".", said, "too_many", {"files": MOST_FILES})
        return
    for path in found.empty:
        yield Finding(plain(path), "is a folder that holds nothing.", "empty_folder")
    for path in (*found.files, *found.empty):
        if problem := names.wrong(path):
            yield Finding(plain(path), f"has a name that {problem}.", "odd_name")
    if twice := names.clash([*found.files, *found.empty]):
        other, path = map(plain, twice)
        yield Finding(path, f"clashes with {other} on some systems.", "clash", {"other": other})


def too_large(path: str, most: int) -> Finding:
    """A file has more bytes than one of a package, or all together have."""
    return Finding(path, f"has more than {most} bytes.", "too_large", {"bytes": most})


def parts(digests: Collection[str], evidence: Collection[str]) -> Iterator[Finding]:
    """What a package must have, and nothing that it has no place for."""
    for path in (*NEEDED, *(f"{TABLES}/{name}.csv" for name in evidence)):
        if path not in digests:
            yield Finding(path, "is missing.", "missing")
    for path in digests:
        if not belongs(path, evidence):
            yield Finding(path, "was added: it is no file of a package.", "stray")
    if not evidence:
        yield Finding(EVIDENCE, "holds no folder of evidence.", "no_evidence")


def lists(folder: Path, digests: Mapping[str, str]) -> Iterator[Finding]:
    """Each listed file is there with its digest, and each that is there is listed."""
    if MANIFEST in digests:
        yield from _manifest((folder / MANIFEST).read_bytes(), digests)
    if SUMS in digests:
        yield from _sums((folder / SUMS).read_bytes(), digests)


def _manifest(data: bytes, digests: Mapping[str, str]) -> Iterator[Finding]:
    try:
        found = strict.decoded(data, Manifest)
    except strict.Unreadable as error:
        yield Finding(MANIFEST, f"cannot be read ({error}).", "unreadable")
        return
    there = {path: digest for path, digest in digests.items() if path not in UNLISTED}
    if data == manifest(there):
        return
    yield from _told(MANIFEST, there, {entry.path: entry.sha256 for entry in found.files})


def _sums(data: bytes, digests: Mapping[str, str]) -> Iterator[Finding]:
    if data == sums(digests):
        return
    there = {path: digest for path, digest in digests.items() if path != SUMS}
    lines = (line.partition("  ") for line in data.decode(errors="replace").splitlines())
    yield from _told(SUMS, there, {path: digest for digest, _, path in lines})


def _told(place: str, there: Mapping[str, str], listed: Mapping[str, str]) -> Iterator[Finding]:
    """What is wrong with a list that is not to the byte what publishing writes."""
    told = _compared(place, there, listed)
    yield next(told, Finding(place, "is not in the form that publishing writes.", "form"))
    yield from told


def _compared(place: str, there: Mapping[str, str], listed: Mapping[str, str]) -> Iterator[Finding]:
    for path in sorted(listed.keys() | there.keys()):
        shown = plain(path)
        if path not in there:
            said = f"is missing, though {place} lists it."
            yield Finding(shown, said, "missing_listed", {"list": place})
        elif path not in listed:
            said = f"was added or renamed: {place} does not list it."
            yield Finding(shown, said, "unlisted", {"list": place})
        elif listed[path] != there[path]:
            said = f"was changed: its SHA-256 is not the one that {place} gives."
            yield Finding(shown, said, "changed", {"list": place})
