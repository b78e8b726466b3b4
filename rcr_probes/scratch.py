"""Where cells stand while they run, in memory where there is some; killed runs are cleared away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rcr_probes import folder, room

MEMORY = "/dev/shm"  # a cell is about twice as fast there as on a disk (docs/design.md §8)
PREFIX = "rcr-scratch-"
_HELD = "held"  # locked for as long as its run lives; a folder without it is not ours to judge


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
    made = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=MEMORY if roomy else None)
    try:
        room.require(os.path.dirname(made))
        with open(Path(made, "new"), "wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # before it has its name: nobody ever finds it free
            os.rename(held.name, Path(made, _HELD))
            yield Path(made)
    finally:
        _remove(Path(made))


def clear(place: Path) -> None:
    """Remove what runs left there that were killed: in memory it would cost memory for ever.

    Its lock says that a run is gone. A name says nothing, and a pid may be somebody else's. What
    another user left is theirs: what one opens there by its name, they can change meanwhile.
    """
    for left in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            found = left.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
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
