"""The bytes of a .zip, every one accounted for: its entries, their list, its end, and nothing else.

``zipfile`` finds what a .zip lists, and does not mind what lies before, between or behind it. What
no digest of a package covers is refused here.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

_CHUNK = 1 << 20
_END = b"PK\x05\x06"  # of the end of a zip, and how long it is without its comment
_END_LENGTH, _COMMENT = 22, 1 << 16
_ENTRY = struct.Struct("<4s5H3L2H")  # what stands before an entry's name
_DESCRIPTORS = (b"", b"PK\x07\x08")  # of an entry whose sizes follow it: with a mark, or without
# The only comment of an archive: the commit that `git archive` writes.
_COMMIT = re.compile(rb"([0-9a-f]{40}([0-9a-f]{24})?)?")
_DESCRIBED, _UTF8 = 0x0008, 0x0800
_FLAGS = _DESCRIBED | _UTF8 | 0x0006  # and how hard it was compressed; nothing is encrypted
# Fields of an entry that common tools write: sizes of 64 bits, times (NTFS, Unix), owners.
_EXTRA = (0x0001, 0x000A, 0x5455, 0x5855, 0x7855, 0x7875)
_MOST_EXTRA = 64  # bytes of all of them


class Surplus(Exception):
    """Bytes of a .zip that are of no file; the message says where."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a .zip.

    Attributes:
        count: of its entries.
        size: bytes of the list of their names.
        begin: where that list should begin.
        place: where the end itself begins.
        further: whether it has numbers that need 64 bits.
    """

    count: int
    size: int
    begin: int
    place: int
    further: bool


def end(file: IO[bytes]) -> End:
    """The end of a .zip, as zipfile finds it.

    Raises:
        BadZipFile: it has none.
    """
    whole = file.seek(0, os.SEEK_END)
    before = max(0, whole - _COMMENT - _END_LENGTH - 20)
    file.seek(before)
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_LENGTH:
        raise zipfile.BadZipFile("it has no end of a zip")
    count, size, begin, comment = struct.unpack_from("<HIIH", tail, at + 10)
    if not _COMMIT.fullmatch(tail[at + _END_LENGTH :]) or comment != len(tail) - at - _END_LENGTH:
        raise Surplus("a comment, or bytes after its end")
    further = tail[max(0, at - 20) :][:4] == b"PK\x06\x07"
    return End(count, size, begin, before + at, further)


def places(
    file: IO[bytes], entries: Sequence[zipfile.ZipInfo]
) -> Mapping[zipfile.ZipInfo, tuple[int, int]]:
    """Where the data of each entry begins and ends; one follows the other without a gap.

    Raises:
        Surplus: something lies before, between or behind them, or in a field that no tool needs.
        BadZipFile: an entry is not as the list says.
    """
    found: dict[zipfile.ZipInfo, tuple[int, int]] = {}
    at = 0
    for entry in sorted(entries, key=lambda one: one.header_offset):
        if entry.header_offset < at:
            raise zipfile.BadZipFile(f"{entry.orig_filename!r} lies over another, or outside")
        if entry.header_offset > at:
            raise Surplus(f"bytes before {entry.orig_filename!r} that are of no entry")
        if entry.comment:
            raise Surplus(f"a comment on {entry.orig_filename!r}")
        begin = at + _header(file, entry)
        found[entry] = begin, begin + entry.compress_size
        at = begin + entry.compress_size + _descriptor(file, entry, begin + entry.compress_size)
    finish = end(file)
    if (at, at + finish.size) != (finish.begin, finish.place):
        raise Surplus("bytes between its entries and its end")
    return found


def _header(file: IO[bytes], entry: zipfile.ZipInfo) -> int:
    """How long what stands before the data of an entry is."""
    file.seek(entry.header_offset)
    mark, _, flags, method, _, _, _, _, _, length, further = _ENTRY.unpack(file.read(_ENTRY.size))
    name, extra = file.read(length), file.read(further)
    given = entry.orig_filename
    if mark != b"PK\x03\x04" or name != given.encode("utf-8" if flags & _UTF8 else "cp437"):
        raise zipfile.BadZipFile(f"{given!r} is called something else where it lies")
    if (flags | entry.flag_bits) & ~_FLAGS or flags != entry.flag_bits:
        raise NotImplementedError(f"{given!r} is encrypted, or in a form that is not known")
    if method != entry.compress_type or method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(f"{given!r} is compressed in a way that is not known")
    for fields in (extra, entry.extra):
        _refuse_extra(given, fields)
    return _ENTRY.size + len(name) + len(extra)


def _refuse_extra(name: str, fields: bytes) -> None:
    at = 0
    while at + 4 <= len(fields):
        kind, length = struct.unpack_from("<HH", fields, at)
        if kind not in _EXTRA:
            break
        at += 4 + length
    if at != len(fields) or len(fields) > _MOST_EXTRA:
        raise Surplus(f"a field of {name!r} that no file needs")


def _descriptor(file: IO[bytes], entry: zipfile.ZipInfo, at: int) -> int:
    """How long the sizes are that follow an entry; 0 where none do."""
    if not entry.flag_bits & _DESCRIBED:
        return 0
    file.seek(at)
    found = file.read(24)
    for mark in _DESCRIPTORS:
        for sizes in ("<LLL", "<LQQ"):
            wanted = struct.pack(sizes, entry.CRC, entry.compress_size, entry.file_size)
            if found.startswith(mark + wanted):
                return len(mark + wanted)
    raise zipfile.BadZipFile(f"the sizes of {entry.orig_filename!r} are not those of the list")


def unpacked(file: IO[bytes], place: tuple[int, int], entry: zipfile.ZipInfo) -> Iterator[bytes]:
    """The data of an entry, some bytes at a time: no more than the list says, and not one left.

    Raises:
        Surplus: more was packed than comes out.
        BadZipFile: it is not what the list says.
    """
    at, stop = place
    packed = None if entry.compress_type == zipfile.ZIP_STORED else zlib.decompressobj(-15)
    crc, size = 0, 0
    while at < stop:
        file.seek(at)
        data = file.read(min(_CHUNK, stop - at))
        if not data:
            raise EOFError("it ends within an entry")
        at += len(data)
        for chunk in [data] if packed is None else _inflated(packed, data):
            crc, size = zlib.crc32(chunk, crc), size + len(chunk)
            yield chunk
        if packed is not None and (packed.unused_data or (packed.eof and at < stop)):
            raise Surplus(f"bytes behind the data of {entry.orig_filename!r}")
    if packed is not None and not packed.eof:
        raise zipfile.BadZipFile(f"{entry.orig_filename!r} is cut")
    if (crc, size) != (entry.CRC, entry.file_size):
        raise zipfile.BadZipFile(f"{entry.orig_filename!r} is not as its sums say")


def _inflated(packed: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    while data and not packed.eof:
        if chunk := packed.decompress(data, _CHUNK):
            yield chunk
        data = packed.unconsumed_tail
