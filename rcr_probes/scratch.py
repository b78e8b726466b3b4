"""Where cells stand while they run, in memory where there is some; killed runs are cleared away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

MEMORY = "/dev/shm"  # a cell is about twice as fast there as on a disk (docs/design.md §8)
PREFIX = "rcr-scratch-"
_HELD = "held"  # locked for as long as its run lives; a folder without it is not ours to judge


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for the cells of one run. It is removed at the end, whatever is in it.

    Raises:
        OSError: there is no place for it.
    """
    memory = MEMORY if os.access(MEMORY, os.W_OK) else None
    clear(Path(memory or tempfile.gettempdir()))
    prefix = f"{PREFIX}{os.getpid()}-"
    with (
        tempfile.TemporaryDirectory(
            prefix=prefix, dir=memory, ignore_cleanup_errors=True
        ) as folder,
        open(Path(folder, "new"), "wb") as held,
    ):
        fcntl.flock(held, fcntl.LOCK_EX)  # before it has its name: nobody ever finds it free
        os.rename(held.name, Path(folder, _HELD))
        yield Path(folder)


def clear(place: Path) -> None:
    """Remove what runs left there that were killed: in memory it would cost memory for ever.

    Its lock says that a run is gone. A name says nothing, and a pid may be somebody else's.
    """
    for left in place.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, RecursionError), open(left / _HELD, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
