"""From a measurement to its judgement: the one place where eligibility and verdict meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rcr_probes import eligibility, judge
from rcr_probes.model import Event, Facts, Judgement, Measurement
from rcr_probes.vocabulary import DECIDED, WORKER


def derive(measured: Measurement) -> Judgement:
    """Derive everything that a capture says beyond what was measured.

    Pure: the same measurement gives the same judgement, on the day of the run and in a check years
    later. A row that was published by others lacks what is needed, and is not judged.
    """
    if measured.published:
        return Judgement()
    first, _ = measured.observations
    facts = eligibility.known(measured.cell, measured.approved, first, measured.says)
    if _without_key(measured):  # what the receiver does by a key, it does for none of its requests
        facts = replace(facts, capability=())
    decision = eligibility.decide(facts)
    fired = judge.fired(measured)
    truth = judge.truth(measured.approved, first, measured.forced)
    verdict = judge.verdict(measured, fired, truth)
    # An unmodified worker keeps no digest that could be read: of each, the reason would be true.
    asked = measured.cell.runtime != WORKER
    allowed = eligibility.may_call(decision) or _allowed_later(measured, facts)
    if asked and measured.called_again and not allowed and verdict.verdict != "unknown":
        verdict = replace(verdict, reasons=(*verdict.reasons, "called_without_eligibility"))
    return Judgement(fired, facts, decision, truth, verdict)


def _without_key(measured: Measurement) -> bool:
    """Whether a worker sent a request without a key; of our executors, each call has one."""
    calls = (event.value for event in measured.events if event.lane == "call")
    return measured.cell.runtime == WORKER and any(call.get("key") is None for call in calls)


def _allowed_later(measured: Measurement, facts: Facts) -> bool:
    """Whether recovery learned what let it call: by the look-up that was decided, or from a person.

    A person speaks of the effect; a call still needs an identity that is valid.
    """
    recovered = measured.events[measured.observations[0].events :]
    ruled = any(e.lane == "audit" and e.value.get("event") == DECIDED for e in recovered)
    if ruled and eligibility.may_call(eligibility.decide(replace(facts, effect="absent"))):
        return True
    if eligibility.decide(facts).way != "lookup":
        return False
    answers = _answers(measured, recovered)
    learned = (
        eligibility.looked_up(facts, effects, wanted=measured.approved.effects)
        for effects in answers
    )
    return any(eligibility.may_call(eligibility.decide(known)) for known in learned)


def _answers(measured: Measurement, events: Sequence[Event]) -> list[int | None]:
    """What look-ups said of the operation's key: how many effects; None where they did not know."""
    own = measured.approved.operation_key
    asked = [e.value for e in events if e.lane == "ask" and e.value.get("operation_key") == own]
    return [None if value.get("in_flight") else value.get("effects") for value in asked]
