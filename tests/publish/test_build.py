"""A package is whole, the same every time, and tells nothing of who made it where."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from rocrate.rocrate import ROCrate

from rcr_probes.errors import EvidenceError, NotEvidence, PlanError, RcrError
from rcr_probes.publish import layout
from rcr_probes.publish.build import publish
from tests.evidence import made
from tests.publish import packaged
from tests.publish.packaged import ORIGIN


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def git(folder: Path, *words: str) -> str:
    given = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    day = {f"GIT_{who}_DATE": "2025-06-07T08:09:10+0000" for who in ("AUTHOR", "COMMITTER")}
    who = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid")
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *words],
        env={**os.environ, **given, **day},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_package_holds_all_that_the_evidence_has(published: Path) -> None:
    """Captures, claims, tables, figures, both pages, and what is about them."""
    evidence = {
        f"evidence/{name}/{file}.{kind}"
        for name in packaged.CAPTURED
        for file, kind in (
            ("captures", "jsonl"),
            ("plan", "json"),
            ("manifest", "json"),
            ("environment", "json"),
        )
    }
    assert contents(published).keys() == evidence | {
        "evidence/claims.toml",
        "tables/control.csv",
        "tables/small.csv",
        "figures/small.causal_chain.en.svg",
        "figures/small.causal_chain.zh.svg",
        "guide/index.html",
        "guide/zh.html",
        "check.py",
        "provenance.json",
        "ro-crate-metadata.json",
        "manifest.json",
        "manifest.dsse.json",
        "SHA256SUMS",
    }


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="sha256sum is not on this machine")
def test_plain_sha256sum_accepts_the_package(published: Path) -> None:
    """Every file but the list itself, by a program that knows nothing of us."""
    words = ["sha256sum", "--strict", "--check", "SHA256SUMS"]
    done = subprocess.run(words, cwd=published, capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == len(contents(published)) - 1


def test_the_rocrate_library_reads_the_metadata(published: Path) -> None:
    """Licence, name, description, the given day, and each file."""
    crate = ROCrate(published)
    assert crate.root_dataset["license"]["@id"] == "https://creativecommons.org/licenses/by/4.0/"
    assert crate.root_dataset["datePublished"] == ORIGIN["date"]
    assert crate.name
    assert crate.description
    described = {entity.id for entity in crate.data_entities}
    assert described == contents(published).keys() - {"ro-crate-metadata.json"}


@pytest.mark.parametrize("suffix", ["", ".zip"], ids=["folder", "zip"])
def test_two_builds_are_equal_on_another_day_and_in_another_folder(
    source: Path,
    published: Path,
    keys: packaged.Keys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    suffix: str,
) -> None:
    """The same bytes: only the evidence, its day and its commit count."""
    elsewhere = tmp_path / "a folder with 中文" / "evidence"
    shutil.copytree(source, elsewhere)
    for path in elsewhere.rglob("*"):
        os.utime(path, (1, 1))
    monkeypatch.chdir(tmp_path)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 400 * 86_400)
    into = tmp_path / f"other{suffix}"
    publish(elsewhere, into, key=keys.private, **ORIGIN)
    if suffix:
        with zipfile.ZipFile(into) as archive:
            found = {name: archive.read(name) for name in archive.namelist()}
            days = {entry.date_time for entry in archive.infolist()}
        assert list(found) == sorted(found)
        assert days == {(1980, 1, 1, 0, 0, 0)}
    else:
        found = contents(into)
    assert found == contents(published)


def test_a_package_tells_no_user_no_host_no_path_and_not_today(published: Path) -> None:
    """Wherever it was made, and whenever."""
    private = {socket.gethostname(), os.getcwd(), str(Path.home()), str(published.parent)}
    private |= {getpass.getuser()} - {"root"}  # a word of ours, and of nobody's
    private |= {time.strftime("%Y-%m-%d"), "/tmp/"}
    for path, data in contents(published).items():
        if path.startswith("figures/"):  # a date there would break the test above
            continue
        told = [word for word in private - {"/"} if word.encode() in data]
        assert not told, path


def test_provenance_says_what_it_was_made_from_and_with(published: Path) -> None:
    """Commit, day, versions, the class of platform, and the digest of each plan."""
    said = json.loads((published / layout.PROVENANCE).read_text())
    assert (said["date"], said["source"]["commit"]) == (ORIGIN["date"], ORIGIN["commit"])
    assert set(said["made_with"]) == {"matplotlib", "rcr-probes", "rocrate"}
    small = said["evidence"]["small"]
    assert small["captures"] == len(packaged.CAPTURED["small"])
    assert small["plan_sha256"] == packaged.digests(published)["evidence/small/plan.json"]
    assert {"system", "machine", "python", "packages"} <= small["environment"].keys()


def test_day_and_commit_are_those_of_git_where_none_is_given(source: Path, tmp_path: Path) -> None:
    """The day of the last commit that touched the evidence; whether it was changed since, too."""
    folder = tmp_path / "repository"
    shutil.copytree(source, folder / "evidence")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Keep the evidence")
    changes: dict[str, Callable[[Path], object]] = {
        "nothing": lambda _: None,
        "a claim": lambda f: packaged.replace(f / "claims.toml", "Anything else.", "All else."),
        "more evidence": lambda f: shutil.copytree(f / "control", f / "more"),
    }
    for what, change in changes.items():
        change(folder / "evidence")
        publish(folder / "evidence", tmp_path / what)
        said = json.loads((tmp_path / what / layout.PROVENANCE).read_text())
        assert said["date"] == "2025-06-07"
        commit = git(folder, "rev-parse", "HEAD")
        assert said["source"] == {"commit": commit, "modified": what != "nothing"}
        git(folder, "checkout", "-q", ".")


def test_no_day_is_made_up(source: Path, tmp_path: Path) -> None:
    """Where nobody gives one and git knows none, publishing is refused with what to type."""
    with pytest.raises(RcrError, match="--date"):
        publish(source, tmp_path / "package")
    with pytest.raises(RcrError, match="no day"):
        publish(source, tmp_path / "package", date="yesterday")
    with pytest.raises(RcrError, match="commit"):
        publish(source, tmp_path / "package", date=ORIGIN["date"], commit="main")


def test_one_evidence_folder_is_published_by_itself(source: Path, tmp_path: Path) -> None:
    """Without claims and guide, and it says that they are left out."""
    made = publish(source / "control", tmp_path / "package", **ORIGIN)
    assert list(made.report.evidence) == ["control"]
    assert made.left_out == ("evidence/claims.toml", "guide/index.html", "guide/zh.html")


UNFIT: dict[str, tuple[Callable[[Path], object], str]] = {
    "a capture": (
        lambda f: packaged.replace(f / "small/captures.jsonl", '"calls":2', '"calls":3'),
        "small/captures.jsonl",
    ),
    "a claim": (
        lambda f: packaged.replace(f / "claims.toml", "expect = 2", "expect = 1"),
        "evidence/claims.toml P3",
    ),
    "a page": (
        lambda f: packaged.replace(f / "guide/zh.html", "效果数为 2", "效果数为 1"),
        "guide/zh.html",
    ),
}


@pytest.mark.parametrize("wrong", UNFIT)
def test_what_does_not_follow_is_not_published(source: Path, tmp_path: Path, wrong: str) -> None:
    """Text and data cannot drift apart: nothing is written, and the error names the file."""
    folder = Path(shutil.copytree(source, tmp_path / "evidence"))
    change, place = UNFIT[wrong]
    change(folder)
    with pytest.raises(EvidenceError) as raised:
        publish(folder, tmp_path / "out" / "package", **ORIGIN)
    assert raised.value.place.startswith(place)
    assert list(tmp_path.glob("out/*")) == []


def test_a_place_that_is_taken_or_inside_the_evidence_is_refused(
    source: Path, tmp_path: Path
) -> None:
    """Nothing is replaced, and a package is never part of what it was made of."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").touch()
    (tmp_path / "taken.zip").touch()
    for place in ("taken", "taken.zip"):
        with pytest.raises(PlanError, match="there already"):
            publish(source, tmp_path / place, **ORIGIN)
    with pytest.raises(PlanError, match="lies in"):
        publish(source, source / "package", **ORIGIN)
    with pytest.raises(NotEvidence):
        publish(tmp_path, tmp_path / "package", **ORIGIN)


def test_a_folder_whose_name_a_package_cannot_hold_is_refused(tmp_path: Path) -> None:
    """A name means the same file everywhere."""
    made.small(tmp_path / "evidence" / "small & odd")
    with pytest.raises(NotEvidence, match="Rename"):
        publish(tmp_path / "evidence", tmp_path / "package", **ORIGIN)


@pytest.mark.parametrize("library", ["rocrate.rocrate", "cryptography"])
def test_a_library_that_is_missing_is_named(
    source: Path,
    keys: packaged.Keys,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    library: str,
) -> None:
    """With the extra that brings it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(RcrError, match=library.split(".")[0]) as raised:
        publish(source, tmp_path / "package", key=keys.private, **ORIGIN)
    assert "rcr-probes[publish]" in raised.value.remedy
