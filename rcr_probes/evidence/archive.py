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
from rcr_probes.evidence import names, zipped
from rcr_probes.evidence.names import MOST_BYTES, MOST_FILES, MOST_IN_ALL

SUFFIX = ".zip"
_DO_NOT = "Do not trust this package."
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
            leaves it, a name twice, a link, or bytes that are of no file.
        OSError: there is no room to unpack it.
    """
    place = Path(package)
    if place.is_dir():
        yield place
        return
    if not place.is_file():
        raise NotEvidence(f"There is no {place}.", "Name the package's folder or its .zip.")
    if place.suffix.lower() != SUFFIX and not zipfile.is_zipfile(place):
        raise NotEvidence(
            f"{place} is neither a folder nor a .zip.", "Name a folder, or a package's .zip."
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
            data = zipped.places(file, entries)
            left = MOST_IN_ALL
            for entry in entries:
                left -= _extract(name, zipped.unpacked(file, data[entry], entry), entry, into, left)
    except zipped.Surplus as surplus:
        raise EvidenceError(name, f"holds more than files: {surplus}.", _DO_NOT) from None
    except _BROKEN as error:
        raise _unreadable(name, error) from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a place before the file's beginning
            raise
        raise _unreadable(name, error) from error


def _refuse_large(name: str, file: IO[bytes]) -> None:
    """Refuse before zipfile reads all names: by the size of the file, and of its list of names."""
    if file.seek(0, os.SEEK_END) > MOST_IN_ALL:
        raise _too_large(name)
    end = zipped.end(file)
    if end.count > MOST_FILES or end.size > MOST_FILES * _PER_NAME or end.further:
        raise _too_large(name)


def _refuse_names(name: str, entries: list[zipfile.ZipInfo]) -> None:
    files: list[str] = []
    folders: set[str] = set()  # that unpacking makes
    for entry in entries:
        given = entry.orig_filename
        if problem := names.wrong(given.removesuffix("/")):
            raise EvidenceError(name, f"holds {given!r}, which {problem}.", _DO_NOT)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            what = "a symbolic link" if kind == stat.S_IFLNK else "no regular file"
            raise EvidenceError(name, f"holds {given!r}, which is {what}.", _DO_NOT)
        if given.endswith("/"):
            folders.add(given.removesuffix("/"))
        else:
            files.append(given)
        folders |= set(names.above(given.removesuffix("/")))
    if len(files) + len(folders) > MOST_FILES:
        raise _too_large(name)
    inside = [f"{folder}/." for folder in sorted(folders)]  # what no file of it can be called
    if twice := names.clash([*files, *inside]):
        raise EvidenceError(name, f"holds {twice[0]!r} and {twice[1]!r}, which clash.", _DO_NOT)


def _extract(
    name: str, data: Iterator[bytes], entry: zipfile.ZipInfo, into: Path, left: int
) -> int:
    """Write one entry; how many bytes it really has, whatever its header says."""
    target = into / entry.orig_filename
    if entry.orig_filename.endswith("/"):
        target.mkdir(parents=True, exist_ok=True)
        for _ in data:
            raise zipped.Surplus(f"its folder {entry.orig_filename!r} has bytes of its own")
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    most, size = min(MOST_BYTES, left), 0
    with open(target, "xb") as file:
        for chunk in data:
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
