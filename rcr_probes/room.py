"""What a cell may take of the disk, and what must be left beside it while cells are measured."""

from __future__ import annotations

import contextlib
import os
import time

from rcr_probes.errors import RcrError

# What a cell's folder may hold. Of the real runtimes Restate takes most: 160 MiB while it runs.
LARGEST = 512 << 20  # bytes on the disk
MOST = 20_000  # files and folders
LEFT = 64 << 20  # bytes that must be left: what meets a full disk is no runtime's fault
LOOK = 0.05  # seconds between two looks while a phase runs


class FolderTooLarge(Exception):
    """A cell's folder holds more than it may."""

    code = "FOLDER_TOO_LARGE"

    def __init__(self) -> None:
        super().__init__(f"its folder grew beyond {LARGEST >> 20} MiB or {MOST} files")


class NoRoom(RcrError):
    """There is too little space where cells stand."""

    code = "NO_ROOM"


class Watch:
    """Looks from time to time whether a cell's folder is small, and the disk has room."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._next = time.monotonic() + LOOK

    def look(self) -> None:
        """Look, where it is time.

        Raises:
            FolderTooLarge, NoRoom: a cell wrote more than it may.
        """
        if time.monotonic() >= self._next:
            require_bounded(self._folder)
            require(self._folder)
            self._next = time.monotonic() + LOOK


def require_bounded(folder: str) -> None:
    """Look whether a cell's folder is no larger than it may be.

    What was deleted and is still open is not seen here; ``require`` sees what it leaves.

    Raises:
        FolderTooLarge: it is larger.
    """
    held, found, waiting = 0, 0, [folder]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                found += 1
                with contextlib.suppress(OSError):  # any of them may go while we look
                    held += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                if held > LARGEST or found > MOST:
                    raise FolderTooLarge


def require(place: str | os.PathLike[str]) -> None:
    """Refuse to measure where the disk may be full, or may have been.

    Raises:
        NoRoom: too little is left.
    """
    if free(place) < LEFT:
        raise lacking(place)


def lacking(place: str | os.PathLike[str]) -> NoRoom:
    """What to say where the disk is full, or was."""
    return NoRoom(
        f"{place}: {free(place) >> 20} MiB are left, too little to measure cells in.",
        f"Leave {LEFT >> 20} MiB free there for each cell, and {LARGEST >> 20} MiB where a cell "
        "writes as much as it may; then type the same command again: what is measured is kept.",
    )


def free(place: str | os.PathLike[str]) -> int:
    """Bytes that we may still write there."""
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize
