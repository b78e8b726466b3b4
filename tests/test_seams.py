"""What a runtime may offer besides: forked processes, a host, a refused result, its variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.errors import RuntimeUnusable, UnknownName
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.runtime import load
from rcr_probes.vocabulary import STARTS
from tests import forking_runtime

ROOT = Path(__file__).parents[1]
FORKING = "tests.forking_runtime:runtime"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases find the runtime of these tests as they find a user's: in the current directory."""
    monkeypatch.chdir(ROOT)


def measured(into: Path, start: str, **axes: Any) -> tuple[Row, Capture]:
    """Run one cell; its evidence is sound."""
    evidence = runs.run(
        Plan("seams", (Cell(runtime=FORKING, **axes),)), into / "seams", start=start
    )
    assert check(evidence.folder).findings == ()
    capture = next(evidence.captures())
    return rows([capture])[0], capture


KILLED = {"fired": True, "caller_error": "LOST", "state_after_fault": "missing"}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("point", "fault", "effects", "verdict"),
    [
        ("before_action", "kill", (0, 1), "consistent"),
        ("before_action", "kill_host", (0, 1), "consistent"),
        ("after_action", "kill", (1, 2), "duplicate_effect"),
        ("after_action", "kill_host", (1, 2), "duplicate_effect"),
        ("after_action", "result_refused", (1, 2), "duplicate_effect"),
    ],
)
def test_what_strikes_below_the_phase_is_proven_and_its_effects_are_counted(
    tmp_path: Path, start: str, point: str, fault: str, effects: tuple[int, int], verdict: str
) -> None:
    """A killed child, a killed host and a refused result, each of processes that a phase forked."""
    row, _ = measured(tmp_path, start, point=point, fault=fault)
    assert KILLED.items() <= row.items()
    assert (row["effects_after_fault"], row["effects_after_recovery"]) == effects
    assert row["verdict"] == verdict


def test_what_the_runtime_tries_again_by_itself_is_counted_in_the_fault_phase(
    tmp_path: Path,
) -> None:
    """The fault strikes once, so the second attempt goes through; both calls are counted."""
    row, _ = measured(tmp_path, "fork", point="after_action", fault="kill", variant="twice")
    assert (row["calls_after_fault"], row["effects_after_fault"]) == (2, 2)
    assert row["variant"] == "twice"
    assert "called_again_in_fault_phase" in str(row["reasons"]).split(",")


def test_a_state_that_is_asked_in_a_process_of_its_own_is_seen_once_a_phase(
    tmp_path: Path,
) -> None:
    """It is not sampled at points; what stands in the capture is what was found at quiescence."""
    _, capture = measured(tmp_path, "fork", point="none", fault="none")
    states = [e for e in capture.measurement.events if e.lane == "state"]
    assert [e.value["status"] for e in states] == ["done"]
    returned = next(e for e in capture.measurement.events if e.lane == "return")
    assert states[0].seq == returned.seq + 1


@pytest.mark.parametrize("broken", ["raise SystemExit(3)", "while True: pass", "os._exit(0)"])
def test_a_state_that_cannot_be_asked_makes_the_cell_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """It fails, hangs or goes away in a process of its own: the run goes on."""
    source = (ROOT / "tests/forking_runtime.py").read_text(encoding="utf-8")
    asked = "        result = operation.folder / RESULT\n"
    assert source.count(asked) == 1
    name = f"broken_state_{abs(hash(broken))}"
    (tmp_path / f"{name}.py").write_text(source.replace(asked, f"        {broken}\n{asked}"))
    monkeypatch.chdir(tmp_path)
    plan = Plan(
        "mine", (Cell(point="none", fault="none", policy="never", runtime=f"{name}:runtime"),)
    )
    evidence = runs.run(plan, tmp_path / "mine", deadline=2)
    capture = next(evidence.captures())
    assert rows([capture])[0]["verdict"] == "unknown"
    assert any("record" in d for o in capture.measurement.observations for d in o.damage)


def test_a_plan_knows_the_variants_of_its_runtime() -> None:
    """Another one is refused before anything runs, and the known ones are named."""
    cell = Cell(runtime=FORKING, point="none", fault="none", variant="twize")
    with pytest.raises(UnknownName, match="'twice'"):
        plans.validated(Plan("mine", (cell,)))


@pytest.mark.parametrize(("seam", "kind"), [("refusal", "result_refused"), ("hosts", "kill_host")])
def test_a_fault_without_its_seam_is_refused(
    monkeypatch: pytest.MonkeyPatch, seam: str, kind: str
) -> None:
    """What declares the kind must offer what it needs."""
    monkeypatch.delattr(forking_runtime.Forking, seam)
    with pytest.raises(RuntimeUnusable, match=f"declares '{kind}', but has no {seam}"):
        load(FORKING)
