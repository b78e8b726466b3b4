"""What one strike at a worker showed, as the codes of a sentence: pure, from a capture alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rcr_probes.model import Capture, Event, Json, Observation
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import NONE

# (point, fault) → how the strike is called; every other point is a call of the worker's.
STRUCK: Mapping[tuple[str, str], str] = {
    (NONE, NONE): "none",
    ("before_action", "kill"): "killed_before",
    ("before_action", "error_before_effect"): "error_before_effect",
    ("after_action", "kill"): "killed_after",
    ("after_action", "response_lost"): "response_lost",
    ("after_action", "error_after_effect"): "error_after_effect",
    ("after_action", "timeout"): "timeout",
}
AT_CALL = "killed_at_call"

# What was seen → its text. The first are of cells of which nothing more can be said.
SAYS = (
    "still_running",
    "recovery_still_running",
    "left_running",
    "not_struck",
    "struck_below",
    "ended_by_signal",
    "not_known",
    "partial_open",
    "other_effect",
    "again_without_key",
    "again_with_new_key",
    "lost_unsent",
    "lost_refused",
    "partial_done",
    "unsent",
    "refused",
    "refused_mismatch",
    "refused_otherwise",
    "replayed",
    "completed",
    "counted",
    "left_alone",
)
MORE = ("no_timeout", "believed", "open_end", "asked")  # what may be added
_GOOD = (
    "refused_mismatch", "refused_otherwise", "replayed", "completed", "counted", "left_alone",
)  # fmt: skip
_STABLE = "payload"  # labels of requests that are the same in every run, and so are told apart


@dataclass(frozen=True, slots=True)
class Sentence:
    """The codes of a sentence, and its numbers.

    Attributes:
        struck: how the strike is called: a value of ``STRUCK``, or ``AT_CALL``.
        who: ``worker``: what is said happened in its own run; ``recovery``: in the one after it.
        says: one of ``SAYS``.
        more: of ``MORE``, in order.
        values: what the texts fill in.
    """

    struck: str
    who: str
    says: str
    more: tuple[str, ...]
    values: Mapping[str, Json]


def sentence(capture: Capture) -> Sentence:
    """What this capture of a worker's cell shows."""
    measured, cell = capture.measurement, capture.cell
    first, last = measured.observations
    who, says = _says(capture)
    effects = last.effects or ()
    done = measured.says.get(last.recorded.status) == "done"
    # It said that all was done, and only the recovery that it did not ask for made it so.
    said_done = measured.says.get(first.recorded.status) == "done"
    believed = said_done and len(first.effects or ()) < measured.approved.effects
    more = {
        "no_timeout": any(e.value.get("gave_up") == "bound" for e in measured.events),
        "believed": believed and cell.fault != NONE and says in ("completed", "counted"),
        "open_end": says in _GOOD and not done,
        "asked": any(e.lane == "ask" and e.phase == "recover" for e in measured.events),
    }
    return Sentence(
        STRUCK.get((cell.point, cell.fault), AT_CALL),
        who,
        says,
        tuple(code for code, holds in more.items() if holds),
        {
            "effects": len(effects),
            "approved": measured.approved.effects,
            "there": len({e.kind for e in effects if e.target == measured.approved.target}),
            "state": last.recorded.status,
            "first": first.recorded.status,
            "ended": first.recorded.status if who == "worker" else last.recorded.status,
            "call": cell.point,
            "calls": last.calls,
        },
    )


def said(found: Sentence, lang: str, name: str | None = None) -> str:
    """The sentence in words.

    Args:
        found: its codes.
        lang: its language.
        name: how the strike is called, where that is more than ``struck`` gives.
    """
    short = found.values["there"] < found.values["approved"]
    count = text(f"probe.count.{'short' if short else 'many'}", lang, **found.values)
    values = {**found.values, "who": text(f"probe.who.{found.who}", lang), "count": count}
    told = text(
        "probe.sentence",
        lang,
        struck=name or struck(found, lang),
        says=text(f"probe.says.{found.says}", lang, **values),
    )
    for code in found.more:
        more = text(f"probe.more.{code}", lang, **values)
        told = text("probe.and_more", lang, said=told, more=more)
    return told


def struck(found: Sentence, lang: str) -> str:
    """How the strike is called."""
    return text(f"probe.struck.{found.struck}", lang, **found.values)


