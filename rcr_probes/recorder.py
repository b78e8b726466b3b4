"""Have strace record a phase's file operations, with their data, and read its log.

From names to arguments and from a log to operations: nothing is run here. A call that is not
recorded, such as a write through mapped memory, shows when what was recorded is held against the
folder: so whoever uses a recording compares first.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rcr_probes import folder, strace
from rcr_probes.contents import Change
from rcr_probes.power import HERE
from rcr_probes.strace import Logged

_LONGEST = 1 << 24  # bytes of a write that are recorded; a longer one is not whole in the log
_SEEKING = "lseek"
_TRUNCATES = "ftruncate"
_AT_PLACE = "pwrite64"
_WRITING = ("write", "writev", _AT_PLACE)
_FLUSHING = ("fsync", "fdatasync")
_OPENING = ("open", "openat", "creat")
_RENAMING = ("rename", "renameat", "renameat2")
_LINKING = ("link", "linkat")
_REMOVING = ("unlink", "unlinkat", "rmdir")
_MAKING = ("mkdir", "mkdirat")
_ENTERING = ("chdir", "fchdir")
_RECORDED = (
    *_WRITING, *_FLUSHING, *_OPENING, *_RENAMING, *_LINKING, *_REMOVING, *_MAKING,
    *_ENTERING, "close", _SEEKING, _TRUNCATES,
)  # fmt: skip
_BY_DESCRIPTOR = (*_WRITING, *_FLUSHING, "close", _SEEKING, _TRUNCATES, "fchdir")

_CURRENT = re.compile(r"AT_FDCWD<([^<>]*)>")
_DESCRIPTOR = re.compile(r"(\d+)<")
_DATA = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_CREATES = re.compile(r"\bO_CREAT\b")
_EMPTIES = re.compile(r"\bO_TRUNC\b")
_APPENDS = re.compile(r"\bO_APPEND\b")
_FLUSHES = re.compile(r"\bO_D?SYNC\b")


@dataclass(frozen=True, slots=True)
class Made:
    """One call on a file of the cell's folder.

    Attributes:
        call: its name.
        file: the file's path below the cell's folder; of a rename, the one that it had.
        nth: the how-manieth of this name on this file, from 1, in the thread that made it; calls
            that only read, and calls that failed, count.
        changes: what it did, with paths below the cell's folder; empty where it changed nothing.
        data: what it wrote.
    """

    call: str
    file: str
    nth: int
    changes: tuple[Change, ...]
    data: bytes = b""


def words(log: str) -> list[str]:
    """What is put before a command so that its file operations are written to the log.

    As for a strike, the command stays the child of whoever starts it.
    """
    calls = ",".join(f"?{call}" for call in _RECORDED)
    longest = ["-xx", "-s", str(_LONGEST)]
    return [*strace.base(log), "-D", *longest, "-e", f"trace={calls}", "--"]


def made(log: str, place: str) -> list[Made]:
    """The calls on files of a cell's folder, in the order of the log.

    Args:
        log: its text.
        place: the cell's folder.
    """
    reader = _Reader(place)
    return [made for one in strace.logged(log) for made in reader.read(one)]


def changes(calls: Iterable[Made], *tops: str) -> list[Change]:
    """What the calls did in these folders of a cell, with paths below the cell's folder."""
    return [c for one in calls for c in one.changes if any(within(c.path, top) for top in tops)]


def own(path: str, top: str) -> str:
    """A path within a folder, as one below it."""
    return HERE if path == top else path.removeprefix(f"{top}/")


def point(one: Made) -> str | None:
    """The point that the phase came to with this call: it wrote that event down."""
    if one.file != folder.EVENTS or not one.data:
        return None
    event = json.loads(one.data)
    return str(event["value"]["point"]) if event["lane"] == "point" else None


def within(path: str, top: str) -> bool:
    """Whether a path is the folder, or leads below it."""
    return path == top or path.startswith(f"{top}/")


@dataclass(slots=True)
class _Open:
    """An open file: where the next write goes."""

    at: int = 0
    appends: bool = False
    flushes: bool = False


