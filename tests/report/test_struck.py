"""The tables of struck calls and of lost power: every cell is counted once, and harm is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rcr_probes import run as runs
from rcr_probes import strace
from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.rows import rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.worth import weigh
from rcr_probes.model import Cell, Plan
from rcr_probes.report import outages, struck, terminal
from rcr_probes.report.texts import LANGS, text
from rcr_probes.vocabulary import CALL_FAULTS, NONE

pytestmark = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)
CALLS = ("write@audit.jsonl#2", "write@audit.jsonl#4")
WAYS = ("resume", "never")


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Two calls, in each way, under two policies; and one with an executor that knows the key."""
    cells = [
        Cell(point=point, fault=fault, policy=policy)
        for point in CALLS
        for fault in CALL_FAULTS
        for policy in WAYS
    ]
    cells.append(Cell(point=CALLS[1], fault="io_error", dedupe="operation_key", policy="resume"))
    return runs.run(Plan("syscalls", tuple(cells)), tmp_path_factory.mktemp("calls") / "evidence")


@pytest.fixture(scope="module")
def dark(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    cells = [
        Cell(point="after_action", fault=f"power_loss#{state}", policy=policy, variant=variant)
        for variant, states in {"baseline": (0, 1, 2), "fsync": (0, 1)}.items()
        for state in states
        for policy in ("resume", "again")
    ]
    return runs.run(Plan("power", tuple(cells)), tmp_path_factory.mktemp("dark") / "evidence")


def test_each_call_is_a_row_with_its_step_and_what_harmed_it(called: Evidence) -> None:
    """Where every fault led to a verdict it is said once; where none did, nothing is."""
    frame = struck.calls(called)
    assert frame.iloc[:, :4].values.tolist() == [
        ["approval_audit", "write", "audit.jsonl", 2],
        ["completion_audit", "write", "audit.jsonl", 4],
    ]
    assert list(frame.columns[4:]) == list(WAYS)
    for row in rows(called.captures()):
        if row["dedupe"] != NONE:
            continue
        said = frame.iloc[CALLS.index(str(row["point"]))][str(row["policy"])]
        harmed = row["verdict"] in struck.HARMED
        named = f"{row['verdict']}: every fault" in said or str(row["fault"]) in said
        assert named is harmed, (row["cell"], said)
    assert "duplicate_effect: io_error, disk_full, error_after_call" in frame.iloc[1]["resume"]


def test_an_executor_and_a_variant_are_shown_apart(called: Evidence) -> None:
    """What was not measured so is no empty table."""
    keyed = struck.calls(called, dedupe="operation_key")
    assert keyed.values.tolist() == [["completion_audit", "write", "audit.jsonl", 4, ""]]
    with pytest.raises(EvidenceError, match="no cell of a system call"):
        struck.calls(called, variant="fsync")


@pytest.mark.parametrize("lang", LANGS)
def test_every_cell_is_counted_once(called: Evidence, dark: Evidence, lang: str) -> None:
    """The harmful verdicts and the rest are all of them."""
    for evidence, by in ((called, ("dedupe", "policy")), (dark, ("variant",))):
        frame = struck.counts(evidence, lang, by=by)
        counted = frame.iloc[:, len(by) : -2]
        assert counted.iloc[:, 0].sum() == len(evidence.plan.cells)
        assert (counted.iloc[:, 1:].sum(axis=1) == counted.iloc[:, 0]).all()
        weighed = list(weigh(evidence.captures()))
        assert frame.iloc[:, -2].sum() == sum(one.unsafe for one in weighed)
        assert frame.iloc[:, -1].sum() == sum(one.false_block for one in weighed)


def test_each_point_tells_its_states_and_what_the_record_says_in_them(dark: Evidence) -> None:
    """A state is counted once, under however many policies it was recovered."""
    frame = outages.states(dark)
    assert frame.iloc[:, :2].values.tolist() == [
        ["baseline", "after_action"], ["fsync", "after_action"],
    ]  # fmt: skip
    assert frame.iloc[0, 4:].tolist() == ["1", "executing 1, missing 2"]
    assert frame.iloc[1, 4:].tolist() == ["1", "executing 2"]
    assert frame.iloc[1, 2:4].tolist() == [4, 0]
    assert frame["disk states not explored"].tolist()[0] > 0


def test_each_verdict_of_a_recovery_is_told_with_its_number(dark: Evidence) -> None:
    """By what the record says and what exists."""
    frame = outages.outcomes(dark)
    shown = {tuple(row[:3]): row[3:] for row in frame.values.tolist()}
    assert set(shown) == {
        ("baseline", 1, "executing"), ("baseline", 1, "missing"), ("fsync", 1, "executing"),
    }  # fmt: skip
    assert shown["baseline", 1, "missing"][0] == 2
    assert sum(row[0] for row in shown.values()) == 5


@pytest.mark.parametrize("table", [outages.states, outages.outcomes])
def test_evidence_without_lost_power_is_told_so(called: Evidence, table: object) -> None:
    """An empty table would look like no harm."""
    assert callable(table)
    with pytest.raises(EvidenceError, match="no cell of a lost power"):
        table(called)


@pytest.mark.parametrize("lang", LANGS)
def test_a_person_is_shown_these_tables(called: Evidence, dark: Evidence, lang: str) -> None:
    """And of a part of the plan, those that it has."""
    shown = [d.title for e in (called, dark) for d in terminal.article_or_verdicts(e, lang)]
    wanted = ("counts", "calls", "keyed", "states", "outcomes")
    assert shown == [text(f"table.{name}", lang) for name in wanted]
    assert [d.title for d in terminal.every(dark, lang)][:2] == shown[3:]


def test_the_step_is_the_last_point_before_the_strike(called: Evidence, tmp_path: Path) -> None:
    """A point that is reached later does not count, and before the first one there is none."""
    cell = Cell(point="write@record.tmp#1", fault="io_error", policy="never")
    first = runs.run(Plan("first", (cell,)), tmp_path / "evidence")
    assert [struck.step(capture) for capture in first.captures()] == ["-"]
