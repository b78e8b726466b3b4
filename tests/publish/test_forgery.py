"""What was changed in a package is found, by rcr check and by the package's own program alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes.publish import layout
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
}


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
