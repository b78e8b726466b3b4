"""Unsafe calls and false blocks are a matter of the whole plan: every world that looks the same."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes.evidence import seal, worth
from rcr_probes.evidence.derive import derive
from rcr_probes.model import (
    Approved,
    Capture,
    Cell,
    Circumstances,
    Effect,
    Event,
    Forced,
    Json,
    Measurement,
    Observation,
    Recorded,
)
from rcr_probes.vocabulary import CAPABILITIES, TRULY
from tests.evidence import made

HARMFUL = ("duplicate", "wrong")


def effects(count: int) -> tuple[Effect, ...]:
    return tuple(
        Effect(f"E{n}", "operation-0", "local-marker", "marker-0") for n in range(1, count + 1)
    )


def world(
    *,
    before: int = 0,
    status: str = "failed",
    settled: bool = True,
    called: bool = False,
    dedupe: str = "none",
    policy: str = "again",
    repeat: int = 0,
    after: str | None = None,
    told: str | None = None,
) -> Capture:
    """A cell that has this many effects after its fault, and is recovered by a call or by none."""
    works = before == 0 or dedupe == "none"
    made_now = int(called and works)
    first = Observation(
        after="fault",
        events=0,
        recorded=Recorded(status, approved_digest="sha256:a", current_digest="sha256:a"),
        effects=effects(before),
        calls=before,
        error="EISDIR",
        ended="exit",
        settled=settled,
    )
    events = () if told is None else (Event(0, "recover", "audit", {"event": told}),)
    last = replace(
        first,
        after="recover",
        events=len(events),
        recorded=replace(first.recorded, status=after or status),
        effects=effects(before + made_now),
        calls=before + called,
        error="none" if called or after or told else "APPROVAL_BUSY",
    )
    measured = Measurement(
        cell=Cell(point="none", fault="none", dedupe=dedupe, policy=policy, repeat=repeat),
        source="measured",
        approved=Approved("operation-0", "marker-0"),
        says={"succeeded": "done"},
        events=events,
        observations=(first, last),
        forced=Forced(effects(before + works), "none"),
    )
    return seal.seal(measured, derive(measured), Circumstances())


def test_the_articles_p3_is_an_unsafe_call_and_leaving_it_alone_is_no_false_block() -> None:
    """The effect was there: a call duplicated it, and none was needed."""
    resumed, left = worth.weigh(map(made.capture, (made.P3, made.LEFT)))
    assert (resumed.unsafe, resumed.false_block, resumed.outcome) == (True, False, "reexecuted")
    assert (left.unsafe, left.false_block, left.outcome) == (False, False, "left")
    assert (resumed.existed, left.existed) == ("one", "one")


def test_a_call_is_unsafe_for_a_world_that_it_did_not_meet() -> None:
    """Nothing is there, and the call did what was needed; but it could not know."""
    lucky = world(before=0, settled=False, called=True)
    unlucky = world(before=0, settled=False, repeat=1)
    assert not worth.weigh([lucky, unlucky])[0].unsafe
    # The same view, but of a world in which one more call would have been one too many.
    forced = Forced(effects(2), "none")
    harmed = replace(unlucky.measurement, forced=forced)
    seen = seal.seal(harmed, derive(harmed), Circumstances())
    assert seen.judgement.truth is not None
    assert seen.judgement.truth.call_harm == "duplicate"
    assert worth.weigh([lucky, seen])[0].unsafe
    (pair,) = worth.ambiguous([lucky, seen])
    assert (pair.needs, pair.harmed) == (lucky, seen)


def test_not_calling_is_a_false_block_only_where_every_world_of_the_view_bears_the_call() -> None:
    """Needed, harmless, and knowable."""
    blocked = world(before=0, settled=False)
    assert worth.weigh([blocked])[0].false_block
    other = replace(blocked.measurement, forced=Forced(effects(2), "none"))
    harmed = seal.seal(other, derive(other), Circumstances())
    assert not worth.weigh([blocked, harmed])[0].false_block
    assert worth.weigh([world(before=1)])[0].false_block is False


@pytest.mark.parametrize(
    ("capture", "outcome"),
    [
        (world(called=True), "reexecuted"),
        (world(before=1, told="operation.reconciled"), "reconciled"),
        (world(before=1, called=True, dedupe="operation_key", told="operation.reconciled"),
         "reconciled"),
        (world(after="verification_required"), "stopped"),
        (world(), "refused"),
        (world(after="failed", status="failed"), "left"),
    ],
)  # fmt: skip
def test_what_recovery_did_is_read_from_what_it_left(capture: Capture, outcome: str) -> None:
    """By what it audited, its calls, its record, its error, in this order."""
    assert worth.weigh([capture])[0].outcome == outcome


def test_an_executor_that_declares_what_it_lacks_is_counted_apart() -> None:
    """Its worlds are no reason against a call of one that keeps its word, nor the other way."""
    lying = [name for name in CAPABILITIES if CAPABILITIES[name] != TRULY[name]]
    assert lying
    for dedupe in lying:
        (one,) = worth.weigh([world(before=1, called=True, dedupe=dedupe)])
        assert not one.true_facts
    assert worth.weigh([world(before=1, called=True)])[0].true_facts


def test_a_digest_that_leaves_out_what_matters_makes_a_fact_false() -> None:
    """The identity is valid, and a call would mean something else: also where it makes nothing."""
    one = world(before=1, called=True)
    wrong = (*effects(1), Effect("E2", "operation-0", "local-marker", "marker-0-changed"))
    for forced, dedupe, unsafe in ((wrong, "none", True), (effects(1), "operation_key", False)):
        cell = replace(one.cell, digest="coarse", dedupe=dedupe)
        other = replace(one.measurement, cell=cell, forced=Forced(forced, "none"))
        (weighed,) = worth.weigh([seal.seal(other, derive(other), Circumstances())])
        assert not weighed.true_facts
        assert weighed.unsafe == unsafe


def test_before_the_first_point_nothing_is_approved_and_no_call_is_needed() -> None:
    """A call struck there, and one struck later, which is the same but for the point before it."""
    one = world()
    for reached in ((), (Event(0, "fault", "point", {"point": "approval_audit"}),)):
        struck = replace(one.cell, point="write@record#1", fault="kill")
        first, last = (replace(o, events=len(reached)) for o in one.measurement.observations)
        place: dict[str, Json] = {"point": struck.point}
        strikes = (
            Event(len(reached), "fault", "point", place),  # the call is a point, too
            Event(len(reached) + 1, "fault", "fault", {**place, "fault": struck.fault}),
        )
        first = replace(first, events=len(reached) + 2, ended="SIGKILL", error="SIGKILL")
        last = replace(last, events=len(reached) + 2)
        measured = replace(
            one.measurement, cell=struck, events=(*reached, *strikes), observations=(first, last)
        )
        (weighed,) = worth.weigh([seal.seal(measured, derive(measured), Circumstances())])
        assert weighed.false_block == bool(reached)


def test_a_cell_of_which_nothing_is_known_is_not_weighed() -> None:
    """Its verdict is unknown, or others published it."""
    broken = world()
    unread = replace(
        broken.measurement,
        observations=tuple(
            replace(o, damage=("effects.jsonl:1: torn",)) for o in broken.measurement.observations
        ),
    )
    assert worth.weigh([seal.seal(unread, derive(unread), Circumstances())]) == []


worlds = st.builds(
    world,
    before=st.integers(0, 2),
    status=st.sampled_from(["failed", "executing"]),
    settled=st.booleans(),
    called=st.booleans(),
    dedupe=st.sampled_from(["none", "operation_key"]),
    repeat=st.integers(0, 1000),
)


@given(st.lists(worlds, max_size=12))
def test_the_counts_are_what_the_definitions_say(captures: list[Capture]) -> None:
    """Written down once more, world by world; and no view is both ambiguous and blamed."""
    found = worth.weigh(captures)
    assert [w.capture for w in found] == captures
    for one in found:
        alike = [c for c in captures if worth.view(c) == one.view]
        truths = [c.judgement.truth for c in alike]
        harm = any(t is not None and t.call_harm in HARMFUL for t in truths)
        own = one.capture.judgement.truth
        assert own is not None
        assert one.unsafe == (one.called and harm)
        assert one.false_block == (not one.called and own.call_needed and not harm)
    for pair in worth.ambiguous(captures):
        assert worth.view(pair.needs) == worth.view(pair.harmed) == pair.view
        stopped = [w for w in found if w.view == pair.view and not w.called]
        assert not any(w.false_block for w in stopped)
        assert all(w.unsafe for w in found if w.view == pair.view and w.called)


@given(worlds)
def test_taking_evidence_away_never_lets_a_call_through_that_was_not_allowed(
    capture: Capture,
) -> None:
    """Except by replay, which an executor without look-up still allows: its call does no harm."""
    decided = capture.judgement.decision
    assert decided is not None
    for missing in worth.EVIDENCE:
        left = worth.without(capture, missing)
        assert left.eligibility != "reexecute" or decided.eligibility == "reexecute"
        if left.way == "replay":
            assert "replay" in CAPABILITIES[capture.cell.dedupe]
