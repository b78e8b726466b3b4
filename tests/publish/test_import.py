"""A package is taken in whole and checked, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes.cli import main
from rcr_probes.evidence import archive
from rcr_probes.publish.taken import take
from scripts import make_synthetic_package as synthetic
from tests.evidence import made
from tests.publish import packaged
from tests.publish.zips import Captured, listed, refused, zipped


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


def test_a_place_that_takes_no_package_is_named_as_it_was_typed(
    published: Path, capsys: Captured
) -> None:
    """And not what was to stand beside it for a while."""
    assert main(["import", str(published), "--into", "/proc/it"]) == 2
    assert capsys.readouterr().err.startswith("rcr: /proc/it: No such file or directory.")


def test_a_package_is_not_taken_into_itself(
    package: Path, tmp_path: Path, capsys: Captured
) -> None:
    """It would be copied into its own copy, without an end."""
    before = listed(tmp_path)
    assert main(["import", str(package), "--into", str(package / "evidence" / "mine")]) == 2
    assert "lies in" in capsys.readouterr().err
    assert listed(tmp_path) == before
