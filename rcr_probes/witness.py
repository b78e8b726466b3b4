"""What a witness says of the effects, and what of it counts (docs/design.md §6).

Pure, standard library alone: a policy reads its witness by these rules, and so does whoever reads
the evidence. An envelope is a JSON map ``{id, owner, available_at, kind, body}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rcr_probes.model import Effect, Json

EFFECTS = "effect-snapshot"  # body: effects, all that exist then

Envelope = Mapping[str, Json]
Reason = Literal["wrong_owner", "after_cutoff", "integrity_or_unregistered"]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Envelopes, and what they are held against.

    Attributes:
        owner: whose envelopes count.
        envelopes: in any order.
        manifest: id → SHA-256 in hex, of each envelope that was registered.
    """

    owner: str
    envelopes: tuple[Envelope, ...]
    manifest: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a witness says of the effects.

    Attributes:
        effects: all that existed when it looked; None where nothing that counts says it.
        covers: the attempt, by number, up to which every one was over when it looked; 0 where none
            was. An attempt after it may have added to these effects.
        in_flight: whether something that was sent may still act, though its attempt is over.
    """

    effects: tuple[Effect, ...] | None
    covers: int = 0
    in_flight: bool = True


NOTHING = Snapshot(None)  # of a witness that is not there, or says nothing that counts


def snapshot(text: bytes, owner: str, at: int) -> Snapshot:
    """What the file of a witness says to this owner: ``{envelopes, manifest}`` as JSON.

    The time of its envelopes is the number of an attempt (``Snapshot.covers``), and so is the
    cutoff; the body of a snapshot says besides whether anything is ``in_flight``. What cannot be
    read says nothing; it is never an empty snapshot.
    """
    try:
        written = json.loads(text)
        timeline = Timeline(owner, tuple(written["envelopes"]), written["manifest"])
        counted = [e for e in timeline.envelopes if refusal(timeline, e, at) is None]
        body = latest(counted, EFFECTS)
        found = listed(body)
        if found is None:
            return NOTHING
        seen = tuple(
            Effect(e["effect_id"], e["operation_key"], e.get("kind"), e["target"]) for e in found
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return NOTHING
    covers = max(e["available_at"] for e in counted if e["kind"] == EFFECTS)
    return Snapshot(seen, covers, body.get("in_flight") is not False)


def written(timeline: Timeline) -> bytes:
    """The file that ``snapshot`` reads."""
    return compact({"envelopes": list(timeline.envelopes), "manifest": dict(timeline.manifest)})


def refusal(timeline: Timeline, envelope: Envelope, at: int) -> Reason | None:
    """The first check that an envelope fails at a cutoff; None where it counts."""
    if envelope["owner"] != timeline.owner:
        return "wrong_owner"
    available = time_of(envelope)
    if available is None or available > at:
        return "after_cutoff"
    if _holds_float(envelope) or timeline.manifest.get(envelope["id"]) != digest(envelope):
        return "integrity_or_unregistered"
    return None


def digest(envelope: Envelope) -> str:
    """SHA-256, in hex, over the envelope's compact JSON in its own key order.

    It vouches for nothing where the envelope holds a number with a fraction or an exponent: 1.0 and
    1e21 have other digits here than where ``JSON.stringify`` wrote what was registered.
    """
    return hashlib.sha256(compact(envelope)).hexdigest()


def _holds_float(value: Json) -> bool:
    ahead = [value]
    while ahead:
        one = ahead.pop()
        if isinstance(one, float):
            return True
        if isinstance(one, Mapping):
            ahead.extend(one.values())
        elif isinstance(one, list | tuple):
            ahead.extend(one)
    return False


def listed(body: Json) -> Sequence[Mapping[str, Json]] | None:
    """The effects of a snapshot; None where it is none, or names one of them twice."""
    found = body.get("effects") if isinstance(body, Mapping) else None
    if not isinstance(found, list | tuple) or not all(isinstance(e, Mapping) for e in found):
        return None
    names = [effect.get("effect_id") for effect in found]
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        return None
    return found


def latest(admissible: Iterable[Envelope], kind: str) -> Json:
    """The body of the latest snapshot of a kind; None where there is none, or two contradict."""
    found = [e for e in admissible if e["kind"] == kind]
    newest = max((e["available_at"] for e in found), default=None)
    newest_ones = (e["body"] for e in found if e["available_at"] == newest)
    bodies = {compact(body, sort=True): body for body in newest_ones}
    return next(iter(bodies.values())) if len(bodies) == 1 else None


def time_of(envelope: Envelope) -> int | None:
    """When it became available; true and 1.0 are no times."""
    at = envelope["available_at"]
    return at if type(at) is int else None


def compact(value: Json, *, sort: bool = False) -> bytes:
    """Compact JSON: texts, true, false, null and small whole numbers as ``JSON.stringify`` writes.

    It rounds a whole number beyond 2**53, and puts keys that are whole numbers first: what holds
    such has another digest there than here, and is not admissible.
    """
    text = json.dumps(value, ensure_ascii=False, sort_keys=sort, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")
