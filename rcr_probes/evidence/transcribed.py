"""Rows that others published, in our own form: what was not published stays null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rcr_probes.evidence import seal
from rcr_probes.evidence.consistency import PUBLISHED
from rcr_probes.evidence.derive import derive
from rcr_probes.model import (
    Approved,
    Capture,
    Cell,
    Circumstances,
    Effect,
    Event,
    Json,
    Measurement,
    Observation,
    Recorded,
)
from rcr_probes.vocabulary import NONE

RESEARCH = "RCR-20260831-01"
PLAN = "rcr-20260831"  # the plan of its rows, whether imported or transcribed
FAULT_LOCATIONS = "E-A0"  # its experiments
RESTARTS = "E-A1"
NOT_PUBLISHED = "unpublished"  # stands where a name is required and none was published


def published_cell(
    commit: str,
    experiment: str,
    point: str,
    *,
    dedupe: str = NONE,
    digest: str = "same",
    policy: str | None,
) -> Cell:
    """A cell that others ran: on the baseline ``commit``, with the audit as a directory.

    Args:
        commit: the baseline; its first eight digits name the runtime.
        experiment: ``E-A0`` or ``E-A1``.
        point: where the fault struck; ``none`` where there was none.
        dedupe: of the executor.
        digest: of the recomputed request.
        policy: how recovery was done; None where it was not published.
    """
    return Cell(
        point=point,
        fault=NONE if point == NONE else "audit_is_directory",
        dedupe=dedupe,
        digest=digest,
        policy=policy,
        runtime=f"{PUBLISHED}{commit[:8]}",
        variant=experiment,
        witness=None,
        recovery_fault=None,
        recoverers=None,
        seed=None,
        repeat=None,
    )


def published_capture(
    cell: Cell,
    source: str,
    observations: tuple[Observation, ...],
    *,
    events: tuple[Event, ...] = (),
    operation_key: str = NOT_PUBLISHED,
    verdict: str | None = None,
) -> Capture:
    """The capture of a row that others published: not judged, and without processes of ours."""
    measured = Measurement(
        cell=cell,
        source=source,
        approved=Approved(operation_key, NOT_PUBLISHED),
        says={},
        events=events,
        observations=observations,
        forced=None,
        published_verdict=verdict,
    )
    return seal.seal(measured, derive(measured), Circumstances())


def observed(
    after: Literal["fault", "recover"],
    status: str,
    effects: int,
    *,
    calls: int | None = None,
    error: str | None = None,
    evidence: tuple[Mapping[str, Json], ...] | None = None,
) -> Observation:
    """An observation of which the figures alone were published."""
    named = tuple(Effect(f"E{number}") for number in range(1, effects + 1))
    return Observation(after, 0, Recorded(status, evidence=evidence), named, calls, error)
