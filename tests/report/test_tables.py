"""The tables: from captures alone, with the article's figures where it has the same cells."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from rcr_probes import model
from rcr_probes import plan as plans
from rcr_probes.errors import EvidenceError, UnknownName
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.rows import COLUMNS, PUBLISHED_VERDICT
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Cell, Plan
from rcr_probes.report import tables
from rcr_probes.report.explain import explain
from rcr_probes.report.texts import text
from rcr_probes.run import run

P3 = "/".join(model.P3)

# Source: the two tables of RCR-20260831-01; EISDIR stands for its word "error".
FAULT_LOCATIONS = [
    ("P0", "APPROVAL_ALREADY_CONSUMED", "succeeded", 1),
    ("P1", "EISDIR", "approved", 0),
    ("P2", "EISDIR", "executing", 0),
    ("P3", "EISDIR", "failed", 1),
]
RESTART = [
    ("no dedupe, same digest", 1, 2, 2, "succeeded"),
    ("stable operation key, same digest", 1, 1, 2, "succeeded"),
    ("changed digest", 1, 1, 1, "APPROVAL_STALE"),
]


def rows(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return list(frame.itertuples(index=False, name=None))


def made(folder: Path, *cells: Cell) -> Evidence:
    return run(Plan("few", cells), folder / "evidence")


def test_the_tidy_table_has_the_columns_of_the_design(article: Evidence) -> None:
    """The same names and the same order as JSON and CSV, a row for each capture."""
    frame = tables.tidy(article)
    assert tuple(frame.columns) == COLUMNS
    assert list(frame["cell"]) == [cell.id for cell in article.plan.cells]


def test_the_tidy_table_keeps_integers_and_booleans_beside_what_is_unknown(
    article: Evidence, locations: Evidence
) -> None:
    """A missing value makes no count a fraction and no boolean an object."""
    frame = pd.concat([tables.tidy(article), tables.tidy(locations)])
    assert {str(kind) for kind in frame.dtypes} == {"string", "Int64", "boolean"}
    control = frame[frame["point"] == "none"].iloc[0]
    assert control["fired"] is pd.NA
    never = frame[frame["policy"] == "never"]
    assert never["recovery_error"].isna().all()
    assert never["calls_after_recovery"].notna().all()


def test_the_tidy_table_of_published_rows_has_their_own_verdicts(article: Evidence) -> None:
    """One column more, null where a row has none."""
    first, *rest = article.captures()
    word = replace(first, measurement=replace(first.measurement, published_verdict="verified"))
    frame = tables.tidy(replace(article, remembered=(word, *rest)))
    assert tuple(frame.columns) == (*COLUMNS, PUBLISHED_VERDICT)
    assert frame[PUBLISHED_VERDICT].dropna().to_dict() == {0: "verified"}


def test_what_was_not_published_is_null(published: Evidence) -> None:
    """It becomes neither nothing nor a false."""
    frame = tables.tidy(published)
    assert frame[["fired", "verdict", "call_harm"]].isna().all(axis=None)
    assert frame["effects_after_fault"].dtype == "Int64"


def test_the_fault_locations_are_the_articles_first_table(article: Evidence) -> None:
    """P0 is read after its recovery, P1 to P3 after the fault."""
    frame = tables.fault_locations(article)
    assert list(frame.columns) == ["probe", "caller sees", "persisted state", "effects"]
    assert rows(frame) == FAULT_LOCATIONS
    assert frame["effects"].dtype == "Int64"


def test_the_restart_is_the_articles_second_table(article: Evidence) -> None:
    """The last column is the error of recovery's caller, or else the state."""
    frame = tables.restart(article)
    assert list(frame.columns) == [
        "executor",
        "effects after fault",
        "after recovery in a new process",
        "calls",
        "recovery",
    ]
    assert rows(frame) == RESTART


@pytest.mark.parametrize("table", [tables.fault_locations, tables.restart])
def test_both_languages_give_the_same_values(
    table: Callable[[Evidence, str], pd.DataFrame], article: Evidence
) -> None:
    """Only what names the values is translated."""
    english, chinese = table(article, "en"), table(article, "zh")
    assert not set(english.columns) & set(chinese.columns)
    assert rows(english.iloc[:, 1:]) == rows(chinese.iloc[:, 1:])


def test_a_language_that_is_not_there_is_refused(article: Evidence) -> None:
    """It is not turned into another one."""
    with pytest.raises(UnknownName):
        tables.fault_locations(article, "fr")


