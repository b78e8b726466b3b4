"""The careful reader: what counts at a cutoff, what it says, and what changes nothing."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes.evidence.admissibility import APPROVAL, Reading, Rejected, naive, read
from rcr_probes.evidence.controls import CONTROLS, controls
from rcr_probes.witness import EFFECTS, Envelope, Timeline, digest
from tests.evidence.timelines import (
    ENVELOPES,
    OWNER,
    SAID,
    approval,
    effects,
    envelope,
    registered,
    small,
)


def said(reading: Reading) -> tuple[str | None, int | None, str, bool | None]:
    return (
        reading.approval_status,
        reading.effect_count,
        reading.effect_observed,
        reading.duplicate_observed,
    )


def why(timeline: Timeline, at: int) -> dict[str, str]:
    """Id → reason, of what is rejected."""
    return {one.id: one.reason for one in read(timeline, at).rejected}


# What is said


@pytest.mark.parametrize("at", SAID)
def test_each_cutoff_says_what_was_known_by_then(at: int) -> None:
    """Snapshots are read, not added up, and what comes later is rejected as later."""
    reading = read(small(), at)
    assert said(reading) == SAID[at]
    known = [e["id"] for e in ENVELOPES if e["available_at"] <= at]
    assert reading.accepted == tuple(known)
    later = [e["id"] for e in ENVELOPES if e["available_at"] > at]
    assert [(r.id, r.reason) for r in reading.rejected] == [(n, "after_cutoff") for n in later]


def test_before_anything_was_available_nothing_is_known() -> None:
    """Not even the status; and nothing is taken for absent."""
    assert said(read(small(), -1)) == (None, None, "unknown", None)


def test_an_empty_snapshot_is_not_observed_and_a_missing_one_unknown() -> None:
    """Nobody looked is another fact than nothing was seen."""
    seen = registered(envelope("effects-0", 0, EFFECTS, effects(0)))
    assert said(read(seen, 0))[1:] == (0, "not_observed", False)
    assert said(read(registered(ENVELOPES[0]), 0))[1:] == (None, "unknown", None)


def test_a_record_that_tells_of_an_effect_proves_none() -> None:
    """Its evidence names two effects, and no snapshot of effects is there."""
    told = registered(
        envelope("approval-1", 1, APPROVAL, approval("succeeded", told=2)),
        envelope("says-1", 1, "executor-statement", effects(2)),
    )
    assert said(read(told, 1)) == ("succeeded", None, "unknown", None)
    assert read(told, 1).accepted == ("approval-1", "says-1")


@pytest.mark.parametrize("kind", [APPROVAL, EFFECTS])
def test_two_snapshots_of_one_time_that_differ_say_nothing(kind: str) -> None:
    """Neither is preferred; the same body twice, in another key order too, is no contradiction."""
    bodies = {
        APPROVAL: (approval("failed"), approval("succeeded")),
        EFFECTS: (effects(1), effects(0)),
    }
    first, second = bodies[kind]
    both = registered(envelope("a", 1, kind, first), envelope("b", 1, kind, second))
    assert said(read(both, 1)) == (None, None, "unknown", None)
    assert read(both, 1).accepted == ("a", "b")
    turned = dict(reversed(first.items()))
    alike = registered(envelope("a", 1, kind, first), envelope("b", 1, kind, turned))
    assert said(read(alike, 1)) == said(read(registered(alike.envelopes[0]), 1))
    later = registered(*both.envelopes, envelope("c", 2, kind, second))
    assert said(read(later, 2)) == said(read(registered(later.envelopes[2]), 2))


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"effects": None},
        {"effects": {"E1": {}}},
        {"effects": ["E1"]},
        {"effects": [{"effect_id": 1}]},
        {"effects": [{"operation_key": "k"}]},
        {"effects": [{"effect_id": "E1"}, {"effect_id": "E1"}]},
    ],
)
def test_a_snapshot_that_cannot_be_read_is_unknown(body: Any) -> None:
    """It is the latest, so that an older one does not speak for it."""
    timeline = registered(ENVELOPES[2], envelope("effects-x", 2, EFFECTS, body))
    assert said(read(timeline, 2))[1:] == (None, "unknown", None)


@pytest.mark.parametrize(
    ("pairs", "duplicate"),
    [
        ([("k", "a")], False),
        ([("k", "a"), ("k", "a")], True),
        ([("k", "a"), ("l", "a")], False),
        ([("k", "1"), ("k", "2")], False),
        ([("k", "1"), ("k", "2"), ("k", "1")], True),
        ([(None, None)], False),
        ([(None, None), (None, None)], None),
        ([("k", None), (None, None)], None),
    ],
)
def test_a_duplicate_is_two_effects_of_one_operation(
    pairs: list[tuple[str | None, str | None]], duplicate: bool | None
) -> None:
    """Where several effects were approved their kinds differ; without keys nobody can say."""
    body = {
        "effects": [
            {"effect_id": f"E{n}", "operation_key": key, "kind": kind}
            for n, (key, kind) in enumerate(pairs)
        ]
    }
    reading = read(registered(envelope("e", 0, EFFECTS, body)), 0)
    assert (reading.effect_count, reading.duplicate_observed) == (len(pairs), duplicate)


# What counts


@pytest.mark.parametrize("time", [True, False, 1.0, "1", None, [1], 10**30])
def test_only_a_whole_number_is_a_time(time: Any) -> None:
    """True and 1.0 equal 1 in Python, and are no times all the same."""
    timeline = registered(envelope("e", time, EFFECTS, effects(1)))
    assert why(timeline, 10**6) == {"e": "after_cutoff"}


def test_the_checks_are_made_in_order() -> None:
    """An envelope that fails several is rejected for the first of them."""
    foreign = envelope("a", 9, EFFECTS, effects(1), owner="run-b")
    late = envelope("b", 9, EFFECTS, effects(1))
    forged = envelope("c", 0, EFFECTS, effects(1))
    assert why(Timeline(OWNER, (foreign, late, forged), {}), 0) == {
        "a": "wrong_owner",
        "b": "after_cutoff",
        "c": "integrity_or_unregistered",
    }


CHANGES: dict[str, Any] = {
    "id": lambda e: {**e, "id": "effects-1"},
    "owner": lambda e: {**e, "owner": "run-b"},
    "time": lambda e: {**e, "available_at": 1},
    "time as a float": lambda e: {**e, "available_at": 2.0},
    "kind": lambda e: {**e, "kind": APPROVAL},
    "body": lambda e: {**e, "body": effects(0)},
    "a key more": lambda e: {**e, "note": ""},
    "key order": lambda e: dict(reversed(e.items())),
    "key order within": lambda e: {
        **e, "body": {"effects": [dict(reversed(x.items())) for x in e["body"]["effects"]]}
    },
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_an_envelope_that_was_changed_in_anything_does_not_count(change: str) -> None:
    """The digest is over all of it, in its own key order; what was read before it stands."""
    timeline = small()
    changed = CHANGES[change](timeline.envelopes[4])
    others = tuple(e for e in timeline.envelopes if e["id"] != "effects-2")
    reading = read(replace(timeline, envelopes=(*others, changed)), 2)
    assert "effects-2" not in reading.accepted
    assert said(reading) == SAID[2]
    assert len(reading.rejected) == 3


def test_the_digest_is_that_of_compact_json_as_javascript_writes_it() -> None:
    """Letters stay letters, control characters and half pairs are escaped, nothing is spaced."""
    odd = envelope(
        "效果", 0, EFFECTS, {"b": 'a"\\/\n\x01\x7f', "a": [1, -0, True, None, "😀\ud800"]}
    )
    # JSON.stringify of the same envelope
    written = (
        r'{"id":"效果","owner":"run-a","available_at":0,"kind":"effect-snapshot",'
        r'"body":{"b":"a\"\\/\n\u0001' + "\x7f" + r'","a":[1,0,true,null,"😀\ud800"]}}'
    )
    assert digest(odd) == hashlib.sha256(written.encode()).hexdigest()


@pytest.mark.parametrize("number", [1.0, -0.0, 1e21, 1.5, 1e-7])
def test_an_envelope_with_a_float_is_not_admissible_whatever_is_registered(number: float) -> None:
    """JavaScript writes 1.0 as 1: whose digest is registered, nobody can tell."""
    body = {"effects": [{"effect_id": "E1", "of": [{"deep": number}]}]}
    odd = envelope("odd", 0, EFFECTS, body)
    reading = read(registered(odd), 0)
    assert reading.accepted == ()
    assert reading.rejected == (Rejected("odd", "integrity_or_unregistered"),)
    assert reading.effect_observed == "unknown"
    whole = envelope("odd", 0, EFFECTS, {"effects": [{"effect_id": "E1", "of": [{"deep": 1}]}]})
    assert read(registered(whole), 0).accepted == ("odd",)


# What changes nothing

BODIES = st.one_of(
    st.integers(0, 3).map(effects),
    st.sampled_from(["approved", "failed", "succeeded"]).map(approval),
    st.sampled_from([None, {}, {"effects": [{"effect_id": "E1"}] * 2}, {"status": 3}]),
)
ENVELOPE = st.builds(
    envelope,
    st.sampled_from("abcdef"),
    st.one_of(st.integers(-1, 3), st.sampled_from([True, 1.0, "1", None])),
    st.sampled_from([APPROVAL, EFFECTS, "executor-statement"]),
    BODIES,
    st.sampled_from([OWNER, OWNER, OWNER, "run-b"]),
)


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Envelopes of every kind of fault; of those with one id at most one is registered."""
    envelopes = tuple(draw(st.lists(ENVELOPE, max_size=8)))
    manifest = {e["id"]: digest(e) for e in envelopes if draw(st.integers(0, 3))}
    return Timeline(OWNER, envelopes, manifest)


