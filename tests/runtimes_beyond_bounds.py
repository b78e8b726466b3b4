"""Runtimes that write more than a cell may take, or what nobody would: the room is the harness's.

Plans name them ``tests.runtimes_beyond_bounds:factory``.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from rcr_probes import room
from rcr_probes.model import Recorded
from rcr_probes.runtime import Operation
from tests.runtimes_under_test import Plain


class Fills(Plain):
    """Writes a file that grows and grows, for ten seconds at most."""

    def start(self, operation: Operation) -> None:
        with open(operation.folder / "big", "wb", buffering=0) as file:
            for _ in range(2000):
                file.write(bytes(1 << 14))
                time.sleep(0.005)
        super().start(operation)


class Litters(Plain):
    """Makes more files than a cell may have, each of them small, and takes its time."""

    def start(self, operation: Operation) -> None:
        for number in range(room.MOST + 1):
            (operation.folder / str(number)).touch()
        time.sleep(10)
        super().start(operation)


class Digs(Plain):
    """Leaves folders in folders, deeper than any path is long."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        os.chdir(operation.folder)
        for _ in range(2500):
            os.mkdir("d")
            os.chdir("d")


class Boasts(Plain):
    """Keeps more evidence than any capture takes."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded("done", evidence=({"text": "x" * (9 << 20)},))


class Garbles(Plain):
    """Prints what is no text, much of it; leaves names that are no text, or no line."""

    def start(self, operation: Operation) -> None:
        for _ in range(100):
            os.write(1, os.urandom(1 << 20))
        for name in (b"a\nb", b"\xff\xfe", b"-rf", b" ", b"\x1b[2J"):
            for place in (operation.folder, operation.folder.parent / "world"):
                Path(os.fsdecode(os.path.join(os.fsencode(place), name))).touch()
        super().start(operation)


class Hoards(Plain):
    """Fills the disk beside its folder."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        (operation.folder.parent.parent / "hoard").write_bytes(bytes(10 << 20))


class Replaces(Plain):
    """Puts something else in the place of files that the harness has of its cell."""

    replaced: tuple[str, ...] = ("world/effects.jsonl", "harness/measured.json")

    def start(self, operation: Operation) -> None:
        super().start(operation)
        for name in self.replaced:
            path = operation.folder.parent / name
            path.unlink(missing_ok=True)
            self.put(path)

    def put(self, path: Path) -> None:
        raise NotImplementedError


class Pipes(Replaces):
    """A pipe to which nobody writes."""

    def put(self, path: Path) -> None:
        os.mkfifo(path)


class Endless(Replaces):
    """A device that takes every event, and never comes to an end."""

    replaced = ("harness/events.jsonl",)

    def put(self, path: Path) -> None:
        path.symlink_to("/dev/zero")


class Hollow(Replaces):
    """A file of a size that no memory has, and of no block on the disk."""

    def put(self, path: Path) -> None:
        with open(path, "wb") as file:
            file.truncate(1 << 40)


class Misleads(Plain):
    """Leaves a measurement of its own in the harness's place, and kills the worker."""

    left = b""

    def start(self, operation: Operation) -> None:
        (operation.folder.parent / "harness" / "measured.json").write_bytes(self.left)
        os.kill(os.getppid(), signal.SIGKILL)


class MisleadsDeeply(Misleads):
    """One that nobody can read to its end."""

    left = b'{"measurement":' * 200_000


class MisleadsInNoText(Misleads):
    """One that is no text."""

    left = b'{"measurement":{"source":"\xff"}}'
