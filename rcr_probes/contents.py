"""What one file may hold once the power is gone: the first parts of what was written to it.

Pure, standard library alone. It is hashed as it grows: to keep whatever it ever held, or may hold,
would take the square of what is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Literal

Do = Literal["make", "create", "write", "cut", "rename", "link", "remove", "flush"]


@dataclass(frozen=True, slots=True)
class Change:
    """One file operation that took effect.

    Attributes:
        do: ``make`` a folder; ``create`` a file, where there is none; ``write`` data; ``cut`` a
            file to a length, or fill it up; ``rename``; ``link``; ``remove`` a file or a folder;
            ``flush`` a file or a folder to the device.
        path: below the folder; ``.`` is the folder itself.
        to: the new path of a rename or a link.
        at: where data is written, or the length, in bytes; None is the file's end.
        data: what is written.
        whole: whether it is there whole or not at all, and half of it is no state.
    """

    do: Do
    path: str
    to: str = ""
    at: int | None = 0
    data: bytes = b""
    whole: bool = False


def half(data: bytes) -> bytes:
    """The first half of what is written, cut at a field's end where it has fields.

    Fields are counted, not bytes: so the cut is at the same place whatever the numbers in them.
    """
    fields = data.split(b",")
    if len(fields) > 1:
        return b",".join(fields[: len(fields) // 2]) + b","
    return data[: len(data) // 2]


class Content:
    """What a file holds, change after change, and the digest of that; it is hashed as it grows."""

    def __init__(self, held: bytes = b"") -> None:
        self._held = bytearray(held)
        self._hash = sha256(held)

    def change(self, change: Change) -> None:
        if self._grows(change):
            self._held += change.data
            self._hash.update(change.data)
        else:
            self._held = bytearray(_changed(self.held(), change))
            self._hash = sha256(self._held)

    def digest(self, torn: Change | None = None) -> bytes:
        """Of what it holds; or would, with half of one more change."""
        if torn is None:
            return self._hash.digest()
        change, found = _halved(torn), self._hash.copy()
        if not self._grows(change):
            return sha256(_changed(self.held(), change)).digest()
        found.update(change.data)
        return found.digest()

    def held(self) -> bytes:
        return bytes(self._held)

    def _grows(self, change: Change) -> bool:
        return change.do == "write" and change.at in (None, len(self._held))


def _halved(change: Change) -> Change:
    return replace(change, data=half(change.data))


@dataclass(eq=False, slots=True)
class File:
    """A file, by whatever names.

    Attributes:
        flushed: what it held when it was flushed.
        since: what was done to it since then.
        content: what it holds now.
        wholes: the digests of all that it ever held after a whole change.
    """

    flushed: bytes = b""
    since: list[Change] = field(default_factory=list)
    content: Content = field(default_factory=Content)
    wholes: set[bytes] = field(default_factory=set)

    def change(self, change: Change) -> None:
        self.since.append(change)
        self.content.change(change)
        self.wholes.add(self.content.digest())

    def flush(self) -> None:
        self.flushed, self.since = self.content.held(), []

    def holds(self, kept: int | None = None, torn: bool = False) -> bytes:
        """What it holds once so many of the changes since are there; all where None is said."""
        if kept is None:
            return self.content.held()
        content = Content(self.flushed)
        for change in self.since[:kept]:
            content.change(change)
        if torn:
            content.change(_halved(self.since[kept]))
        return content.held()

    def parts(self) -> Iterator[tuple[int, bool]]:
        """Every first part of the changes since that leaves something else: from the longest.

        Of those that leave the same the longest alone: a file may be written again and again, and
        whatever it leaves is combined with whatever each other file does.
        """
        left = {self.content.digest()}
        for kept, torn, digest in reversed(list(self._left())):
            if digest not in left:
                left.add(digest)
                yield kept, torn

    def options(self) -> frozenset[bytes]:
        """The digest of everything that it may hold."""
        return frozenset({self.content.digest(), *(digest for _, _, digest in self._left())})

    def _left(self) -> Iterator[tuple[int, bool, bytes]]:
        """The digest of what each first part leaves: whole changes, and half of the next one."""
        content = Content(self.flushed)
        for kept, change in enumerate(self.since):
            yield kept, False, content.digest()
            if change.do == "write" and not change.whole:
                yield kept, True, content.digest(change)
            content.change(change)


def _changed(held: bytes, change: Change) -> bytes:
    at = len(held) if change.at is None else change.at
    before = held[:at].ljust(at, b"\0")
    if change.do == "cut":
        return before
    return before + change.data + held[at + len(change.data) :]
