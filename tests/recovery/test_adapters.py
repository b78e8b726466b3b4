"""What an adapter says of itself is kept to around recovery, and its own errors are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import rows
from rcr_probes.model import Capture, Cell, Plan

ROOT = Path(__file__).parents[2]
REFERENCE = "rcr_probes.reference:approval"
APART = "tests.recovery.adapters:Apart"
CANNOT_DAMAGE = "tests.recovery.adapters:CannotDamage"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapters of these tests lie in the current directory."""
    monkeypatch.chdir(ROOT)


def measured(into: Path, **axes: Any) -> Capture:
    """A cell of the operation killed before it acted, recovered by evidence; it is kept."""
    struck: dict[str, Any] = {"point": "before_action", "fault": "kill", "policy": "evidence_gated"}
    plan = Plan("adapters", (Cell(**{**struck, **axes}),))
    evidence = runs.run(plan, into / "evidence", keep=True)
    assert check(evidence.folder).findings == ()
    return next(evidence.captures())


@pytest.mark.parametrize(("person", "ends"), [("person_present", 1), ("person_absent", 0)])
@pytest.mark.parametrize(
    "axes",
    [{"runtime": APART}, {"runtime": REFERENCE, "point": "rename@record.tmp#3"}],
    ids=["no state at points", "a system call"],
)
def test_a_person_learns_that_recovery_stopped_from_a_process_that_asks(
    tmp_path: Path, axes: dict[str, Any], person: str, ends: int
) -> None:
    """Where no phase asks for the state, a process of its own does before the person decides."""
    capture = measured(tmp_path, witness="absent", recovery_fault=person, **axes)
    row = rows([capture])[0]
    assert (row["verdict"], row["effects_after_recovery"]) == (
        "consistent" if person == "person_present" else "held",
        ends,
    )
    told = [
        e.value.get("status") or e.value["event"]
        for e in capture.measurement.events
        if e.phase == "recover" and e.lane in ("state", "audit")
    ]
    stopped = told.index("verification_required")
    assert ("operation.decided" in told[stopped:]) is (person == "person_present")


def test_why_nothing_could_be_damaged_stands_in_the_output(tmp_path: Path) -> None:
    """The author of an adapter finds the error of its own ``damage()`` there, and its line."""
    capture = measured(tmp_path, runtime=CANNOT_DAMAGE, recovery_fault="empty_record")
    assert rows([capture])[0]["reasons"] == "recovery_fault_not_fired"
    (output,) = (tmp_path / "evidence.cells").glob("*/harness/output.txt")
    said = output.read_text()
    assert "FileNotFoundError: nothing is stored that could have empty_record" in said
    assert "tests/recovery/adapters.py:" in said
