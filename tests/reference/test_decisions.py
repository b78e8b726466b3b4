"""A stop is persisted, and a person decides on it, once and on nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from rcr_probes import points
from rcr_probes.reference import Actor, ApprovalError
from tests.reference.attempted import (
    CHANGED,
    HOUR,
    PERSON,
    Effect,
    Store,
    stopped,
)


def test_a_stop_is_persisted_with_its_reasons(store: Store) -> None:
    """In the record and in the audit, with the attempt that stopped; its token is void."""
    record = stopped(store)
    assert record == store.record
    assert record.held is not None
    assert (record.held.reasons, record.held.attempt) == (("effect_unknown", "no_capability"), 2)
    assert store.trail[-1].reasons == record.held.reasons
    assert record.token_sha256 is None


def test_the_same_stop_is_written_once(store: Store) -> None:
    """A decision that is under way still answers it."""
    record = stopped(store)
    assert stopped(store) == record
    assert [e.event for e in store.trail].count("operation.verification_required") == 1


@pytest.mark.parametrize(("effect", "calls"), [("present", 0), ("absent", 1)])
def test_a_persons_decision_is_carried_out_and_recorded(
    store: Store, effect: Effect, calls: int
) -> None:
    """Who, on what evidence, until when: in the record and in the audit."""
    stopped(store)
    store.rule(effect)
    store.sees(None)
    record = store.recover()
    assert record.status == "succeeded"
    assert len(store.executor.made) == calls
    assert record.ruling is not None
    assert (record.ruling.by, record.ruling.on) == ("admin-1", "counted by hand")
    assert record.ruling.until == store.now + HOUR
    (told,) = [e for e in store.trail if e.event == "operation.decided"]
    assert (told.by, told.on, told.until) == ("admin-1", "counted by hand", store.now + HOUR)
    assert told.reasons == (f"effect_{effect}",)


@pytest.mark.parametrize("effect", ["present", "absent"])
def test_an_expired_decision_is_refused(store: Store, effect: Effect) -> None:
    """What was true then may have changed."""
    stopped(store)
    store.rule(effect)
    store.now += HOUR + 1
    store.sees(None)
    assert store.refused() == "DECISION_EXPIRED"
    assert store.record.status == "verification_required"
    assert not store.executor.made


@pytest.mark.parametrize("change", [{"approval_id": "0" * 32}, {"attempt": 7}], ids=str)
def test_a_foreign_decision_is_refused(store: Store, change: Mapping[str, Any]) -> None:
    """One of another operation, or on another stop of this one."""
    stopped(store)
    ruled = store.rule("absent")
    assert ruled.ruling is not None
    foreign = msgspec.structs.replace(ruled.ruling, **change)
    store.service.records.write(msgspec.structs.replace(ruled, ruling=foreign))
    store.sees(None)
    assert store.refused() == "DECISION_FOREIGN"
    assert not store.executor.made


def test_evidence_goes_before_a_decision(store: Store) -> None:
    """A person who says that nothing is there does not outweigh a witness who shows it."""
    stopped(store)
    store.rule("absent")
    store.sees(1)
    assert store.recover().status == "succeeded"
    assert not store.executor.made


def test_a_decision_is_not_for_another_request(store: Store) -> None:
    """It speaks of the effect; the identity is not a person's to wave through."""
    stopped(store)
    store.rule("absent")
    store.sees(None)
    assert store.recover(CHANGED).status == "verification_required"
    assert not store.executor.made


@pytest.mark.parametrize("second", ["present", "absent"])
def test_another_persons_valid_decision_is_not_replaced(store: Store, second: Effect) -> None:
    """Neither is known to be right; who entered one may correct it, and a void one gives way."""
    other = Actor("admin-2", "ADMIN")
    stopped(store)
    first = store.rule("absent").ruling
    with pytest.raises(ApprovalError, match=r"APPROVAL_STATE_CONFLICT.*admin-1"):
        store.service.rule(store.id, other, second, "asked the receiver", store.now + HOUR)
    assert store.record.ruling == first
    corrected = store.rule("present").ruling
    assert corrected is not None
    assert corrected.effect == "present"
    store.now += HOUR + 1
    store.service.rule(store.id, other, second, "asked the receiver", store.now + HOUR)
    assert [e.by for e in store.trail if e.event == "operation.decided"] == [
        "admin-1", "admin-1", "admin-2",
    ]  # fmt: skip


def test_a_foreign_decision_keeps_nobody_from_deciding(store: Store) -> None:
    """It can be carried out by no recovery, so somebody has to replace it."""
    stopped(store)
    ruled = store.rule("absent")
    assert ruled.ruling is not None
    foreign = msgspec.structs.replace(ruled.ruling, attempt=7)
    store.service.records.write(msgspec.structs.replace(ruled, ruling=foreign))
    other = Actor("admin-2", "ADMIN")
    store.service.rule(store.id, other, "present", "asked the receiver", store.now + HOUR)
    assert store.recover().status == "succeeded"


def test_a_decision_is_used_up_by_what_follows(store: Store) -> None:
    """The attempt that it allowed was struck: its decision does not allow another one."""
    stopped(store)
    store.rule("absent")
    store.sees(None)

    def strike(name: str, path: str | None) -> None:
        if name == "after_action":
            raise KeyboardInterrupt

    points.watch(strike)
    try:
        with pytest.raises(KeyboardInterrupt):
            store.recover()
    finally:
        points.watch(None)
    store.sees(None)
    record = store.recover()
    assert record.status == "verification_required"
    assert record.ruling is None
    assert len(store.executor.made) == 1


REFUSALS: Mapping[str, tuple[Callable[[Store], object], str]] = {
    "no admin": (
        lambda s: s.service.rule(s.id, Actor("user-1", "USER"), "absent", "seen", s.now + HOUR),
        "APPROVER_NOT_AUTHORIZED",
    ),
    "no evidence": (
        lambda s: s.service.rule(s.id, PERSON, "absent", " ", s.now + HOUR),
        "APPROVAL_REASON_REQUIRED",
    ),
    "void when entered": (lambda s: s.rule("absent", until=-1), "DECISION_EXPIRED"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_decision_that_is_none_is_not_entered(store: Store, name: str) -> None:
    """An ADMIN, with evidence, for a time that has not passed."""
    stopped(store)
    enter, code = REFUSALS[name]
    with pytest.raises(ApprovalError, match=code):
        enter(store)
    assert store.record.ruling is None


def test_nobody_decides_on_what_was_not_stopped(store: Store) -> None:
    """A failed operation is for recovery first."""
    with pytest.raises(ApprovalError, match="APPROVAL_STATE_CONFLICT"):
        store.rule("absent")
