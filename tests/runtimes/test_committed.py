"""The committed evidence of real runtimes: whole, stable, and what a run here and now gives too."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes import run as runs
from rcr_probes.errors import RuntimeMissing
from rcr_probes.evidence import store
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Cell, Plan
from rcr_probes.report.repeats import name_of, repeated
from rcr_probes.runtime import load, offered
from rcr_probes.runtimes import KNOWN
from rcr_probes.vocabulary import NONE

ROOT = Path(__file__).parents[2]
NAMES = [need.name for need in KNOWN]
EMBEDDED = ("dbos", "langgraph", "huey")
# Around the gap between the effect and its record; the plan's other cells vary what these show.
REDUCED = ("after_action", "after_result")


@pytest.fixture(scope="module")
def committed() -> store.Evidence:
    return store.read_whole(ROOT / "evidence" / "runtimes")


def by_cell(evidence: store.Evidence) -> dict[str, Row]:
    """Cell id → its row, without what may differ from run to run."""
    return {
        str(row["cell"]): {name: value for name, value in row.items() if name != "start"}
        for row in rows(evidence.captures())
    }


def test_it_is_the_plan_of_all_known_runtimes_each_cell_three_times(
    committed: store.Evidence,
) -> None:
    """Nothing is left out of it, and nothing was measured once only."""
    assert committed.plan.name == "runtimes"
    assert {name_of(cell.runtime) for cell in committed.plan.cells} == set(NAMES)
    assert {len(one.rows) for one in repeated(committed)} == {3}


def test_no_cell_is_unknown_or_unstable_without_being_said(committed: store.Evidence) -> None:
    """Where a repeat differs, the table would say so; here none does, and every fault fired."""
    found = repeated(committed)
    assert not [one.cell.id for one in found if one.differs or one.result == "unknown"]


@pytest.mark.parametrize("name", NAMES)
def test_a_control_has_one_effect_and_operation_key_leaves_one(
    committed: store.Evidence, name: str
) -> None:
    """Of the configuration that comes first, whatever struck: the key is what holds."""
    found = [one for one in repeated(committed) if name_of(one.cell.runtime) == name]
    first = [one for one in found if one.cell.variant == found[0].cell.variant]
    assert {one.each("effects_after_fault") for one in first if one.cell.fault == NONE} == {"1"}
    keyed = [one for one in first if one.cell.dedupe == "operation_key"]
    assert keyed
    assert {one.each("effects_after_recovery") for one in keyed} == {"1"}


@pytest.mark.parametrize("name", EMBEDDED)
def test_a_reduced_plan_measured_now_gives_the_same_rows(
    committed: store.Evidence, name: str, tmp_path: Path
) -> None:
    """Every column but the start method, for the version that was measured."""
    cells = tuple(cell for cell in committed.plan.cells if name_of(cell.runtime) == name)
    try:
        installed = offered(load(cells[0].runtime), "versions")()
    except RuntimeMissing as missing:
        pytest.skip(f"{missing.cause} {missing.remedy}")
    measured = {package: committed.versions[package] for package in installed}
    if installed != measured:
        pytest.skip(f"installed is {installed}, and what was measured is {measured}")

    def reduced(cell: Cell) -> bool:
        first = cell.variant == cells[0].variant
        return cell.point in REDUCED and cell.dedupe == NONE and first and cell.repeat == 0

    plan = Plan("reduced", tuple(filter(reduced, cells)))
    found = by_cell(runs.run(plan, tmp_path / "evidence", deadline=90))
    theirs = by_cell(committed)
    assert found == {cell: theirs[cell] for cell in found}
    assert len({row["verdict"] for row in found.values()}) > 1
