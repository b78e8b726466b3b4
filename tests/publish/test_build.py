"""A package is whole, the same every time, and tells nothing of who made it where."""

from __future__ import annotations

import getpass
import json
import os
import platform
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

from rcr_probes.errors import EvidenceError, NotEvidence, PlanError, RcrError, installing
from rcr_probes.evidence import store
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import P3
from rcr_probes.publish import layout
from rcr_probes.publish.build import publish
from rcr_probes.publish.drawn import Borne
from rcr_probes.report import figure
from rcr_probes.report.tables import EXECUTORS
from tests.evidence import made
from tests.publish import packaged
from tests.publish.packaged import ORIGIN
from tests.publish.test_origin import git


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


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


def test_the_rocrate_library_writes_the_same_metadata(published: Path, tmp_path: Path) -> None:
    """What it reads, it writes again with the same entities and nothing more."""
    crate = ROCrate(published)
    crate.root_dataset["datePublished"] = ORIGIN["date"]  # else the library writes the time of day
    crate.metadata.write(tmp_path)
    ours, theirs = (
        json.loads((folder / layout.CRATE).read_text()) for folder in (published, tmp_path)
    )
    assert ours["@context"] == theirs["@context"]
    assert {one["@id"]: one for one in ours["@graph"]} == {
        one["@id"]: one for one in theirs["@graph"]
    }
    assert len(ours["@graph"]) == len(theirs["@graph"])


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


