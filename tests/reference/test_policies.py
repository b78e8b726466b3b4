"""Recovery by evidence: what decides, who is asked, and who keeps others out."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from rcr_probes import fence
from rcr_probes.model import Known
from rcr_probes.reference import ApprovalError
from tests.reference.attempted import (
    CHANGED,
    PERSON,
    REQUEST,
    Store,
    stopped,
)

# What is decided.


@pytest.mark.parametrize(
    ("effects", "status", "calls", "event"),
    [
        (0, "succeeded", 1, "operation.succeeded"),
        (1, "succeeded", 0, "operation.reconciled"),
        (2, "verification_required", 0, "operation.verification_required"),
        (None, "verification_required", 0, "operation.verification_required"),
    ],
)
def test_the_effect_decides(
    store: Store, effects: int | None, status: str, calls: int, event: str
) -> None:
    """Absent: call. Present: repair. Too many, or unknown: stop, and say why."""
    store.sees(effects)
    assert store.recover().status == status
    assert store.record.status == status
    assert len(store.executor.made) == calls
    assert store.trail[-1].event == event


def test_what_the_record_says_of_itself_proves_nothing(store: Store) -> None:
    """Its word is succeeded: that is neither believed nor needed."""
    store.sees(0)
    store.recover()
    store.sees(0)
    assert store.recover().status == "succeeded"
    assert len(store.executor.made) == 2
    assert stopped(store).status == "verification_required"


def test_an_older_snapshot_is_no_absence(store: Store) -> None:
    """It is of a time before the attempt that may have acted."""
    store.sees(0, covers=0)
    record = store.recover()
    assert record.held is not None
    assert record.held.reasons == ("effect_unknown", "no_capability")
    assert not store.executor.made


def test_a_present_effect_repairs_record_and_audit_once(store: Store) -> None:
    """The evidence says what there is; a second recovery finds nothing to repair."""
    store.sees(1)
    record = store.recover()
    assert record.execution.evidence == ({"kind": "local-marker", "observed_count": 1},)
    assert record.execution.error_code is None
    assert store.trail[-1].reasons == ("effect_present",)
    before = store.bytes()
    store.sees(1)
    store.recover()
    after = store.bytes()
    del before[str(store.witness)], after[str(store.witness)]
    assert after == before


@pytest.mark.parametrize("effects", [0, 1, 2, None])
def test_a_changed_request_is_never_called_nor_reported_done(
    store: Store, effects: int | None
) -> None:
    """Only the original one is reconciled; its caller is told that it asked for another."""
    store.sees(effects)
    if effects == 1:
        assert store.refused(CHANGED) == "APPROVAL_STALE"
        assert store.record.status == "succeeded"
        assert store.record.request == REQUEST
    else:
        assert store.recover(CHANGED).status == "verification_required"
    assert not store.executor.made


def test_a_pending_operation_is_not_recovered(tmp_path: Path) -> None:
    """Nothing was begun under it: it is refused as elsewhere, and stays as it is."""
    store = Store(tmp_path)
    pending = store.service.prepare(CHANGED)
    store.id = pending.id
    store.sees(0)
    before = store.record
    assert store.refused(CHANGED) == "PRE_APPROVAL_REQUIRED"
    store.service.reject(pending.id, PERSON, "no")
    store.sees(0)
    assert store.refused(CHANGED) == "APPROVAL_STATE_CONFLICT"
    assert before.status == "pending_approval"
    assert store.record.status == "rejected"
    assert not store.executor.made


def test_an_effect_that_nobody_approved_is_for_a_person(tmp_path: Path) -> None:
    """A record that says pending over an effect is not made to say done."""
    store = Store(tmp_path)
    store.id = store.service.prepare(CHANGED).id
    store.sees(1)
    assert store.recover(CHANGED).status == "verification_required"


def test_an_agents_approval_is_not_consumed(tmp_path: Path) -> None:
    """As with resume: what an agent asked for is not executed without its token."""
    store = Store(tmp_path, requester="agent")
    store.sees(0)
    assert store.refused() == "PRE_APPROVAL_REQUIRED"
    assert not store.executor.made


# Who is asked.


@pytest.mark.parametrize(
    ("known", "status", "calls"),
    [
        (Known(0, in_flight=False), "succeeded", 1),
        (Known(1, in_flight=False), "succeeded", 0),
        (Known(2, in_flight=False), "verification_required", 0),
        (Known(0, in_flight=True), "verification_required", 0),
        (Known(1, in_flight=True), "verification_required", 0),
        (Known(None, in_flight=False), "verification_required", 0),
        (OSError(111, "nobody answers"), "verification_required", 0),
    ],
    ids=str,
)
def test_a_look_up_answers_only_where_nothing_is_in_flight(
    tmp_path: Path, known: Known | Exception, status: str, calls: int
) -> None:
    """No answer, and one that may change, leave the effect unknown."""
    store = Store(tmp_path, "lookup")
    store.executor.says = known
    store.sees(None)
    assert store.recover().status == status
    assert len(store.executor.made) == calls


@pytest.mark.parametrize("declares", [("replay",), ("lookup", "replay")])
def test_what_may_be_replayed_is_called_where_nobody_knows(
    tmp_path: Path, declares: tuple[str, ...]
) -> None:
    """The audit says reconciled: it is no execution that was known to be needed."""
    store = Store(tmp_path, *declares)
    store.executor.says = Known(None, in_flight=False)
    store.sees(None)
    assert store.recover().status == "succeeded"
    assert len(store.executor.made) == 1
    assert store.trail[-1].event == "operation.reconciled"
    assert [e.way for e in store.trail if e.event == "operation.started"] == ["execute", "replay"]


def test_replay_is_never_used_over_an_effect(tmp_path: Path) -> None:
    """What is there is repaired, also where a call would do no harm."""
    store = Store(tmp_path, "replay")
    store.sees(1)
    store.recover()
    assert not store.executor.made


# The fence, and locks.


def test_while_another_attempt_lives_nothing_is_read_or_written(store: Store) -> None:
    """It is busy, whatever there is to see."""
    store.sees(0)
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        fence.enter(store.attempts)
        os.write(tell, b".")
        signal.pause()
    os.read(told, 1)
    before = store.bytes()
    try:
        assert store.refused() == "APPROVAL_BUSY"
        assert store.bytes() == before
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(told)
        os.close(tell)
    store.sees(0)
    assert store.recover().status == "succeeded"


def test_without_a_fence_nobody_recovers(store: Store) -> None:
    """Who has no way to prove that others are gone cannot say so."""
    store.sees(0)
    operation, held = store.operation()
    with pytest.raises(ApprovalError, match="APPROVAL_BUSY"):
        store.service.recover(store.id, replace(operation, attempts=None))
    os.close(held)


@pytest.mark.parametrize(
    "pid", [1, os.getpid(), 2**22 - 1, "nobody"], ids=["init", "living", "dead", "none"]
)
def test_a_stale_lock_is_passed_whatever_pid_is_in_it(store: Store, pid: int | str) -> None:
    """Alive, dead or no pid at all: the fence has proven that no attempt holds it."""
    lock = store.folder / "approvals" / f"{store.id}.lock"
    lock.write_text(f"{pid}\n")
    store.sees(1)
    assert store.recover().status == "succeeded"
    assert not lock.exists()
    assert "stale_lock" in store.trail[-1].reasons
