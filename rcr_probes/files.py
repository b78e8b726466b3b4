"""Read a small file with as few system calls as there can be: a cell reads some hundred.

Where it lies others may have put something else: nobody waits for a pipe here, and what has no end,
or is larger than anything that a cell writes, is not read.
"""

from __future__ import annotations

import errno
import os
import stat

LARGEST = 1 << 26  # bytes; a capture of all that a cell's files tell has a quarter at most
_PART = 1 << 16  # bytes asked for at a time


def read(path: str) -> bytes:
    """The file, whole.

    Raises:
        OSError: it cannot be read, is no regular file (EINVAL, of a folder EISDIR), or is larger
            than any that is read (EFBIG).
    """
    fd = opened(path)
    try:
        return rest(fd)
    finally:
        os.close(fd)


def opened(path: str) -> int:
    """A descriptor from which a regular file can be read; whoever asks closes it.

    Raises:
        OSError: it cannot be opened, or is no regular file (EINVAL, of a folder EISDIR).
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # of a pipe it does not wait
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind):
        return fd
    os.close(fd)
    code = errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL
    raise OSError(code, os.strerror(code), path)


def rest(fd: int) -> bytes:
    """What can still be read of an open file.

    Raises:
        OSError: it cannot be read, or is larger than any that is read (EFBIG).
    """
    parts, size = [], 0
    while data := os.read(fd, _PART):
        parts.append(data)
        size += len(data)
        if size > LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return parts[0] if len(parts) == 1 else b"".join(parts)
