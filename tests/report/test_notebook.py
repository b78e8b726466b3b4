"""What the notebooks' cells call: live runs of chosen cells, and prose that counts."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from rcr_probes import plan as plans
from rcr_probes.errors import PlanError, RcrError, UnknownName
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import P3
from rcr_probes.report import notebook, reviewed, tables
from rcr_probes.report.parameters import PARAMETERS, checked, defaults
from rcr_probes.report.texts import text


def test_all_cells_of_two_plans_are_chosen_once() -> None:
    """What both plans have is run once, and no choice chooses all."""
    both = notebook.selected("article", "locations")
    cells = {*plans.read("article").cells, *plans.read("locations").cells}
    assert len(both.cells) == len(cells)
    assert set(both.cells) == cells


def test_the_choices_narrow_the_cells() -> None:
    """Each parameter is about one axis."""
    some = notebook.selected(
        "locations", points=["after_action"], dedupe=["operation_key"], digests=["same"]
    )
    assert {(c.point, c.dedupe) for c in some.cells} == {("after_action", "operation_key")}
    assert len(some.cells) == 6


def test_a_choice_that_leaves_nothing_is_refused() -> None:
    """The point exists, and this plan has no cell there; what it does have is said."""
    with pytest.raises(PlanError, match="No cell of article has points") as caught:
        notebook.selected("article", points=["after_action"], dedupe=["none"])
    assert caught.value.remedy == (
        "Choose among what is there: points = ['none', 'approval_audit', 'start_audit', "
        "'completion_audit'], dedupe = ['none', 'operation_key']."
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("points", 3),
        ("points", ["none", 3]),
        ("points", None),
        ("dedupe", {"none": 1}),
        ("start", ["fork"]),
        ("start", True),
        ("lang", 1.5),
        ("package", None),
        ("package", ""),
        ("package", ["a"]),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_what_is_taken(name: str, value: object) -> None:
    """The message shows a line that would be right."""
    with pytest.raises(PlanError) as caught:
        checked(name, value)
    assert "wrong type" in caught.value.cause
    example = caught.value.remedy.split(": ", 1)[1]
    given = example.removeprefix(f"{name} = ")
    assert checked(name, given.strip("[]"))


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("points", ["after_acton"], "after_action"),
        ("points", "completion_audit,nowhere", "points"),
        ("dedupe", ["operation-key"], "operation_key"),
        ("digests", [""], "digests"),
        ("start", "spwan", "spawn"),
        ("lang", "de", "lang"),
        ("pionts", ["none"], "points"),
    ],
)
def test_a_value_or_a_parameter_that_nothing_knows_is_refused(
    name: str, value: object, meant: str
) -> None:
    """The message names what may have been meant."""
    with pytest.raises(UnknownName, match=meant):
        checked(name, value)


def test_an_empty_list_chooses_nothing_and_is_refused() -> None:
    """No choice is said by leaving the parameter as it is."""
    with pytest.raises(PlanError, match="chooses nothing"):
        checked("points", [])


def test_a_list_may_be_written_with_commas() -> None:
    """As on the command line."""
    assert checked("points", "after_action, completion_audit") == [
        "after_action",
        "completion_audit",
    ]
    assert checked("dedupe", ("none",)) == ["none"]


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "start = os.environ['START']",
        "start = f'fork'",
        "start: str = 'fork'",
        "start = lang = 'en'",
        "a.start = 'fork'",
        "start = ",
        "start = 'walk'",
        "speed = 3",
    ],
)
def test_a_parameters_cell_that_holds_more_than_literals_is_refused(source: str) -> None:
    """It is read without being run."""
    with pytest.raises(RcrError):
        defaults(source, "some.ipynb")


def test_a_parameters_cell_is_read_without_being_run() -> None:
    """Names and values come back."""
    assert defaults("dedupe = ['none']\nlang = 'zh'", "x") == {"dedupe": ["none"], "lang": "zh"}


def test_what_was_measured_is_there_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The captures outlive the folder in which they were made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    evidence = notebook.measured("article", points=["completion_audit"], dedupe=["none"])
    assert list(tmp_path.iterdir()) == []
    assert [c.cell for c in evidence.captures()] == list(evidence.plan.cells)
    assert list(tables.restart(evidence)["calls"]) == [2, 1]
    assert evidence.capture("/".join(P3)).measurement.events


def test_start_is_checked_before_anything_runs() -> None:
    """A misspelt start method starts nothing."""
    with pytest.raises(UnknownName):
        notebook.measured("article", start="spwan")


def test_the_facts_of_the_prose_are_counted(article: Evidence, locations: Evidence) -> None:
    """Their sums agree with the captures."""
    facts = notebook.facts(locations)
    verdicts = [c.judgement.verdict for c in locations.captures()]
    assert facts["cells"] == facts["faults"] == facts["fired"] == len(verdicts)
    assert facts["unknown"] == 0
    failed = [
        c for c in locations.captures() if c.measurement.observations[0].recorded.status == "failed"
    ]
    present = sum(bool(c.measurement.observations[0].effects) for c in failed)
    assert facts["failed"] == len(failed)
    assert (facts["failed_present"], facts["failed_absent"]) == (present, len(failed) - present)
    assert notebook.facts(article)["p3_verdict"] == "duplicate_effect"
    assert notebook.facts(article)["faults"] == len(article.plan.cells) - 1


def test_the_codes_of_p3_are_told_in_words(article: Evidence) -> None:
    """Chinese has each term with its code; every reason is a sentence in both languages."""
    english, chinese = (notebook.facts(article, lang) for lang in ("en", "zh"))
    assert english["p3_eligibility"] == "reconcile"
    assert chinese["p3_eligibility"] == "对账（reconcile）"
    assert chinese["p3_call_harm"] == "重复（duplicate）"
    assert chinese["p3_verdict"] == "重复效果（duplicate_effect）"
    verdict = article.capture("/".join(P3)).judgement.verdict
    assert verdict is not None
    assert verdict.reasons
    for said, lang in ((english, "en"), (chinese, "zh")):
        told = str(said["p3_reasons"])
        assert all(f"{text(f'reason.{code}', lang)}  [{code}]" in told for code in verdict.reasons)
    assert english["p3_effects_after_recovery"] == chinese["p3_effects_after_recovery"] == 2


def test_who_recovered_is_counted_over_cells(locations: Evidence) -> None:
    """Each cell is under one policy; what is blocked under never nobody tried."""
    facts = notebook.facts(locations)
    for verdict in ("blocked", "duplicate_effect", "protected"):
        of = [facts[f"{who}_{verdict}"] for who in ("again", "never", "own")]
        having = [
            c.cell.policy
            for c in locations.captures()
            if c.judgement.verdict and c.judgement.verdict.verdict == verdict
        ]
        assert of == [having.count("again"), having.count("never"), having.count("resume")]
        assert facts[f"all_{verdict}"] == len(having)
    assert facts["never_blocked"]


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What the cells would show."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(notebook, "publish_display_data", lambda data, _: found.append(data))
    return found


def test_a_table_without_rows_says_so(
    locations: Evidence, displayed: Sequence[dict[str, str]]
) -> None:
    """A choice of cells may leave a table empty; the reader is told."""
    notebook.show(tables.events, locations, "en", executor="none_changed")
    assert displayed[0]["text/markdown"].startswith("None of the chosen cells")


def test_a_table_is_shown_whole_and_blank_where_nothing_is(
    article: Evidence, displayed: Sequence[dict[str, str]]
) -> None:
    """Neither cut short, nor with a word for what is missing."""
    notebook.show(tables.counted, article, "en")
    notebook.show(tables.verdicts, article, "zh")
    for form in ("text/html", "text/plain"):
        assert "undo" not in displayed[0][form]
        assert "let recovery look for the effect before it calls." in displayed[0][form]
        assert "NA" not in displayed[1][form]


@pytest.mark.parametrize("lang", PARAMETERS["lang"])
def test_what_was_measured_agrees_with_what_was_published(
    article: Evidence, displayed: Sequence[dict[str, str]], lang: str
) -> None:
    """Both are shown, and nothing differs."""
    notebook.beside_published(article, lang)
    [table, said] = displayed
    assert "APPROVAL_STALE" in table["text/plain"]
    assert {"en": "differ: 0", "zh": "不同的有 0 个"}[lang] in said["text/markdown"]
    assert "`identity`" in said["text/markdown"]


@pytest.mark.parametrize(("lang", "same"), [("en", "differ: 0"), ("zh", "不同的有 0 个")])
def test_a_published_package_is_reviewed(
    displayed: Sequence[dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lang: str,
    same: str,
) -> None:
    """Its files, its rows in memory, and how they compare with ours; nothing is left behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    review = reviewed.reviewed("../examples/synthetic-package")
    assert list(tmp_path.iterdir()) == []
    assert len(reviewed.files(review, lang)) == review.counts["verified"] == 5
    notebook.beside_ours(review.evidence, lang)
    assert same in displayed[0]["text/markdown"]


def test_a_figure_is_told_to_those_who_cannot_see_it(
    article: Evidence, displayed: Sequence[dict[str, str]]
) -> None:
    """Its alternative text holds the captured states and counts."""
    notebook.draw(article, "en")
    assert displayed[0]["text/plain"].endswith("calls: 2, effects: 2.")
    assert displayed[0]["image/png"]


def test_a_generated_plan_is_read_as_committed_or_measured_now(tmp_path: Path) -> None:
    """The same function for both; its parameter takes nothing else."""
    plan = tmp_path / "mine.toml"
    plan.write_text('[[cells]]\npoint = "after_action"\nfault = "kill"\npolicy = "never"\n')
    evidence = notebook.evidence_of(str(plan), "now")
    assert [capture.judgement.fired for capture in evidence.captures()] == [True]
    assert not evidence.folder.exists()
    with pytest.raises(UnknownName):
        notebook.evidence_of(str(plan), "later")
