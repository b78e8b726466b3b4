"""A package as one file: read a .zip that nobody vouches for, and write one of the same bytes."""

from __future__ import annotations

import errno
import os
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import names
from rcr_probes.evidence.names import MOST_BYTES, MOST_FILES, MOST_IN_ALL

SUFFIX = ".zip"
_DO_NOT = "Do not trust this package."
_CHUNK = 1 << 20
_END = b"PK\x05\x06"  # of the end of a zip, and how long it is with the longest comment
_END_LENGTH, _COMMENT = 22, 1 << 16
_PER_NAME = 1 << 10  # bytes of the list of names, for each of them
# What zipfile raises over bytes that are none of a zip, or of a kind that it does not know.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)
# So that a zip has the same bytes on another day: the first day that a zip can tell, a plain file.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = (stat.S_IFREG | 0o644) << 16


@contextmanager
def opened(package: str | os.PathLike[str]) -> Iterator[Path]:
    """The folder of a package: the one that is named, or a temporary one with what a .zip holds.

    Raises:
        NotEvidence: there is neither a folder nor a .zip.
        EvidenceError: the .zip cannot be read, is larger than any package, or holds a name that
            leaves it, a name twice, or a link.
        OSError: there is no room to unpack it.
    """
    place = Path(package)
    if place.is_dir():
        yield place
        return
    if not place.is_file():
        raise NotEvidence(f"There is no {place}.", "Name the package's folder or its .zip.")
    if place.suffix.lower() != ".zip" and not zipfile.is_zipfile(place):
        raise NotEvidence(
            f"{place} is neither a folder nor a .zip.", "Name the package's folder or its .zip."
        )
    with tempfile.TemporaryDirectory(prefix="rcr-package-") as temporary:
        folder = Path(temporary, place.stem.strip(".") or "package")  # errors name it so
        folder.mkdir()
        _unpack(place, folder)
        yield _inner(folder)


def write(place: Path, files: Mapping[str, bytes]) -> None:
    """Write files as a .zip, which has the same bytes on every machine and every day.

    They are stored as they are: how something is compressed differs between versions of zlib.

    Raises:
        OSError: it cannot be written.
    """
    with zipfile.ZipFile(place, "w", zipfile.ZIP_STORED) as made:
        for path in sorted(files):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.create_system = 3  # Unix, wherever it is made
            entry.external_attr = _MODE
            made.writestr(entry, files[path])


def _inner(folder: Path) -> Path:
    """The one folder that an archive holds, where it holds nothing else."""
    held = list(folder.iterdir())
    return held[0] if len(held) == 1 and held[0].is_dir() else folder


def _unpack(place: Path, into: Path) -> None:
    name = place.name
    try:
        with open(place, "rb") as file:
            _refuse_large(name, file)
            with zipfile.ZipFile(file) as archive:
                entries = archive.infolist()
                _refuse_names(name, entries)
                left = MOST_IN_ALL
                for entry in entries:
                    left -= _extract(name, archive, entry, into, left)
    except _BROKEN as error:
        raise _unreadable(name, error) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the file's beginning
            raise
        raise _unreadable(name, error) from error


def _refuse_large(name: str, file: IO[bytes]) -> None:
    """Refuse before zipfile reads all names: by the size of the file, and of its list of names."""
    size = file.seek(0, os.SEEK_END)
    if size > MOST_IN_ALL:
        raise _too_large(name)
    file.seek(max(0, size - _COMMENT - _END_LENGTH - 20))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + _END_LENGTH:
        raise zipfile.BadZipFile("it has no end of a zip")
    count, listed = struct.unpack_from("<HI", tail, at + 10)
    further = tail[max(0, at - 20) :][:4] == b"PK\x06\x07"  # numbers that need 64 bits
    if count > MOST_FILES or listed > MOST_FILES * _PER_NAME or further:
        raise _too_large(name)
    file.seek(0)


def _refuse_names(name: str, entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MOST_FILES:
        raise _too_large(name)
    files: list[str] = []
    folders: set[str] = set()  # each by what no file of it can be called
    for entry in entries:
        given = entry.orig_filename
        if problem := names.wrong(given.removesuffix("/")):
            raise EvidenceError(name, f"holds {given!r}, which {problem}.", _DO_NOT)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            what = "a symbolic link" if kind == stat.S_IFLNK else "no regular file"
            raise EvidenceError(name, f"holds {given!r}, which is {what}.", _DO_NOT)
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotImplementedError(f"{given!r} is compressed in a way that is not known")
        if entry.is_dir():
            folders.add(f"{given}.")
        else:
            files.append(given)
    if twice := names.clash([*files, *sorted(folders)]):
        raise EvidenceError(name, f"holds {twice[0]!r} and {twice[1]!r}, which clash.", _DO_NOT)


def _extract(
    name: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, into: Path, left: int
) -> int:
    """Write one entry; how many bytes it really has, whatever its header says."""
    target = into / entry.orig_filename
    if entry.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    most, size = min(MOST_BYTES, left), 0
    with archive.open(entry) as source, open(target, "xb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > most:
                raise _too_large(name)
            file.write(chunk)
    return size


def _unreadable(name: str, error: Exception) -> EvidenceError:
    return EvidenceError(
        name,
        f"cannot be read as a .zip ({str(error) or type(error).__name__}).",
        "Download the package again.",
    )


def _too_large(name: str) -> EvidenceError:
    return EvidenceError(
        name,
        f"is larger than any package: more than {MOST_FILES} files, "
        f"{MOST_BYTES} bytes in one, or {MOST_IN_ALL} in all.",
        _DO_NOT,
    )