CUTOFFS = st.integers(-2, 4)


@given(timelines(), CUTOFFS, st.randoms(use_true_random=False))
def test_the_order_of_envelopes_does_not_matter(timeline: Timeline, at: int, dice: Any) -> None:
    """However they are given, and one of them twice, the whole reading is the same."""
    shuffled = [*timeline.envelopes, *timeline.envelopes[:1]]
    dice.shuffle(shuffled)
    assert read(replace(timeline, envelopes=tuple(shuffled)), at) == read(timeline, at)


def kept(timeline: Timeline, at: int) -> tuple[Envelope, ...]:
    """The envelopes that count, by what each says of itself alone."""
    alone = (replace(timeline, envelopes=(one,)) for one in timeline.envelopes)
    return tuple(t.envelopes[0] for t in alone if read(t, at).accepted)


@given(timelines(), CUTOFFS)
def test_inadmissible_envelopes_change_nothing(timeline: Timeline, at: int) -> None:
    """Without them everything is said as with them; each has its place among the rejected."""
    whole, clean = read(timeline, at), read(replace(timeline, envelopes=kept(timeline, at)), at)
    assert (said(clean), clean.accepted) == (said(whole), whole.accepted)
    assert clean.rejected == ()
    names = {e["id"] for e in timeline.envelopes}
    assert {*whole.accepted, *(r.id for r in whole.rejected)} == names