def test_evidence_of_some_cells_gives_their_rows(locations: Evidence) -> None:
    """The plan ``locations`` holds P3 and one of its controls."""
    assert rows(tables.fault_locations(locations)) == [FAULT_LOCATIONS[3]]
    assert rows(tables.restart(locations)) == RESTART[:2]


@pytest.mark.parametrize(
    "table",
    [tables.fault_locations, tables.restart, tables.three_facts, tables.retained, tables.events],
)
def test_evidence_of_other_cells_alone_is_refused(
    table: Callable[[Evidence], pd.DataFrame], tmp_path: Path
) -> None:
    """No table is empty: nobody should take nothing for nothing wrong."""
    with pytest.raises(EvidenceError, match="holds no capture of"):
        table(made(tmp_path, Cell(point="after_action", fault="kill")))


def test_published_baselines_are_told_apart(published: Evidence) -> None:
    """Two baselines give each probe twice, and both give the article's figures."""
    frame = tables.fault_locations(published).dropna()
    assert list(frame.columns[:2]) == ["probe", "runtime"]
    for _, baseline in frame.groupby("runtime"):
        assert rows(baseline[["probe", "caller sees", "persisted state", "effects"]]) == (
            FAULT_LOCATIONS
        )
    assert frame["runtime"].nunique() == 2


def test_the_published_restart_has_the_rows_whose_recovery_was_published(
    published: Evidence,
) -> None:
    """P3 of the first table gives no calls, and is no row of the second."""
    assert rows(tables.restart(published)) == RESTART


def test_repeats_that_differ_are_told_apart(tmp_path: Path) -> None:
    """What is alike is one row; rows that differ show in which repeat."""
    cell = dict(zip(("point", "fault", "dedupe", "digest", "policy"), model.P3, strict=True))
    cells = [Cell(**cell, repeat=n) for n in range(3)]  # type: ignore[arg-type]
    thrice = made(tmp_path, *cells)
    assert list(tables.restart(thrice).columns[:2]) == ["executor", "effects after fault"]
    assert len(tables.restart(thrice)) == 1
    assert list(tables.verdicts(thrice).index.names)[-1] == "repeat"
    *same, last = thrice.captures()
    first, then = last.measurement.observations
    other = replace(then, error="EIO")
    measured = replace(last.measurement, observations=(first, other))
    shown = replace(thrice, remembered=(*same, replace(last, measurement=measured)))
    assert tables.restart(shown)[["repeat", "recovery"]].values.tolist() == [
        [0, "succeeded"],
        [2, "EIO"],
    ]


@pytest.mark.parametrize("table", [tables.tidy, tables.verdicts, tables.fault_locations])
def test_one_cell_twice_is_refused(
    article: Evidence, table: Callable[[Evidence], pd.DataFrame], tmp_path: Path
) -> None:
    """No plan promises it, and no table could tell the two apart."""
    twice = replace(article, folder=shutil.copytree(article.folder, tmp_path / "twice"))
    lines = (twice.folder / CAPTURES).read_bytes().splitlines(keepends=True)
    (twice.folder / CAPTURES).write_bytes(b"".join([*lines, lines[0]]))
    with pytest.raises(EvidenceError, match="not what the plan promises"):
        table(twice)


def test_the_matrix_holds_every_verdict_once(locations: Evidence) -> None:
    """Rows follow an operation's life, columns are the policies, no field is lost."""
    matrix = tables.verdicts(locations)
    assert list(matrix.index.names) == ["point", "fault", "dedupe", "digest"]
    assert list(matrix.columns) == ["again", "resume", "never"]
    assert list(matrix.index.unique(0)) == [
        "before_action",
        "after_action",
        "after_result",
        "completion_audit",
    ]
    for capture in locations.captures():
        cell = capture.cell
        assert capture.judgement.verdict is not None
        key = (cell.point, cell.fault, cell.dedupe, cell.digest)
        assert matrix.loc[key, cell.policy] == capture.judgement.verdict.verdict


def test_the_matrix_is_blank_where_the_plan_has_no_cell(article: Evidence) -> None:
    """Six cells fill six fields."""
    matrix = tables.verdicts(article)
    assert int(matrix.notna().to_numpy().sum()) == len(article.plan.cells)
    assert matrix.index[0] == ("none", "none", "none", "same")


