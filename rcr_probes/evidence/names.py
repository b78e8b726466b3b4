"""Names of files that mean the same file everywhere, and lie where they say.

Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

DEEPEST = 16  # folders above a file; a package has two
MOST_FILES = 10_000
MOST_BYTES = 1 << 27  # of one file
MOST_IN_ALL = 1 << 29
_LONGEST = 240  # characters of a path
_ELSEWHERE = re.compile(r'[\\:<>"|?*]')  # what is no plain letter of a name on some systems


def wrong(path: str) -> str | None:
    """Why this is no path of a file inside a package, written with ``/``; None where it is one."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or _ELSEWHERE.search(path):
        return "leaves the package, or on some systems could"
    if not path.isprintable():
        return "leaves the package, or on some systems could: it holds what cannot be printed"
    if any(part != part.rstrip(". ") for part in parts):
        return "ends in a dot or a blank, which some systems drop"
    if len(path) > _LONGEST or len(parts) > DEEPEST:
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
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if (first := folders.setdefault(folded(folder), folder)) != folder:
                return first, folder
    for folder in folders:
        if folder in files:
            return files[folder], folders[folder]
    return None


def folded(path: str) -> str:
    """The path as a system sees it that knows neither case nor how a letter is composed."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def walked(folder: Path) -> tuple[list[str], list[str]]:
    """What lies in a folder: its files, and its links, each by its path with ``/``, in order.

    No link is followed. A pipe or a device is named among the files, and opened by nobody; so is a
    folder that lies too deep, in which nobody looks. More files than a package has are not listed.

    Raises:
        OSError: a folder cannot be read.
    """
    files: list[str] = []
    links: list[str] = []
    ahead = [""]
    while ahead and len(files) <= MOST_FILES:
        inside = ahead.pop()
        with os.scandir(folder / inside) as entries:
            for entry in entries:
                path = f"{inside}/{entry.name}" if inside else entry.name
                if entry.is_symlink():
                    links.append(path)
                elif entry.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST:
                    ahead.append(path)
                else:
                    files.append(path)
                if len(files) > MOST_FILES:
                    break
    return sorted(files), sorted(links)
