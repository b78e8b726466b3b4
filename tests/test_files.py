"""What lies in a file's place is read where it is a file of bounded size, and nothing waits."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes import audited, files
from rcr_probes.vocabulary import UNREADABLE

PLACED: dict[str, tuple[Callable[[Path], object], int]] = {
    "a pipe that nobody writes to": (os.mkfifo, errno.EINVAL),
    "a device without an end": (lambda path: os.symlink("/dev/zero", path), errno.EINVAL),
    "a folder": (os.mkdir, errno.EISDIR),
    "a link to itself": (lambda path: os.symlink(path, path), errno.ELOOP),
}


@pytest.mark.parametrize("what", PLACED)
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, what: str) -> None:
    """It neither waits for a writer nor reads without end; as an audit it tells nothing."""
    place, code = PLACED[what]
    place(tmp_path / "it")
    with pytest.raises(OSError, match=os.strerror(code)):
        files.read(str(tmp_path / "it"))
    assert audited.lines(str(tmp_path / "it")) == []


def test_what_is_larger_than_any_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A hole takes no room on the disk, and would in memory."""
    path = tmp_path / "it"
    with open(path, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
        files.read(str(path))
    assert audited.lines(str(path)) == [{"event": UNREADABLE}]
