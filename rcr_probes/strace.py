"""Ask strace to watch a command's file-changing calls, or to strike at one, and read its log.

Pure functions from names to arguments and from a log to calls: nothing is run here. Source: the
manual page of strace 6.1; a log was written under the options that ``watching``, ``striking``,
``traced.injecting`` or ``recorder.words`` give.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PROGRAM = "strace"
KILL = "signal=KILL"  # what is injected: the end of whoever makes the call
HERE = "."  # the watched folder itself

# Calls whose first argument is the open file that they change, and calls that name it by its path.
_OPEN = (
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate", "fsync",
    "fdatasync",
)  # fmt: skip
_NAMED = (
    "open", "openat", "creat", "truncate", "rename", "renameat", "renameat2", "link", "linkat",
    "unlink", "unlinkat",
)  # fmt: skip
# Calls at which a fault may strike as well; what ``watching`` lists would not gain by them.
_BESIDE_OPEN = ("close",)
_BESIDE_NAMED = ("mkdir", "mkdirat", "rmdir")
# And those that can be made on a folder, such as the watched one itself.
_OF_FOLDERS = (
    "open", "openat", "close", "fsync", "fdatasync", "rename", "renameat", "renameat2", "unlinkat",
    *_BESIDE_NAMED,
)  # fmt: skip
KNOWN = (*_OPEN, *_NAMED, *_BESIDE_OPEN, *_BESIDE_NAMED)
_MOST = 65535  # the largest number of a call that strace counts to
_OPENING = ("open", "openat")  # they change a file only with one of these
_TWO_PATHS = ("rename", "link")
_CREATES = re.compile(r"\bO_(?:CREAT|TRUNC)\b")
_WATCHED = frozenset((*_OPEN, *_NAMED))
_BY_DESCRIPTOR = frozenset((*_OPEN, *_BESIDE_OPEN))

_POINT = re.compile(r"(\w+)@([^\0]+)#([1-9]\d*)")
_RESULT = re.compile(r"(.*)\) += (.*)")
_RESUMED = "<... "
_UNFINISHED = " <unfinished ...>"
_FD = re.compile(r"\d+<((?:[^<>\\]|\\.)*)>")
_NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<((?:[^<>\\]|\\.)*)>, )?"((?:[^"\\]|\\.)*)"')
_KILLED = re.compile(r"^(\d+) +(?:\d+\.\d+ +)?\+\+\+ killed by SIGKILL", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CallPoint:
    """A place in a command's life: the ``nth`` time that a process of it makes a call on a file.

    Attributes:
        call: the system call's name.
        file: the file's path below the watched folder.
        nth: from 1, counted in the process that makes it, over all its calls of this name there.
    """

    call: str
    file: str
    nth: int

    def __str__(self) -> str:
        """As a cell's point: ``pwrite64@jobs.db#3``."""
        return f"{self.call}@{self.file}#{self.nth}"


class Logged:
    """One call as the log has it; written by hand, because each spawned phase compiles a dataclass.

    Attributes:
        pid: of the process, or the thread, that made it.
        at: when, in seconds since the epoch; 0 where strace was not asked for it.
        call: its name.
        arguments: as strace writes them.
        result: the same; ``?`` where its process ended in it, None where the log does not tell.
    """

    __slots__ = ("arguments", "at", "call", "pid", "result")

    def __init__(self, pid: int, at: float, call: str) -> None:
        """A call that has begun."""
        self.pid, self.at, self.call = pid, at, call
        self.arguments = ""
        self.result: str | None = None

    def end(self, said: str) -> None:
        """How it ended, from the rest of its line, which may break off."""
        before, _, result = said.rpartition(" = ")
        before = before.rstrip(" ")
        if before.endswith(")"):
            self.arguments += before[:-1]
            self.result = result
        elif parts := _RESULT.fullmatch(said):  # the result names a file with " = " in its name
            self.arguments += parts[1]
            self.result = parts[2]
        else:
            self.arguments += said

    def files(self) -> Iterator[tuple[str, str | None]]:
        """The absolute paths in its arguments, each with the spelling by which it was named."""
        return files(self.call, self.arguments)


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the log tells of, on a file below the watched folder.

    Attributes:
        pid: of the process, or the thread, that made it.
        point: where it stands.
        changes: whether it can change the file; opening one for reading cannot.
        spelled: the paths by which the call named it; empty where it held it open.
        ended: whether the log tells how it ended: a call at which its process was killed never did.
    """

    pid: int
    point: CallPoint
    changes: bool
    spelled: tuple[str, ...]
    ended: bool


def parse(point: str) -> CallPoint | None:
    """The place that a cell's point names; None where it is a point of another kind.

    Its file stays below the watched folder, and is written as the shortest path to it.
    """
    found = _POINT.fullmatch(point)
    if not found or found[1] not in KNOWN or len(found[3]) > 5 or int(found[3]) > _MOST:
        return None
    file = found[2]
    if file == HERE and found[1] not in _OF_FOLDERS:
        return None
    if file == ".." or file.startswith(("../", "/")) or posixpath.normpath(file) != file:
        return None
    return CallPoint(found[1], file, int(found[3]))


def watching(log: str, words: Sequence[str]) -> list[str]:
    """The command under strace: every call that may change a file is written to the log."""
    calls = ",".join(f"?{call}" for call in (*_OPEN, *_NAMED))
    return [*base(log), "-e", f"trace={calls}", "--", *words]


def striking(
    log: str,
    point: CallPoint,
    place: str,
    words: Sequence[str],
    spelled: Sequence[str],
) -> list[str]:
    """The command under strace, which kills it at one call.

    Args:
        log: where strace writes the calls of this name on this file.
        point: where to strike.
        place: the watched folder, by its absolute path.
        words: the command.
        spelled: other paths by which the command names the file, such as relative ones.
    """
    paths = dict.fromkeys([located(point, place), *spelled])
    named = [word for path in paths for word in ("-P", path)]
    inject = f"inject={point.call}:{KILL}:when={point.nth}"
    return [*base(log), *named, "-e", f"trace={point.call}", "-e", inject, "--", *words]


def located(point: CallPoint, place: str) -> str:
    """The absolute path of a point's file, which lies in this folder, or is the folder."""
    return os.path.normpath(os.path.join(place, point.file))


