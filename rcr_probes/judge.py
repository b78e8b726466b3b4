"""From observations and the measured truth to what a cell shows (docs/design.md §6 and §7).

Standard library alone, no I/O: a reader's checker embeds this module as it is. It does not know
eligibility: what a call would have done is measured, not derived.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rcr_probes.model import (
    Approved,
    Effect,
    Event,
    Forced,
    Measurement,
    Observation,
    Truth,
    Verdict,
)
from rcr_probes.vocabulary import (
    ALIVE,
    AUDIT_POINTS,
    DECIDED,
    ENDING_FAULTS,
    FAULTS,
    HANG,
    HELD,
    NONE,
    PERSONS,
    POINTS,
    STOPPED,
    TWICE,
    WORKER,
    Says,
    VerdictName,
    at_point,
    by_receiver,
    state_of,
)

# How a forced call ends that measured something: it was made, or the executor's side refused it for
# what it is (its key is taken by another payload, or in flight). Any other end says nothing of what
# a call does: it may never have come there.
MEASURES = (NONE, "HTTP_422", "mismatch", "conflict", "refused")
# How a phase may end; anything else is the name of a signal.
ENDS = ("exit", "crash", "deadline", ALIVE)


def fired(measured: Measurement) -> bool | None:
    """Whether the planned fault provably fired; None where none was planned or it was published.

    The strike's own event is written before the strike. Beside it: for a kill the wait status, or
    that the struck process is gone where it was another than the phase's; for an exception the
    error that left the point; for a killed host, that it was seen to end; for a call that was made
    and misreported, that its answer was changed; for a hang, that the process told so and was ended
    for it; for a power loss the wait status, and that its state was put there; for a refused result
    or a refused system call, the refusal seen from outside; for a file fault that too, and the
    caller's error, which the strike did not raise itself; for a torn append that too, and the wait
    status. What a receiver does to a call, its own event proves; what is lost on its way, the
    caller's error.
    """
    cell = measured.cell
    if cell.point == NONE or measured.published:
        return None
    observed = measured.observations[0]
    struck = [e.value for e in measured.events if e.lane == "fault" and e.phase == "fault"]
    if {"point": cell.point, "fault": cell.fault} not in struck:
        return False
    if by_receiver(cell.point, cell.fault):
        return True
    shown = FAULTS[cell.kind]
    match cell.kind:
        case "kill":
            return observed.ended == shown or observed.standing is True
        case "power_loss" | "power_loss_local":
            left = state_of(cell.fault)
            return observed.ended == shown and any(e.get("state") == left for e in struck)
        case "torn_append":
            return observed.ended == shown and observed.standing is True
        case "response_lost":
            return observed.error == shown
        case "result_refused" | "io_error":
            return observed.standing is True
        case "disk_full" if "@" in cell.point:
            return observed.standing is True
        case "exception" | "kill_host" | "error_after_call":
            return {"point": cell.point, "error": shown} in struck
        case "hang":
            return observed.ended == HANG and {"point": cell.point, "error": shown} in struck
        case _:
            raised = any("error" in e for e in struck)  # by the strike, and not by the kernel
            return observed.standing is True and observed.error == shown and not raised


def happened(measured: Measurement) -> bool | None:
    """Whether what was planned around recovery provably happened; None where nothing was.

    A strike's own event is written before it; beside it stands the error that left the point, or
    the signal by which the phase's parent saw it end. Damage, a lock and an original are told by
    the process that put them there, or was let go. A person has something to decide where recovery
    stopped.
    """
    around = measured.cell.recovery_fault
    if around in (None, NONE):
        return None
    events = [event for event in measured.events if event.phase == "recover"]
    told = [event.value for event in events if event.lane == "fault"]
    struck = at_point(around)
    if struck is not None:
        kind, point = struck
        proof = {"point": point, "fault": kind} in told
        return proof and (kind == HELD or {"point": point, "error": FAULTS[kind]} in told)
    if around in PERSONS:
        decided = DECIDED in _audited(events)
        return _stopped(events) and (around == "person_absent" or decided)
    if around == TWICE:
        return sum(event.lane == "return" for event in events) > 1
    return any(value.get("fault") == around for value in told)


def _audited(events: Sequence[Event]) -> list[str]:
    return [str(e.value.get("event")) for e in events if e.lane == "audit"]


def _stopped(events: Sequence[Event]) -> bool:
    return any(e.lane == "state" and e.value.get("status") == STOPPED for e in events)


def truth(approved: Approved, observed: Observation, forced: Forced | None) -> Truth | None:
    """What another call would have done: one was forced in a copy, and its effects were counted.

    None where that was not measured, or what stood there before is not known.
    """
    if forced is None or forced.error not in MEASURES or observed.effects is None:
        return None
    before = observed.effects
    new = forced.effects[len(before) :]
    needed = _approved(before, approved) < approved.effects
    if _wrong(new, approved):
        return Truth(needed, "wrong")
    if new and _surplus(_ours(forced.effects, approved), approved):
        return Truth(needed, "duplicate")
    if not new and needed:
        return Truth(needed, "useless")
    return Truth(needed, "none")


def verdict(measured: Measurement, fired: bool | None, truth: Truth | None) -> Verdict:
    """What the cell shows at the second observation: the first verdict that holds."""
    broken = _broken(measured, fired)
    if broken or truth is None:
        return Verdict("unknown", broken)
    name = _verdict(measured, truth)
    partial = ("partial_effect",) if name == "unknown" else ()
    return Verdict(name, (*partial, *_reasons(measured)))


def _verdict(measured: Measurement, truth: Truth) -> VerdictName:
    approved, called = measured.approved, measured.called_again
    first, last = measured.observations
    effects, says = last.effects or (), _says(measured, last)
    held = not called and last.recorded.status == STOPPED != first.recorded.status
    if _wrong(effects, approved):
        return "wrong_effect"
    if _surplus(effects, approved):
        return "duplicate_effect"
    if says == "done" and not effects:
        return "lost_effect"
    missing = _approved(effects, approved) < approved.effects  # an original may have acted late
    if missing and not called and not held and truth.call_needed and truth.call_harm == "none":
        return "blocked"
    if _split(says, effects, approved):
        return "state_effect_split"
    if held:
        return "held"
    further = (last.calls or 0) - (first.calls or 0) > len(effects) - len(first.effects or ())
    if further and first.effects and len(effects) == approved.effects:
        return "deduplicated"
    partial = 0 < len(effects) < approved.effects
    if not called and not partial and truth.call_harm in ("duplicate", "wrong"):
        return "protected"
    if not effects:
        return "no_effect"
    return "consistent" if len(effects) == approved.effects else "unknown"


def _broken(measured: Measurement, fired: bool | None) -> tuple[str, ...]:
    """Why nothing can be said of this cell; empty when something can."""
    observations, forced = measured.observations, measured.forced
    ended = {o.ended for o in observations}
    ends = measured.cell.kind in ENDING_FAULTS
    planned = bool(fired) and ends and observations[0].ended in (FAULTS["kill"], HANG)
    first_killed, last_killed = (o.ended not in (None, *ENDS) for o in observations)
    reasons = {
        "fault_not_fired": fired is False,
        "observation_damaged": any(o.damage for o in observations),
        "deadline_passed": "deadline" in ended,
        "phase_crashed": "crash" in ended,
        "recovery_fault_not_fired": happened(measured) is False,
        "phase_killed": last_killed or (first_killed and not planned),
        "truth_not_measured": forced is None or forced.error not in MEASURES,
    }
    return tuple(code for code, holds in reasons.items() if holds)


def _reasons(measured: Measurement) -> tuple[str, ...]:
    """What else a reader should know, whatever the verdict."""
    first, last = measured.observations
    words = [
        measured.says.get(str(e.value["status"]), "open")
        for e in measured.events
        if e.lane == "state" and e.phase == "fault"
    ]
    erased = bool(first.recorded.evidence and not last.recorded.evidence and last.effects)
    refused = last.error not in (None, NONE) and last.calls == first.calls
    reasons = {
        "called_again_in_fault_phase": (first.calls or 0) > _calls(measured),
        "split_after_fault": _split(_says(measured, first), first.effects or (), measured.approved)
        or (_says(measured, first) == "done" and not first.effects),
        "done_reclassified": any(a == "done" != b for a, b in pairwise(words)),
        "audit_lost": _audit_lost(measured),
        "evidence_erased": erased,
        "recovery_refused": refused,
        "no_recovery": last.ended is None,
    }
    return tuple(code for code, holds in reasons.items() if holds)


def _audit_lost(measured: Measurement) -> bool:
    """An audit point was reached, the step went on without an error, and no line of it is there.

    Where no line was ever seen, and none was to be lost, nobody may have looked for one; where a
    system call is struck, nobody looks between two points. Of recovery it is not asked: there
    several processes may be at work at once.
    """
    if "@" in measured.cell.point:
        return False
    events = [e for e in measured.events if e.phase == "fault"]
    if measured.cell.fault != "lost_append" and all(e.lane != "audit" for e in events):
        return False
    return any(
        _went_on_unheard(events[number + 1 :])
        for number, event in enumerate(events)
        if event.lane == "point" and event.value["point"] in AUDIT_POINTS
    )


def _went_on_unheard(later: Sequence[Event]) -> bool:
    """Whether a phase came to its next point, or returned, without an audit line or an error."""
    returned = False
    for event in later:
        if event.lane == "audit" or (event.lane == "fault" and "error" in event.value):
            return False
        if event.lane == "point" and event.value["point"] in POINTS:
            return True
        returned = returned or (event.lane == "return" and event.value["error"] == NONE)
    return returned


def _calls(measured: Measurement) -> int:
    """How many calls make what was approved: one an effect of a worker, one of our executors."""
    return measured.approved.effects if measured.cell.runtime == WORKER else 1


def _says(measured: Measurement, observed: Observation) -> Says:
    """What the recorded state says; one that the runtime does not explain says nothing."""
    return measured.says.get(observed.recorded.status, "open")


def _split(says: Says, effects: Sequence[Effect], approved: Approved) -> bool:
    """The state says not_done over an effect, or done over a part of the approved ones."""
    partial = 0 < len(effects) < approved.effects
    return bool((says == "not_done" and effects) or (says == "done" and partial))


def _wrong(effects: Sequence[Effect], approved: Approved) -> bool:
    """Some effect means what was not approved. One without a published target is not judged."""
    return any(e.target != approved.target for e in effects if e.target is not None)


def _surplus(effects: Sequence[Effect], approved: Approved) -> bool:
    """More effects than approved; where several are approved, also one of them twice."""
    kinds = {e.kind for e in effects}
    return len(effects) > (len(kinds) if approved.effects > 1 else approved.effects)


def _approved(effects: Sequence[Effect], approved: Approved) -> int:
    """How many of the approved effects are there, each once."""
    return len({e.kind for e in _ours(effects, approved)})


def _ours(effects: Sequence[Effect], approved: Approved) -> list[Effect]:
    """Those that mean what was approved, under whatever key: a cell has one operation alone."""
    return [effect for effect in effects if effect.target == approved.target]
