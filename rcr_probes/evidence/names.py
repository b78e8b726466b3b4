"""Names of files that mean the same file everywhere, and lie where they say.

Everywhere: on Linux, macOS and Windows, whose reserved names and forbidden letters count as well.
Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

DEEPEST = 16  # names in a path, its file's own among them; a package has three
MOST_FILES = 10_000  # folders among them, where a folder is walked or a .zip is unpacked
MOST_BYTES = 1 << 27  # of one file
MOST_READ = 1 << 24  # of one that is read as a whole: what is made of it takes many times as much
MOST_IN_ALL = 1 << 29
_LONGEST = 240  # characters of a path
_LONGEST_NAME = 255  # bytes of one name in it: what most file systems hold
_ELSEWHERE = re.compile(r'[\\:<>"|?*]')  # what is no plain letter of a name on some systems
# What Windows takes for a device, whatever follows the first dot. Source: Microsoft, Naming Files.
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE
)


def wrong(path: str) -> str | None:
    """Why this is no path of a file inside a package, written with ``/``; None where it is one."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or _ELSEWHERE.search(path):
        return "leaves the package, or on some systems could"
    if not path.isprintable():
        return "leaves the package, or on some systems could: it holds what cannot be printed"
    if any(part != part.rstrip(". ") for part in parts):
        return "ends in a dot or a blank, which some systems drop"
    if any(_DEVICE.fullmatch(part) for part in parts):
        return "is a device on some systems"
    long = any(len(part.encode()) > _LONGEST_NAME for part in parts)
    if long or len(path) > _LONGEST or len(parts) > DEEPEST:
        return "is too long, or lies too deep"
    return None


def clash(paths: Iterable[str]) -> tuple[str, str] | None:
    """Two paths that some system takes for one, or of which one lies in the other; None if none."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        if folded(path) in files:
            return files[folded(path)], path
        files[folded(path)] = path
        for folder in above(path):
            if (first := folders.setdefault(folded(folder), folder)) != folder:
                return first, folder
    for folder in folders:
        if folder in files:
            return files[folder], folders[folder]
    return None


def above(path: str) -> list[str]:
    """The folders that a path lies in, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]


def folded(path: str) -> str:
    """The path as a system sees it that knows neither case nor how a letter is composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


@dataclass(frozen=True, slots=True)
class Walked:
    """What lies in a folder, each by its path with ``/``, in order.

    Attributes:
        files: also pipes and devices, which nobody opens, and a folder that lies too deep, in which
            nobody looks.
        links: none was followed.
        empty: folders that hold nothing at all.
        whole: whether everything was seen; False where there is more than a package holds.
    """

    files: list[str]
    links: list[str]
    empty: list[str]
    whole: bool


def walked(folder: Path) -> Walked:
    """What lies in a folder. Where that is more than a package holds, the rest is not listed.

    Raises:
        OSError: a folder cannot be read.
    """
    files: list[str] = []
    links: list[str] = []
    empty: list[str] = []
    ahead = [""]
    seen = 0
    while ahead and seen <= MOST_FILES:
        inside = ahead.pop()
        before = seen
        with os.scandir(folder / inside) as entries:
            for entry in entries:
                seen += 1
                if seen > MOST_FILES:
                    break
                path = f"{inside}/{entry.name}" if inside else entry.name
                if entry.is_symlink():
                    links.append(path)
                elif entry.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST - 1:
                    ahead.append(path)
                else:
                    files.append(path)
        if inside and seen == before:
            empty.append(inside)
    return Walked(sorted(files), sorted(links), sorted(empty), seen <= MOST_FILES)
