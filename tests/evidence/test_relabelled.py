"""A fault that struck cannot be told as another, nor as that of a runtime which does not have it.

A forger here gives another name to the fault of a real capture, wherever that stands in it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rcr_probes import run as runs
from rcr_probes import strace
from rcr_probes.evidence import consistency, seal
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Cell, Plan
from tests.evidence.forging import Change, committed, insert, put
from tests.evidence.test_course import KILLED, RAISED

ROOT = Path(__file__).parents[2]
FORKING = "tests.forking_runtime:runtime"
HOST = Cell(point="after_action", fault="kill_host", runtime=FORKING)
CALL = Cell(point="write@state#1", fault="kill", runtime="tests.runtimes_under_test:Plain")


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Capture]:
    """Real captures by the id of their cell: the committed ones, a killed host, a killed call."""
    cells = (HOST, CALL) if shutil.which(strace.PROGRAM) else (HOST,)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)  # the runtimes of these tests are named from there
        evidence = runs.run(Plan("struck", cells), tmp_path_factory.mktemp("struck") / "evidence")
    return {**committed(), **{c.cell.id: c for c in evidence.captures()}}


def found(capture: Capture, change: Change) -> list[str]:
    """What the check says of a capture after a careful forger changed it."""
    data = json.loads(msgspec.json.encode(capture))
    change(data)
    changed = msgspec.convert(data, Capture)
    forged = seal.seal(changed.measurement, derive(changed.measurement), changed.circumstances)
    return list(consistency.problems(forged))


def told_as(fault: str, **first: Any) -> Change:
    """Name another fault, wherever one is named; and say this of the first observation."""

    def change(data: Any) -> None:
        measured = data["measurement"]
        measured["cell"]["fault"] = fault
        for event in measured["events"]:
            if "fault" in event["value"]:
                event["value"]["fault"] = fault
        measured["observations"][0].update(first)

    return change


def of(runtime: str) -> Change:
    return put("measurement.cell.runtime", runtime)


def a_child_was_killed(data: Any) -> None:
    """The phase came to its end, and the process that was killed is another."""
    measured = data["measurement"]
    first = measured["observations"][0]
    insert(measured, first["events"], "fault", ("return", {"error": "EIO"}))
    first.update(ended="exit", error="EIO", standing=True)


WAYS: dict[str, tuple[str, Change, str]] = {
    "a lost response without a receiver": (
        RAISED, told_as("response_lost"), "'after_action' with dedupe = 'none'"
    ),
    "a host that it does not have": (
        KILLED, told_as("kill_host"), "'kill_host', which the runtime"
    ),
    "a refusal that it does not have": (
        RAISED, told_as("result_refused", standing=True), "'result_refused', which the runtime"
    ),
    "a variant that it does not have": (
        RAISED, put("measurement.cell.variant", "other"), "'other', which the runtime"
    ),
    "a way that it does not have": (
        RAISED, put("measurement.cell.policy", "requeue"), "'requeue', which the runtime"
    ),
    "a kill below one process": (KILLED, a_child_was_killed, "the reference has none"),
    "a kill as an exception": (
        KILLED, told_as("exception"), "'exception' struck, which kills nothing"
    ),
    "a killed host as a refusal": (
        HOST.id, told_as("result_refused", standing=True), "a fault that the cell does not plan"
    ),
    "a killed host as a kill": (HOST.id, told_as("kill"), "a fault that the cell does not plan"),
    "an exception as a killed host": (
        RAISED, told_as("kill_host"), "a fault that the cell does not plan"
    ),
    "a fencing token for a receiver": (
        KILLED,
        lambda d: d["measurement"]["cell"].update(variant="fenced", dedupe="receiver_key"),
        "knows no fencing tokens",
    ),
    "a lost power that took a receiver's effects": (
        KILLED,
        lambda d: d["measurement"]["cell"].update(
            fault="power_loss_local#0", dedupe="receiver_key"
        ),
        "on no disk of ours",
    ),
    "a state that is not explored": (
        KILLED, put("measurement.cell.fault", "power_loss#48"), "at most 48 states are explored"
    ),
    "a killed host of a worker": (HOST.id, of("worker"), "'kill_host', which the runtime"),
    "a killed call as an error": (
        CALL.id, told_as("io_error", standing=True), "'io_error' struck, which kills nothing"
    ),
    "a killed call as a full disk": (
        CALL.id, told_as("disk_full", standing=True), "'disk_full' struck, which kills nothing"
    ),
    "a call in a forked process": (
        CALL.id, put("circumstances.start", "fork"), "or strace is spawned"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_with_another_name_is_found(way: str, struck: Mapping[str, Capture]) -> None:
    """Each fault leaves something by which it is known."""
    cell, change, problem = WAYS[way]
    if cell not in struck:
        pytest.skip("strace is not installed")
    assert found(struck[cell], lambda data: None) == []
    said = found(struck[cell], change)
    assert any(problem in one for one in said), said
