"""What was changed in a package is found, by rcr check and by the package's own program alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.evidence.check import plain
from rcr_probes.publish import layout
from rcr_probes.publish.verify import verify
from tests.evidence import made
from tests.publish import packaged
from tests.publish.packaged import replace

Captured = pytest.CaptureFixture[str]
Change = Callable[[Path], object]

SMALL = "evidence/small/captures.jsonl"
FIGURE = "figures/small.causal_chain.en.svg"


def _claim(value: str) -> Change:
    return lambda f: replace(f / "evidence/claims.toml", "expect = 2", f"expect = {value}")


def _row(f: Path) -> None:
    replace(f / "tables/small.csv", "duplicate_effect", "consistent")


def _capture(f: Path) -> None:
    """One effect fewer, with its digest over the facts made anew."""
    made.remake(f / "evidence/small", 1, lambda data: data["measurement"]["events"].pop(-2))


def _judged(f: Path) -> None:
    """A verdict that does not follow, in a line whose every digest fits."""
    lines = made.edit(
        f / "evidence/small",
        1,
        lambda data: data["judgement"]["verdict"].update(verdict="consistent"),
    )
    made.reseal(f / "evidence/small", lines)


def _renamed(f: Path) -> None:
    (f / "tables/control.csv").rename(f / "tables/Control.csv")


def _manifest(f: Path) -> None:
    """A figure, and its digest in the manifest."""
    replace(f / FIGURE, "<svg", "<svg ")
    found = packaged.digests(f)
    (f / layout.MANIFEST).write_bytes(layout.manifest(found))


# One thing changed, and no digest made to fit: what is changed, and which files are named.
CARELESS: dict[str, tuple[Change, list[str]]] = {
    "a number in the guide": (
        lambda f: replace(f / "guide/index.html", "12345", "12346"),
        ["guide/index.html"],
    ),
    "a claim in the guide": (
        lambda f: replace(f / "guide/zh.html", "效果数为 2", "效果数为 1"),
        ["guide/zh.html"],
    ),
    "a capture": (
        lambda f: replace(f / SMALL, '"calls":2', '"calls":3'),
        ["evidence/claims.toml", SMALL, "guide/index.html", "guide/zh.html", "provenance.json"],
    ),
    "a claim": (_claim("1"), ["evidence/claims.toml", "guide/index.html", "guide/zh.html"]),
    "a figure": (lambda f: replace(f / FIGURE, "<svg", "<svg "), [FIGURE]),
    "a table": (_row, ["tables/small.csv"]),
    "the manifest": (
        lambda f: replace(f / layout.MANIFEST, '"schema_version": 1', '"schema_version": 1 '),
        ["manifest.dsse.json", "manifest.json"],
    ),
    "the manifest with a figure": (_manifest, [FIGURE, "manifest.dsse.json", "manifest.json"]),
    "the sums": (
        lambda f: replace(f / layout.SUMS, "check.py", "chick.py"),
        ["check.py", "chick.py"],
    ),
    "a file's name": (_renamed, ["tables/Control.csv", "tables/control.csv"]),
    "a file more": (lambda f: (f / "guide/more.html").touch(), ["guide/more.html"]),
    "a file less": (lambda f: (f / FIGURE).unlink(), [FIGURE]),
    "the program": (lambda f: replace(f / "check.py", "MIT", "MIT "), ["check.py"]),
    "provenance": (
        lambda f: replace(f / layout.PROVENANCE, '"captures": 3', '"captures": 4'),
        ["provenance.json"],
    ),
}


@pytest.mark.parametrize("what", CARELESS)
def test_one_change_is_found_by_both(package: Path, what: str, capsys: Captured) -> None:
    """They say the same, and name the file that was changed."""
    change, named = CARELESS[what]
    change(package)
    found = packaged.theirs(package)
    assert found == packaged.ours(capsys, package)
    code, lines = found
    assert code == 1
    assert set(named) <= set(packaged.places(lines)), lines


def test_what_follows_from_one_change_says_from_which(package: Path) -> None:
    """No line is there twice: each manifest is named by its place, and so is what is wrong."""
    CARELESS["a capture"][0](package)
    _, lines = packaged.theirs(package)
    assert len(set(lines)) == len(lines)
    for place in ("manifest.json", "evidence/small/manifest.json"):
        said = f"was changed: its SHA-256 is not the one that {place} gives."
        assert f"{SMALL}: {said}" in lines
    because = next(line for line in lines if line.startswith("evidence/claims.toml P3: "))
    assert f" cannot be taken: {SMALL}:" in because


# The same, with every digest made to fit: what follows from the captures still tells.
CAREFUL: dict[str, tuple[Change, str]] = {
    "a claim in the guide": (CARELESS["a claim in the guide"][0], "guide/zh.html"),
    "a claim's number in its table": (
        lambda f: replace(f / "guide/index.html", 'class="n"><bdi>2', 'class="n"><bdi>1'),
        "guide/index.html",
    ),
    "a claim hidden from the guide": (
        lambda f: replace(f / "guide/index.html", "<table>", "<script><table>"),
        "guide/index.html",
    ),
    "a capture, its facts digested anew": (_capture, SMALL),
    "a verdict": (_judged, SMALL),
    "a claim": (_claim("1"), "evidence/claims.toml"),
    "a table": (_row, "tables/small.csv"),
    "a table that a page shows": (
        lambda f: replace(f / "evidence/claims.toml", '{ policy = "resume" }', '{ policy = "x" }'),
        "evidence/claims.toml",
    ),
    "a file's name": (_renamed, "tables/Control.csv"),
    "a file more": (lambda f: (f / "notes.txt").touch(), "notes.txt"),
    "a figure, though it was signed": (CARELESS["a figure"][0], "manifest.dsse.json"),
    "what a claim does not show, in the claims alone": (
        lambda f: replace(f / "evidence/claims.toml", "Anything else.", "Nothing."),
        "guide/index.html",
    ),
    "the same in Chinese": (
        lambda f: replace(f / "evidence/claims.toml", "其他。", "没有。"),
        "guide/zh.html",
    ),
    "where a claim was said first": (
        lambda f: replace(f / "evidence/claims.toml", "made by hand", "published"),
        "guide/index.html",
    ),
    "a query that rests on other captures": (
        lambda f: replace(
            f / "evidence/claims.toml",
            'evidence = "control"\nwhere = {}',
            'evidence = "small"\nwhere = { point = "none" }',
        ),
        "guide/index.html",
    ),
}
# What is no part of a package, or is missing in one.
STRAY = [
    "figures/evil.png",
    "figures/small.causal_chain.en.png",
    "figures/small.evil.en.svg",
    "figures/small.causal_chain.de.svg",
    "figures/other.causal_chain.en.svg",
    "figures/control.causal_chain.en.svg",
    "figures/small.matrix.zh.svg",
    "figures/small.causal_chain.en.svg.svg",
    "figures/smallXcausal_chain.en.svg",
    "evidence/small/evil",
    "tables/evil.csv",
]
EMPTY = ["empty", "evidence/more", "figures/a", "con", "e\x1b[2J", "guide/NUL.txt", "a/b/c"]


@pytest.mark.parametrize("name", STRAY)
def test_a_stray_file_is_found(package: Path, name: str) -> None:
    """A figure, too: its name says of what it is, and the captures say whether they bear it."""
    (package / name).write_bytes(b"<svg/>")
    packaged.reseal(package)
    assert name in {finding.place for finding in verify(package).findings}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_folder_is_found(package: Path, name: str) -> None:
    """No list names it, and a name can say anything."""
    (package / name).mkdir(parents=True)
    findings = verify(package).findings
    assert plain(name) in {finding.place for finding in findings}
    assert {finding.kind for finding in findings} <= {"empty_folder", "odd_name"}


def test_a_figure_that_is_missing_is_found(package: Path) -> None:
    """Though no list misses it."""
    (package / FIGURE).unlink()
    packaged.reseal(package)
    assert FIGURE in {finding.place for finding in verify(package).findings}


# What provenance says, changed to what publishing never writes.
PROVENANCE: dict[str, Callable[[dict[str, Any]], object]] = {
    "a day that never was": lambda said: said.update(date="2026-02-30"),
    "a month that never was": lambda said: said.update(date="2026-13-01"),
    "a day in other digits": lambda said: said.update(date="٢٠٢٦-٠١-٠٢"),
    "a schema that is true": lambda said: said.update(schema=True),
    "a schema with a point": lambda said: said.update(schema=1.0),
    "captures with a point": lambda said: said["evidence"]["small"].update(captures=3.0),
    "captures that are true": lambda said: said["evidence"]["control"].update(captures=True),
    "a path in a version": lambda said: said["made_with"].update(matplotlib="3 /home/somebody"),
    "a version that is no text": lambda said: said["made_with"].update(matplotlib=3),
    "a path in a package's name": lambda said: said["made_with"].update({"/home/x": "1"}),
    "versions that are a list": lambda said: said.update(made_with=["matplotlib"]),
    "a commit that is a number": lambda said: said["source"].update(commit=int("1" * 40)),
    "a commit that is short": lambda said: said["source"].update(commit="0123"),
    "modified in words": lambda said: said["source"].update(modified="no"),
    "a key more": lambda said: said.update(more=1),
    "evidence more": lambda said: said["evidence"].update(more={}),
    "another environment": lambda said: said["evidence"]["small"]["environment"].update(python="9"),
}


@pytest.mark.parametrize("what", PROVENANCE)
def test_provenance_that_publishing_never_writes_is_found(package: Path, what: str) -> None:
    """By its kinds and its values, with every digest made anew."""
    packaged.edit(package / layout.PROVENANCE, PROVENANCE[what])
    packaged.reseal(package, provenance=False)
    findings = verify(package).findings
    assert {finding.place for finding in findings} >= {layout.PROVENANCE}, findings


# What the metadata say, changed in any of their parts.
METADATA: dict[str, Callable[[Any], object]] = {
    "a file more": lambda said: said["@graph"].append({"@id": "more", "@type": "File"}),
    "a file less": lambda said: said["@graph"].pop(),
    "a part less": lambda said: said["@graph"][0]["hasPart"].pop(),
    "another licence": lambda said: said["@graph"][0]["license"].update({"@id": "http://x"}),
    "another day": lambda said: said["@graph"][0].update(datePublished="2020-01-01"),
    "another name": lambda said: said["@graph"][0].update(name="Evidence of somebody else"),
    "another author": lambda said: said["@graph"][4].update(name="Somebody"),
    "another size": lambda said: said["@graph"][5].update(contentSize="1"),
    "another context": lambda said: said.update({"@context": "http://x"}),
    "a key more": lambda said: said.update(more=1),
    "nothing": lambda said: said.clear(),
}


@pytest.mark.parametrize("what", METADATA)
def test_metadata_that_do_not_follow_are_found(package: Path, what: str) -> None:
    """Files, sizes, names, licence, author and day: all of it is derived again."""
    packaged.edit(package / layout.CRATE, METADATA[what])
    packaged.reseal(package, crate=False)
    assert {f.place for f in verify(package).findings} == {layout.CRATE, layout.SIGNATURE}


def test_metadata_that_cannot_be_read_are_found(package: Path) -> None:
    """Whatever bytes they are."""
    for data in (b"", b"{}", b"\xff", b"[" * 10_000):
        (package / layout.CRATE).write_bytes(data)
        packaged.reseal(package, crate=False)
        assert layout.CRATE in {f.place for f in verify(package).findings}


@pytest.mark.parametrize("what", CAREFUL)
def test_a_change_with_every_digest_made_anew_is_found_by_both(
    package: Path, what: str, capsys: Captured
) -> None:
    """Where it contradicts the captures, or is no part of a package."""
    change, place = CAREFUL[what]
    change(package)
    packaged.reseal(package)
    found = packaged.theirs(package)
    assert found == packaged.ours(capsys, package)
    assert found[0] == 1
    assert place in packaged.places(found[1])


# What nothing but a signature can find: text and pictures that follow from no capture by rule, and
# evidence that was made up as a whole.
CONSISTENT: dict[str, Change] = {
    "a figure": CARELESS["a figure"][0],
    "a number in the guide that no claim makes": CARELESS["a number in the guide"][0],
    "the source's commit": lambda f: replace(f / layout.PROVENANCE, "0123456789", "1123456789"),
    "the day": lambda f: replace(f / layout.PROVENANCE, "2026-01-02", "2026-01-03"),
    "a query that the same captures answer alike": lambda f: replace(
        f / "evidence/claims.toml",
        'point = "completion_audit", policy = "resume"',
        'policy = "resume"',
    ),
    "what is taken, where it has the same value": lambda f: replace(
        f / "evidence/claims.toml", '"effects_after_recovery"', '"calls_after_recovery"'
    ),
    "a table that a page shows": lambda f: replace(
        f / "evidence/claims.toml", 'page = "README.md"', 'page = "OTHER.md"'
    ),
}


@pytest.mark.parametrize("what", CONSISTENT)
def test_a_consistent_forgery_is_found_by_a_signature_alone(
    package: Path, keys: packaged.Keys, what: str, capsys: Captured
) -> None:
    """Without one both call it sound, and say that this is what they cannot find."""
    CONSISTENT[what](package)
    (package / layout.SIGNATURE).unlink()
    packaged.reseal(package)
    code, lines = packaged.theirs(package)
    assert code == 0
    assert "What this cannot find" in lines[-1]
    assert packaged.ours(capsys, package)[0] == 0
    assert packaged.ours(capsys, package, "--trust", keys.public)[0] == 1


def test_a_signature_that_was_kept_does_not_fit_a_forgery(
    published: Path, package: Path, keys: packaged.Keys, capsys: Captured
) -> None:
    """Nor does one that the forger made: the trusted key decides."""
    CONSISTENT["a figure"](package)
    packaged.reseal(package)
    assert packaged.ours(capsys, package, "--trust", keys.public)[0] == 1
    assert packaged.ours(capsys, published, "--trust", keys.other)[0] == 1
    code, lines = packaged.ours(capsys, published, "--trust", keys.public)
    assert code == 0
    assert any("Signed by the key that you trust" in line for line in lines)


def test_a_checker_that_is_not_ours_is_told(package: Path, capsys: Captured) -> None:
    """It may be of another version, or a forger's: nothing in a sound package says which."""
    (package / layout.SIGNATURE).unlink()
    replace(package / "check.py", "sys.exit(main(", "sys.exit(0 * main(")
    packaged.reseal(package)
    code, lines = packaged.ours(capsys, package)
    assert code == 0
    assert "do not run it unseen" in lines[-1]


def test_the_manifest_of_a_package_is_of_the_published_form(published: Path) -> None:
    """schema_version 1, and each file's path and SHA-256: what an importer of the series reads."""
    manifest = json.loads((published / layout.MANIFEST).read_text())
    assert manifest["schema_version"] == 1
    assert {"path", "sha256"} == set(manifest["files"][0])
