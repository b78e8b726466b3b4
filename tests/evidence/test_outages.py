"""A lost power that a forger tells otherwise than it was is found by the check."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes import strace
from rcr_probes.model import Capture, Cell, Plan
from tests.evidence.forging import Change, committed, put
from tests.evidence.test_course import KILLED
from tests.evidence.test_relabelled import found, told_as

pytestmark = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)
ALL, GONE, TORN = (
    Cell(point="completion_audit", fault=f"power_loss#{state}", policy="resume")
    for state in (0, 1, 17)
)
# Of a local executor: its effect is there, and is not.
THERE, TAKEN = (
    Cell(point="completion_audit", fault=f"power_loss_local#{state}", policy="resume")
    for state in (0, 1)
)


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Capture]:
    """Real captures by the id of their cell: nothing is lost, all is, one file is torn; a kill."""
    plan = Plan("lost", (ALL, GONE, TORN, THERE, TAKEN))
    evidence = runs.run(plan, tmp_path_factory.mktemp("lost") / "evidence")
    return {**committed(), **{c.cell.id: c for c in evidence.captures()}}


def told(**values: Any) -> Change:
    """Tell of another state than the one that the power left."""

    def change(data: Any) -> None:
        [event] = [e for e in data["measurement"]["events"] if "unexplored" in e["value"]]
        event["value"].update(values)

    return change


def another_state(data: Any) -> None:
    """The cell, the strike and what is told all say that it was another."""
    measured = data["measurement"]
    measured["cell"]["fault"] = "power_loss#1"
    for event in measured["events"]:
        if "fault" in event["value"]:
            event["value"]["fault"] = "power_loss#1"
    told(state=1)(data)


def twice(data: Any) -> None:
    """The same event once more, in the place of another one of the fault phase."""
    events = data["measurement"]["events"]
    [event] = [e for e in events if "unexplored" in e["value"]]
    other = next(e for e in events if e["lane"] == "audit")
    other.update(lane="fault", value=dict(event["value"]))


WAYS: dict[str, tuple[str, Change, str]] = {
    "another state alone": (ALL.id, told(state=1), "of no state that the power can leave"),
    "a state that there is not": (
        ALL.id, told(state=0, states=0), "of no state that the power can leave"
    ),
    "fewer than none unexplored": (
        ALL.id, told(unexplored=-1), "of no state that the power can leave"
    ),
    "no number": (ALL.id, told(states=True), "of no state that the power can leave"),
    "a loss in the state that has none": (
        ALL.id, told(lost=[["lock", "gone"]]), "of no state that the power can leave"
    ),
    "no loss in a state that has one": (
        GONE.id, told(lost=[]), "of no state that the power can leave"
    ),
    "an unknown word": (
        GONE.id, told(lost=[["record", "melted"]]), "of no state that the power can leave"
    ),
    "a file twice": (
        GONE.id,
        told(lost=[["record", "gone"], ["record", "cut"]]),
        "of no state that the power can leave",
    ),
    "another state everywhere": (ALL.id, another_state, "of no state that the power can leave"),
    "a record that is told to be whole": (
        GONE.id, told(lost=[["audit.jsonl", "gone"]]), "but what was lost leaves"
    ),
    "a record that is told to be gone": (
        TORN.id, told(lost=[["record", "gone"]]), "but what was lost leaves 'missing'"
    ),
    "a record that is told to be torn": (
        GONE.id, told(lost=[["record", "cut"]]), "but what was lost leaves 'unreadable'"
    ),
    "an audit that is told to be whole": (
        GONE.id, told(lines=3), "audit lines, where 3 had been seen"
    ),
    "an audit that is told to be shorter": (
        ALL.id, told(lines=2), "audit lines, where 3 had been seen"
    ),
    "an effect that is told to be lost": (THERE.id, told(effects=0), "effects left, where 1 had"),
    "an effect that is told to be left": (TAKEN.id, told(effects=1), "effects left, where 1 had"),
    "an effect too many": (THERE.id, told(effects=2), "effects left, where 1 had"),
    "a number of effects that is none": (
        THERE.id, told(effects="1"), "effects left, where 1 had"
    ),
    "a lost effect of the outside world": (
        ALL.id, told(effects=0), "but the outside world survives"
    ),
    "a power loss as a kill": (ALL.id, told_as("kill"), "but none was lost"),
    "a power loss told twice": (ALL.id, twice, "tells once more what the power left"),
    "a power loss in a forked process": (
        ALL.id, put("circumstances.start", "fork"), "or strace is spawned"
    ),
    "a state that is not named": (
        ALL.id, put("measurement.cell.fault", "power_loss"), "does not say which state"
    ),
    "a state in other digits": (
        ALL.id, put("measurement.cell.fault", "power_loss#00"), "which nothing knows"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_power_loss_that_is_told_otherwise_is_found(
    way: str, lost: Mapping[str, Capture]
) -> None:
    """Of what the power left, the number, the words and the store must agree."""
    cell, change, problem = WAYS[way]
    assert found(lost[cell], lambda data: None) == []
    said = found(lost[cell], change)
    assert any(problem in one for one in said), said


def test_a_kill_told_as_a_power_loss_proves_nothing(lost: Mapping[str, Capture]) -> None:
    """No state was put there, and so its verdict is unknown: it cannot stand as it was judged."""
    said = found(lost[KILLED], told_as("power_loss#0"))
    assert any("or strace is spawned" in one for one in said), said
