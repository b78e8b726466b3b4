"""What cannot be is refused in a plan and found in evidence, by one rule and in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import possible
from rcr_probes.errors import PlanError, UnknownName
from rcr_probes.evidence import consistency, store
from rcr_probes.model import Capture, Cell, Plan

ROOT = Path(__file__).parents[1]
AFTER: dict[str, Any] = {"point": "after_action"}
# One thing wrong in a cell → a word of the cause, a word of the remedy.
IMPOSSIBLE: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "a fault at no point": ({"point": "none", "fault": "kill"}, "cannot be", "neither"),
    "a point without a fault": ({**AFTER, "fault": "none"}, "cannot be", "neither"),
    "a point of another fault": (
        {"point": "response", "fault": "disk_full"}, "at 'response'", "CALL@FILE#N"
    ),
    "a receiver's fault without one": (
        {**AFTER, "fault": "timeout"}, "with dedupe = 'none'", "receiver_key or expired_key"
    ),
    "a receiver's fault at its other side": (
        {"point": "before_action", "fault": "response_lost", "dedupe": "receiver_key"},
        "at 'before_action'", "at after_action",
    ),
    "another executor's point": (
        {"point": "before_key", "fault": "kill", "dedupe": "pair"}, "comes to", "late_key"
    ),
    "a fencing token for a receiver": (
        {**AFTER, "fault": "kill", "variant": "fenced", "dedupe": "receiver_key"},
        "no fencing tokens", "local executors",
    ),
    "a power loss without its state": (
        {**AFTER, "fault": "power_loss"}, "which state", "power_loss#N"
    ),
    "a state that is not explored": (
        {**AFTER, "fault": "power_loss#48"}, "at most 48 states", "from 0"
    ),
    "a receiver's disk": (
        {**AFTER, "fault": "power_loss_local#0", "dedupe": "receiver_key"},
        "no disk of ours", "power_loss#N",
    ),
    "a call outside the folder": (
        {"point": "write@../a#1", "fault": "kill"}, "CALL@FILE#N", "private folder"
    ),
    "a fault of points at a call": (
        {"point": "write@a#1", "fault": "exception"}, "at a system call", "io_error"
    ),
}  # fmt: skip
UNKNOWN: Mapping[str, dict[str, Any]] = {
    "point": {"point": "nowhere", "fault": "kill"},
    "system call": {"point": "wriet@a#1", "fault": "kill"},
    "fault": {**AFTER, "fault": "power_loss#00"},
    "dedupe": {**AFTER, "fault": "kill", "dedupe": "hope"},
    "digest": {**AFTER, "fault": "kill", "digest": "any"},
    "witness": {**AFTER, "fault": "kill", "witness": "all"},
    "recovery_fault": {**AFTER, "fault": "kill", "recovery_fault": "kill@nowhere"},
}


@pytest.fixture(scope="module")
def capture() -> Capture:
    return next(store.read(ROOT / "evidence" / "article").captures())


def found(capture: Capture, cell: Cell) -> list[str]:
    """What is wrong in a capture that says that it is of this cell."""
    relabelled = replace(capture, measurement=replace(capture.measurement, cell=cell))
    return list(consistency.problems(relabelled))


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_is_refused_and_found(capture: Capture, name: str) -> None:
    """Evidence of it is none that a run wrote, and says so with the plan's cause."""
    axes, cause, remedy = IMPOSSIBLE[name]
    cell = Cell(**axes)
    ((said, to_do),) = possible.problems(cell)
    assert cause in said
    assert remedy in to_do
    with pytest.raises(PlanError) as refused:
        plans.validated(Plan("impossible", (cell,)))
    assert (refused.value.cause, refused.value.remedy) == (said, to_do)
    assert f"no plan allows it: {said}" in found(capture, cell)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_a_name_that_nothing_knows_is_refused_and_found(capture: Capture, kind: str) -> None:
    """And is told once: what else such a cell could not be, nobody can say."""
    cell = Cell(**UNKNOWN[kind])
    ((named, name, known),) = possible.unknown(cell)
    assert named == kind
    with pytest.raises(UnknownName) as refused:
        plans.validated(Plan("unknown", (cell,)))
    assert str(refused.value) == str(UnknownName(kind, name, known))
    told = [one for one in found(capture, cell) if "which nothing knows" in one]
    assert told == [f"its {kind} is {name!r}, which nothing knows."]


def test_what_was_not_published_is_not_unknown() -> None:
    """Null names nothing."""
    cell = Cell(**AFTER, fault="kill", witness=None, recovery_fault=None, variant=None)
    assert list(possible.unknown(cell)) == []
    assert list(possible.problems(cell)) == []