@given(timelines(), CUTOFFS)
def test_what_counts_at_a_cutoff_counts_at_every_later_one(timeline: Timeline, at: int) -> None:
    """Time adds evidence; it makes nothing foreign or forged, and mends neither."""
    before, after = read(timeline, at), read(timeline, at + 1)
    assert set(before.accepted) <= set(after.accepted)
    lasting = {r for r in before.rejected if r.reason != "after_cutoff"}
    assert lasting <= set(after.rejected)


@given(timelines(), CUTOFFS)
def test_only_the_latest_snapshot_of_effects_is_read(timeline: Timeline, at: int) -> None:
    """Older ones may be gone, and no approval says anything of effects."""
    found = [e for e in kept(timeline, at) if e["kind"] == EFFECTS]
    newest = max((e["available_at"] for e in found), default=None)
    latest = tuple(e for e in found if e["available_at"] == newest)
    assert said(read(replace(timeline, envelopes=latest), at))[1:] == said(read(timeline, at))[1:]


# The negative controls


@given(timelines(), CUTOFFS)
def test_a_control_moves_no_careful_reader(timeline: Timeline, at: int) -> None:
    """What is put in is rejected for its own reason; without snapshots the effect is unknown."""
    before = read(timeline, at)
    missing, *others = controls(timeline, at)
    assert said(missing.reading) == (before.approval_status, None, "unknown", None)
    assert missing.reading.rejected == ()
    reasons = [[r.reason for r in one.reading.rejected] for one in others]
    assert reasons == [["wrong_owner"], ["after_cutoff"], ["integrity_or_unregistered"]]
    for one in others:
        assert (said(one.reading), one.reading.accepted) == (said(before), before.accepted)


NAIVE = {
    0: [("approved", 0, "not_observed", False)] + [("approved", 1, "yes", False)] * 3,
    1: [("executing", 0, "not_observed", False)] * 2 + [("executing", 2, "yes", True)] * 2,
    2: [("failed", 0, "not_observed", False)] * 2 + [("failed", 2, "yes", True)] * 2,
    3: [("succeeded", 0, "not_observed", False)] * 2 + [("succeeded", 3, "yes", True)] * 2,
}


@pytest.mark.parametrize("at", NAIVE)
def test_a_naive_reader_is_misled_by_every_control(at: int) -> None:
    """It never says what the careful one says."""
    found = controls(small(), at)
    assert tuple(one.name for one in found) == CONTROLS
    assert [said(one.naive) for one in found] == NAIVE[at]
    assert all(said(one.naive) != said(one.reading) for one in found)


def test_a_naive_reader_says_at_once_what_only_the_end_shows() -> None:
    """It believes everything, of whatever owner and time, registered or not."""
    reading = naive(replace(small(), manifest={}))
    assert said(reading) == SAID[3]
    assert reading.rejected == ()
    foreign = envelope("x", 4, EFFECTS, effects(0), owner="run-b")
    fooled = replace(small(), envelopes=(*small().envelopes, foreign))
    assert said(naive(fooled))[1:] == (0, "not_observed", False)
    assert said(naive(registered(ENVELOPES[0])))[1:] == (0, "not_observed", False)
