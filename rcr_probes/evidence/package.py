"""A downloaded evidence package: its manifest, every listed file's SHA-256, and what is absent.

The format is that of the packages of the RCR series: ``manifest.json`` lists package-relative paths
with their digests. A copy may lack files; none that is there may be changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import names
from rcr_probes.evidence.form import Listed
from rcr_probes.evidence.names import MOST_BYTES, MOST_FILES, MOST_IN_ALL, MOST_READ
from rcr_probes.model import Json

MANIFEST = "manifest.json"
SCHEMA = 1

# A manifest vouches for its files. What vouches for the manifest is known of this package alone:
# where one of its files is there, so must its manifest be. Source: RCR-20260831, as published.
RCR_20260831: Mapping[str, str] = {
    MANIFEST: "ea4c9e608c2c3f9c6bc0bf0507caa9a2b8e86923541e503d95f5836b6fbe8f6a",
    "fixtures/historical-probes.json": (
        "5007ead06aa2d32bf3d7f8f199a0051314ff38c24d116b2d5f8b9014f1a42e31"
    ),
    "fixtures/restart.json": "942fdf8425e0a01495eb54d3bbe06686767da6158552a94fecad433073314155",
}
_AGAIN = "Download the package again."
_DO_NOT = "Do not trust this package."
REPORT = "Report it to the publisher; nothing was imported."


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was read, none of whose files was changed.

    Attributes:
        folder: where it lies.
        files: path → SHA-256, of the listed files that are there; each was verified.
        absent: listed paths that are not there.
        unlisted: files that are there and not listed; they are not read.
    """

    folder: Path
    files: Mapping[str, str]
    absent: tuple[str, ...]
    unlisted: tuple[str, ...]

    def json(self, path: str) -> Json:
        """The JSON value of a listed file.

        Raises:
            EvidenceError: the file is absent or not listed, was changed, or is not JSON.
        """
        if path not in self.files:
            known = "absent" if path in self.absent else "not listed"
            raise EvidenceError(path, f"is {known}; there is nothing to read.", _AGAIN)
        return strict_json(_verified(self.folder, Listed(path, self.files[path])), path)


def read_package(folder: str | os.PathLike[str]) -> Package:
    """Read a package and verify every listed file that is there.

    Raises:
        NotEvidence: there is no such folder, or it has no manifest.
        EvidenceError: the manifest is not one, a path in it leaves the package or is listed twice,
            or a file was changed.
    """
    place = Path(folder)
    if not place.is_dir():
        raise NotEvidence(f"There is no folder {place}.", "Name the folder of the package.")
    if not os.path.lexists(place / MANIFEST):
        raise NotEvidence(
            f"{place.resolve().name} is no package: it has no {MANIFEST}.",
            f"Name the folder or the .zip that holds the package's {MANIFEST}.",
        )
    data = _bytes(place, MANIFEST)
    listed = _listed(data)
    for entry in listed:
        _refuse_outside(place, entry.path)
    there = [e for e in listed if os.path.lexists(place / e.path)]
    if sum((place / e.path).lstat().st_size for e in there) > MOST_IN_ALL:
        raise EvidenceError(MANIFEST, f"lists more than {MOST_IN_ALL} bytes.", _DO_NOT)
    _vouch(place, data)
    for entry in there:
        _verified(place, entry)
    return Package(
        folder=place,
        files={entry.path: entry.sha256 for entry in there},
        absent=tuple(e.path for e in listed if e not in there),
        unlisted=tuple(_unlisted(place, {e.path for e in listed})),
    )


# A figure of these experiments; a larger one is none, and is not made into so many effects.
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000)]

T = TypeVar("T")


