"""Read a small file with as few system calls as there can be: a cell reads some hundred."""

from __future__ import annotations

import os

_PART = 1 << 16  # bytes asked for at a time


def read(path: str) -> bytes:
    """The file, whole.

    Raises:
        OSError: it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return rest(fd)
    finally:
        os.close(fd)


def rest(fd: int) -> bytes:
    """What can still be read of an open file.

    Raises:
        OSError: it cannot be read.
    """
    data = os.read(fd, _PART)
    if not data:
        return data
    parts = [data]
    while data := os.read(fd, _PART):
        parts.append(data)
    return b"".join(parts)