def calls(log: str, place: str, file: str | None = None) -> list[Call]:
    """The calls on a folder and on what lies below it, in the order of the log.

    Args:
        log: its text.
        place: the folder, by its absolute path.
        file: the one file in it that is meant; None: all.
    """
    seen: Counter[tuple[int, str, str]] = Counter()
    listed: list[Call] = []
    alone = None if file is None else os.path.join(place, file)
    for one in logged(log):
        if one.call not in _WATCHED:
            continue
        named = [(path, spelled) for path, spelled in one.files() if _below(path, place)]
        for path in dict.fromkeys(path for path, _ in named):
            seen[one.pid, one.call, path] += 1
        if any(alone in (None, path) for path, _ in named):
            # strace finds a rename or a link by its first path alone
            path = named[0 if one.call in _TWO_PATHS else -1][0]
            point = CallPoint(one.call, os.path.relpath(path, place), seen[one.pid, one.call, path])
            changes = one.call not in _OPENING or bool(_CREATES.search(one.arguments))
            own = tuple(s for p, s in named if p == path and s is not None)
            listed.append(Call(one.pid, point, changes, own, one.result not in (None, "?")))
    return listed


def logged(log: str) -> Iterator[Logged]:
    """Every call that a log tells of, in the order in which they began.

    The log has a call in two lines where others came between its beginning and its end.

    Args:
        log: its text.
    """
    unfinished: dict[str, Logged] = {}
    waiting: list[Logged] = []  # the first that is unfinished, and what began after it
    for line in log.splitlines():
        pid, at, told = _begun(line)
        if told.startswith(_RESUMED):
            if pid not in unfinished:
                continue
            one, said = unfinished.pop(pid), told.partition(">")[2]
        else:
            call, bracket, said = told.partition("(")
            if not bracket or not call.isidentifier():  # a signal, or an end
                continue
            try:
                one = Logged(int(pid), float(at), call)
            except ValueError:  # no line that strace wrote
                continue
            if waiting:
                waiting.append(one)
        if said.endswith(_UNFINISHED):
            one.arguments += said.removesuffix(_UNFINISHED)
            unfinished[pid] = one
            waiting = waiting or [one]
            continue
        one.end(said)
        if not waiting:
            yield one
        elif not unfinished:
            yield from waiting
            waiting = []
    yield from waiting


def _begun(line: str) -> tuple[str, str, str]:
    """Who a line is about, when it was written, 0 where that was not asked for, and the rest."""
    pid, _, rest = line.partition(" ")
    rest = rest.lstrip(" ")
    if not rest[:1].isdigit():
        return pid, "0", rest
    at, _, rest = rest.partition(" ")
    return pid, at, rest


def killed(log: str) -> frozenset[int]:
    """The processes and threads that the log saw end by SIGKILL."""
    return frozenset(int(found[1]) for found in _KILLED.finditer(log))


def struck(log: str, point: CallPoint, place: str) -> bool:
    """Whether a process was killed at this very call: the log's last word of it is that call."""
    last = {call.pid: call for call in calls(log, place)}
    ended = killed(log)
    return any(
        call.point == point and not call.ended and pid in ended for pid, call in last.items()
    )


def base(log: str) -> list[str]:
    """The program, and the options under which its log can be read here."""
    # Every process and thread; no written strings, which may be private; of signals, the kill.
    return [PROGRAM, "-f", "-qq", "-y", "-s", "0", "-e", "signal=KILL", "-o", log]


def files(call: str, arguments: str) -> Iterator[tuple[str, str | None]]:
    """The absolute paths in a call's arguments, each with the spelling by which it was named."""
    if call in _BY_DESCRIPTOR:
        found = _FD.match(arguments)
        if found:
            yield plain(found[1]).removesuffix(" (deleted)"), None
        return
    for folder, name in _NAME.findall(arguments):
        spelled = plain(name)
        yield os.path.normpath(os.path.join(plain(folder), spelled)), spelled


def plain(text: str) -> str:
    """A path as strace writes it, without its escapes."""
    if "\\" not in text:
        return text
    return (
        text.encode("latin-1", "replace")
        .decode("unicode_escape")
        .encode("latin-1")
        .decode(errors="surrogateescape")
    )


def _below(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")