def typed(value: Json, kind: type[T], place: str) -> T:
    """A JSON value as what it should be; what it says beyond that is left out.

    Raises:
        EvidenceError: it is not of that shape.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise EvidenceError(place, f"is not of the known form ({error}).", _AGAIN) from error


def commit8(commit: str, place: str) -> str:
    """The first eight digits of a full commit id.

    Raises:
        EvidenceError: it is none.
    """
    if not re.fullmatch("[0-9a-f]{40}", commit):
        raise EvidenceError(place, f"names the commit {commit!r}, which is none.", REPORT)
    return commit[:8]


def strict_json(data: bytes, place: str) -> Json:
    """The value of JSON that says everything once.

    Raises:
        EvidenceError: it is not UTF-8, not JSON, or repeats a key; or it is larger than any.
    """
    if len(data) > MOST_READ:
        raise EvidenceError(place, f"has more than {MOST_READ} bytes.", _DO_NOT)
    try:
        json.loads(
            data.decode(), object_pairs_hook=_once
        )  # msgspec keeps the last of a repeated key
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise EvidenceError(place, f"cannot be read ({error}).", _AGAIN) from error


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(f"a key is repeated among {', '.join(key for key, _ in pairs)}")
    return made


def _listed(data: bytes) -> tuple[Listed, ...]:
    manifest = typed(strict_json(data, MANIFEST), dict[str, Json], MANIFEST)
    schema = manifest.get("schema_version")
    if "schema" in manifest and schema is None:
        raise NotEvidence(
            "This folder is evidence already, and no package.",
            "It need not be imported; name it as it is, such as: rcr show DIR, rcr check DIR",
        )
    if type(schema) is not int or schema != SCHEMA:
        raise EvidenceError(
            MANIFEST, f"is of schema_version {schema!r}, not {SCHEMA}.", "Update rcr-probes."
        )
    listed = typed(manifest.get("files"), tuple[Listed, ...], MANIFEST)
    if not listed:
        raise EvidenceError(MANIFEST, "lists no file.", _AGAIN)
    if len(listed) > MOST_FILES:
        raise EvidenceError(MANIFEST, f"lists more than {MOST_FILES} files.", _DO_NOT)
    seen: set[str] = set()
    for entry in listed:
        if entry.path in seen:
            raise EvidenceError(MANIFEST, f"lists {entry.path!r} twice.", _AGAIN)
        if not re.fullmatch("[0-9a-f]{64}", entry.sha256):
            raise EvidenceError(MANIFEST, f"gives no SHA-256 for {entry.path!r}.", _AGAIN)
        seen.add(entry.path)
    if twice := names.clash(entry.path for entry in listed):
        raise EvidenceError(MANIFEST, f"lists {twice[0]!r} and {twice[1]!r}, which clash.", _DO_NOT)
    return listed


def _refuse_outside(folder: Path, path: str) -> None:
    """Refuse a path that leads, or on some system could lead, out of the package."""
    if problem := names.wrong(path):
        raise EvidenceError(MANIFEST, f"lists {path!r}, which {problem}.", _DO_NOT)
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        step = "/".join(parts[:depth])
        if (folder / step).is_symlink():
            raise EvidenceError(
                step,
                "is a symbolic link, which may leave the package.",
                "Put the file there itself.",
            )


def _verified(folder: Path, entry: Listed) -> bytes:
    data = _bytes(folder, entry.path)
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise EvidenceError(
            entry.path, f"was changed: its SHA-256 is not the one that {MANIFEST} gives.", _AGAIN
        )
    return data


def _vouch(folder: Path, manifest: bytes) -> None:
    """Hold the manifest against its own digest, where a file shows which package this is."""
    if hashlib.sha256(manifest).hexdigest() == RCR_20260831[MANIFEST]:
        return
    for path, known in RCR_20260831.items():
        if (
            os.path.lexists(folder / path)
            and hashlib.sha256(_bytes(folder, path)).hexdigest() == known
        ):
            raise EvidenceError(
                MANIFEST, f"was changed: {path} was published with another one.", _AGAIN
            )


def _bytes(folder: Path, path: str) -> bytes:
    try:
        found = (folder / path).lstat()
        if not stat.S_ISREG(found.st_mode):
            raise EvidenceError(path, "is no regular file.", _AGAIN)
        if found.st_size > MOST_BYTES:
            raise EvidenceError(path, f"has more than {MOST_BYTES} bytes.", _DO_NOT)
        return (folder / path).read_bytes()
    except OSError as error:
        raise EvidenceError(path, f"cannot be read ({error}).", _AGAIN) from error


def _unlisted(folder: Path, listed: set[str]) -> list[str]:
    found = names.walked(folder)
    return sorted({*found.files, *found.links} - listed - {MANIFEST})
