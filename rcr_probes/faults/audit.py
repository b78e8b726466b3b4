"""Faults of the audit file: another file stands in its place, or its last line is torn.

What stood at the path is renamed away and comes back when the fault is lifted. The error is the
kernel's own, and is met by the runtime's own append; nothing in Python is patched.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat

from rcr_probes import tracer
from rcr_probes.errors import FaultError
from rcr_probes.faults.kind import Proven, Target

LARGEST = 1 << 20  # bytes that a file may have once a process is limited; records stay below it

_SAVED, _STRUCK = ".saved", ".struck"
_WRITES = ("write", "pwrite64")  # of one buffer, whose count can be shortened
_JSON = re.compile(rb"\s*\{\s*")
_COLON = re.compile(rb"\s*:\s*")
_PLAIN = re.compile(rb"\s*[^\s,;|]+")
_decoder = json.JSONDecoder(strict=False)


class _InItsPlace:
    """Something else stands at the path of the audit file."""

    def strike(self, at: Target, proven: Proven) -> None:
        path = _path(at)
        if os.path.lexists(path):
            os.rename(path, path + _SAVED)
        self._place(path)

    def standing(self, at: Target) -> bool | None:
        return at.path is not None and self._stands(at.path)

    def lift(self, at: Target) -> None:
        path = at.path
        if path is None or not self._stands(path):
            return
        self._remove(path)
        if os.path.lexists(path + _SAVED):
            os.rename(path + _SAVED, path)

    def _place(self, path: str) -> None:
        raise NotImplementedError

    def _stands(self, path: str) -> bool:
        raise NotImplementedError

    def _remove(self, path: str) -> None:
        os.unlink(path)


class Directory(_InItsPlace):
    """A directory: an append cannot open it."""

    def _place(self, path: str) -> None:
        os.mkdir(path)

    def _stands(self, path: str) -> bool:
        return os.path.isdir(path)

    def _remove(self, path: str) -> None:
        try:
            os.rmdir(path)
        except OSError:  # the runtime has put something into it, which is not ours to lose
            os.rename(path, path + _STRUCK)


class Link(_InItsPlace):
    """A symbolic link that leads elsewhere, or nowhere."""

    def __init__(self, target: str | None) -> None:
        """Lead to a target; None leads to the link itself."""
        self._target = target

    def _place(self, path: str) -> None:
        os.symlink(self._leads(path), path)

    def _stands(self, path: str) -> bool:
        return os.path.islink(path) and os.readlink(path) == self._leads(path)

    def _leads(self, path: str) -> str:
        return self._target or os.path.basename(path)


class TooLarge(_InItsPlace):
    """A file that is as large as the process may make one; its limit goes with the process."""

    def _place(self, path: str) -> None:
        import resource  # only where it strikes: each phase would pay for it

        if signal.getsignal(signal.SIGXFSZ) is not signal.SIG_IGN:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # else it kills instead of EFBIG
        with open(path, "xb") as file:
            file.truncate(LARGEST)  # without a block on the disk
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST, hard))

    def _stands(self, path: str) -> bool:
        try:
            there = os.lstat(path)
        except OSError:
            return False
        filled = there.st_blocks * 512  # of a file with a hole, less than its size
        return stat.S_ISREG(there.st_mode) and filled < there.st_size == LARGEST


class Torn:
    """The kernel is given the line's first field alone, and then the process dies.

    What is on disk afterwards is what a crash leaves; it is not lifted, but is recovery's to find.
    """

    def strike(self, at: Target, proven: Proven) -> None:
        path = _path(at)

        def entering(call: tracer.Call) -> tracer.Leaving | None:
            if call.name not in _WRITES or not _is_open_at(call.file(call.given[0]), path):
                return None
            cut = first_field(call.memory(call.given[1], call.given[2]))
            if not cut:
                return None
            call.shorten(cut)

            def leaving(result: int) -> bool:
                if result == cut:
                    call.kill()
                return True

            return leaving

        tracer.follow(entering)

    def standing(self, at: Target) -> bool | None:
        """Whether the file ends in a first field without its line."""
        if at.path is None or not os.path.isfile(at.path):
            return False
        with open(at.path, "rb") as file:
            tail = file.read().rpartition(b"\n")[2]
        return bool(tail) and first_field(tail) == len(tail)

    def lift(self, at: Target) -> None:
        """It stays."""


def first_field(line: bytes) -> int:
    """How many bytes of a line there are up to the end of its first field; 0 where it has none.

    A line is a JSON object, or else words with blanks, commas, semicolons or bars between them.
    """
    begun = _JSON.match(line)
    if begun is None:
        plain = _PLAIN.match(line)
        return plain.end() if plain else 0
    text = line.decode("latin-1")  # a character for each byte, so that places agree
    try:
        _, end = _decoder.raw_decode(text, begun.end())
        colon = _COLON.match(line, end)
        return _decoder.raw_decode(text, colon.end())[1] if colon else 0
    except ValueError:
        return 0


def _path(at: Target) -> str:
    if at.path is None:
        raise FaultError(
            f"The point {at.point!r} was reached without the audit file's path.",
            "Call reach(point, path=audit_file) just before the append.",
        )
    return at.path


def _is_open_at(file: str, path: str) -> bool:
    """Whether what is open is the file at a path."""
    try:
        return os.path.samestat(os.stat(file), os.stat(path))
    except OSError:
        return False
