"""The fence: every attempt holds a kernel lock of its own, so that its end is proven, not guessed.

An attempt is a process that may act on the operation, with all that inherits from it. Its file in
the folder of attempts is named by its number, from 1: that number grows with every attempt, and is
what a receiver takes for a fencing token. The kernel frees the lock when the last process that
inherited it is gone, however it ended. A pid proves nothing: it may be recycled, and a zombie
answers signals.
"""

from __future__ import annotations

import fcntl
import os

from msgspec import Struct


class Attempt(Struct, frozen=True):
    """This process's own attempt.

    Attributes:
        number: 1 for the first on its operation.
        fd: holds the lock for as long as it is open, here or in a process that inherited it.
    """

    number: int
    fd: int


def enter(folder: str | os.PathLike[str]) -> Attempt:
    """Begin an attempt: from now on nobody can prove that it is over.

    Raises:
        OSError: the folder is not there, or somebody has put this attempt aside already.
    """
    number = len(_numbers(folder))
    while True:
        number += 1
        path = os.path.join(folder, str(number))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:  # another one began just now
            continue
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    os.set_inheritable(fd, True)  # what this process starts is part of its attempt
    return Attempt(number, fd)


def alone(folder: str | os.PathLike[str], number: int) -> int | None:
    """Prove that of all attempts only this one can act, and keep it so while this process lives.

    Args:
        folder: of the attempts.
        number: of the attempt that asks.

    Returns:
        The highest number among the others, 0 where there is none; None where one may still act.
    """
    others, held = [n for n in _numbers(folder) if n != number], []
    for other in others:
        fd = os.open(os.path.join(folder, str(other)), os.O_RDWR | os.O_CLOEXEC)
        held.append(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            for one in held:
                os.close(one)
            return None
    return max(others, default=0)


def over(folder: str | os.PathLike[str]) -> int:
    """The number up to which every attempt is over; asked by somebody who is none of them."""
    last = 0
    for number in sorted(_numbers(folder)):
        if number != last + 1 or not _is_over(os.path.join(folder, str(number))):
            break
        last = number
    return last


def all_over(folder: str | os.PathLike[str]) -> bool:
    """Whether no attempt can act any more."""
    return over(folder) == len(_numbers(folder))


def _is_over(path: str) -> bool:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _numbers(folder: str | os.PathLike[str]) -> list[int]:
    return [int(name) for name in os.listdir(folder) if name.isdecimal()]
