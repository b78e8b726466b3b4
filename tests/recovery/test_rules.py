"""What may happen around a recovery is refused where it cannot be, and believed where it is proven.

Each row of what is refused is one thing wrong in a cell that is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from rcr_probes import judge, recoverable
from rcr_probes import plan as plans
from rcr_probes.errors import PlanError
from rcr_probes.model import Cell, Plan
from rcr_probes.vocabulary import (
    DAMAGE,
    NONE,
    ORIGINALS,
    PERSONS,
    RECOVERY_FAULTS,
    STALE_LOCKS,
    Lane,
    at_point,
    recovery_phases,
)
from tests.measurements import measured

RAISED: dict[str, Any] = {"point": "after_action", "fault": "exception", "policy": "evidence_gated"}
CONTROL: dict[str, Any] = {"point": "none", "fault": "none", "policy": "evidence_gated"}
FOREIGN = "tests.runtimes_under_test:Plain"

ALLOWED: list[dict[str, Any]] = [
    *({**RAISED, "recovery_fault": name} for name in RECOVERY_FAULTS if name not in ORIGINALS),
    *({**CONTROL, "recovery_fault": name} for name in ORIGINALS),
    *({**RAISED, "recovery_fault": f"{kind}@start_audit"} for kind in ("kill", "exception")),
    {**RAISED, "recovery_fault": "held@before_action", "recoverers": 2},
    {**RAISED, "recovery_fault": "kill@between_effects", "dedupe": "pair"},
    {**RAISED, "recovery_fault": "twice", "runtime": FOREIGN, "policy": "again"},
    {**RAISED, "witness": "lagging", "variant": "fenced"},
]
# The cell → a word of the cause, a word of the remedy.
REFUSED: Mapping[str, tuple[dict[str, Any], str, str]] = {
    "no recovery": ({**RAISED, "policy": "never", "recovery_fault": "twice"}, "'twice'", "never"),
    "one recoverer held": (
        {**RAISED, "recovery_fault": "held@start_audit"}, "recoverers = 1", "recoverers = 2"
    ),
    "two that are not held": ({**RAISED, "recoverers": 2}, "recoverers = 2", "held@POINT"),
    "two, of which one is killed": (
        {**RAISED, "recoverers": 2, "recovery_fault": "kill@start_audit"}, "recoverers = 2", "held@"
    ),
    "three": (
        {**RAISED, "recoverers": 3, "recovery_fault": "held@start_audit"}, "recoverers = 3", "held@"
    ),
    "another executor's point": (
        {**RAISED, "recovery_fault": "kill@after_claim"}, "after_claim", "claim_first"
    ),
    "an original that is struck": (
        {**RAISED, "recovery_fault": "late_original"}, "late_original", 'point = "none"'
    ),
    "an original at a receiver": (
        {**CONTROL, "recovery_fault": "late_original", "dedupe": "receiver_key"},
        "late_original", "receiver_key",
    ),
    "a person without a stop": (
        {**RAISED, "policy": "resume", "recovery_fault": "person_absent"},
        "person_absent", "evidence_gated",
    ),
    "nothing to contradict": (
        {**RAISED, "point": "start_audit", "recovery_fault": "contradiction"}, "audited", "later"
    ),
    "damage of a runtime that has none": (
        {**RAISED, "policy": "again", "runtime": FOREIGN, "recovery_fault": "nulls"},
        FOREIGN, "damage()",
    ),
    "a lock of a runtime that has none": (
        {**RAISED, "policy": "again", "runtime": FOREIGN, "recovery_fault": "lock_dead"},
        FOREIGN, "lock()",
    ),
}  # fmt: skip


@pytest.mark.parametrize("axes", ALLOWED, ids=lambda axes: Cell(**axes).id)
def test_what_can_be_is_planned(axes: dict[str, Any]) -> None:
    """Every word, each where it has a meaning."""
    plan = Plan("allowed", (Cell(**axes),))
    assert plans.validated(plan) == plan
    assert list(recoverable.problems(Cell(**axes))) == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_the_reason(name: str) -> None:
    """The cause names what is wrong, the remedy what would be right."""
    axes, cause, remedy = REFUSED[name]
    with pytest.raises(PlanError) as caught:
        plans.validated(Plan("refused", (Cell(**axes),)))
    assert cause in caught.value.cause
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    "name", ["kill", "kill@", "@start_audit", "kill@approval_audit", "hang@start_audit", "kill@x"]
)
def test_a_strike_is_a_kind_at_a_point_that_recovery_may_come_to(name: str) -> None:
    """Anything else is no name at all."""
    assert at_point(name) is None
    assert not recoverable.known(name)


Told = tuple[str, Lane, Mapping[str, Any]]


def told(**value: Any) -> Told:
    return ("recover", "fault", value)


FAILED: Told = ("recover", "state", {"status": "failed"})
STOPPED: Told = ("recover", "state", {"status": "verification_required"})
DECIDED: Told = ("recover", "audit", {"event": "operation.decided"})
RETURNED: Told = ("recover", "return", {"error": NONE})
STRUCK = {"point": "start_audit"}
# What is planned → what proves it, event by event; without any one of them it is not proven.
PROOFS: list[tuple[str, list[Told]]] = [
    ("kill@start_audit", [told(**STRUCK, fault="kill"), told(**STRUCK, error="SIGKILL")]),
    (
        "exception@start_audit",
        [told(**STRUCK, fault="exception"), told(**STRUCK, error="INJECTED_FAULT")],
    ),
    ("held@start_audit", [told(**STRUCK, fault="held")]),
    ("twice", [RETURNED, RETURNED]),
    ("person_absent", [STOPPED]),
    ("person_present", [STOPPED, DECIDED]),
    *((name, [told(fault=name)]) for name in (*DAMAGE, *STALE_LOCKS, *ORIGINALS)),
]


def check(module: ModuleType) -> None:
    """Hold a judge against every proof; also used on mutants of it."""

    def happened(name: str, lanes: list[Told]) -> bool | None:
        made = measured(lanes=lanes)
        cell = replace(made.cell, recovery_fault=name)
        found: bool | None = module.happened(replace(made, cell=cell))
        return found

    for name, proof in PROOFS:
        assert happened(name, proof) is True, name
        for left_out in range(len(proof)):
            assert happened(name, proof[:left_out] + proof[left_out + 1 :]) is False, name
        assert happened(name, [("fault", lane, value) for _, lane, value in proof]) is False, name
        assert happened(NONE, proof) is None
    assert happened("person_absent", [FAILED]) is False
    assert module.happened(measured()) is None


def test_what_happened_around_recovery_is_proven_by_its_events() -> None:
    """Each is needed, and only those of recovery count; where nothing is planned, none is asked."""
    check(judge)


def test_every_word_has_a_proof() -> None:
    """None of them is taken for granted."""
    named = {name for name, _ in PROOFS if "@" not in name}
    assert named == set(RECOVERY_FAULTS) - {NONE}


@pytest.mark.parametrize(
    ("recovery_fault", "phases"),
    [
        (NONE, ("recover",)),
        ("twice", ("recover", "recover_2")),
        ("kill@response", ("recover", "recover_2")),
        ("held@response", ("recover", "recover_2")),
        ("person_absent", ("recover", "recover_2")),
        ("person_present", ("recover", "decide", "recover_2")),
        *((name, ("recover",)) for name in (*DAMAGE, *STALE_LOCKS, *ORIGINALS)),
    ],
)
def test_how_often_recovery_runs(recovery_fault: str, phases: tuple[str, ...]) -> None:
    """A person comes between two of them; where there is no recovery, nothing runs."""
    assert recovery_phases("evidence_gated", recovery_fault) == phases
    assert recovery_phases("never", recovery_fault) == ()
    assert set(PERSONS) <= set(RECOVERY_FAULTS)