def _says(capture: Capture) -> tuple[str, str]:
    """Who, and which of ``SAYS``."""
    measured, verdict = capture.measurement, capture.judgement.verdict
    first, last = measured.observations
    assert verdict is not None
    calls = {verb: _values(measured.events, "call", verb) for verb in ("fault", "recover")}
    match verdict.verdict:
        case "unknown":
            return _unknown(verdict.reasons, first, last, measured.events)
        case "wrong_effect":
            made = _values(measured.events, "effect", "fault")
            other = any(e["target"] != measured.approved.target for e in made)
            return "worker" if other else "recovery", "other_effect"
        case "duplicate_effect":
            return _again(measured.events, measured.approved.effects)
        case "lost_effect":
            return "recovery", "lost_refused" if calls["recover"] else "lost_unsent"
        case "state_effect_split":
            return "recovery", "partial_done"
        case "blocked":
            return "recovery", "unsent"
        case "no_effect":
            return "recovery", "refused" if calls["recover"] else "unsent"
    return _kept(calls, measured.events)


def _unknown(
    reasons: Sequence[str], first: Observation, last: Observation, events: Sequence[Event]
) -> tuple[str, str]:
    if "deadline_passed" in reasons:
        if first.ended == "deadline":
            return "worker", "still_running"
        return "recovery", "recovery_still_running"
    if any("processes:" in damage for damage in (*first.damage, *last.damage)):
        return "worker" if first.damage else "recovery", "left_running"
    if "phase_killed" in reasons:
        alone = last.ended in ("exit", None)
        return "worker" if alone else "recovery", "ended_by_signal"
    if "fault_not_fired" in reasons:
        below = bool(_values(events, "fault", "fault"))  # it struck, and the worker lived on
        return "worker", "struck_below" if below else "not_struck"
    if "partial_effect" in reasons:
        return "recovery", "partial_open"
    return "worker", "not_known"


def _again(events: Sequence[Event], approved: int) -> tuple[str, str]:
    """Whose request made an effect that was there, and whether it carried a key."""
    there: set[Json] = set()
    for event in (e for e in events if e.lane == "effect"):
        kind = event.value["kind"]
        if kind in there:
            who = "worker" if event.phase == "fault" else "recovery"
            keyed = event.value["key"] is not None
            return who, "again_with_new_key" if keyed else "again_without_key"
        there.add(kind)
    return "recovery", "not_known"


def _kept(
    calls: Mapping[str, Sequence[Mapping[str, Json]]], events: Sequence[Event]
) -> tuple[str, str]:
    """No effect too many, and none missing: whom that is due to."""
    only_counted = _only_counted(events)
    for who, verb in (("recovery", "recover"), ("worker", "fault")):
        outcomes = {call["outcome"] for call in calls[verb]}
        if "mismatch" in outcomes:
            return who, "refused_mismatch"
        if outcomes & {"conflict", "refused"}:
            return who, "refused_otherwise"
        if "replayed" in outcomes:
            return who, "replayed"
        if outcomes and verb == "recover":
            return who, "counted" if only_counted else "completed"
    return ("worker", "counted") if only_counted else ("recovery", "left_alone")


def _only_counted(events: Sequence[Event]) -> bool:
    """Whether an effect after the strike may be another one than the one that was missing.

    So it is where its request differs from run to run, and is like the request of another effect.
    """
    struck = next((n for n, e in enumerate(events) if e.lane == "fault"), len(events))
    sent = (e.value.get("payload") for e in events if e.lane == "call")
    asked = dict(enumerate(sent, 1))  # an effect may name a call that is not among them
    labels: dict[Json, set[Json]] = {}
    later: set[Json] = set()
    for number, event in enumerate(events):
        if event.lane == "effect":
            label = asked.get(event.value.get("call", len(asked)))
            labels.setdefault(label, set()).add(event.value["kind"])
            later |= {label} if number > struck else set()
    return any(
        label is None or (len(labels[label]) > 1 and not label.startswith(_STABLE))
        for label in later
    )


def _values(events: Sequence[Event], lane: str, verb: str) -> list[Mapping[str, Json]]:
    return [event.value for event in events if (event.lane, event.phase) == (lane, verb)]
