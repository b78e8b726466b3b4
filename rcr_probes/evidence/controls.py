"""Negative controls of a timeline: what was admissible at a cutoff, with one thing put wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rcr_probes.evidence.admissibility import Reading, effects, naive, read
from rcr_probes.model import Json
from rcr_probes.witness import EFFECTS, Envelope, Timeline, digest, refusal

CONTROLS = ("effects_missing", "foreign_owner", "future_evidence", "forged_effect")


@dataclass(frozen=True, slots=True)
class Control:
    """One timeline with one thing put wrong, as two readers read it.

    Attributes:
        name: one of ``CONTROLS``.
        timeline: what was admissible at the cutoff, and what was put wrong in it.
        reading: what it allows to say all the same.
        naive: what a reader says who ignores owner, cutoff and manifest.
    """

    name: str
    timeline: Timeline
    reading: Reading
    naive: Reading


def controls(timeline: Timeline, at: int) -> tuple[Control, ...]:
    """The four controls at a cutoff, in order.

    Each holds only what was admissible then, so that nothing but the control can mislead. The
    effect snapshots are taken out; or one is put in that only owner, cutoff or manifest tells from
    a true one: of another owner, which says the opposite; of the next moment, with one effect more;
    or forged, with one effect more, and not registered.
    """
    kept = tuple(e for e in timeline.envelopes if refusal(timeline, e, at) is None)
    base = replace(timeline, envelopes=kept)
    known = list(effects(kept) or ())
    more = [*known, _another(known)]
    name = _fresh("control-effects-", (*timeline.manifest, *(e["id"] for e in kept)))
    timelines = (
        replace(base, envelopes=tuple(e for e in kept if e["kind"] != EFFECTS)),
        _registered(base, _snapshot(name, f"not-{timeline.owner}", at, [] if known else more)),
        _registered(base, _snapshot(name, timeline.owner, at + 1, more)),
        _with(base, _snapshot(name, timeline.owner, at, more)),
    )
    return tuple(
        Control(control, made, read(made, at), naive(made))
        for control, made in zip(CONTROLS, timelines, strict=True)
    )


def _snapshot(name: str, owner: str, at: int, existing: list[Json]) -> Envelope:
    body = {"effects": existing}
    return {"id": name, "owner": owner, "available_at": at, "kind": EFFECTS, "body": body}


def _with(timeline: Timeline, envelope: Envelope) -> Timeline:
    return replace(timeline, envelopes=(*timeline.envelopes, envelope))


def _registered(timeline: Timeline, envelope: Envelope) -> Timeline:
    manifest = {**timeline.manifest, envelope["id"]: digest(envelope)}
    return replace(_with(timeline, envelope), manifest=manifest)


def _another(known: list[Json]) -> Json:
    """One more effect, which has the key of the first."""
    first = known[0] if known else {"operation_key": "key-of-control", "kind": "local-marker"}
    return {**first, "effect_id": _fresh("E", (e["effect_id"] for e in known))}


def _fresh(stem: str, taken: Iterable[str]) -> str:
    """The first of these names with a number that is not taken."""
    names = set(taken)
    number = 1
    while (name := f"{stem}{number}") in names:
        number += 1
    return name
