"""What lies where in a published package, and the two lists that say so.

Standard library alone: the package's own checker embeds this module as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from rcr_probes.evidence import claims, names, strict
from rcr_probes.evidence.form import CAPTURES, FILES, Listed

MANIFEST = "manifest.json"  # every file but the three that are about it, each with its SHA-256
SUMS = "SHA256SUMS"  # every file but itself, for sha256sum -c
SIGNATURE = "manifest.dsse.json"
PROVENANCE = "provenance.json"
CRATE = "ro-crate-metadata.json"
CHECKER = "check.py"
EVIDENCE = "evidence"
CLAIMS = claims.FILE  # beside the folders of evidence
TABLES = "tables"
FIGURES = "figures"
GUIDE = "guide"
PAGES: Mapping[str, str] = {page: lang for lang, page in claims.PAGES.items()}  # of the guide
CHAIN, MATRIX = DRAWN = ("causal_chain", "matrix")  # the figures, by name
NEEDED = (MANIFEST, SUMS, PROVENANCE, CRATE, CHECKER)
UNLISTED = (MANIFEST, SUMS, SIGNATURE)  # by the manifest
SCHEMA = 1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every file of the package that is not about the manifest."""

    schema_version: int
    files: tuple[Listed, ...]


def is_package(folder: Path) -> bool:
    """Whether a folder looks like a published package, whole or not."""
    return (folder / EVIDENCE).is_dir() and any((folder / name).exists() for name in NEEDED)


def enclosing(place: Path) -> Path | None:
    """The package that a place lies in, or is; None where it lies in none."""
    whole = place.resolve()
    return next((one for one in (whole, *whole.parents) if is_package(one)), None)


def named(name: str) -> bool:
    """Whether a folder of evidence may have this name in a package."""
    return bool(_NAME.fullmatch(name)) and names.wrong(name) is None


def drawings(name: str, drawn: Collection[str]) -> tuple[str, ...]:
    """The paths of these figures of a folder of evidence, in each language."""
    return tuple(f"{FIGURES}/{name}.{one}.{lang}.svg" for one in drawn for lang in PAGES.values())


def belongs(path: str, evidence: Collection[str]) -> bool:
    """Whether a package of this evidence has a file at this path."""
    if path in (*NEEDED, SIGNATURE, f"{EVIDENCE}/{CLAIMS}"):
        return True
    match path.split("/"):
        case ["evidence", name, file]:
            return name in evidence and file in FILES
        case ["tables", file]:
            return file.removesuffix(".csv") in evidence and file.endswith(".csv")
        case ["figures", _]:
            return any(path in drawings(name, DRAWN) for name in evidence)
        case ["guide", file]:
            return file in PAGES
    return False


def most(path: str) -> int:
    """How many bytes a package's file may have.

    Captures are read line by line, and in figures nobody looks; all else is read as a whole.
    """
    whole = not (path.startswith(f"{FIGURES}/") or path.endswith(f"/{CAPTURES}"))
    return names.MOST_READ if whole else names.MOST_BYTES


def manifest(digests: Mapping[str, str]) -> bytes:
    """The manifest of files, path → SHA-256; those that are about it are left out."""
    listed = tuple(Listed(path, digests[path]) for path in sorted(digests) if path not in UNLISTED)
    return strict.encoded(Manifest(SCHEMA, listed), indented=True)


def sums(digests: Mapping[str, str]) -> bytes:
    """The same for ``sha256sum -c``, of every file but this one."""
    lines = [f"{digests[path]}  {path}\n" for path in sorted(digests) if path != SUMS]
    return "".join(lines).encode()
