"""No capture tells of a recovery that cannot have been: forgeries of real ones are found.

A forger here changes one thing in a real capture, and derives, digests and seals anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from rcr_probes import run as runs
from rcr_probes.evidence import consistency, seal
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.vocabulary import ORIGINALS, WITNESSES
from tests.evidence.forging import Change, insert, put, remove

BEFORE: dict[str, Any] = {"point": "before_action", "fault": "kill", "policy": "evidence_gated"}
AFTER: dict[str, Any] = {"point": "after_action", "fault": "kill", "policy": "evidence_gated"}
LATE: dict[str, Any] = {"point": "none", "fault": "none", "recovery_fault": "late_original"}
CELLS: Mapping[str, Cell] = {
    "plain": Cell(**BEFORE),
    "repaired": Cell(**AFTER),
    "killed": Cell(**BEFORE, recovery_fault="kill@after_action"),
    "raised": Cell(**BEFORE, recovery_fault="exception@before_action"),
    "held": Cell(**BEFORE, recovery_fault="held@before_action", recoverers=2),
    "twice": Cell(**AFTER, recovery_fault="twice"),
    "damaged": Cell(**AFTER, recovery_fault="torn_line"),
    "locked": Cell(**AFTER, recovery_fault="lock_dead"),
    "stopped": Cell(**AFTER, witness="absent"),
    "decided": Cell(**BEFORE, witness="absent", recovery_fault="person_present"),
    "undecided": Cell(**BEFORE, witness="absent", recovery_fault="person_absent"),
    "late": Cell(**LATE, policy="resume"),
    "fenced": Cell(**LATE, policy="resume", variant="fenced"),
    # What is honest, and looks as if it could not have been: no record says what was approved.
    "no record": Cell(**AFTER, digest="changed", recovery_fault="empty_record"),
    "alive": Cell(
        point="none", fault="none", policy="evidence_gated", recovery_fault="original_alive"
    ),
    # The call that is forced asks for another target than the original, which acts after it.
    "another": Cell(**LATE, policy="evidence_gated", digest="changed"),
}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Capture]:
    into = tmp_path_factory.mktemp("forged") / "evidence"
    evidence = runs.run(Plan("recovered", tuple(CELLS.values())), into)
    made = {c.cell: c for c in evidence.captures()}
    return {name: made[cell] for name, cell in CELLS.items()}


def found(capture: Capture, change: Change) -> list[str]:
    """What the check says of a capture after a careful forger changed it."""
    data = json.loads(msgspec.json.encode(capture))
    change(data)
    changed = msgspec.convert(data, Capture)
    forged = seal.seal(changed.measurement, derive(changed.measurement), changed.circumstances)
    return list(consistency.problems(forged))


def cell(**axes: Any) -> Change:
    return lambda data: data["measurement"]["cell"].update(axes)


def lacking(**value: Any) -> Change:
    """Take away the events of recovery that say so."""

    def gone(event: Any) -> bool:
        recovery: bool = event["phase"] == "recover"
        return recovery and value.items() <= event["value"].items()

    return lambda data: remove(data["measurement"], gone)


def last(*happened: tuple[str, Any]) -> Change:
    """Put events at the end of recovery."""

    def change(data: Any) -> None:
        measured = data["measurement"]
        insert(measured, len(measured["events"]), "recover", *happened)

    return change


def returned_before(data: Any) -> None:
    """Let a recovery that was killed have returned before that was seen."""
    measured = data["measurement"]
    seen = next(n for n, e in enumerate(measured["events"]) if e["value"].get("error") == "SIGKILL")
    insert(measured, seen, "recover", ("return", {"error": "none"}))


def not_reached(data: Any) -> None:
    """Let no recovery have come to a point."""
    remove(data["measurement"], lambda e: (e["phase"], e["lane"]) == ("recover", "point"))


def told_late(data: Any) -> None:
    """Let what stood before recovery be told of after its first event."""
    events = data["measurement"]["events"]
    first = next(n for n, e in enumerate(events) if e["phase"] == "recover")
    events[first], events[first + 1] = events[first + 1], events[first]
    for number, event in enumerate(events):
        event["seq"] = number


def renamed(data: Any) -> None:
    """Let the event that tells of the original tell of the one that the cell now plans."""
    planned = data["measurement"]["cell"]["recovery_fault"]
    for event in data["measurement"]["events"]:
        if event["value"].get("fault") in ORIGINALS:
            event["value"]["fault"] = planned


def unmade(data: Any) -> None:
    """Let recovery's call have made nothing, in its events and in what was observed."""
    remove(data["measurement"], lambda e: e["lane"] == "effect")
    data["measurement"]["observations"][1]["effects"] = []


settled = put("measurement.observations.0.settled", True)


def uncalled(data: Any) -> None:
    """Let recovery have called nothing."""
    remove(
        data["measurement"], lambda e: e["phase"] == "recover" and e["lane"] in ("call", "effect")
    )
    data["measurement"]["observations"][1].update(calls=0, effects=[])


def overlooked(data: Any) -> None:
    """Let the last effect have been seen by nobody."""
    last = [e["seq"] for e in data["measurement"]["events"] if e["lane"] == "effect"][-1]
    remove(data["measurement"], lambda e: e["seq"] == last)
    data["measurement"]["observations"][1]["effects"].pop()


