"""Eligibility: the decision over every combination of facts, and where the facts come from."""

from __future__ import annotations

from itertools import product
from types import ModuleType
from typing import Any

from rcr_probes import eligibility
from rcr_probes.model import Approved, Cell, Effect, Facts, Observation, Recorded
from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES

# The decision table of docs/design.md §6, spelt out: what is declared → eligibility and way.
COLUMNS = ((), ("lookup",), ("replay",), ("lookup", "replay"))
TABLE = """
many     valid    stop       stop              stop              stop
many     changed  stop       stop              stop              stop
many     unknown  stop       stop              stop              stop
partial  valid    stop       stop              reconcile:replay  reconcile:replay
partial  changed  stop       stop              stop              stop
partial  unknown  stop       stop              stop              stop
present  valid    reconcile:evidence  reconcile:evidence  reconcile:evidence  reconcile:evidence
present  changed  reconcile:evidence  reconcile:evidence  reconcile:evidence  reconcile:evidence
present  unknown  reconcile:evidence  reconcile:evidence  reconcile:evidence  reconcile:evidence
absent   valid    reexecute  reexecute         reexecute         reexecute
absent   changed  stop       stop              stop              stop
absent   unknown  stop       stop              stop              stop
unknown  valid    stop       reconcile:lookup  reconcile:replay  reconcile:lookup
unknown  changed  stop       reconcile:lookup  stop              reconcile:lookup
unknown  unknown  stop       reconcile:lookup  stop              reconcile:lookup
"""
EXPECTED: dict[tuple[Any, Any, tuple[str, ...]], str] = {
    (effect, identity, capability): decision
    for effect, identity, *decisions in (line.split() for line in TABLE.split("\n") if line)
    for capability, decision in zip(COLUMNS, decisions, strict=True)
}
APPROVED = Approved("operation-0", "marker-0")
OURS = Effect("E1", "operation-0", "local-marker", "marker-0")
# A decision's reasons, one row for each way to come to it.
REASONS: dict[tuple[Any, Any, tuple[str, ...]], tuple[str, ...]] = {
    ("present", "valid", ()): ("effect_present",),
    ("present", "changed", ()): ("effect_present", "identity_changed", "original_request_only"),
    ("present", "unknown", ()): ("effect_present", "identity_unknown", "original_request_only"),
    ("absent", "valid", ()): ("effect_absent", "identity_valid"),
    ("absent", "changed", ()): ("effect_absent", "identity_changed"),
    ("unknown", "valid", ()): ("effect_unknown", "no_capability"),
    ("unknown", "valid", ("lookup",)): ("effect_unknown", "lookup_declared"),
    ("unknown", "valid", ("replay",)): ("effect_unknown", "replay_declared", "identity_valid"),
    ("unknown", "changed", ("replay",)): ("effect_unknown", "replay_declared", "identity_changed"),
    ("many", "valid", ()): ("effect_many",),
    ("partial", "valid", ()): ("effect_partial", "no_replay"),
    ("partial", "valid", ("lookup",)): ("effect_partial", "no_replay"),
    ("partial", "changed", ("replay",)): ("effect_partial", "replay_declared", "identity_changed"),
    ("partial", "valid", ("replay",)): ("effect_partial", "replay_declared", "identity_valid"),
}
# Effects, settled, damage → what is known of the effect.
KNOWN = {
    "no effect, settled": ((), True, (), "absent"),
    "no effect, but the attempt may still act": ((), False, (), "unknown"),
    "no effect, and settling was not looked at": ((), None, (), "unknown"),
    "no snapshot": (None, True, (), "unknown"),
    "a damaged snapshot": ((), True, ("effects.jsonl:1: torn",), "unknown"),
    "the approved effect": ((OURS,), True, (), "present"),
    "the approved effect, unsettled": ((OURS,), False, (), "present"),
    "twice the approved effect": ((OURS, OURS), True, (), "many"),
    "our key on another target": (
        (Effect("E1", "operation-0", "local-marker", "other"),),
        True,
        (),
        "many",
    ),
    "our target under another key": (
        (Effect("E1", "operation-9", "local-marker", "marker-0"),),
        True,
        (),
        "many",
    ),
    "the approved effect, and our target under another key": (
        (OURS, Effect("E2", "operation-9", "local-marker", "marker-0")),
        True,
        (),
        "many",
    ),
    "another operation's effect": (
        (Effect("E1", "operation-9", "local-marker", "other"),),
        True,
        (),
        "absent",
    ),
}


def observed(
    effects: tuple[Effect, ...] | None, settled: bool | None, damage: tuple[str, ...]
) -> Observation:
    return Observation("fault", 0, Recorded("failed"), effects, 0, settled=settled, damage=damage)


