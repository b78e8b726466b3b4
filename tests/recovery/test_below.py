"""Recovery is struck in whichever process comes to the point, once, and that is proven."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan

FORKING = "tests.forking_runtime:runtime"  # it acts in a process that its host forks
ROOT = Path(__file__).parents[2]


def measured(tmp_path: Path, start: str = "fork", **axes: Any) -> tuple[Row, Capture]:
    """Kill the operation and its host before it acts, recover as the axes say."""
    struck: dict[str, Any] = {"point": "before_action", "fault": "kill_host", "policy": "again"}
    cell = Cell(runtime=FORKING, **struck, **axes)
    evidence = runs.run(Plan("below", (cell,)), tmp_path / "below", start=start)
    assert check(evidence.folder).findings == ()
    capture = next(evidence.captures())
    return rows([capture])[0], capture


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime of these tests lies in the current directory."""
    monkeypatch.chdir(ROOT)


def told(capture: Capture) -> list[Mapping[str, Any]]:
    """What was struck in recovery, and what its caller saw, in order."""
    recovery = (e for e in capture.measurement.events if e.phase == "recover")
    return [e.value for e in recovery if e.lane in ("fault", "return")]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize(("point", "effects"), [("before_action", 1), ("after_action", 2)])
def test_a_process_below_the_recovery_is_killed_and_its_caller_lives(
    tmp_path: Path, start: str, point: str, effects: int
) -> None:
    """How it ended, the kernel told its parent alone: it is gone, and was not heard of again."""
    row, capture = measured(tmp_path, start, recovery_fault=f"kill@{point}")
    assert row["verdict"] == ("consistent" if effects == 1 else "duplicate_effect")
    assert row["effects_after_recovery"] == effects
    assert told(capture) == [
        {"point": point, "fault": "kill"},
        {"error": "LOST"},
        {"point": point, "error": "SIGKILL"},
        {"error": "none"},
    ]


@pytest.mark.parametrize("kind", ["exception", "kill"])
def test_what_a_recovery_tries_again_by_itself_is_struck_once(tmp_path: Path, kind: str) -> None:
    """Each try is a process of its own, forked from one that never came to the point."""
    row, capture = measured(tmp_path, variant="twice", recovery_fault=f"{kind}@before_action")
    assert (row["verdict"], row["effects_after_recovery"]) == ("consistent", 1)
    strikes = [value for value in told(capture) if "fault" in value]
    assert strikes == [{"point": "before_action", "fault": kind}]
    assert [value["error"] for value in told(capture) if "point" not in value] == ["none", "none"]


def test_a_process_below_the_recovery_is_held(tmp_path: Path) -> None:
    """Until the other recoverer has finished; what it tries after that is held no more."""
    axes: dict[str, Any] = {"recovery_fault": "held@before_action", "recoverers": 2}
    row, capture = measured(tmp_path, variant="twice", **axes)
    assert (row["verdict"], row["effects_after_recovery"]) == ("duplicate_effect", 2)
    assert told(capture) == [
        {"point": "before_action", "fault": "held"},
        {"error": "none"},
        {"error": "none"},
    ]


def original(tmp_path: Path, kind: str, start: str = "fork", **axes: Any) -> tuple[Row, Capture]:
    """An original that makes its call in a process below the phase, and acts late."""
    control: dict[str, Any] = {"point": "none", "fault": "none", "policy": "again"}
    cell = Cell(runtime=FORKING, **control, recovery_fault=kind, **axes)
    into = tmp_path / "below"
    evidence = runs.run(Plan("below", (cell,)), into, start=start, keep=True, deadline=60)
    assert check(evidence.folder).findings == ()
    capture = next(evidence.captures())
    return rows([capture])[0], capture


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("dedupe", "verdict"), [("none", "duplicate_effect"), ("operation_key", "consistent")]
)
def test_what_a_process_below_the_original_had_sent_acts_late(
    tmp_path: Path, start: str, dedupe: str, verdict: str
) -> None:
    """It is kept by who started the phase, whichever process in it made the call."""
    row, capture = original(tmp_path, "late_original", start, dedupe=dedupe)
    assert row["verdict"] == verdict
    assert {"fault": "late_original"} in told(capture)


def test_an_original_that_waits_for_a_process_below_it_is_not_waited_for(tmp_path: Path) -> None:
    """The two cannot be told apart once they act; at once the cell is unknown, and says why."""
    row, capture = original(tmp_path, "original_alive")
    assert row["verdict"] == "unknown"
    assert capture.circumstances.seconds["fault"] < 30
    (output,) = tmp_path.glob("below.cells/*/harness/output.txt")
    assert "needs a call in the process of start() itself" in output.read_text()
