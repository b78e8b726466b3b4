"""Names, and files that are none, that a package may not hold."""

from __future__ import annotations

import os
import re
import stat
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes.evidence import names
from rcr_probes.publish import layout
from tests.evidence import made
from tests.publish import packaged
from tests.publish.zips import Captured, entries, refused

ODD_NAMES = [
    "../evil",
    "a/../../evil",
    "/evil",
    "C:/evil",
    "a\\..\\evil",
    "./evil",
    "a//evil",
    "a\x1bb",
    "a\nb",
    "evil.",
    "x" * 300,
    "界" * 86,
    "/".join("abcdefghijklmnopqrstuvwxyz"),
    "/".join("abcdefghijklmnopq"),
    "con",
    "a/NUL.txt",
    "Aux/file",
    "lpt1.tar.gz",
    "COM¹",
    "conout$",
]


@pytest.mark.parametrize(
    "name", ["/".join("abcdefghijklmnop"), "é" * 127, "console", "com10", "a.nul"]
)
def test_a_name_at_the_limit_is_taken(name: str) -> None:
    """What is refused is what is too much, and no more."""
    assert names.wrong(name) is None


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_leaves_a_zip_is_refused(tmp_path: Path, name: str, capsys: Captured) -> None:
    """Before anything is unpacked, with the name as it is."""
    place = entries(tmp_path / "odd.zip", {layout.MANIFEST: b"{}", name: b"evil"})
    assert repr(name)[:100] in refused(capsys, tmp_path, place)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_that_leaves_a_manifest_is_refused(
    tmp_path: Path, name: str, capsys: Captured
) -> None:
    """The same names, in a package of the original form."""
    (tmp_path / "package").mkdir()
    made.write_manifest(tmp_path / "package", [{"path": name, "sha256": "0" * 64}])
    assert repr(name)[:100] in refused(capsys, tmp_path, tmp_path / "package")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a/Same", "a/same"),
        ("a/same", "A/other"),
        ("a/caf\u00e9", "a/cafe\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("a", "a/b"),
    ],
)
def test_names_that_some_system_takes_for_one_are_refused(
    tmp_path: Path, one: str, other: str, capsys: Captured
) -> None:
    """In a .zip, in a manifest, and in a folder: which file is meant depends on who looks."""
    place = entries(tmp_path / "twice.zip", {one: b"1", other: b"2"})
    assert "clash" in refused(capsys, tmp_path, place)
    (tmp_path / "package").mkdir()
    listed = [{"path": path, "sha256": "0" * 64} for path in (one, other)]
    made.write_manifest(tmp_path / "package", listed)
    assert "clash" in refused(capsys, tmp_path, tmp_path / "package")


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path, capsys: Captured) -> None:
    """In whichever order a .zip has them."""
    for held in (["a", "a/"], ["A/", "a"]):
        place = entries(tmp_path / "odd.zip", dict.fromkeys(held, b""))
        assert "clash" in refused(capsys, tmp_path, place)
        place.unlink()


def test_a_name_that_a_zip_holds_twice_is_refused(tmp_path: Path, capsys: Captured) -> None:
    """Programs differ in which one they take."""
    place = tmp_path / "twice.zip"
    with warnings.catch_warnings(), zipfile.ZipFile(place, "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("manifest.json", b"{}")
        archive.writestr("manifest.json", b"[]")
    assert "clash" in refused(capsys, tmp_path, place)


def test_names_in_a_folder_that_clash_are_found(package: Path) -> None:
    """Where this system keeps both."""
    (package / "tables/Small.csv").write_text("x")
    _, lines = packaged.theirs(package)
    assert any("clashes with" in line for line in lines)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_what_is_no_plain_file_in_a_zip_is_refused(
    tmp_path: Path, kind: int, capsys: Captured
) -> None:
    """A link could lead anywhere once it is unpacked."""
    place = entries(tmp_path / "odd.zip", {"manifest.json": b"/etc/passwd"}, kind | 0o777)
    assert re.search("symbolic link|no regular file", refused(capsys, tmp_path, place))


def out(path: Path, outside: Path) -> None:
    """Move something away, and leave a link to it."""
    path.rename(outside)
    path.symlink_to(outside)


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


PLACES: dict[str, Callable[[Path, Path], object]] = {
    "a file": lambda f, outside: out(f / "check.py", outside),
    "a folder": lambda f, outside: out(f / "evidence/small", outside),
    "the evidence": lambda f, outside: out(f / "evidence", outside),
    "a dangling one": lambda f, outside: (f / "guide/more.html").symlink_to(outside),
    "a pipe": lambda f, _: pipe(f / "guide/pipe"),
    "a pipe in place of a file": lambda f, _: pipe(f / layout.MANIFEST),
    "a name that is no UTF-8": lambda f, _: open(os.fsencode(f) + b"/\xff", "w").close(),
    "a folder too deep": lambda f, _: (f / "/".join("a" * 300)).mkdir(parents=True),
}


@pytest.mark.parametrize("what", PLACES)
def test_what_a_package_may_not_hold_is_refused(
    package: Path, tmp_path: Path, what: str, capsys: Captured
) -> None:
    """No link is followed, no pipe is opened, and nobody waits."""
    PLACES[what](package, tmp_path / "outside")
    refused(capsys, tmp_path, package)
    assert packaged.theirs(package)[0] == 1
