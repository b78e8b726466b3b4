"""Where timelines come from: a published file, a package, or a capture of ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import to_builtins

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import meant
from rcr_probes.evidence.admissibility import APPROVAL
from rcr_probes.evidence.form import facts_sha256
from rcr_probes.evidence.package import Package, strict_json
from rcr_probes.model import DEEPEST, Capture, Json, Measurement, too_deep
from rcr_probes.witness import EFFECTS, Timeline, digest

TIMELINE = "fixtures/timeline.json"  # of a package
_LARGEST = 16 * 2**20  # bytes of a file; a timeline of an operation is a few kilobytes
_MOST = 1_000  # envelopes of a file; each is a line of what is shown
_STATE = ("status", "execution", "evidence")  # what a state event says of the record
_TEXTS = ("id", "owner", "kind")
_FORM = "It is {owner, envelopes: [{id, owner, available_at, kind, body}], manifest: {id: digest}}."


def read_file(path: str | os.PathLike[str]) -> Timeline:
    """A published timeline.

    Raises:
        NotEvidence: there is no such file.
        EvidenceError: it is no timeline, or too large to be one.
        OSError: it cannot be read.
    """
    place = Path(path)
    if not os.path.lexists(place):
        remedy = "Name a timeline.json, a package or an evidence folder."
        raise NotEvidence(f"There is no {place}.", meant.question(place) or remedy)
    if not stat.S_ISREG(place.stat().st_mode):
        raise EvidenceError(str(place), "is no regular file.", "Name a timeline.json.")
    with open(place, "rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise EvidenceError(str(place), "is too large for a timeline.", "Name a timeline.json.")
    return parsed(strict_json(data, str(place)), str(place))


def of_package(package: Package) -> Timeline:
    """The timeline of a package that was verified.

    Raises:
        EvidenceError: it lists none, or what it lists is no timeline.
    """
    return parsed(package.json(TIMELINE), TIMELINE)


def parsed(value: Json, place: str) -> Timeline:
    """The timeline that a JSON value is. What an envelope's time and body say is not judged here.

    Raises:
        EvidenceError: it is not of that form, or holds no envelope; ``place`` says where it stands.
    """
    wrong = next(_wrong(value), None)
    if wrong:
        raise EvidenceError(place, wrong, _FORM)
    return Timeline(value["owner"], tuple(value["envelopes"]), value["manifest"])


def _wrong(value: Json) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "is no map."
        return
    if not isinstance(value.get("owner"), str):
        yield "names no owner."
    envelopes, manifest = value.get("envelopes"), value.get("manifest")
    if not isinstance(manifest, dict) or not all(isinstance(d, str) for d in manifest.values()):
        yield "has no manifest of digests."
    if not isinstance(envelopes, list) or not envelopes:
        yield "holds no envelope."
        return
    if len(envelopes) > _MOST:
        yield f"holds more than {_MOST} envelopes."
        return
    for number, envelope in enumerate(envelopes):
        if not isinstance(envelope, dict):
            yield f"its envelope {number} is no map."
            return
        for name in (*_TEXTS, "available_at", "body"):
            if name not in envelope:
                yield f"its envelope {number} has no {name}."
            elif name in _TEXTS and not isinstance(envelope[name], str):
                yield f"the {name} of its envelope {number} is no text."
    if too_deep(envelopes):
        yield f"nests lists and maps more than {DEEPEST} deep."


def of_capture(capture: Capture) -> Timeline:
    """What one capture shows, as envelopes of its cell; the number of an event is its time.

    A state event, and the state of an observation, is an approval snapshot; an effect event, and
    the effects of an observation, is an effect snapshot of all that existed by then. What an
    observation saw became available with the last event before it. All of it is registered where
    the capture's digest is that of its facts, and nothing otherwise.
    """
    measured = capture.measurement
    owner = capture.cell.id
    made = tuple(
        {
            "id": f"{kind.removesuffix('-snapshot')}-{when}",
            "owner": owner,
            "available_at": at,
            "kind": kind,
            "body": to_builtins(body),
        }
        for kind, when, at, body in (*_events(measured), *_observations(measured))
    )
    sound = facts_sha256(measured, capture.judgement) == capture.facts_sha256
    return Timeline(owner, made, {e["id"]: digest(e) for e in made} if sound else {})


_Snapshot = tuple[str, int | str, int, dict[str, Json]]  # kind, its name, time, body


def _events(measured: Measurement) -> Iterator[_Snapshot]:
    """An effect's event names it; what it is, the observations say, which all saw it later."""
    seen = {e.effect_id: e for one in measured.observations for e in one.effects or ()}
    effects: list[Json] = []
    for event in measured.events:
        if event.lane == "state":
            state = {name: event.value.get(name) for name in _STATE}
            yield APPROVAL, event.seq, event.seq, state
        if event.lane == "effect":
            effects.append(seen.get(str(event.value.get("effect_id")), event.value))
            yield EFFECTS, event.seq, event.seq, {"effects": effects[:]}


def _observations(measured: Measurement) -> Iterator[_Snapshot]:
    for number, observed in enumerate(measured.observations):
        at = observed.events - 1 if measured.events else number
        state = {name: getattr(observed.recorded, name) for name in _STATE}
        effects = None if observed.damage else observed.effects
        yield APPROVAL, f"after-{observed.after}", at, state
        yield EFFECTS, f"after-{observed.after}", at, {"effects": effects}
