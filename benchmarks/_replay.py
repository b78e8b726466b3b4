"""The floor of a cell: forks whose children repeat its file operations in plain Python.

As a script it is a parent that forks them, an interpreter with json, hashlib and os alone.
"""

from __future__ import annotations

import hashlib  # noqa: F401 (the least that a phase's parent would have)
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial

Operation = tuple[str, list[str], int]
_LINE = b'{"phase":"fault","lane":"point","value":{"point":"before_action"},"pid":12345}\n'


def forks(phases: list[list[Operation]]) -> None:
    """One child for each phase, one after another."""
    for operations in phases:
        in_child(partial(replay, operations))


def in_child(work: Callable[[], object]) -> None:
    """Do it in a forked child, and wait for its end."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("a child of the benchmark failed")


def replay(operations: list[Operation]) -> None:
    """Do the same file operations: of a file that is opened, one line is written, or all read."""
    for name, paths, flags in operations:
        try:
            if name == "open":
                fd = os.open(paths[0], flags, 0o600)
                if flags & (os.O_WRONLY | os.O_RDWR):
                    os.write(fd, _LINE)
                else:
                    os.read(fd, 1 << 16)
                os.close(fd)
            else:
                getattr(os, name.removeprefix("os."))(*paths)
        except OSError:
            pass  # the recorded operation failed, too: EISDIR, or no such file


def serve(acts: dict[str, tuple[Callable[[], object], Callable[[], object]]]) -> None:
    """Whatever a line of stdin names: make ready for it, do it, and print the seconds it took."""
    print("ready", flush=True)
    for line in sys.stdin:
        prepare, act = acts[line.strip()]
        prepare()
        begun = time.perf_counter()
        act()
        print(time.perf_counter() - begun, flush=True)


def floor(note: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """What makes ready for the floor, and the floor itself.

    Args:
        note: a JSON file: the cell's folder, what stands in it before (each path, and the file's
            text, null of a folder), and each phase's operations.
    """
    with open(note) as file:
        top, standing, phases = json.load(file)

    def fresh() -> None:
        for place, _, names in os.walk(top, topdown=False):
            for name in names:
                os.unlink(os.path.join(place, name))
            os.rmdir(place)
        for path, text in standing:
            if text is None:
                os.mkdir(path)
            else:
                with open(path, "w") as file:
                    file.write(text)

    return fresh, lambda: forks(phases)


if __name__ == "__main__":
    serve({note: floor(note) for note in sys.argv[1:]})