def test_the_matrix_speaks_chinese(article: Evidence) -> None:
    """Verdicts and headings are translated; points, faults and policies are names in the data."""
    matrix = tables.verdicts(article, "zh")
    assert list(matrix.index.names) == ["故障落点", "故障", "去重", "摘要"]
    assert matrix.loc[model.P3[:4], "resume"] == "重复效果"


@pytest.mark.parametrize("table", [tables.verdicts, tables.counted])
def test_what_was_not_judged_has_no_verdicts_to_show(
    table: Callable[[Evidence], pd.DataFrame], published: Evidence
) -> None:
    """Published rows are compared, never judged."""
    with pytest.raises(EvidenceError, match="holds no verdict"):
        table(published)


def test_every_cell_is_counted_under_its_verdict(locations: Evidence) -> None:
    """The counts add up, and each says what to do."""
    frame = tables.counted(locations)
    assert frame["cells"].sum() == len(locations.plan.cells)
    assert set(frame["verdict"]) == set(tables.tidy(locations)["verdict"])
    assert list(frame["what to do"]) == [text(f"action.{v}", "en") for v in frame["verdict"]]


def test_states_are_split_by_effect_and_by_what_a_call_would_do(locations: Evidence) -> None:
    """``failed`` stands over cells with an effect and over cells without one."""
    frame = tables.states(locations).set_index("state after fault")
    assert frame["cells"].sum() == len(locations.plan.cells)
    assert (frame["effect exists"] + frame["no effect"] == frame["cells"]).all()
    failed = frame.loc["failed"]
    assert failed["effect exists"] > 0
    assert failed["no effect"] > 0
    assert failed["a call would harm"] > 0
    assert failed["a call was needed, harmless"] == failed["no effect"]


def test_states_leave_the_control_out(article: Evidence) -> None:
    """Where nothing failed, there is no state after a fault."""
    assert tables.states(article)["cells"].sum() == len(article.plan.cells) - 1


def test_three_facts_stand_beside_what_was_measured(article: Evidence) -> None:
    """One state, one effect, one eligibility, and three different harms."""
    frame = tables.three_facts(article)
    assert set(frame["state after fault"]) == {"failed"}
    assert set(frame["effect"]) == {"present"}
    assert set(frame["eligibility"]) == {"reconcile"}
    assert list(frame["harm of one more call"]) == ["duplicate", "none", "wrong"]
    assert set(tables.three_facts(article, "zh")["重试资格"]) == {"对账（reconcile）"}


def test_the_record_keeps_its_evidence_until_recovery_empties_it(article: Evidence) -> None:
    """After the changed digest nothing of the first effect is left in the record."""
    frame = tables.retained(article)
    held = "kind: local-marker · observed_count: 1"
    assert set(frame["evidence in the record after fault"]) == {held}
    assert list(frame["state after recovery"]) == ["succeeded", "succeeded", "stale"]
    after = list(frame["evidence in the record after recovery"])
    assert after == ["kind: local-marker · observed_count: 2", held, "(empty)"]


def test_events_are_those_of_the_capture(article: Evidence) -> None:
    """Every one, in order; or those of one phase."""
    events = article.capture(P3).measurement.events
    frame = tables.events(article)
    assert list(frame["no."]) == [e.seq for e in events]
    assert list(frame["lane"]) == [e.lane for e in events]
    assert "E2 appears on " in " ".join(frame["what happened"])
    recovery = tables.events(article, phase="recover")
    assert list(recovery["no."]) == [e.seq for e in events if e.phase == "recover"]


def test_events_are_told_in_chinese_as_a_cell_is_explained(article: Evidence) -> None:
    """Phase, lane and what happened; codes alone stay as they are."""
    told = tables.events(article, "zh")
    explained = "\n".join(explain(article.capture(P3), "zh"))
    assert {*told["阶段"]} == {"故障阶段", "恢复阶段"}
    assert "状态" in {*told["类别"]}
    assert all(line in explained for line in told["内容"])
    assert any("证据" in line for line in told["内容"])


def test_the_rows_behind_are_the_tidy_table_on_its_side(article: Evidence) -> None:
    """A column for each cell, a row for each column but the id."""
    turned = tables.behind(article)
    assert list(turned.columns) == [cell.id for cell in plans.read("article").cells]
    assert list(turned.index) == list(COLUMNS[1:])
    assert turned.loc["effects_after_recovery", P3] == 2
