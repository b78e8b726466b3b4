"""The tidy table has the columns that the design names, and null says that nothing is known."""

from __future__ import annotations

import re
from pathlib import Path

from rcr_probes.evidence import rows
from rcr_probes.evidence.rows import COLUMNS
from rcr_probes.evidence.transcribed import observed, published_capture, published_cell
from tests.evidence import made

DESIGN = Path(__file__).resolve().parents[2] / "docs" / "design.md"


def designed() -> tuple[str, ...]:
    """The columns of docs/design.md §7, in order."""
    section = DESIGN.read_text(encoding="utf-8").split("\n## 7. ")[1].split("\n## ")[0]
    block = re.search(r"(?:^    [a-z_, ]+\n)+", section, flags=re.MULTILINE)
    assert block
    return tuple(re.findall(r"[a-z_]+", block.group()))


def test_the_columns_are_those_of_the_design() -> None:
    """The same names, in the same order, with nothing added."""
    assert designed() == COLUMNS


def test_a_measured_row_has_exactly_these_columns() -> None:
    """What was measured and what follows from it stand in one flat row."""
    row = rows.row(made.capture(made.P3))
    assert tuple(row) == COLUMNS
    assert row["cell"] == "completion_audit/audit_is_directory/none/same/resume"
    assert (row["caller_error"], row["state_after_fault"]) == ("EISDIR", "failed")
    assert (row["effects_after_fault"], row["effects_after_recovery"]) == (1, 2)
    assert (row["calls_after_fault"], row["calls_after_recovery"]) == (1, 2)
    assert (row["fired"], row["capability"]) == (True, "none")
    assert row["verdict"] == "duplicate_effect"
    assert row["reasons"] == "done_reclassified,called_without_eligibility"


def test_without_a_fault_nothing_fired() -> None:
    """The control planned no fault: whether one fired is not a question."""
    assert rows.row(made.capture(made.CONTROL))["fired"] is None


def test_a_published_row_is_null_where_nothing_was_published() -> None:
    """It carries its publication's own word in one column more, and is not judged."""
    cell = published_cell("0123abcd", "E-A0", "start_audit", policy=None)
    capture = published_capture(
        cell, "somebody", (observed("fault", "executing", 0),), verdict="their_word"
    )
    row = rows.row(capture)
    assert tuple(row) == (*COLUMNS, "published_verdict")
    assert row["published_verdict"] == "their_word"
    assert row["effects_after_fault"] == 0
    unknown = [name for name, value in row.items() if value is None]
    assert set(unknown) >= {"policy", "witness", "start", "fired", "identity", "verdict", "reasons"}
    assert set(unknown) >= {"caller_error", "calls_after_fault", "effects_after_recovery"}


def test_rows_keep_the_order_of_the_captures() -> None:
    """One row a capture, in order."""
    cells = (made.LEFT, made.CONTROL)
    assert [row["cell"] for row in rows.rows(map(made.capture, cells))] == [c.id for c in cells]
