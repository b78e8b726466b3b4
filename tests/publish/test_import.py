"""A package is taken in whole and checked, or not at all, whatever its folder or .zip holds."""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

import pytest

from rcr_probes.cli import main
from rcr_probes.evidence import archive, check, names
from rcr_probes.publish import layout
from rcr_probes.publish.taken import take
from rcr_probes.publish.verify import verify
from scripts import make_synthetic_package as synthetic
from tests.evidence import made
from tests.publish import packaged
from tests.publish.test_origin import git

Captured = pytest.CaptureFixture[str]


def zipped(folder: Path, place: Path, top: str = "") -> Path:
    """A folder as a .zip, under a folder of its own where one is named."""
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(folder.rglob("*")):
            made.write(path, f"{top}{path.relative_to(folder).as_posix()}")
    return place


def entries(place: Path, held: Mapping[str, bytes], mode: int = stat.S_IFREG | 0o644) -> Path:
    """A .zip with entries of any name."""
    with warnings.catch_warnings(), zipfile.ZipFile(place, "w") as made:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in held.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            made.writestr(entry, data)
    return place


def refused(capsys: Captured, tmp_path: Path, package: Path, code: int = 1) -> str:
    """What is said of a package that is not taken in; nothing is written."""
    before = listed(tmp_path)
    assert main(["import", str(package), "--into", str(tmp_path / "into")]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert re.match(r"rcr: .+\n  .+", err), err
    assert listed(tmp_path) == before
    return err


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("form", ["folder", "zip", "zip under a folder"])
def test_a_package_of_ours_becomes_evidence(
    published: Path, source: Path, tmp_path: Path, form: str, capsys: Captured
) -> None:
    """Every file of the evidence and its claims, and what comes of it is sound."""
    package = published
    if form != "folder":
        top = "package-1.0/" if "under" in form else ""
        package = zipped(published, tmp_path / "package.zip", top)
    assert main(["import", str(package), "--into", str(tmp_path / "into")]) == 0
    for name in packaged.CAPTURED:
        for path in (source / name).iterdir():
            assert (tmp_path / "into" / name / path.name).read_bytes() == path.read_bytes()
    assert main(["check", str(tmp_path / "into")]) == 0
    assert "all hold" in capsys.readouterr().out


def test_a_zip_of_the_original_form_becomes_evidence(tmp_path: Path, capsys: Captured) -> None:
    """As its folder does."""
    package = made.package(tmp_path / "package")
    zipped(package, tmp_path / "package.zip", "package/")
    for name in ("package", "package.zip"):
        assert main(["import", str(tmp_path / name), "--into", str(tmp_path / f"{name}.in")]) == 0
    found = [(tmp_path / name / "captures.jsonl").read_bytes() for name in
             ("package.in", "package.zip.in")]  # fmt: skip
    assert found[0] == found[1]


def test_without_a_place_it_goes_below_runs(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the package's name, without the suffix of a .zip."""
    monkeypatch.chdir(tmp_path)
    zipped(published, tmp_path / "found.zip")
    assert main(["import", "found.zip"]) == 0
    assert (tmp_path / "runs" / "found" / "small").is_dir()


def test_a_zip_is_checked_as_a_folder_is(published: Path, tmp_path: Path, capsys: Captured) -> None:
    """The same lines; one of another form is not checked, but told what to do."""
    place = zipped(published, tmp_path / "package.zip")
    assert packaged.ours(capsys, place) == packaged.ours(capsys, published)
    zipped(made.package(tmp_path / "other"), tmp_path / "other.zip")
    assert main(["check", str(tmp_path / "other.zip")]) == 2
    assert "rcr import" in capsys.readouterr().err


def test_a_package_that_was_changed_is_not_taken_in(
    package: Path, tmp_path: Path, capsys: Captured
) -> None:
    """The first finding is the error; all of them are a check's to tell."""
    packaged.replace(package / "tables/small.csv", "fault", "vault")
    err = refused(capsys, tmp_path, package)
    assert "tables/small.csv" in err
    assert "rcr check" in err


def test_what_is_there_already_is_not_replaced(
    published: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Somebody's runs are theirs."""
    (tmp_path / "into").mkdir()
    (tmp_path / "into" / "mine").touch()
    assert "there already" in refused(capsys, tmp_path, published, code=2)


def test_bytes_alone_are_taken_in(package: Path, tmp_path: Path) -> None:
    """What a stranger's folder lets run, or lets anybody write, is no such thing here."""
    for path in (package / "evidence").rglob("plan.json"):
        path.chmod(0o4777)
    take(package, tmp_path / "into")
    files = [path for path in (tmp_path / "into").rglob("*") if path.is_file()]
    assert files
    assert not any(path.stat().st_mode & 0o7022 for path in files)


def test_nothing_is_written_into_another_package(
    published: Path, package: Path, source: Path, tmp_path: Path, capsys: Captured
) -> None:
    """It would be none any more: nothing is imported there, of either form, nor published."""
    before = listed(package)
    original = made.package(tmp_path / "original")
    for place in (package / "evidence/x", package / "x.zip", package / "a/b/c"):
        for words in (
            ("import", published),
            ("import", original),
            ("publish", source, "--date", "2026-01-02"),
        ):
            assert main([str(word) for word in (*words, "--into", place)]) == 2
            err = capsys.readouterr().err
            assert f"lies in the package {package}" in err
            assert "--into" in err
    assert listed(package) == before


@pytest.mark.parametrize("form", ["folder", "zip", "ZIP"])
@pytest.mark.parametrize(
    "words",
    [
        ("publish", "{}", "--into", "out", "--date", "2026-01-02"),
        ("timeline", "{}", "--at", "1"),
        ("show", "{}"),
        ("show", "{}", "--claims"),
        ("explain", "{}", "x"),
        ("compare", "{}", "{}"),
        ("guide", "--evidence", "{}", "--into", "out"),
    ],
    ids=lambda words: " ".join(words[:1] + words[2:3]),
)
def test_who_names_a_package_where_evidence_is_wanted_is_told_what_to_type(
    published: Path, tmp_path: Path, form: str, words: tuple[str, ...], capsys: Captured
) -> None:
    """Take it in first: what it holds was checked by nobody yet."""
    package = published
    if form != "folder":
        package = zipped(published, tmp_path / f"package.{form}")
    assert main([word.format(package) for word in words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"rcr import {package} --into runs/package" in err


def test_a_timeline_of_a_zip_is_read_whatever_the_case_of_its_suffix(
    tmp_path: Path, capsys: Captured
) -> None:
    """As it is checked and imported."""
    for suffix in ("zip", "ZIP", "Zip"):
        place = tmp_path / f"package.{suffix}"
        archive.write(place, synthetic.files())
        assert main(["timeline", str(place), "--at", "2", "--json"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len(set(said)) == 1


def test_a_package_is_not_taken_into_itself(
    package: Path, tmp_path: Path, capsys: Captured
) -> None:
    """It would be copied into its own copy, without an end."""
    before = listed(tmp_path)
    assert main(["import", str(package), "--into", str(package / "evidence" / "mine")]) == 2
    assert "lies in" in capsys.readouterr().err
    assert listed(tmp_path) == before


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
        assert said in err, (what, err)


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


def test_very_many_folders_are_refused_in_no_time(tmp_path: Path, capsys: Captured) -> None:
    """In a .zip and in a folder: they count as files do, deep ones with all that lie above."""
    deep = "/".join("abcdefghijklmno")
    place = entries(tmp_path / "folders.zip", {f"{n}/{deep}/": b"" for n in range(5_000)})
    begun = time.process_time()
    assert "larger than any package" in refused(capsys, tmp_path, place)
    assert time.process_time() - begun < 4
    package = tmp_path / "package"
    for number in range(700):
        (package / "evidence" / str(number) / deep).mkdir(parents=True)
    begun = time.process_time()
    (finding, *_) = verify(package).findings
    assert finding.kind == "too_many"
    assert time.process_time() - begun < 4


def test_a_bomb_is_refused_before_it_fills_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """By what really comes out, whatever a header says."""
    monkeypatch.setattr(archive, "MOST_BYTES", 1 << 20)
    place = tmp_path / "bomb.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("manifest.json", bytes(1 << 24))
    assert "larger than any package" in refused(capsys, tmp_path, place)


def test_many_small_files_are_refused_by_their_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """None is too large, and all are."""
    monkeypatch.setattr(archive, "MOST_IN_ALL", 1 << 16)
    place = tmp_path / "many.zip"
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as made:
        for number in range(20):
            made.writestr(f"f{number}", bytes(1 << 14))
    assert "larger than any package" in refused(capsys, tmp_path, place)


def test_too_many_names_are_refused_unread(tmp_path: Path, capsys: Captured) -> None:
    """In a .zip by its end, and in a folder by counting no further."""
    place = entries(
        tmp_path / "names.zip", {f"f{number}": b"" for number in range(names.MOST_FILES + 1)}
    )
    assert "larger than any package" in refused(capsys, tmp_path, place)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 9, 9, 0xFFFFFFF0, 0, 0)
    (tmp_path / "end.zip").write_bytes(end)
    assert "larger than any package" in refused(capsys, tmp_path, tmp_path / "end.zip")


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


DEEP = b"[" * 100_000
CONTENT: dict[str, tuple[str, bytes]] = {
    "a manifest that is nested deeply": (layout.MANIFEST, DEEP),
    "a manifest that is no UTF-8": (layout.MANIFEST, b'{"schema_version": 1, "files": "\xff"}'),
    "provenance that is nested deeply": (layout.PROVENANCE, DEEP),
    "a signature that is nested deeply": (layout.SIGNATURE, DEEP),
    "claims that are no UTF-8": ("evidence/claims.toml", b"\xff"),
    "claims that are nested deeply": ("evidence/claims.toml", b"a = " + DEEP),
    "claims of one endless key": ("evidence/claims.toml", b"a" + b".a" * 200_000 + b" = 1"),
    "claims without an end": ("evidence/claims.toml", b"#" * (1 << 21)),
    "a guide that is no UTF-8": ("guide/index.html", b"\xff"),
    "a guide of opening marks": ("guide/index.html", b"<" * 200_000),
    "a guide of scripts": ("guide/index.html", b"<script" * 100_000),
    "a guide of rows": ("guide/index.html", b'<tr id="claim-' * 100_000),
    "a capture that is nested deeply": ("evidence/small/captures.jsonl", DEEP + b"\n"),
    "a capture without an end": ("evidence/small/captures.jsonl", b'"' * 100_000),
    "a capture that is no UTF-8": ("evidence/small/captures.jsonl", b'"\xff"\n'),
    "an environment of a huge number": (
        "evidence/small/environment.json",
        b'{"schema": ' + b"9" * 100_000 + b"}",
    ),
    "a manifest of evidence that is nested deeply": ("evidence/small/manifest.json", DEEP),
}


@pytest.mark.parametrize("what", CONTENT)
def test_what_cannot_be_read_is_a_finding_of_its_file(
    package: Path, tmp_path: Path, what: str, capsys: Captured
) -> None:
    """Also where every other digest was made to fit; and no time is lost on it."""
    path, data = CONTENT[what]
    (package / path).write_bytes(data)
    found = packaged.digests(package)
    if path != layout.MANIFEST:
        (package / layout.MANIFEST).write_bytes(layout.manifest(found))
    (package / layout.SUMS).write_bytes(layout.sums(packaged.digests(package)))
    code, lines = packaged.theirs(package)
    assert code == 1
    assert any(line.startswith(path) for line in lines), lines
    refused(capsys, tmp_path, package)


def test_no_file_is_read_that_is_larger_than_any_of_its_kind(
    published: Path, tmp_path: Path, capsys: Captured
) -> None:
    """What is made of a file in memory takes many times its bytes, so each has its own limit."""
    for path in packaged.digests(published):
        package = Path(shutil.copytree(published, tmp_path / path.replace("/", "_")))
        with open(package / path, "r+b") as file:
            file.truncate(layout.most(path) + 1)
        code, lines = packaged.ours(capsys, package)
        assert code == 1
        assert f"{path}: has more than {layout.most(path)} bytes." in lines


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"[" * 2000 + b"\n"])
def test_after_so_many_findings_no_more_are_looked_for(package: Path, line: bytes) -> None:
    """A finding takes more room than the line that it is about."""
    with open(package / "evidence/small/captures.jsonl", "ab") as file:
        file.write(line * 20_000)
    code, lines = packaged.theirs(package)
    assert code == 1
    assert len(lines) == check.MOST + 2
    assert lines[-2].endswith("the rest was not looked for.")


def test_a_huge_file_or_line_is_not_read(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """A file by its size, a line by how far one may read."""
    captures = package / "evidence/small/captures.jsonl"
    monkeypatch.setattr("rcr_probes.evidence.check.LONGEST", 100)
    assert "longer than" in "".join(packaged.ours(capsys, package)[1])
    with open(captures, "r+b") as file:
        file.truncate(1 << 40)  # a hole: no byte of it is on the disk
    assert "bytes" in refused(capsys, tmp_path, package)
    captures.unlink()
    for number in range(names.MOST_IN_ALL // names.MOST_BYTES + 1):
        with open(package / f"guide/{number}", "wb") as file:
            file.truncate(names.MOST_BYTES)
    assert "bytes" in refused(capsys, tmp_path, package)
