"""From what could be known after the fault to whether another call was allowed (docs/design.md §6).

Standard library alone, no I/O: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from rcr_probes.model import (
    CAPABILITIES,
    Approved,
    Cell,
    Decision,
    EffectFact,
    Facts,
    Identity,
    Observation,
    Recorded,
    Says,
)


def known(cell: Cell, approved: Approved, observed: Observation, says: Mapping[str, Says]) -> Facts:
    """What a policy could know at the first observation, through the witness ``exact``."""
    due = says.get(observed.recorded.status) == "due"
    return Facts(
        identity=identity(observed.recorded),
        effect=effect(approved, observed, due=due),
        capability=CAPABILITIES[cell.dedupe],
    )


def identity(recorded: Recorded) -> Identity:
    """Valid needs an approval that stands and an equal digest; without a stored one: unknown."""
    if recorded.approved_digest is None or recorded.current_digest is None:
        return "unknown"
    return "valid" if recorded.approved_digest == recorded.current_digest else "changed"


def effect(approved: Approved, observed: Observation, *, due: bool = False) -> EffectFact:
    """What is known of the approved effects, attributed by their operation key.

    One on the approved target under another key is nobody's for sure: whether the approved one is
    there cannot be told from it, and a look-up under our key would miss it. So it counts as many.
    ``absent`` and ``partial`` need a settled attempt: one that may still act leaves them unknown.
    So does a state by which the runtime is ``due`` to act: a message that will be delivered again.
    """
    if observed.effects is None or observed.damage:
        return "unknown"
    ours = [e for e in observed.effects if e.operation_key == approved.operation_key]
    strays = [e for e in observed.effects if e not in ours and e.target == approved.target]
    if len(ours) > approved.effects or strays or any(e.target != approved.target for e in ours):
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
    reconcile that may call.
    """
    seen, identity = f"effect_{facts.effect}", f"identity_{facts.identity}"
    match facts.effect:
        case "many" | "partial":
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


def may_call(decision: Decision) -> bool:
    """Whether the decision lets recovery call the executor."""
    return decision.eligibility == "reexecute" or decision.way == "replay"
