"""A synthetic timeline in the published form, and what builds others, for tests to put wrong."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from rcr_probes.evidence.admissibility import APPROVAL
from rcr_probes.evidence.timeline import parsed
from rcr_probes.witness import EFFECTS, Envelope, Timeline, digest

OWNER = "run-a"


def effects(count: int, key: str | None = "key-a") -> dict[str, Any]:
    """The body of an effect snapshot with so many effects of one operation."""
    named = (f"E{number}" for number in range(1, count + 1))
    return {
        "effects": [{"effect_id": n, "operation_key": key, "kind": "local-marker"} for n in named]
    }


def approval(status: str, told: int = 0) -> dict[str, Any]:
    """The body of an approval snapshot; its record tells of so many effects."""
    evidence = [{"kind": "local-marker", "observed_count": told}] if told else []
    return {"status": status, "execution_status": status, "evidence": evidence}


def envelope(name: str, at: Any, kind: str, body: Any, owner: str = OWNER) -> Envelope:
    return {"id": name, "owner": owner, "available_at": at, "kind": kind, "body": body}


# As published: of the time before the first effect there is no snapshot of effects.
ENVELOPES = (
    envelope("approval-0", 0, APPROVAL, approval("approved")),
    envelope("approval-1", 1, APPROVAL, approval("executing")),
    envelope("effects-1", 1, EFFECTS, effects(1)),
    envelope("approval-2", 2, APPROVAL, approval("failed", told=1)),
    envelope("effects-2", 2, EFFECTS, effects(1)),
    envelope("approval-3", 3, APPROVAL, approval("succeeded", told=2)),
    envelope("effects-3", 3, EFFECTS, effects(2)),
)
# Cutoff → approval_status, effect_count, effect_observed, duplicate_observed.
SAID = {
    0: ("approved", None, "unknown", None),
    1: ("executing", 1, "yes", False),
    2: ("failed", 1, "yes", False),
    3: ("succeeded", 2, "yes", True),
}


def registered(*envelopes: Envelope, owner: str = OWNER) -> Timeline:
    """A timeline whose manifest lists all of these."""
    return Timeline(owner, envelopes, {e["id"]: digest(e) for e in envelopes})


def value(envelopes: Iterable[Envelope] = ENVELOPES) -> dict[str, Any]:
    """A published timeline as JSON, for a test to change."""
    found = copy.deepcopy(list(envelopes))
    manifest = {e["id"]: digest(e) for e in found}
    return {"owner": OWNER, "clock": "a sequence", "envelopes": found, "manifest": manifest}


def small() -> Timeline:
    return parsed(value(), "small")
