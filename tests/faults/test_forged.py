"""A fault that struck cannot be told as another one, nor its proof be made up or left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence.check import check
from rcr_probes.model import Capture, Cell, Plan
from tests.evidence.forging import Change, insert, put
from tests.evidence.test_relabelled import found, told_as
from tests.faults.beside import WHY_NOT

CELLS = {
    "hang": Cell(point="after_action", fault="hang", policy="resume"),
    "kill": Cell(point="after_action", fault="kill", policy="resume"),
    "full": Cell(point="start_audit", fault="disk_full", policy="resume"),
    "lost append": Cell(point="completion_audit", fault="lost_append", policy="never"),
    # A device that keeps nothing cannot be flushed, either: honest, though it has not fired.
    "lost append, flushed": Cell(
        point="completion_audit", fault="lost_append", policy="never", variant="fsync"
    ),
    "lost answer": Cell(point="response", fault="response_lost", policy="never"),
    "exception": Cell(point="response", fault="exception", policy="never"),
    "torn": Cell(point="start_audit", fault="torn_append", policy="again"),
    "misreported": Cell(point="write@audit.jsonl#2", fault="error_after_call", policy="again"),
}
TRACED = ("torn", "misreported")


@pytest.fixture(scope="module")
def struck(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Capture]:
    """Real captures, one of each."""
    cells = {name: cell for name, cell in CELLS.items() if WHY_NOT is None or name not in TRACED}
    evidence = runs.run(
        Plan("struck", tuple(cells.values())), tmp_path_factory.mktemp("struck") / "evidence"
    )
    assert check(evidence.folder).findings == ()
    return dict(zip(cells, evidence.captures(), strict=True))


def first(**values: Any) -> Change:
    """Say this of the first observation."""

    def change(data: Any) -> None:
        data["measurement"]["observations"][0].update(values)

    return change


def both(*changes: Change) -> Change:
    def change(data: Any) -> None:
        for one in changes:
            one(data)

    return change


def then(lane: str, value: Mapping[str, Any]) -> Change:
    """One more event, as the last of the fault phase."""

    def change(data: Any) -> None:
        measured = data["measurement"]
        insert(measured, measured["observations"][0]["events"], "fault", (lane, value))

    return change


def told(**values: Any) -> Change:
    """Say this in the events of the lane ``return``."""

    def change(data: Any) -> None:
        for event in data["measurement"]["events"]:
            if event["lane"] == "return":
                event["value"].update(values)

    return change


def without_proof(data: Any) -> None:
    """The event that says that the strike took hold is gone."""
    events = data["measurement"]["events"]
    gone = [e["seq"] for e in events if e["lane"] == "fault" and "error" in e["value"]]
    assert gone
    for number in reversed(gone):
        del events[number]
    for number, event in enumerate(events):
        event["seq"] = number
    for observed in data["measurement"]["observations"]:
        observed["events"] -= len(gone)


KEPT = then("audit", {"event": "operation.succeeded"})
GOES_ON: Mapping[str, Mapping[str, Any]] = {
    "point": {"point": "after_result"},
    "call": {"operation_key": "operation-0"},
    "ask": {"operation_key": "operation-0", "effects": 1, "in_flight": False},
}
WAYS: dict[str, tuple[str, Change, str]] = {
    "a hang as a kill": ("hang", told_as("kill"), "a fault that the cell does not plan"),
    "a hang as a kill, of which nothing was told": (
        "hang", both(without_proof, told_as("kill")), "ended for hanging"
    ),
    "a hang as a kill, and its end too": (
        "hang",
        told_as("kill", ended="SIGKILL", error="SIGKILL"),
        "a fault that the cell does not plan",
    ),
    "a hang that ended at the deadline": (
        "hang", first(ended="deadline"), "its caller saw 'HUNG'"
    ),
    "a hang that was no end": ("hang", first(ended="exit"), "its caller saw 'HUNG'"),
    "a hang of which another error is told": (
        "hang", first(error="SIGKILL"), "its caller saw 'SIGKILL'"
    ),
    "a hang that returned": ("hang", then("return", {"error": "HUNG"}), "its fault had killed it"),
    **{
        f"a {name} after which it came to a {lane}": (
            name, then(lane, value), "came after its fault had ended its phase"
        )
        for name in ("hang", "kill", "torn")
        for lane, value in GOES_ON.items()
    },
    "a kill as a hang": ("kill", told_as("hang"), "'hang' struck, which kills nothing"),
    "a kill as a hang, and its end too": (
        "kill", told_as("hang", ended="hang", error="HUNG"), "nothing told that it hung"
    ),
    "a recovery that hung": (
        "hang", put("measurement.observations.1.ended", "hang"), "recover phase was ended for"
    ),
    "a full disk as a loop": ("full", told_as("symlink_loop"), "not what 'symlink_loop' gives"),
    "a full disk as a lost append": ("full", told_as("lost_append"), "not what 'lost_append'"),
    "a full disk that kept a line": ("full", KEPT, "an audit line was kept"),
    "a full disk as a torn append": (
        "full", told_as("torn_append", ended="SIGKILL"), "its fault had killed it"
    ),
    "a full disk that nobody looked for": (
        "full", first(standing=None), "does not say whether the fault still stood"
    ),
    "a lost append that kept a line": ("lost append", KEPT, "an audit line was kept"),
    "a lost append that is told of": (
        "lost append, flushed",
        put("measurement.cell.variant", "baseline"),
        "not what 'lost_append'",
    ),
    "a lost append that cannot be told of": (
        "lost append", put("measurement.cell.variant", "fsync"), "not what 'lost_append'"
    ),
    "a lost append as a full disk": ("lost append", told_as("disk_full"), "not what 'disk_full'"),
    "a lost answer that came": (
        "lost answer",
        both(told(error="none"), first(error="none")),
        "though its answer was lost",
    ),
    "a lost answer as an exception": ("lost answer", told_as("exception"), "loses no answer"),
    "an exception as a lost answer": (
        "exception", told_as("response_lost"), "a fault that the cell does not plan"
    ),
    "a lost answer at another point": (
        "lost answer",
        put("measurement.cell.point", "after_result"),
        "cannot strike at 'after_result'",
    ),
    "a torn append as a kill": (
        "torn", told_as("kill"), "says whether a fault stood that leaves nothing"
    ),
    "a torn append that returned": (
        "torn", then("return", {"error": "SIGKILL"}), "its fault had killed it"
    ),
    "a torn append as a full disk": ("torn", told_as("disk_full"), "which kills nothing"),
    "a misreported call as a refused one": (
        "misreported", told_as("io_error", standing=True), "a fault that the cell does not plan"
    ),
    "a misreported call that stands": (
        "misreported", first(standing=True), "says whether a fault stood that leaves nothing"
    ),
    "a misreported call at a point": (
        "misreported",
        put("measurement.cell.point", "after_action"),
        "cannot strike at 'after_action'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_strike_that_is_told_otherwise_is_found(way: str, struck: Mapping[str, Capture]) -> None:
    """Each kind leaves something by which it is known; the real capture is sound."""
    name, change, problem = WAYS[way]
    if name not in struck:
        pytest.skip(" ".join(WHY_NOT or ()))
    assert found(struck[name], lambda data: None) == []
    said = found(struck[name], change)
    assert any(problem in one for one in said), said
