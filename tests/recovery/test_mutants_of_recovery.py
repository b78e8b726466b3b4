"""Each part of recovery by evidence is needed: without it, a named cell ends in another way.

So a check of a cell that would pass without the part is no check of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence import store
from rcr_probes.model import Capture, Cell, Plan

ROOT = Path(__file__).parents[2]
BROKEN = "tests.recovery.broken"
Ends = tuple[str, int, int]  # verdict, effects, calls

# What is taken out, the cell that needs it, how it ends with it, and how without it.
MUTANTS: Sequence[tuple[str, dict[str, Any], Ends, Ends]] = (
    (
        "settled_check",
        {"point": "none", "fault": "none", "recovery_fault": "late_original"},
        ("held", 1, 1),
        ("duplicate_effect", 2, 2),
    ),
    (
        "fresh_snapshot",
        {"point": "after_action", "fault": "kill", "witness": "lagging"},
        ("held", 1, 1),
        ("duplicate_effect", 2, 2),
    ),
    (
        "fence_of_others",
        {
            "point": "before_action",
            "fault": "exception",
            "recovery_fault": "held@before_action",
            "recoverers": 2,
        },
        ("consistent", 1, 1),
        ("duplicate_effect", 2, 2),
    ),
    (
        "repair_of_what_is_there",
        {"point": "completion_audit", "fault": "audit_is_directory"},
        ("protected", 1, 1),
        ("duplicate_effect", 2, 2),
    ),
    (
        "proof_by_the_fence",
        {"point": "before_action", "fault": "exception", "recovery_fault": "lock_recycled"},
        ("consistent", 1, 1),
        ("blocked", 0, 0),
    ),
    (  # of another process, and of one that has ended and still answers
        "proof_by_the_fence",
        {"point": "before_action", "fault": "exception", "recovery_fault": "lock_zombie"},
        ("consistent", 1, 1),
        ("blocked", 0, 0),
    ),
)
each_cell = pytest.mark.parametrize(
    ("mutant", "axes", "whole", "broken"),
    MUTANTS,
    ids=[f"{mutant}-{'-'.join(map(str, axes.values()))}" for mutant, axes, _, _ in MUTANTS],
)


def cell(runtime: str, axes: Mapping[str, Any]) -> Cell:
    return Cell(runtime=f"{BROKEN}:{runtime}", policy="evidence_gated", **axes)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Cell, Capture]:
    """The named cells, of the whole policy and of each mutant."""
    cells = [cell(runtime, axes) for name, axes, _, _ in MUTANTS for runtime in ("nothing", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        into = tmp_path_factory.mktemp("mutants") / "evidence"
        evidence: store.Evidence = runs.run(Plan("mutants", tuple(cells)), into)
        return {c.cell: c for c in evidence.captures()}


def ends(capture: Capture) -> Ends:
    last, verdict = capture.measurement.observations[1], capture.judgement.verdict
    assert verdict is not None
    return verdict.verdict, len(last.effects or ()), last.calls or 0


@each_cell
def test_the_named_cell_ends_well_with_the_part(
    captures: Mapping[Cell, Capture],
    mutant: str,
    axes: Mapping[str, Any],
    whole: Ends,
    broken: Ends,
) -> None:
    """The policy is whole, in a runtime that is made as the mutants are."""
    assert ends(captures[cell("nothing", axes)]) == whole != broken


@each_cell
def test_the_named_cell_ends_badly_without_it(
    captures: Mapping[Cell, Capture],
    mutant: str,
    axes: Mapping[str, Any],
    whole: Ends,
    broken: Ends,
) -> None:
    """It makes a second effect, or blocks what was needed."""
    assert ends(captures[cell(mutant, axes)]) == broken != whole
