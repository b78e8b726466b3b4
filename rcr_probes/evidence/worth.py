"""What a recovery policy is worth, over all cells of a plan: unsafe calls and false blocks (§6).

Pure: it reads captures, and asks of each call whether it could have done harm in any planned world
that looks the same to whoever recovers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from rcr_probes import eligibility
from rcr_probes.model import Capture, Decision, Event, Facts, Json, Observation, canonical_json
from rcr_probes.request import effective_target, recomputed
from rcr_probes.vocabulary import CAPABILITIES, NONE, POINTS, STOPPED, TRULY, VerdictName

Outcome = Literal["reexecuted", "reconciled", "stopped", "refused", "left"]
Existed = Literal["absent", "one", "many"]
OUTCOMES: tuple[Outcome, ...] = ("reexecuted", "reconciled", "stopped", "refused", "left")
EXISTED: tuple[Existed, ...] = ("absent", "one", "many")
# What may be taken away from who recovers, one at a time.
EVIDENCE = ("snapshot", "lookup", "settled", "fence")

_HARMFUL = ("duplicate", "wrong")
_RECONCILED = "operation.reconciled"
_UNJUDGED: tuple[VerdictName, ...] = ("unknown",)


@dataclass(frozen=True, slots=True)
class Weighed:
    """One capture, and what its recovery was worth.

    Attributes:
        capture: of the cell.
        view: all that whoever recovered could read; equal for worlds that look the same.
        called: whether recovery called the executor.
        unsafe: it called, and in some world with that view a call does harm.
        false_block: it did not call, though a call was needed, and harmless in every world with
            that view.
        outcome: what recovery did.
        existed: how many effects there were before it, beside those that were approved.
        true_facts: False where what recovery was told is not so: a digest that leaves out what
            matters, an executor that declares what it does not have. They are counted apart.
    """

    capture: Capture
    view: str
    called: bool
    unsafe: bool
    false_block: bool
    outcome: Outcome
    existed: Existed
    true_facts: bool


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A view in which stopping is right: one world needs the call, and another is harmed by it."""

    view: str
    needs: Capture
    harmed: Capture


def weigh(captures: Iterable[Capture]) -> list[Weighed]:
    """Every measured capture whose verdict is known, in the order of the plan.

    Where something happens around recovery (it is struck, met by another, or finds damage), what
    there was to be read is not what was measured before: such cells are told by their verdicts.

    Where facts are false, a cell is held against its own world alone: what looks the same to its
    recovery is not what the others' recovery was shown.
    """
    every = _seen(captures)
    harmed = {one.view for one in every if one.true_facts and _harmful(one.capture)}
    return [_weighed(one, harmed) for one in every if _judged(one.capture)]


def ambiguous(captures: Iterable[Capture]) -> list[Ambiguous]:
    """Each view that holds both worlds, with the first pair that shows it.

    No policy can do better there than to stop, on what it could read.
    """
    worlds: dict[str, list[Capture]] = {}
    for one in _seen(captures):
        if one.true_facts:
            worlds.setdefault(one.view, []).append(one.capture)
    found = []
    for view, alike in worlds.items():
        needs = next((c for c in alike if _needed(c) and not _harmful(c)), None)
        harmed = next((c for c in alike if _harmful(c)), None)
        if needs is not None and harmed is not None:
            found.append(Ambiguous(view, needs, harmed))
    return found


def without(capture: Capture, evidence: str) -> Decision:
    """The decision on this cell, had one kind of evidence been missing: one of ``EVIDENCE``.

    Without the fence, no attempt is known to be over, and neither is one without the settled mark:
    what the two leave unknown is the same, though they are kept by different means.
    """
    measured, first = capture.measurement, capture.measurement.observations[0]
    known = eligibility.known(measured.cell, measured.approved, first, measured.says)
    return eligibility.decide(_less(known, evidence, capture, first))


def _less(known: Facts, evidence: str, capture: Capture, first: Observation) -> Facts:
    match evidence:
        case "snapshot":
            return replace(known, effect="unknown")
        case "lookup":
            return replace(known, capability=tuple(c for c in known.capability if c != "lookup"))
        case _:
            unsettled = replace(first, settled=False)
            measured = capture.measurement
            return eligibility.known(measured.cell, measured.approved, unsettled, measured.says)


class _Seen(NamedTuple):
    capture: Capture
    view: str
    true_facts: bool


