"""Effects, calls and events: append a line, read them all, and report what cannot be read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Struct

from rcr_probes import files
from rcr_probes.model import Json
from rcr_probes.vocabulary import Lane

# The mark of a point that no design knows.
UNKNOWN_POINT = "UNKNOWN_POINT"


class EffectLine(Struct, frozen=True):
    """One effect, as the executor appended it."""

    operation_key: str
    kind: str
    target: str


class CallLine(Struct, frozen=True):
    """One entry into the executor."""

    operation_key: str


class EventLine(Struct, frozen=True):
    """One event: written by the process ``pid`` of the phase named ``phase``.

    ``path`` names the audit file where one is concerned, and ``at`` is when it was written, in
    seconds since the epoch. Neither pid nor path nor time becomes a fact.
    """

    phase: str
    lane: Lane
    value: dict[str, Json]
    pid: int
    path: str | None = None
    at: float = 0.0


def append(path: str, line: Any) -> None:
    """Append one JSON line with a single write to a file opened for appending.

    Raises:
        OSError: the line could not be written whole; nothing of it is taken back.
    """
    data = msgspec.json.encode(line) + b"\n"
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.write(fd, data) != len(data):
            raise OSError(errno.EIO, "a ledger line was written in part", path)
    finally:
        os.close(fd)


def rewrite(path: str, lines: Iterable[Any]) -> None:
    """Write a ledger anew, while nobody appends to it.

    Raises:
        OSError: it could not be written.
    """
    with open(path, "wb") as file:
        file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)


Line = TypeVar("Line")


class Ledger(Struct, Generic[Line], frozen=True):
    """What a ledger holds.

    Attributes:
        lines: every line that could be read, in order of arrival.
        damage: what could not be, each as ``name:line: what is wrong``.
    """

    lines: tuple[Line, ...]
    damage: tuple[str, ...]


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def read(path: str, kind: type[Line]) -> Ledger[Line]:
    """Read a ledger whole. A line that cannot be read is reported, never skipped in silence.

    A file that does not exist is an empty ledger: nothing was ever appended to it.
    """
    try:
        data = files.read(path)
    except FileNotFoundError:
        return Ledger((), ())
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "EIO")
        return Ledger((), (f"{os.path.basename(path)}: cannot be read ({code})",))
    name = os.path.basename(path)
    lines: list[Line] = []
    damage: list[str] = []
    wanted: Any = kind
    decoder = _decoder(wanted)
    *whole, tail = data.split(b"\n")
    for number, raw in enumerate(whole, 1):
        try:
            lines.append(decoder.decode(raw))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damage.append(f"{name}:{number}: not a ledger line")
    if tail:
        damage.append(f"{name}:{len(whole) + 1}: torn, no newline at its end")
    return Ledger(tuple(lines), tuple(damage))
