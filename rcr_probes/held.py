"""Hold one process of a cell at a place until its parent lets it go: a planned interleaving."""

from __future__ import annotations

import os
import select
import time

from rcr_probes import folder, room

_LOOK = 0.002  # seconds between two looks
_ALONE = 0.1  # seconds after which one that is held looks whether its parent is still there


def prepare(place: str) -> None:
    """Make it possible to hold one process of the cell in this folder."""
    os.mkfifo(os.path.join(place, folder.RELEASE), 0o600)


def wait(place: str, keeper: int) -> None:
    """Say that this process is held, and return when it is released.

    Args:
        place: the cell's folder.
        keeper: the process that can release it, which is its parent, or will be once its own is
            gone.

    Raises:
        SystemExit: the keeper is gone.
    """
    family = (os.getppid(), keeper)
    release = os.open(os.path.join(place, folder.RELEASE), os.O_RDONLY | os.O_NONBLOCK)
    path = os.path.join(place, folder.HELD)
    with open(f"{path}.tmp", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    os.rename(f"{path}.tmp", path)
    poll = select.poll()
    poll.register(release, select.POLLIN)
    while not poll.poll(_ALONE * 1000):
        if os.getppid() not in family:
            raise SystemExit(1)
    os.close(release)


def pid(place: str) -> int | None:
    """The process that is held in the cell in this folder; None where none is."""
    try:
        with open(os.path.join(place, folder.HELD), encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return None


def awaited(place: str, ends: int, deadline: float) -> int | None:
    """Wait until a process is held, and return its pid; None where ``ends`` came to its end first.

    Args:
        place: the cell's folder.
        ends: the process that is to be held, or to leave one behind that is.
        deadline: seconds after which nobody is waited for.

    Raises:
        FolderTooLarge, NoRoom: meanwhile it wrote more than it may.
    """
    until, watch = time.monotonic() + deadline, room.Watch(place)
    fd = os.pidfd_open(ends)
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    try:
        while (found := pid(place)) is None and time.monotonic() < until:
            if poll.poll(_LOOK * 1000):
                return pid(place)
            watch.look()
        return found
    finally:
        os.close(fd)


def release(place: str) -> None:
    """Let the process go that is held."""
    os.unlink(os.path.join(place, folder.HELD))
    fd = os.open(os.path.join(place, folder.RELEASE), os.O_WRONLY | os.O_NONBLOCK)
    os.write(fd, b".")
    os.close(fd)