class _Reader:
    """Follows the open files of a log, to know where each write goes."""

    def __init__(self, place: str) -> None:
        self._places = tuple(dict.fromkeys((os.path.abspath(place), os.path.realpath(place))))
        self._open: dict[tuple[str, str], _Open] = {}
        self._in: dict[int, str] = {}  # thread → its current directory
        self._last = ""  # where whoever was heard of last is: a child begins where its parent is
        self._seen: Counter[tuple[int, str, str]] = Counter()

    def read(self, one: Logged) -> Iterator[Made]:
        """The call as one on a file of the folder; nothing where it is on none, or never ended."""
        pid, call, arguments, result = one.pid, one.call, one.arguments, one.result
        if result is None:
            return
        here = _CURRENT.search(arguments)
        self._last = strace.plain(here[1]) if here else self._in.get(pid, self._last)
        self._in[pid] = self._last
        named = self._named(call, arguments)
        if call in _ENTERING and named and result == "0":
            self._in[pid] = self._last = named[0]
        paths = [path for one in named if (path := self._relative(one)) is not None]
        if not paths or call in _ENTERING:
            return
        self._seen[pid, call, paths[0]] += 1
        nth, number = self._seen[pid, call, paths[0]], result.partition("<")[0].split(" ")[0]
        if number.startswith("-") or number == "?":
            yield Made(call, paths[0], nth, ())
            return
        done = tuple(self._changes(call, arguments, paths, number))
        data = b"".join(one.data for one in done)
        yield Made(call, paths[0], nth, done, data)

    def _named(self, call: str, arguments: str) -> list[str]:
        """The files that a call is on; none where its file has no name any more."""
        by = "write" if call in _BY_DESCRIPTOR else call
        if by == "write" and ">(deleted)" in arguments:
            return []
        found = (path for path, _ in strace.files(by, arguments))
        return [os.path.normpath(os.path.join(self._last, path)) for path in found]

    def _relative(self, path: str) -> str | None:
        for place in self._places:
            if path.startswith(f"{place}/"):
                return path[len(place) + 1 :]
        return None

    def _changes(
        self, call: str, arguments: str, paths: list[str], number: str
    ) -> Iterator[Change]:
        path = paths[0]
        if call in _OPENING:
            yield from self._opened(call, arguments, path, number)
        elif call in _WRITING:
            yield from self._wrote(call, arguments, path, int(number))
        elif call == _TRUNCATES:
            yield Change("cut", path, at=int(arguments.rpartition(", ")[2]))
        elif call == _SEEKING:
            self._descriptor(arguments, path).at = int(number)
        elif call == "close":
            self._open.pop((_number(arguments), path), None)
        elif call in _FLUSHING:
            yield Change("flush", path)
        elif call in _MAKING:
            yield Change("make", path)
        elif call in _REMOVING:
            yield Change("remove", path)
        elif len(paths) == 2:
            if call in _RENAMING:
                self._renamed(path, paths[1])
            yield Change("rename" if call in _RENAMING else "link", path, paths[1])

    def _opened(self, call: str, arguments: str, path: str, number: str) -> Iterator[Change]:
        one = _Open(0, bool(_APPENDS.search(arguments)), bool(_FLUSHES.search(arguments)))
        self._open[number, path] = one
        if call == "creat" or _CREATES.search(arguments):
            yield Change("create", path)
        if call == "creat" or _EMPTIES.search(arguments):
            yield Change("cut", path)

    def _wrote(self, call: str, arguments: str, path: str, length: int) -> Iterator[Change]:
        one = self._descriptor(arguments, path)
        data = b"".join(bytes.fromhex(t.replace("\\x", "")) for t in _DATA.findall(arguments))
        data = data[:length]
        at = int(arguments.rpartition(", ")[2]) if call == _AT_PLACE else one.at
        yield Change("write", path, at=None if one.appends else at, data=data)
        if call != _AT_PLACE:
            one.at = at + length
        if one.flushes:
            yield Change("flush", path)

    def _descriptor(self, arguments: str, path: str) -> _Open:
        return self._open.setdefault((_number(arguments), path), _Open())

    def _renamed(self, old: str, new: str) -> None:
        for number, path in list(self._open):
            if path == old:
                self._open[number, new] = self._open.pop((number, path))


def _number(arguments: str) -> str:
    found = _DESCRIPTOR.match(arguments)
    return found[1] if found else ""
