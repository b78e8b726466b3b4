"""A .zip that other programs write is taken; one with more in it than its files is not."""

from __future__ import annotations

import shutil
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import pytest

from rcr_probes.cli import main
from rcr_probes.evidence import archive
from tests.publish.test_origin import git
from tests.publish.zips import Captured, entries, refused, zipped


def spoiled(published: Path, place: Path) -> dict[str, tuple[bytes, str]]:
    """A .zip of a package with bytes in it that are of no file, and what is said of each."""
    held = {p.relative_to(published).as_posix(): p.read_bytes() for p in _files(published)}
    archive.write(place, held)
    whole = place.read_bytes()
    first = min(held)
    listed = whole.index(b"PK\x01\x02")
    begin = 30 + len(first) + len(held[first])  # of the second entry
    made = {
        "text before": (_moved(b"#!/bin/sh\n" + whole, 10), "bytes before"),
        "text before, and no place moved": (b"#!/bin/sh\n" + whole, "bytes before"),
        "text after": (whole + b"evil", "a comment, or bytes after its end"),
        "a comment": (whole[:-2] + b"\4\0evil", "a comment, or bytes after its end"),
        "a gap before the list": (
            _moved(whole[:listed] + b"evil" + whole[listed:], 4, entries=False),
            "bytes between its entries and its end",
        ),
        "a gap after the first entry": (
            _moved(whole[:begin] + b"evil" + whole[begin:], 4, skip=1),
            "bytes before",
        ),
    }
    for name, change in {
        "a comment on an entry": lambda entry: setattr(entry, "comment", b"evil"),
        "a field of its own": lambda entry: setattr(entry, "extra", b"\xfe\xca\4\0evil"),
        "another name in a field": lambda entry: setattr(entry, "extra", b"up\4\0evil"),
        "times without an end": lambda entry: setattr(entry, "extra", b"UT\xc0\0" + b"evil" * 48),
    }.items():
        with zipfile.ZipFile(place, "w") as again:
            for path, data in held.items():
                entry = zipfile.ZipInfo(path)
                change(entry)  # type: ignore[no-untyped-call]
                again.writestr(entry, data)
        made[name] = place.read_bytes(), "a comment on" if "comment" in name else "a field of"
    made["bytes in a folder"] = (
        entries(place, {"guide/": b"evil", **held}).read_bytes(),
        "its folder 'guide/' has bytes of its own",
    )
    made["bytes behind what is compressed"] = (_behind(place, held), "bytes behind the data")
    return made


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _moved(data: bytes, by: int, *, entries: bool = True, skip: int = 0) -> bytes:
    """A .zip whose places in the list and at the end were moved, where its entries were."""
    made = bytearray(data)
    end = made.rindex(b"PK\x05\x06")
    made[end + 16 : end + 20] = struct.pack("<I", struct.unpack_from("<I", made, end + 16)[0] + by)
    at = struct.unpack_from("<I", made, end + 16)[0]
    number = 0
    while entries and made[at : at + 4] == b"PK\x01\x02":
        if number >= skip:
            (place,) = struct.unpack_from("<I", made, at + 42)
            made[at + 42 : at + 46] = struct.pack("<I", place + by)
        at += 46 + sum(struct.unpack_from("<HHH", made, at + 28))
        number += 1
    return bytes(made)


def _behind(place: Path, held: Mapping[str, bytes]) -> bytes:
    """A .zip whose first entry is compressed, and longer than what comes out of it."""
    packing = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = min(held)
    packed = packing.compress(held[first]) + packing.flush() + b"evil"
    with zipfile.ZipFile(place, "w") as made:
        made.writestr(zipfile.ZipInfo(first), packed)
    data = bytearray(place.read_bytes())
    for at in (8, data.index(b"PK\x01\x02") + 10):
        data[at : at + 2] = struct.pack("<H", zipfile.ZIP_DEFLATED)
        data[at + 6 : at + 10] = struct.pack("<I", zlib.crc32(held[first]))
        data[at + 14 : at + 18] = struct.pack("<I", len(held[first]))
    return bytes(data)


def test_a_zip_with_bytes_that_are_of_no_file_is_refused(
    published: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Before, between and behind its entries, and in them: no digest is over any of these."""
    for what, (data, said) in spoiled(published, tmp_path / "whole.zip").items():
        place = tmp_path / "spoiled.zip"
        place.write_bytes(data)
        err = refused(capsys, tmp_path, place)
        # From Python 3.12 on zipfile itself finds a field with another name, before we look.
        assert said in err or "Corrupt unicode path extra field" in err, (what, err)


def test_a_zip_that_other_programs_write_is_taken(published: Path, tmp_path: Path) -> None:
    """Compressed, written to a pipe, with times and folders, and with the comment of git."""
    held = {p.relative_to(published).as_posix(): p.read_bytes() for p in _files(published)}
    for way in ("pipe", "times", "commit"):
        place = tmp_path / f"{way}.zip"
        with open(place, "wb") as file:
            target = Pipe(file) if way == "pipe" else file
            with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:  # type: ignore[call-overload]
                made.mkdir("guide")
                for path, data in held.items():
                    entry = zipfile.ZipInfo(path)
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    entry.extra = b"UT\5\0\3abcd" if way == "times" else b""
                    made.writestr(entry, data)
                made.comment = b"0" * 40 if way == "commit" else b""
        assert main(["import", str(place), "--into", str(tmp_path / way)]) == 0


class Pipe:
    """A file that cannot go back, so that sizes follow the entries."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write, self.flush = file.write, file.flush


@pytest.mark.skipif(not shutil.which("git"), reason="git is not on this machine")
def test_a_zip_that_git_archive_writes_is_taken(published: Path, tmp_path: Path) -> None:
    """As a forge offers a commit for a download: below a folder, with the commit in a comment."""
    shutil.copytree(published, tmp_path / "repository")
    git(tmp_path / "repository", "init", "-q")
    git(tmp_path / "repository", "add", ".")
    git(tmp_path / "repository", "commit", "-qm", "Publish")
    words = ("archive", "--format=zip", "--prefix=package-1.0/", "-o", str(tmp_path / "a.zip"))
    git(tmp_path / "repository", *words, "HEAD")
    assert main(["import", str(tmp_path / "a.zip"), "--into", str(tmp_path / "into")]) == 0


def broken(published: Path, place: Path) -> dict[str, bytes]:
    """Bytes that begin or end as a .zip does, and are none."""
    whole = zipped(published, place).read_bytes()
    local = whole.index(b"PK\x01\x02")
    encrypted = bytearray(whole)
    encrypted[local + 8] |= 1
    unknown = bytearray(whole)
    unknown[local + 10] = 99
    flipped = bytearray(whole)
    flipped[200] ^= 0xFF
    return {
        "nothing": b"",
        "text": b"no zip at all",
        "cut": whole[: len(whole) // 2],
        "beginning cut": whole[100:],
        "encrypted": bytes(encrypted),
        "unknown compression": bytes(unknown),
        "flipped": bytes(flipped),
        "squeezed": zlib.compress(whole),
    }


def test_what_is_no_zip_is_refused(published: Path, tmp_path: Path, capsys: Captured) -> None:
    """With what is wrong with it."""
    for name, data in broken(published, tmp_path / "whole.zip").items():
        place = tmp_path / "broken.zip"
        place.write_bytes(data)
        assert "cannot be read as a .zip" in refused(capsys, tmp_path, place), name