def test_a_package_tells_no_user_no_host_no_path_and_not_today(
    tmp_path: Path, keys: packaged.Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever makes it wherever: each goes by a word that nothing else could hold, root too."""
    told = {name: f"{name}-4f1c9d" for name in ("user", "host", "home", "folder")}
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, told["user"])
    home = tmp_path / told["home"]
    (home / told["folder"]).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HOSTNAME", told["host"])
    machine = os.uname()
    named = os.uname_result((machine.sysname, told["host"], *machine[2:]))
    monkeypatch.setattr(os, "uname", lambda: named)
    monkeypatch.setattr(socket, "gethostname", lambda: told["host"])
    monkeypatch.setattr(platform, "node", lambda: told["host"])
    monkeypatch.chdir(home / told["folder"])
    assert (getpass.getuser(), str(Path.home())) == (told["user"], str(home))
    source = packaged.evidence(Path("evidence").resolve())
    publish(source, Path("package"), key=keys.private, **ORIGIN)
    made = contents(Path("package"))
    assert any(path.startswith("figures/") for path in made)
    for path, data in made.items():
        assert not [word for word in told.values() if word.encode() in data], path
        # matplotlib's own words are in a figure, and a day there would break the test above
        today = [] if path.startswith("figures/") else [time.strftime("%Y-%m-%d"), "/tmp/"]
        assert not [word for word in today if word.encode() in data], path


def test_provenance_says_what_it_was_made_from_and_with(published: Path) -> None:
    """Commit, day, versions, the class of platform, and the digest of each plan."""
    said = json.loads((published / layout.PROVENANCE).read_text())
    assert (said["date"], said["source"]["commit"]) == (ORIGIN["date"], ORIGIN["commit"])
    assert set(said["made_with"]) == {"matplotlib", "rcr-probes"}
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
    for what in ("nothing", "more evidence"):
        if what == "more evidence":
            shutil.copytree(folder / "evidence" / "control", folder / "evidence" / "more")
        publish(folder / "evidence", tmp_path / what)
        said = json.loads((tmp_path / what / layout.PROVENANCE).read_text())
        assert said["date"] == "2025-06-07"
        commit = git(folder, "rev-parse", "HEAD")
        assert said["source"] == {"commit": commit, "modified": what != "nothing"}


def test_no_day_is_made_up(source: Path, tmp_path: Path) -> None:
    """Where nobody gives one and git knows none, publishing is refused with what to type."""
    with pytest.raises(RcrError, match="--date"):
        publish(source, tmp_path / "package")


def test_one_evidence_folder_is_published_by_itself(source: Path, tmp_path: Path) -> None:
    """Without claims and guide, and it says that they are left out."""
    made = publish(source / "control", tmp_path / "package", **ORIGIN)
    assert list(made.report.evidence) == ["control"]
    assert made.left_out == ("evidence/claims.toml", "guide/index.html", "guide/zh.html")


@pytest.mark.parametrize("signed", [False, True])
def test_every_step_is_told_as_it_is_done(
    source: Path, keys: packaged.Keys, tmp_path: Path, signed: bool
) -> None:
    """Each folder checked, each one drawn, and the whole checked: once more where it is signed."""
    told: list[tuple[int, int]] = []
    key = keys.private if signed else None
    made = publish(
        source, tmp_path / "package", key=key, **ORIGIN, progress=lambda *step: told.append(step)
    )
    steps = 2 * len(made.report.evidence) + 1 + signed
    assert told == [(done, steps) for done in range(1, steps + 1)]


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


HIDDEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "claims behind a link": (lambda f: behind(f / "claims.toml"), "claims.toml"),
    "a page behind a link": (lambda f: behind(f / "guide/zh.html"), "guide/zh.html"),
    "a guide behind a link": (lambda f: behind(f / "guide"), "guide/index.html"),
    "claims that lead nowhere": (lambda f: nowhere(f / "claims.toml"), "claims.toml"),
    "claims that are a folder": (
        lambda f: nowhere(f / "claims.toml", folder=True),
        "claims.toml",
    ),
    "evidence behind a link": (lambda f: behind(f / "control"), "control"),
}


def behind(path: Path) -> Path:
    """Move something away, and leave a link to it."""
    path.symlink_to(path.rename(path.parents[1] / f"moved-{path.name}"))
    return path


def nowhere(path: Path, *, folder: bool = False) -> None:
    path.unlink()
    if folder:
        path.mkdir()
    else:
        path.symlink_to("nothing")


@pytest.mark.parametrize("what", HIDDEN)
def test_what_lies_behind_a_link_is_not_left_out_unsaid(
    source: Path, tmp_path: Path, what: str
) -> None:
    """It is there for its owner; a package without it would say that there is none."""
    folder = Path(shutil.copytree(source, tmp_path / "evidence"))
    change, place = HIDDEN[what]
    change(folder)
    with pytest.raises(EvidenceError) as raised:
        publish(folder, tmp_path / "package", **ORIGIN)
    assert raised.value.place.startswith(place)
    assert not (tmp_path / "package").exists()


def test_the_figures_of_a_package_are_those_that_its_captures_bear(folder_of: Evidence) -> None:
    """By a rule that a checker follows without drawing them."""
    borne = Borne()
    for capture in folder_of.captures():
        borne.see(capture)
    try:
        figure.causal_chain(folder_of)
        assert layout.CHAIN in borne.figures
    except EvidenceError:
        assert layout.CHAIN not in borne.figures
    assert (layout.MATRIX in borne.figures) == (folder_of.folder.name == "runtimes")


@pytest.fixture(params=["article", "locations", "rcr-20260831", "runtimes"])
def folder_of(request: pytest.FixtureRequest) -> Evidence:
    """Each committed evidence."""
    return store.read(Path(__file__).parents[2] / "evidence" / request.param)


def test_the_causal_chain_is_that_of_the_article() -> None:
    """The rule has the very cell that the figure shows."""
    assert EXECUTORS[figure.MAIN] == P3


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
    (tmp_path / "empty").mkdir()
    for name, target in (("link", "empty"), ("dangling", "nowhere"), ("link.zip", "nowhere")):
        (tmp_path / name).symlink_to(tmp_path / target)
        with pytest.raises(PlanError, match="is a symbolic link"):
            publish(source, tmp_path / name, **ORIGIN)
    with pytest.raises(PlanError, match="lies in"):
        publish(source, source / "package", **ORIGIN)
    with pytest.raises(NotEvidence):
        publish(tmp_path, tmp_path / "package", **ORIGIN)


def test_a_folder_whose_name_a_package_cannot_hold_is_refused(tmp_path: Path) -> None:
    """A name means the same file everywhere."""
    made.small(tmp_path / "evidence" / "small & odd")
    with pytest.raises(NotEvidence, match="Rename"):
        publish(tmp_path / "evidence", tmp_path / "package", **ORIGIN)


@pytest.mark.parametrize("library", ["matplotlib", "cryptography"])
def test_a_library_that_is_missing_is_named_before_anything_is_read(
    keys: packaged.Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    """With the extra that brings it; that there is no evidence would be said after it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(RcrError, match=library) as raised:
        publish(tmp_path / "nowhere", tmp_path / "package", key=keys.private, **ORIGIN)
    assert installing("publish") in raised.value.remedy
