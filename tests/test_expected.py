"""The verdict of every cell of the shipped plans is the one that docs/design.md §10 expects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.evidence import store
from rcr_probes.model import MATCHED, Cell
from rcr_probes.vocabulary import POLICIES

ROOT = Path(__file__).parents[1]


def tables() -> Iterator[list[list[str]]]:
    """The Markdown tables of §10, each a list of rows, the header first."""
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table: list[list[str]] = []
    for line in [*text.split("## 10. Expected verdicts")[1].splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
        elif table:
            yield [row for row in table if set(row[0]) != {"-"}]
            table = []


def expected(plan: str) -> dict[str, str]:
    """Cell id → verdict, as the table of that plan gives them."""
    article, locations, *_ = tables()  # those of the plan contrast are tests/contrast's
    if plan == "article":
        assert tuple(article[0][:5]) == MATCHED
        return {"/".join(row[:5]): row[5] for row in article[1:]}
    policies = locations[0][3:]
    assert set(policies) == {*POLICIES, "resume"}
    return {
        Cell(point=point, fault=fault, dedupe=dedupe, policy=policy).id: verdict
        for point, fault, dedupe, *verdicts in locations[1:]
        for policy, verdict in zip(policies, verdicts, strict=True)
    }


def verdicts(evidence: store.Evidence) -> dict[str, str]:
    return {
        c.cell.id: c.judgement.verdict.verdict for c in evidence.captures() if c.judgement.verdict
    }


@pytest.mark.parametrize("plan", ["article", "locations"])
def test_the_table_has_every_cell_of_the_plan(plan: str) -> None:
    """No cell without an expectation, and no expectation without a cell."""
    assert set(expected(plan)) == {cell.id for cell in plans.read(plan).cells}


@pytest.mark.parametrize("plan", ["article", "locations"])
def test_a_run_gives_the_expected_verdicts(plan: str, tmp_path: Path) -> None:
    """Measured here and now."""
    assert verdicts(runs.run(plan, tmp_path / plan)) == expected(plan)


@pytest.mark.parametrize("plan", ["article", "locations"])
def test_the_committed_evidence_shows_the_expected_verdicts(plan: str) -> None:
    """What the repository carries is what the design expects."""
    assert verdicts(store.read(ROOT / "evidence" / plan)) == expected(plan)
