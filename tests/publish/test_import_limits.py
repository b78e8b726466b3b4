"""What is too large, too much or too deep is refused, or found, before it costs anything."""

from __future__ import annotations

import shutil
import struct
import time
import zipfile
from pathlib import Path

import pytest

from rcr_probes.evidence import archive, check, names
from rcr_probes.publish import layout
from rcr_probes.publish.verify import verify
from tests.publish import packaged
from tests.publish.zips import Captured, entries, refused


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
