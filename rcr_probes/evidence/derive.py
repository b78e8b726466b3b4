"""From a measurement to its judgement: the one place where eligibility and verdict meet."""

from __future__ import annotations

from dataclasses import replace

from rcr_probes import eligibility, judge
from rcr_probes.model import WORKER, Judgement, Measurement


def derive(measured: Measurement) -> Judgement:
    """Derive everything that a capture says beyond what was measured.

    Pure: the same measurement gives the same judgement, on the day of the run and in a check years
    later. A row that was published by others lacks what is needed, and is not judged.
    """
    if measured.published:
        return Judgement()
    first, last = measured.observations
    facts = eligibility.known(measured.cell, measured.approved, first, measured.says)
    decision = eligibility.decide(facts)
    fired = judge.fired(measured)
    forced = measured.forced
    truth = judge.truth(measured.approved, first, forced) if forced else None
    verdict = judge.verdict(measured, fired, truth)
    called = (last.calls or 0) > (first.calls or 0)
    # An unmodified worker keeps no digest that could be read: of each, the reason would be true.
    asked = measured.cell.runtime != WORKER
    if asked and called and not eligibility.may_call(decision) and verdict.verdict != "unknown":
        verdict = replace(verdict, reasons=(*verdict.reasons, "called_without_eligibility"))
    return Judgement(fired, facts, decision, truth, verdict)