def _seen(captures: Iterable[Capture]) -> list[_Seen]:
    """The worlds, each with what could be read in it."""
    return [_Seen(c, view(c), true_facts(c)) for c in captures if _is_world(c)]


def _weighed(one: _Seen, harmed: Set[str]) -> Weighed:
    """What a recovery was worth, where a call does harm in some world of each of these views."""
    capture = one.capture
    called = capture.measurement.called_again
    harmless = one.view not in harmed if one.true_facts else not _harmful(capture)
    return Weighed(
        capture=capture,
        view=one.view,
        called=called,
        unsafe=called and not harmless,
        false_block=not called and _needed(capture) and harmless,
        outcome=_outcome(capture),
        existed=_existed(capture),
        true_facts=one.true_facts,
    )


def view(capture: Capture) -> str:
    """All that a policy could read after the fault, identifiers left out, as one text.

    What is stored and audited; the facts, as the witness gives them; the answer of a look-up, where
    one is declared. Neither where nor what had struck, nor what the caller of that time saw.
    """
    measured, facts = capture.measurement, capture.judgement.facts
    assert facts is not None
    first = measured.observations[0]
    audited = _audited(measured.events[: first.events])
    ours = [e for e in first.effects or () if e.operation_key == measured.approved.operation_key]
    seen = {
        "runtime": measured.cell.runtime,
        "variant": measured.cell.variant,
        "status": first.recorded.status,
        "execution": first.recorded.execution,
        "evidence": [dict(one) for one in first.recorded.evidence or ()],
        "audited": audited,
        "facts": facts,
        "effects": measured.approved.effects,
        "looked_up": len(ours) if "lookup" in facts.capability else None,
    }
    return canonical_json(seen).decode()


def _audited(events: Iterable[Event]) -> list[Mapping[str, Json]]:
    """The audit lines that are there: those that were seen, less what a lost power took."""
    lines: list[Mapping[str, Json]] = []
    for event in events:
        if event.lane == "audit":
            lines.append(event.value)
        elif event.lane == "fault" and "lines" in event.value:
            del lines[event.value["lines"] :]
    return lines


def true_facts(capture: Capture) -> bool:
    """Whether what recovery could know was so: the digest's scope, and what the executor declares.

    A digest calls another meaning the same where the identity is valid, and a call would act on
    another target than the approved one.
    """
    judged, cell = capture.judgement, capture.cell
    assert judged.facts is not None
    asked = effective_target(recomputed(cell))
    scoped = judged.facts.identity != "valid" or asked == capture.measurement.approved.target
    return scoped and CAPABILITIES[cell.dedupe] == TRULY[cell.dedupe]


def _is_world(capture: Capture) -> bool:
    """Whether it is known what stood there for recovery to find, and what a call would do."""
    judged = capture.judgement
    return bool(
        not capture.measurement.published
        and capture.cell.recovery_fault == NONE
        and judged.facts
        and judged.truth
        and judged.fired is not False
    )


def _judged(capture: Capture) -> bool:
    """Whether it is known what its recovery made of that."""
    verdict = capture.judgement.verdict
    return verdict is not None and verdict.verdict not in _UNJUDGED


def _needed(capture: Capture) -> bool:
    """Whether a call was needed. Before the first point nothing is approved, and so none is."""
    truth = capture.judgement.truth
    return truth is not None and truth.call_needed and _begun(capture)


def _begun(capture: Capture) -> bool:
    """Whether its operation came to a point of its own, where a system call is struck."""
    if "@" not in capture.cell.point:
        return True
    own = (e for e in capture.measurement.events if (e.lane, e.phase) == ("point", "fault"))
    return any(e.value.get("point") in POINTS for e in own)


def _harmful(capture: Capture) -> bool:
    truth = capture.judgement.truth
    return truth is not None and truth.call_harm in _HARMFUL


def _outcome(capture: Capture) -> Outcome:
    first, last = capture.measurement.observations
    recovered = capture.measurement.events[first.events :]
    if any(e.lane == "audit" and e.value.get("event") == _RECONCILED for e in recovered):
        return "reconciled"  # by replay too, which calls
    if capture.measurement.called_again:
        return "reexecuted"
    if last.recorded.status == STOPPED != first.recorded.status:
        return "stopped"
    return "refused" if last.error not in (None, NONE) else "left"


def _existed(capture: Capture) -> Existed:
    effects = len(capture.measurement.observations[0].effects or ())
    if not effects:
        return "absent"
    return "one" if effects <= capture.measurement.approved.effects else "many"
