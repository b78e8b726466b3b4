"""The form of an evidence folder: its files, its manifest, and the digest over a capture's facts.

Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from rcr_probes.model import Judgement, Measurement, canonical_json

SCHEMA = 1
PLAN = "plan.json"
CAPTURES = "captures.jsonl"
ENVIRONMENT = "environment.json"
MANIFEST = "manifest.json"
LISTED = (CAPTURES, ENVIRONMENT, PLAN)  # by the manifest: all but itself
FILES = (*LISTED, MANIFEST)
# What the environment says: texts, and maps of texts; nothing else is sealed with the captures.
SAYS = ("python", "implementation", "system", "machine")
LISTS = ("packages",)
LARGEST = 1 << 30  # bytes of a file
LONGEST = 1 << 24  # bytes of a line of captures; one has some thousands


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the folder holds: each file's SHA-256 in hex, and how many captures.

    Attributes:
        schema: version of the folder's format.
        plan: the plan's name.
        captures: how many captures the plan promised, and the folder holds.
        files: file name → SHA-256 of its bytes.
    """

    schema: int
    plan: str
    captures: int
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Listed:
    """One file that the manifest of a package lists, by its path from the package."""

    path: str
    sha256: str


def facts_sha256(measured: Measurement, judged: Judgement) -> str:
    """SHA-256, in hex, over the canonical JSON of what was measured and what was derived.

    Circumstances (processes, times, the start method) are no part of it, so that the same facts
    have the same digest on every machine and in every run.
    """
    return hashlib.sha256(
        canonical_json({"measurement": measured, "judgement": judged})
    ).hexdigest()


def holds_evidence(folder: Path) -> bool:
    """Whether a folder holds evidence, or a part of it: what makes it a folder of evidence."""
    return any(os.path.lexists(folder / name) for name in FILES)


def folders(beside: Path) -> list[Path]:
    """The folders of evidence in a folder, by name; also links to some, which nobody follows."""
    return sorted(path for path in beside.iterdir() if path.is_dir() and holds_evidence(path))


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def regular(path: Path) -> bool:
    """A file of its own, of no more bytes than are read of one: nothing else is ever opened."""
    size = _size(path)
    return size is not None and size <= LARGEST


def too_large(path: Path, most: int = LARGEST) -> bool:
    """A file of its own, of more bytes than this."""
    size = _size(path)
    return size is not None and size > most


def _size(path: Path) -> int | None:
    """Bytes of a file; None of a link, a folder, a pipe or a device."""
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
