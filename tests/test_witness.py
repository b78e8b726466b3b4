"""What a witness says counts whole or not at all: whatever is done to its file, no effect is lost.

What cannot be read says nothing, and nothing is never read as an empty snapshot.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes import witness
from rcr_probes.model import Effect
from rcr_probes.witness import NOTHING, Snapshot, Timeline

OWNER = "operation-0"
EFFECT = {"effect_id": "E1", "operation_key": OWNER, "kind": "local-marker", "target": "marker-0"}
SEEN = Effect("E1", OWNER, "local-marker", "marker-0")


def envelope(*effects: Any, at: Any = 1, owner: str = OWNER, **body: Any) -> dict[str, Any]:
    """One snapshot."""
    return {
        "id": f"effects-{at}",
        "owner": owner,
        "available_at": at,
        "kind": witness.EFFECTS,
        "body": {"effects": list(effects), "in_flight": False, **body},
    }


def file(*envelopes: dict[str, Any]) -> bytes:
    """A file in which all of them are registered."""
    return witness.written(
        Timeline(OWNER, envelopes, {e["id"]: witness.digest(e) for e in envelopes})
    )


def test_a_snapshot_says_what_exists_up_to_which_attempt() -> None:
    """And whether anything is still in flight."""
    assert witness.snapshot(file(envelope(EFFECT)), OWNER, 1) == Snapshot((SEEN,), 1, False)
    assert witness.snapshot(file(envelope()), OWNER, 3) == Snapshot((), 1, False)
    assert witness.snapshot(file(envelope(in_flight=True)), OWNER, 1) == Snapshot((), 1, True)


def test_the_latest_that_counts_is_read() -> None:
    """One of a later attempt than the last that is over does not count yet."""
    both = file(envelope(), envelope(EFFECT, at=2))
    assert witness.snapshot(both, OWNER, 1) == Snapshot((), 1, False)
    assert witness.snapshot(both, OWNER, 2) == Snapshot((SEEN,), 2, False)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"envelopes": 3, "manifest": {}}',
        b'{"envelopes": [3], "manifest": {}}',
        b'{"envelopes": [], "manifest": []}',
        file(),
        file(envelope(owner="another")),
        file(envelope(at=2)),
        file(envelope(at=True)),
        file(envelope(at=1.0)),
        file({**envelope(), "kind": "approval-snapshot"}),
        file(envelope(EFFECT, EFFECT)),
        file(envelope({"effect_id": "E1"})),
        file(envelope(3)),
        file({**envelope(), "body": {"in_flight": False}}),
        file({**envelope(), "body": None}),
        file(envelope(), {**envelope(EFFECT), "id": "other"}),
        b'{"envelopes": ' + b"[" * 100_000,
        json.dumps({"envelopes": [envelope()], "manifest": {}}).encode(),
        json.dumps({"envelopes": [envelope()], "manifest": {"effects-1": "0" * 64}}).encode(),
    ],
    ids=str,
)
def test_what_does_not_count_says_nothing(text: bytes) -> None:
    """Another owner, a later time, no time, a changed digest, a body that is none, no JSON."""
    assert witness.snapshot(text, OWNER, 1) == NOTHING
    assert NOTHING.effects is None


@pytest.mark.parametrize("said", [0, "false", None, 1, True])
def test_only_a_plain_false_says_that_nothing_is_in_flight(said: Any) -> None:
    """Whoever does not say it cannot be believed to."""
    assert witness.snapshot(file(envelope(in_flight=said)), OWNER, 1).in_flight


@given(st.data())
def test_no_change_of_its_bytes_makes_another_snapshot(data: st.DataObject) -> None:
    """A torn, overwritten or lengthened file says what it said, or nothing: never fewer effects."""
    whole = file(envelope(EFFECT))
    place = data.draw(st.integers(0, len(whole) - 1))
    how = data.draw(st.sampled_from(("cut", "put", "insert", "nul")))
    byte = data.draw(st.binary(min_size=1, max_size=3))
    changed = {
        "cut": whole[:place],
        "put": whole[:place] + byte + whole[place + len(byte) :],
        "insert": whole[:place] + byte + whole[place:],
        "nul": whole[:place] + bytes(len(whole) - place),
    }[how]
    assert witness.snapshot(changed, OWNER, 1) in (NOTHING, Snapshot((SEEN,), 1, False))
