"""Where cells stand while they run, in memory where there is some; killed runs are cleared away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rcr_probes import folder, room

MEMORY = "/dev/shm"  # a cell is about twice as fast there as on a disk (docs/design.md §8)
PREFIX = "rcr-scratch-"
_HELD = "held"  # locked for as long as its run lives; what is in a folder without is not ours


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the cells of one run. It is removed at the end, whatever is in it.

    It stands in memory where a cell as large as it may be has room there.

    Raises:
        OSError: there is no place for it.
        NoRoom: there is too little space.
    """
    for place in (MEMORY, tempfile.gettempdir()):
        if os.access(place, os.W_OK):
            clear(Path(place))
    roomy = os.access(MEMORY, os.W_OK) and room.free(MEMORY) >= room.LARGEST
    place = MEMORY if roomy else tempfile.gettempdir()
    room.require(place)
    made, held = _held(place)
    with held:
        try:
            yield made
        finally:
            _remove(made)


def _held(place: str) -> tuple[Path, IO[bytes]]:
    """A new folder, and its lock, which is held. Until it is, anybody may clear the folder away."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
        with contextlib.suppress(FileNotFoundError):  # it was cleared away: another one then
            held = open(made / _HELD, "xb")  # noqa: SIM115 (closed by who asked)
            fcntl.flock(held, fcntl.LOCK_EX)
            if (made / _HELD).exists():
                return made, held
            held.close()


def clear(place: Path) -> None:
    """Remove what runs left there that were killed: in memory it would cost memory for ever.

    Its lock says that a run is gone. A name says nothing, and a pid may be somebody else's; but
    where nothing is in a folder, nothing is lost with it: so a run leaves it that is killed before
    it has made its lock. What another user left is theirs: what one opens there by its name, they
    can change meanwhile.
    """
    for left in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            found = left.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            if not (left / _HELD).exists():
                left.rmdir()  # unless there is something in it
                continue
            with open(left / _HELD, "rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(left)


def _remove(place: Path) -> None:
    """Remove it, and its lock last: what could not be removed can be cleared by a later run."""
    for cell in place.iterdir():
        if cell.is_dir():
            folder.remove(str(cell))
    if not any(left.is_dir() for left in place.iterdir()):
        folder.remove(str(place))
