"""From what could be known after the fault to whether another call was allowed (docs/design.md §6).

Standard library alone, no I/O: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rcr_probes.model import Approved, Cell, Decision, Facts, Observation, Recorded
from rcr_probes.vocabulary import CAPABILITIES, FENCED, RECORD_DAMAGE, EffectFact, Identity, Says


def known(cell: Cell, approved: Approved, observed: Observation, says: Mapping[str, Says]) -> Facts:
    """What a policy could know at the first observation, through the cell's witness.

    A witness that is not exact leaves the effect unknown, and a record that recovery finds damaged
    the identity. While the holder of a lock is alive, nothing is settled. What is still in flight
    cannot land any more where a fence is enforced that whoever recovers has raised.
    """
    due = says.get(observed.recorded.status) == "due"
    seen = effect(approved, _met(cell, observed), due=due)
    damaged = cell.recovery_fault in RECORD_DAMAGE
    return Facts(
        identity="unknown" if damaged else identity(observed.recorded),
        effect=seen if cell.witness == "exact" else "unknown",
        capability=CAPABILITIES[cell.dedupe],
    )


def _met(cell: Cell, observed: Observation) -> Observation:
    if cell.recovery_fault == "lock_live":
        return replace(observed, settled=False)
    late = cell.recovery_fault == "late_original"
    return replace(observed, settled=True) if late and cell.variant == FENCED else observed


def identity(recorded: Recorded) -> Identity:
    """Valid needs an approval that stands and an equal digest; without a stored one: unknown."""
    if recorded.approved_digest is None or recorded.current_digest is None:
        return "unknown"
    return "valid" if recorded.approved_digest == recorded.current_digest else "changed"


def effect(approved: Approved, observed: Observation, *, due: bool = False) -> EffectFact:
    """What is known of the approved effects, attributed by their operation key.

    One on the approved target under another key is nobody's for sure: whether the approved one is
    there cannot be told from it, and a look-up under our key would miss it. So it counts as many,
    as does one of several that is there twice.
    ``absent`` and ``partial`` need a settled attempt: one that may still act leaves them unknown.
    So does a state by which the runtime is ``due`` to act: a message that will be delivered again.
    """
    if observed.effects is None or observed.damage:
        return "unknown"
    ours = [e for e in observed.effects if e.operation_key == approved.operation_key]
    surplus = len(ours) > min(approved.effects, len({e.kind for e in ours}))
    strays = [e for e in observed.effects if e not in ours and e.target == approved.target]
    if surplus or strays or any(e.target != approved.target for e in ours):
        return "many"
    if len(ours) == approved.effects:
        return "present"
    if due or not observed.settled:
        return "unknown"
    return "partial" if ours else "absent"


def decide(facts: Facts) -> Decision:
    """One decision, over every combination of facts.

    ``present`` never calls: where the identity is not valid, only the original request is
    reconciled, and the recomputed one is never reported done. ``reconcile`` by replay is the only
    reconcile that may call: where ``replay`` is declared, one more call leaves exactly the approved
    effects, and so it completes a part of them too.
    """
    seen, identity = f"effect_{facts.effect}", f"identity_{facts.identity}"
    match facts.effect:
        case "partial" if "replay" in facts.capability and facts.identity == "valid":
            return Decision("reconcile", "replay", (seen, "replay_declared", identity))
        case "partial" if "replay" in facts.capability:
            return Decision("stop", None, (seen, "replay_declared", identity))
        case "partial":
            return Decision("stop", None, (seen, "no_replay"))
        case "many":
            return Decision("stop", None, (seen,))
        case "present":
            scope = () if facts.identity == "valid" else (identity, "original_request_only")
            return Decision("reconcile", "evidence", (seen, *scope))
        case "absent" if facts.identity == "valid":
            return Decision("reexecute", None, (seen, identity))
        case "absent":
            return Decision("stop", None, (seen, identity))
        case "unknown" if "lookup" in facts.capability:
            return Decision("reconcile", "lookup", (seen, "lookup_declared"))
        case "unknown" if "replay" in facts.capability and facts.identity == "valid":
            return Decision("reconcile", "replay", (seen, "replay_declared", identity))
        case "unknown" if "replay" in facts.capability:
            return Decision("stop", None, (seen, "replay_declared", identity))
        case _:
            return Decision("stop", None, (seen, "no_capability"))


def looked_up(facts: Facts, effects: int | None, wanted: int = 1) -> Facts:
    """The facts once the executor was asked under the original key; nobody asks it twice.

    Args:
        facts: before it was asked.
        effects: how many it knows under the key; None where it does not know, or something that was
            sent may still act.
        wanted: how many were approved.
    """
    answer: EffectFact = "unknown"
    if effects is not None:
        exact: Mapping[int, EffectFact] = {0: "absent", wanted: "present"}
        answer = exact.get(effects, "many" if effects > wanted else "partial")
    rest = tuple(name for name in facts.capability if name != "lookup")
    return Facts(facts.identity, answer, rest)


def may_call(decision: Decision) -> bool:
    """Whether the decision lets recovery call the executor."""
    return decision.eligibility == "reexecute" or decision.way == "replay"