def check(module: ModuleType) -> None:
    """Hold an eligibility module against every row; also used on mutants of it."""
    for (effect, identity, capability), expected in EXPECTED.items():
        decision = module.decide(Facts(identity, effect, capability))
        got = ":".join(w for w in (decision.eligibility, decision.way) if w)
        assert got == expected, (effect, identity, capability, got)
        assert module.may_call(decision) is (expected in ("reexecute", "reconcile:replay"))
    for (effect, identity, capability), reasons in REASONS.items():
        assert module.decide(Facts(identity, effect, capability)).reasons == reasons
    for effects, settled, damage, fact in KNOWN.values():
        assert module.effect(APPROVED, observed(effects, settled, damage)) == fact
        due = module.effect(APPROVED, observed(effects, settled, damage), due=True)
        assert due == ("unknown" if fact == "absent" else fact)
    two = Approved("operation-0", "marker-0", effects=2)
    assert module.effect(two, observed((OURS,), True, ())) == "partial"
    assert module.effect(two, observed((OURS,), False, ())) == "unknown"
    other = Effect("E2", "operation-0", "2", "marker-0")
    assert module.effect(two, observed((OURS, other), True, ())) == "present"
    assert module.effect(two, observed((OURS, OURS), True, ())) == "many"
    assert module.effect(APPROVED, observed((OURS, other), True, ())) == "many"
    cell, seen = Cell(point="none", fault="none"), observed((), True, ())
    for says, fact in (("due", "unknown"), ("open", "absent"), ("not_done", "absent")):
        assert module.known(cell, APPROVED, seen, {"failed": says}).effect == fact
    before = Facts("valid", "unknown", ("lookup", "replay"))
    for count, wanted, fact in LOOKED_UP:
        assert module.looked_up(before, count, wanted) == Facts("valid", fact, ("replay",))
    for axes, settled, fact in WITNESSED:
        witnessed = Cell(point="none", fault="none", **axes)
        assert module.known(witnessed, APPROVED, observed((), settled, ()), {}).effect == fact
    same = Observation(
        "fault", 0, Recorded("failed", approved_digest="a", current_digest="a"), (), 0
    )
    for name, identity in (("empty_record", "unknown"), ("torn_line", "valid")):
        damaged = Cell(point="none", fault="none", recovery_fault=name)
        assert module.known(damaged, APPROVED, same, {}).identity == identity
    digests = [("a", "a", "valid"), ("a", "b", "changed"), (None, "a", "unknown")]
    for approved, current, fact in [*digests, ("a", None, "unknown")]:
        recorded = Recorded("failed", approved_digest=approved, current_digest=current)
        assert module.identity(recorded) == fact


# How many effects a look-up knows under the key, and how many were approved → what is known then.
LOOKED_UP: list[tuple[int | None, int, Any]] = [
    (None, 1, "unknown"),
    (0, 1, "absent"),
    (1, 1, "present"),
    (2, 1, "many"),
    (1, 2, "partial"),
    (2, 2, "present"),
    (3, 2, "many"),
]
# What the cell's axes leave of an effect that is not there, whether the attempt is settled or not.
WITNESSED: list[tuple[dict[str, Any], bool, str]] = [
    ({}, True, "absent"),
    ({"witness": "lagging"}, True, "unknown"),
    ({"witness": "absent"}, True, "unknown"),
    ({"recovery_fault": "late_original"}, False, "unknown"),
    ({"recovery_fault": "late_original", "variant": "fenced"}, False, "absent"),
    ({"variant": "fenced"}, False, "unknown"),
    ({"recovery_fault": "lock_live"}, True, "unknown"),
    ({"recovery_fault": "lock_dead"}, True, "absent"),
    ({"recovery_fault": "original_alive", "variant": "fenced"}, False, "unknown"),
]


def test_the_table_covers_every_combination() -> None:
    """No combination of facts is left to chance."""
    assert set(EXPECTED) == set(product(EFFECT_FACTS, IDENTITIES, COLUMNS))


def test_every_combination_of_facts_gets_the_decision_of_the_table() -> None:
    """The decision, its way, what may call, and each fact from its observation."""
    check(eligibility)


def test_what_is_known_comes_from_the_first_observation_and_the_declared_capability() -> None:
    """`known` puts the three facts together."""
    cell = Cell(point="none", fault="none", dedupe="operation_key")
    recorded = Recorded("failed", approved_digest="a", current_digest="a")
    seen = Observation("fault", 0, recorded, (OURS,), 1, settled=True)
    assert eligibility.known(cell, APPROVED, seen, {"failed": "open"}) == Facts(
        "valid", "present", ("lookup", "replay")
    )


def test_an_absent_effect_of_a_runtime_that_is_due_to_act_is_unknown() -> None:
    """A message that will be delivered again may still make it: another call would be a second."""
    cell = Cell(point="none", fault="none")
    recorded = Recorded("unacked", approved_digest="a", current_digest="a")
    seen = Observation("fault", 0, recorded, (), 0, settled=True)
    due = eligibility.known(cell, APPROVED, seen, {"unacked": "due"})
    assert (due.effect, eligibility.decide(due).eligibility) == ("unknown", "stop")
    open_ = eligibility.known(cell, APPROVED, seen, {"unacked": "open"})
    assert eligibility.decide(open_).eligibility == "reexecute"
