"""Measurements made by hand, for tests of what is derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rcr_probes.model import (
    Approved,
    Cell,
    Effect,
    Event,
    Forced,
    Json,
    Measurement,
    Observation,
    Recorded,
)
from rcr_probes.vocabulary import Lane, Says

APPROVED = Approved("operation-0", "marker-0")
SAYS: Mapping[str, Says] = {"succeeded": "done", "approved": "not_done", "failed": "open"}
P3: Mapping[str, Any] = {"point": "completion_audit", "fault": "audit_is_directory"}


def effects(*targets: str) -> tuple[Effect, ...]:
    """Effects of the approved key on these targets."""
    return tuple(
        Effect(
            f"E{n}", "operation-0", target.partition(":")[2] or "local-marker", target.split(":")[0]
        )
        for n, target in enumerate(targets, 1)
    )


def events(*values: tuple[str, Lane, Mapping[str, Json]]) -> tuple[Event, ...]:
    """Events in order, from phase, lane and value."""
    return tuple(Event(n, phase, lane, value) for n, (phase, lane, value) in enumerate(values))


def strike(cell: Cell) -> tuple[str, Lane, Mapping[str, Json]]:
    """The proof that the cell's fault came to strike."""
    return ("fault", "fault", {"point": cell.point, "fault": cell.fault})


def measured(
    *,
    first: Sequence[str] = ("marker-0",),
    last: Sequence[str] = ("marker-0",),
    forced: Sequence[str] = ("marker-0", "marker-0"),
    calls: tuple[int, int] = (1, 1),
    states: tuple[str, str] = ("failed", "failed"),
    errors: tuple[str | None, str | None] = ("EISDIR", "none"),
    ended: tuple[str | None, str | None] = ("exit", "exit"),
    standing: bool | None = True,
    damage: tuple[str, ...] = (),
    cell: Mapping[str, Any] = P3,
    lanes: Sequence[tuple[str, Lane, Mapping[str, Json]]] | None = None,
    evidence: tuple[tuple[Mapping[str, Json], ...], tuple[Mapping[str, Json], ...]] = ((), ()),
    approved: Approved = APPROVED,
    forced_error: str = "none",
) -> Measurement:
    """P3 in which recovery was left out, but for what is given: targets stand for effects."""
    planned = Cell(**{"policy": "resume", **cell})
    before = Observation(
        "fault",
        0,
        Recorded(states[0], evidence=evidence[0], approved_digest="a", current_digest="a"),
        effects(*first),
        calls[0],
        errors[0],
        ended[0],
        settled=True,
        standing=standing,
        damage=damage,
    )
    after = Observation(
        "recover",
        0,
        Recorded(states[1], evidence=evidence[1], approved_digest="a", current_digest="a"),
        effects(*last),
        calls[1],
        errors[1],
        ended[1],
        settled=True,
    )
    return Measurement(
        planned,
        "measured",
        approved,
        SAYS,
        events(*([strike(planned)] if lanes is None else lanes)),
        (before, after),
        Forced(effects(*forced), forced_error),
    )
