"""What the reference cannot have done is found; what it is known by is what it says of itself."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from rcr_probes.evidence import of_reference, store
from rcr_probes.reference import lapse
from rcr_probes.reference.adapter import ApprovalRuntime
from rcr_probes.reference.records import ExecutionStatus, Status
from rcr_probes.vocabulary import NO_RECORD, UNREADABLE
from tests.evidence.forging import ROOT, Change, every, found, insert, put, remove

P3 = "completion_audit/audit_is_directory/none/same/resume"
RAISED = "after_action/exception/none/same/resume"
BEFORE = "before_action/exception/none/same/never"
KILLED = "after_action/kill/none/same/never"


def together(*changes: Change) -> Change:
    """Several changes, one after the other."""

    def change(data: Any) -> None:
        for each in changes:
            each(data)

    return change


def renamed(name: str, old: str, new: str) -> Change:
    """One word for another in every event and every observation: so that all agree."""

    def change(data: Any) -> None:
        values = [e["value"] for e in data["events"]]
        for value in (*values, *(o["recorded"] for o in data["observations"])):
            if value.get(name) == old:
                value[name] = new

    return change


def swapped(one: str, other: str) -> Change:
    """Two points of the operation change places, with all that names them."""

    def change(data: Any) -> None:
        names = {one: other, other: one}
        for event in data["events"]:
            point = event["value"].get("point")
            if event["phase"] == "fault" and point in names:
                event["value"]["point"] = names[point]

    return change


def moved(event: str, to: int) -> Change:
    """One line of the audit comes elsewhere among the events of its phase."""

    def change(data: Any) -> None:
        events = data["events"]
        at = next(n for n, e in enumerate(events) if e["value"].get("event") == event)
        events.insert(to, events.pop(at))
        for number, each in enumerate(events):
            each["seq"] = number

    return change


WAYS = {
    "state that it does not have": (P3, renamed("status", "failed", "banana"), "does not have"),
    "succeeded before it had acted": (
        BEFORE,
        renamed("status", "failed", "succeeded"),
        "a state that the reference does not have",
    ),
    "succeeded before it had acted, wholly": (
        BEFORE,
        together(
            renamed("status", "failed", "succeeded"), renamed("execution", "failed", "succeeded")
        ),
        "'succeeded', which it cannot have done yet",
    ),
    "approved once it was begun": (
        KILLED,
        together(
            renamed("status", "executing", "approved"),
            renamed("execution", "executing", "not_started"),
        ),
        "'approved', which it cannot have done yet",
    ),
    "recovery's state": (
        RAISED,
        together(
            renamed("status", "failed", "partial_failed"),
            renamed("execution", "failed", "partial_failed"),
        ),
        "'partial_failed', which it cannot have done yet",
    ),
    "effect on another target": (
        RAISED,
        lambda d: [e["value"].update(target="x") for e in d["events"] if e["lane"] == "effect"],
        "an effect on 'x', which nobody had asked for",
    ),
    "effect of another key": (
        RAISED,
        every("effect", operation_key="x"),
        "not the operation's key",
    ),
    "recovery's point left out": (
        RAISED,
        lambda d: remove(
            d, lambda e: e["phase"] == "recover" and e["value"].get("point") == "after_action"
        ),
        "to which it cannot have come then",
    ),
    "execution that it does not have": (
        P3,
        renamed("execution", "failed", "banana"),
        "a state that the reference does not have",
    ),
    "record that is missing, and tells": (
        P3,
        renamed("status", "failed", "missing"),
        "a state that the reference does not have",
    ),
    "audit line that it does not write": (
        P3,
        renamed("event", "operation.started", "operation.banana"),
        "which the reference does not write",
    ),
    "points that change places": (
        RAISED,
        swapped("approval_audit", "start_audit"),
        "to which it cannot have come then",
    ),
    "point that was left out": (
        RAISED,
        renamed("point", "start_audit", "before_action"),
        "to which it cannot have come then",
    ),
    "line before its point": (RAISED, moved("operation.started", 0), "had not come to"),
    "line more often than its point": (
        RAISED,
        renamed("event", "operation.prepared", "operation.approved"),
        "had not come to 'approval_audit'",
    ),
    "call of another key": (P3, every("call", operation_key="x"), "not the operation's key"),
    "digest of an approval that stands, left out": (
        P3,
        put("observations.0.recorded.approved_digest", None),
        "'failed' after fault, and no digest of an approved request",
    ),
    "digest of an approval that does not stand": (
        P3,
        together(
            put("observations.1.recorded.status", "stale"),
            put("observations.1.recorded.execution", "not_started"),
        ),
        "'stale' after recover, and a digest of an approved request",
    ),
    "digest of the request in hand, left out": (
        P3,
        put("observations.0.recorded.current_digest", None),
        "'failed' after fault, and no digest of the request in hand",
    ),
    "what its states say": (P3, put("says.failed", "not_done"), "another meaning than they have"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_the_reference_cannot_have_done_is_found(way: str) -> None:
    """However carefully all else was made to fit."""
    cell, change, said = WAYS[way]
    problems = found(cell, change)
    assert any(said in problem for problem in problems), problems


def test_what_is_known_of_the_reference_is_what_it_says_of_itself() -> None:
    """Its words are written down in the evidence's own code, which may not import a runtime."""
    assert ApprovalRuntime.says == of_reference.SAYS
    assert set(of_reference.SAYS) == set(get_args(Status))
    assert of_reference.STATES.keys() - NO_RECORD == set(get_args(Status))
    assert set(of_reference.NOT_STANDING) == {*NO_RECORD, *lapse.NOT_STANDING}
    told = {word for words in of_reference.STATES.values() for word in words}
    assert told - {None} == set(get_args(ExecutionStatus))


def test_every_line_that_it_writes_is_known_and_no_other() -> None:
    """What no cell has is what no cell asks for: a decision against it, or years of waiting."""
    written = {
        event.value["event"]
        for plan in ("faults", "syscalls", "power")
        for capture in store.read(ROOT / "evidence" / plan).captures()
        for event in capture.measurement.events
        if event.lane == "audit"
    }
    unasked = {f"operation.{word}" for word in ("rejected", "cancelled", "expired")}
    assert written | unasked == {*of_reference.AUDITED, UNREADABLE}


def test_a_line_that_nobody_had_seen_before_its_phase_was_ended_is_the_next_ones_to_tell() -> None:
    """It may have been appended just before: it still has its point."""

    def unseen(data: Any) -> None:
        line = {"event": "operation.started"}
        remove(data, lambda e: e["value"] == line and e["phase"] == "fault")
        insert(data, data["observations"][0]["events"], "recover", ("audit", line))

    assert found(RAISED, unseen) == []
