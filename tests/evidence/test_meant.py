"""Who names a place without evidence is told which folder was meant, or which lie below it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes.cli import main
from rcr_probes.errors import NotEvidence, RcrError
from rcr_probes.evidence import meant, store
from rcr_probes.evidence.checked import check_all
from rcr_probes.evidence.claimed import held
from rcr_probes.report import timeline
from tests.evidence import made

Open = Callable[[Path], object]
# What opens a folder of evidence, or of folders with evidence.
OPEN: dict[str, Open] = {"read": store.read, "check": check_all, "timeline": timeline.opened}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current directory with two folders of evidence in ``runs``, and a folder of something."""
    monkeypatch.chdir(tmp_path)
    made.small(Path("runs", "article"))
    made.small(Path("runs", "locations"))
    Path("runs", "articles.cells").mkdir()
    Path("notes").mkdir()
    return tmp_path


def refusal(open_it: Open, place: str) -> RcrError:
    with pytest.raises(NotEvidence) as caught:
        open_it(Path(place))
    return caught.value


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("open_it", OPEN.values(), ids=OPEN)
@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("runs/artcle", "runs/article"),
        ("runs/loations/", "runs/locations"),
        ("rusn/article", "runs/article"),
        ("article", "runs/article"),
        ("rnus", "runs"),
    ],
)
def test_a_misspelt_folder_is_answered_with_the_one_that_is_there(
    typed: str, found: str, open_it: Open
) -> None:
    """Beside it, further up, or one level below; what holds no evidence is never meant."""
    error = refusal(open_it, typed)
    assert error.cause.startswith("There is no ")
    assert str(Path(typed)) in error.cause
    assert error.remedy == f"Did you mean {found}?"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("typed", ["nowhere", "nots", "nope/nope/article", "/nope"])
def test_nothing_is_guessed_where_nothing_is_alike(typed: str) -> None:
    """A folder without evidence is not suggested either."""
    assert refusal(store.read, typed).remedy == "Make evidence with: rcr run article"


@pytest.mark.usefixtures("here")
def test_misspelt_claims_and_folders_to_compare_are_answered_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever a command takes evidence from."""
    for words in (
        ["show", "rusn", "--claims"],
        ["compare", "runs/article", "runs/artcle"],
        ["explain", "runs/artcle"],
        ["export", "runs/artcle", "--to", "a.parquet"],
    ):
        assert main(words) == 2
        assert "  Did you mean runs" in capsys.readouterr().err
    assert refusal(held, "rusn").remedy == "Did you mean runs?"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("open_it", [store.read, timeline.opened])
@pytest.mark.parametrize("typed", ["runs", "."])
def test_a_folder_of_folders_names_those_below(typed: str, open_it: Open) -> None:
    """In it, or one level further down."""
    assert refusal(open_it, typed).remedy == "Name one of them: runs/article, runs/locations"


def test_a_few_of_many_are_named(here: Path) -> None:
    """And how many more there are."""
    for number in range(5):
        made.small(here / "runs" / f"more-{number}")
    assert refusal(store.read, "runs").remedy.endswith("runs/more-1 and 3 more")


@pytest.mark.usefixtures("here")
def test_a_file_of_evidence_leads_to_its_folder() -> None:
    """Another file does not."""
    error = refusal(store.read, "runs/article/captures.jsonl")
    assert error.remedy == "Name the folder that it lies in: runs/article"
    Path("notes", "a").touch()
    assert "such as runs/article" in refusal(store.read, "notes/a").remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look anywhere")
def test_a_folder_that_may_not_be_looked_into_holds_nothing(here: Path) -> None:
    """It is no reason to break."""
    (here / "notes").chmod(0)
    try:
        assert meant.below(here / "notes") == []
        assert meant.question(Path("runs", "artcle")) == "Did you mean runs/article?"
    finally:
        (here / "notes").chmod(0o700)
