"""E-A1 of the package RCR-20260831: recovery in a new process, under three executor controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal

import msgspec

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.package import REPORT, Count, Package, commit8, typed
from rcr_probes.evidence.transcribed import (
    NOT_PUBLISHED,
    RESEARCH,
    RESTARTS,
    published_capture,
    published_cell,
)
from rcr_probes.model import Capture, Effect, Event, Json, Observation, Recorded
from rcr_probes.vocabulary import NONE, Lane

RESTART = "fixtures/restart.json"
REPEATED = "fixtures/repeatability.json"  # the same figures once more

_CONTROLS = {  # variant → dedupe and digest
    "non-idempotent": (NONE, "same"),
    "idempotent": ("operation_key", "same"),
    "changed-digest": (NONE, "changed"),
}
_STAGES = ("00-approved", "01-effect-observed", "02-failed-return", "03-resume-return")
_FAILED, _RESUMED = 2, 3  # the stages at which a phase returned


class _Approval(msgspec.Struct, frozen=True):
    status: str
    execution_status: str
    evidence: tuple[Mapping[str, Json], ...]


class _Effect(msgspec.Struct, frozen=True):
    effect_id: str
    operation_key: str
    kind: str


class _Stage(msgspec.Struct, frozen=True):
    stage: str
    seq: Count
    owner: str
    approval: _Approval
    effects: tuple[_Effect, ...]
    executor_calls: Count


class _Figures(msgspec.Struct, frozen=True):
    status: str
    effects: Count
    calls: Count
    error: str | None


class _Variant(msgspec.Struct, frozen=True):
    variant: str
    separate_processes: bool
    before_retry: _Figures
    after_retry: _Figures
    observations: tuple[_Stage, ...]


class _Restart(msgspec.Struct, frozen=True):
    commit: str
    variants: tuple[_Variant, ...]


class _RepeatedVariant(msgspec.Struct, frozen=True):
    variant: str
    separate_processes: bool
    effects_before: Count
    effects_after: Count
    calls_after: Count
    error: str | None


class _Repetition(msgspec.Struct, frozen=True):
    commit: str
    variants: tuple[_RepeatedVariant, ...]


def restarts(package: Package, left_out: list[str]) -> Iterator[Capture]:
    """Every variant that is one of the three controls; the others go to ``left_out``.

    Raises:
        EvidenceError: the file is absent, or its figures, its stages and the repetitions disagree.
    """
    restart = typed(package.json(RESTART), _Restart, RESTART)
    commit = commit8(restart.commit, RESTART)
    names = [variant.variant for variant in restart.variants]
    if not names or len(set(names)) != len(names):
        raise EvidenceError(RESTART, "holds no variant, or one of them twice.", REPORT)
    for variant in restart.variants:
        _agree(variant)
    if REPEATED in package.files:
        _repeated(package, restart)
    for variant in restart.variants:
        if variant.variant not in _CONTROLS:
            left_out.append(f"{RESTARTS} {variant.variant}: not one of {', '.join(_CONTROLS)}")
        elif not variant.separate_processes:
            left_out.append(
                f"{RESTARTS} {variant.variant}: recovery was in the process of the fault"
            )
        else:
            yield _restarted(commit, variant)


def _restarted(commit: str, variant: _Variant) -> Capture:
    dedupe, digest = _CONTROLS[variant.variant]
    events = tuple(_events(variant))
    cut = sum(event.phase == "fault" for event in events)
    *_, failed, resumed = variant.observations
    return published_capture(
        published_cell(
            commit, RESTARTS, "completion_audit", dedupe=dedupe, digest=digest, policy="resume"
        ),
        f"{RESEARCH} {RESTARTS} {variant.variant}",
        (
            _observation("fault", cut, failed, variant.before_retry),
            _observation("recover", len(events), resumed, variant.after_retry),
        ),
        events=events,
        operation_key=next(
            (e.operation_key for stage in variant.observations for e in stage.effects),
            NOT_PUBLISHED,
        ),
    )


def _observation(
    after: Literal["fault", "recover"], cut: int, stage: _Stage, figures: _Figures
) -> Observation:
    approval = stage.approval
    return Observation(
        after=after,
        events=cut,
        recorded=Recorded(approval.status, approval.execution_status, approval.evidence),
        effects=tuple(Effect(e.effect_id, e.operation_key, e.kind) for e in stage.effects),
        calls=stage.executor_calls,
        error=figures.error or NONE,  # E-A1 publishes null where there was none
    )


def _events(variant: _Variant) -> Iterator[Event]:
    """What is new at each stage, as events.

    A stage is a snapshot, and says nothing of the order within it. Ours: a call comes before its
    effect, a state that is still executing before the call, any other state after it.
    """
    seq = 0
    state: Json = None
    calls = effects = 0
    returns = {_FAILED: variant.before_retry, _RESUMED: variant.after_retry}
    for number, stage in enumerate(variant.observations):
        new: list[tuple[Lane, Mapping[str, Json]]] = []
        for _ in range(stage.executor_calls - calls):
            new.append(("call", {}))
        for effect in stage.effects[effects:]:
            new.append(("effect", msgspec.to_builtins(effect)))
        now = _state(stage.approval)
        if now != state:
            new.insert(0 if now["execution"] == "executing" else len(new), ("state", now))
        if number in returns:
            new.append(("return", {"error": returns[number].error or NONE}))
        state, calls, effects = now, stage.executor_calls, len(stage.effects)
        for lane, value in new:
            phase = "recover" if number == _RESUMED else "fault"
            yield Event(seq, phase, lane, {**value, "stage": stage.stage})
            seq += 1


def _state(approval: _Approval) -> dict[str, Any]:
    return {
        "status": approval.status,
        "execution": approval.execution_status,
        "evidence": [dict(e) for e in approval.evidence],
    }


def _agree(variant: _Variant) -> None:
    """The stages of a variant follow from each other, and agree with its figures."""
    stages = variant.observations
    if tuple(s.stage for s in stages) != _STAGES or [s.seq for s in stages] != [0, 1, 2, 3]:
        raise _contradiction(RESTART, variant.variant, f"its stages are not {', '.join(_STAGES)}")
    if len({s.owner for s in stages}) != 1:
        raise _contradiction(RESTART, variant.variant, "its stages have different owners")
    for before, after in pairwise(stages):
        kept = after.effects[: len(before.effects)] == before.effects
        if not kept or after.executor_calls < before.executor_calls:
            raise _contradiction(
                RESTART, variant.variant, f"at {after.stage} an effect or a call of before is gone"
            )
    names = [effect.effect_id for effect in stages[_RESUMED].effects]
    if len(set(names)) != len(names):
        raise _contradiction(RESTART, variant.variant, "two effects have the same name")
    for name, figures, stage in (
        ("before_retry", variant.before_retry, stages[_FAILED]),
        ("after_retry", variant.after_retry, stages[_RESUMED]),
    ):
        given = (figures.status, figures.effects, figures.calls)
        if given != (stage.approval.status, len(stage.effects), stage.executor_calls):
            raise _contradiction(
                RESTART, variant.variant, f"{name} does not agree with its stage {stage.stage}"
            )


def _repeated(package: Package, restart: _Restart) -> None:
    """The repetitions on the same baseline give the figures of the restart file."""
    figures = {
        v.variant: (
            v.separate_processes,
            v.before_retry.effects,
            v.after_retry.effects,
            v.after_retry.calls,
            v.after_retry.error,
        )
        for v in restart.variants
    }
    for repetition in typed(package.json(REPEATED), tuple[_Repetition, ...], REPEATED):
        if repetition.commit != restart.commit:
            continue
        repeated = {
            v.variant: (
                v.separate_processes,
                v.effects_before,
                v.effects_after,
                v.calls_after,
                v.error,
            )
            for v in repetition.variants
        }
        for name in sorted(figures.keys() | repeated.keys()):
            if figures.get(name) != repeated.get(name):
                raise _contradiction(REPEATED, name, f"its figures are not those of {RESTART}")


def _contradiction(place: str, variant: str, what: str) -> EvidenceError:
    return EvidenceError(place, f"contradicts itself: of {variant!r}, {what}.", REPORT)