def forced(place: int, target: str) -> Change:
    """Let an effect after the forced call be on another target."""
    return put(f"measurement.forced.effects.{place}.target", target)


def both(*changes: Change) -> Change:
    def change(data: Any) -> None:
        for one in changes:
            one(data)

    return change


WAYS: Mapping[str, tuple[str, Change, str]] = {
    "a kill that nobody plans": ("killed", cell(recovery_fault="none"), "does not plan"),
    "a kill as an exception": (
        "killed", cell(recovery_fault="exception@after_action"), "does not plan"
    ),
    "a kill elsewhere": ("killed", cell(recovery_fault="kill@before_action"), "does not plan"),
    "a kill without its end": ("killed", lacking(error="SIGKILL"), "ran 2 times"),
    "a killed recovery that returned": ("killed", last(("return", {"error": "none"})), "ran 1"),
    "a killed process below a recovery that has none": ("killed", returned_before, "ran 1"),
    "an exception as a kill": (
        "raised", cell(recovery_fault="kill@before_action"), "does not plan"
    ),
    "a strike where nothing was reached": ("raised", not_reached, "not reached before"),
    "a strike told twice": (
        "raised",
        last(("fault", {"point": "before_action", "fault": "exception"})),
        "more than once",
    ),
    "one recoverer for two": ("held", cell(recoverers=1), "no plan allows it"),
    "two that were not held": ("held", lacking(fault="held"), "ran 1 times"),
    "recovered twice, told as once": ("twice", cell(recovery_fault="none"), "ran 1 times"),
    "recovered once, told as twice": ("repaired", cell(recovery_fault="twice"), "ran 2 times"),
    "damage that nobody plans": ("damaged", cell(recovery_fault="none"), "does not plan"),
    "other damage": ("damaged", cell(recovery_fault="nulls"), "does not plan"),
    "damage after recovery had begun": ("damaged", told_late, "after recovery had begun"),
    "damage told of twice": ("damaged", last(("fault", {"fault": "torn_line"})), "more than once"),
    "a lock that nobody plans": ("locked", cell(recovery_fault="none"), "does not plan"),
    "a witness that says nothing, as one that does": ("stopped", cell(witness="exact"), "first"),
    "a witness that counts, as one that is absent": (
        "repaired", cell(witness="absent"), "effect was 'unknown'"
    ),
    "nobody's decision": (
        "stopped", last(("audit", {"event": "operation.decided"})), "does not plan"
    ),
    "a decision that nobody waited for": ("decided", cell(recovery_fault="twice"), "person"),
    "a decision told twice": (
        "decided", last(("audit", {"event": "operation.decided"})), "more than once"
    ),
    "a decision before the stop": (
        "decided", lacking(status="verification_required"), "had not stopped"
    ),
    "an original that nobody plans": ("late", cell(recovery_fault="none"), "does not plan"),
    "a refusal without a token": ("fenced", cell(variant="baseline"), "does not plan"),
    "an original that is alive, as one that is late": (
        "alive", both(cell(recovery_fault="late_original"), renamed), "was alive when"
    ),
    "an original that is late, as one that is alive": (
        "late", both(cell(recovery_fault="original_alive"), renamed), "was to be alive"
    ),
    "a forced call for what the original does": ("another", forced(0, "marker-0"), "forced call"),
    "an original for what the forced call does": (
        "another", forced(1, "marker-0-changed"), "its original"
    ),
    "all settled beside an original that is alive": ("alive", settled, "could still act"),
    "all settled before an original that is late": ("late", settled, "could still act"),
    "an effect of a late original, left out": ("late", overlooked, "2 calls made 1 effects"),
    "a call, left out where its points are": ("plain", uncalled, "and called 0 times"),
    "states that say something else": ("plain", put("measurement.says.failed", "due"), "states"),
    "a forced call that only a receiver answers so": (
        "plain", put("measurement.forced.error", "HTTP_500"), "cannot answer"
    ),
    "an effect that a call made, left out": ("plain", unmade, "calls made 0 effects"),
    **{
        f"a call that a witness allowed, as one that is {witness}": (
            "plain", cell(witness=witness), "which nothing allowed"
        )
        for witness in WITNESSES if witness != "exact"
    },
    "a policy that it does not have": ("plain", cell(policy="requeue"), "does not have"),
    "a word that nothing knows": ("plain", cell(recovery_fault="hang@response"), "nothing knows"),
    "a witness that nothing knows": ("plain", cell(witness="blind"), "nothing knows"),
    "a second recovery's process": (
        "plain", put("circumstances.pids.recover_2", 77), "which the cell does not have"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CELLS)
def test_what_was_run_is_believed(captures: Mapping[str, Capture], name: str) -> None:
    """The forger's tools, used for nothing, find nothing."""
    assert found(captures[name], lambda data: None) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_recovery_that_cannot_have_been_is_found(
    captures: Mapping[str, Capture], way: str
) -> None:
    """What stood around it, how often it ran, who decided, and what its witness could say."""
    name, change, problem = WAYS[way]
    said = found(captures[name], change)
    assert any(problem in one for one in said), said
