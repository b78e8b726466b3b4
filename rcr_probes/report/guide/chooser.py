"""The chooser: every combination of facts, the decision, and what ignoring it cost in a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from rcr_probes.eligibility import decide, may_call
from rcr_probes.evidence.claimed import Reference
from rcr_probes.model import Capture, Decision, Facts
from rcr_probes.vocabulary import CAPABILITIES, EFFECT_FACTS, IDENTITIES, EffectFact

# What some facts come with in the captures → the first that shows it.
Told = Mapping[tuple[Facts, str], tuple[int, Reference, Capture]]
DECLARED = tuple(sorted({name for names in CAPABILITIES.values() for name in names}))

# What a captured cell shows of ignoring the decision, the most telling first: first of a decision
# by which nobody may call, then of one that wants a call.
_CALLED = ("called_twice", "wrong", "duplicate", "recognised", "harmless", "useless")
_LEFT = ("blocked",)
_WEIGHED = ("replay", "lookup")  # what another call may do weighs more than what may be asked


@dataclass(frozen=True, slots=True)
class Cost:
    """What one capture shows of doing otherwise.

    Attributes:
        kind: one of ``_CALLED`` or ``_LEFT``: a text of the section ``guide.choose.cost``.
        reference: the capture.
        effects: that stood there in the end.
        approved: how many were approved.
        facts: what could be known there, where it is not what was chosen.
        supposed: what the unknown effect would have to be; None where the effect is the same.
    """

    kind: str
    reference: Reference
    effects: int
    approved: int
    facts: Facts | None = None
    supposed: EffectFact | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One combination of facts, what is decided of it, and what ignoring that cost."""

    facts: Facts
    decision: Decision
    costs: tuple[Cost, ...]

    @property
    def anchor(self) -> str:
        """Its place in the page, and so the choice in the page's address."""
        capability = "-".join(self.facts.capability) or "none"
        return f"decide-{self.facts.identity}-{self.facts.effect}-{capability}"


def choices(captured: Iterable[tuple[Reference, Capture]]) -> list[Choice]:
    """Every combination of facts, decided by the library.

    Args:
        captured: where what ignoring costs is looked for; the first of equals is taken.
    """
    told = _told(captured)
    made = []
    for identity, effect, capability in product(IDENTITIES, EFFECT_FACTS, _capabilities()):
        facts = Facts(identity, effect, capability)
        decision = decide(facts)
        made.append(Choice(facts, decision, tuple(_costs(facts, decision, told))))
    return made


def _told(captured: Iterable[tuple[Reference, Capture]]) -> Told:
    """Each kind that captures with some facts show."""
    found: dict[tuple[Facts, str], tuple[int, Reference, Capture]] = {}
    for place, (reference, capture) in enumerate(captured):
        if (seen := capture.judgement.facts) is not None:
            for kind in _shows(capture):
                found.setdefault((seen, kind), (place, reference, capture))
    return found


def _capabilities() -> list[tuple[str, ...]]:
    sizes = range(len(DECLARED) + 1)
    return [chosen for size in sizes for chosen in combinations(DECLARED, size)]


def _costs(facts: Facts, decision: Decision, told: Told) -> Iterator[Cost]:
    """What the captures with these facts show; of an unknown effect, those of either world.

    A capture whose effect was unknown itself tells only why it was: its runtime was still due to
    act. It speaks where no capture of either world does.
    """
    worlds = list(_worlds(facts, told)) if facts.effect == "unknown" else []
    alike = None if worlds else _worst(facts, _LEFT if may_call(decision) else _CALLED, told)
    yield from [alike] if alike else worlds


def _worlds(facts: Facts, told: Told) -> Iterator[Cost]:
    """What it costs to call if the effect is there after all, and to leave it if it is not."""
    worlds: tuple[tuple[EffectFact, Sequence[str]], ...]
    worlds = (("present", _CALLED), ("absent", _LEFT))
    for supposed, kinds in worlds:
        world = replace(facts, effect=supposed)
        if kinds == _LEFT and not may_call(decide(world)):
            continue  # then nobody may call in that world either
        if found := _worst(world, kinds, told):
            yield replace(found, supposed=supposed)


def _worst(facts: Facts, kinds: Sequence[str], told: Told) -> Cost | None:
    """What shows the most telling of these kinds, among the captures with the nearest facts.

    Another identity or capability will do, where the effect and the decision are the same.
    """
    found = [
        (_distance(facts, seen), kinds.index(kind), place, kind, reference, capture)
        for (seen, kind), (place, reference, capture) in told.items()
        if kind in kinds
        and seen.effect == facts.effect
        and decide(seen).eligibility == decide(facts).eligibility
    ]
    if not found:
        return None
    *_, kind, reference, capture = min(found, key=lambda one: one[:3])
    last, seen = capture.measurement.after("recover"), capture.judgement.facts
    return Cost(
        kind,
        reference,
        effects=len(last.effects or ()) if last else 0,
        approved=capture.measurement.approved.effects,
        facts=None if seen == facts else seen,
    )


def _distance(one: Facts, other: Facts) -> tuple[bool, ...]:
    """How far facts lie apart: the identity counts most, then each capability."""
    declared = ((name in one.capability) != (name in other.capability) for name in _WEIGHED)
    return (one.identity != other.identity, *declared)


def _shows(capture: Capture) -> Iterable[str]:
    """What this capture shows of calling, and of leaving it."""
    verdict, truth = capture.judgement.verdict, capture.judgement.truth
    if verdict is None or truth is None:
        return ()
    by_verdict = {
        "duplicate_effect": "called_twice",
        "deduplicated": "recognised",
        "blocked": "blocked",
    }
    by_harm = {"wrong": "wrong", "duplicate": "duplicate", "none": "harmless", "useless": "useless"}
    shown = [by_harm[truth.call_harm]]
    # Where recovery did not call again, it was the runtime, before it.
    told = capture.measurement.called_again or verdict.verdict == "blocked"
    if verdict.verdict in by_verdict and told:
        shown.append(by_verdict[verdict.verdict])
    return shown
