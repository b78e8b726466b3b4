"""Recovery by evidence, in one process and on real files: what it decides, writes and refuses."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from rcr_probes import fence, points, witness
from rcr_probes.model import Known
from rcr_probes.reference import ADMIN, Actor, ApprovalError, audit
from rcr_probes.reference.policies import DAMAGED, EvidenceGated
from rcr_probes.reference.records import Record
from rcr_probes.runtime import Operation
from rcr_probes.witness import Timeline

REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}
CHANGED = {**REQUEST, "target": "marker-1"}
KEY = "operation-0"
PERSON = Actor("admin-1", ADMIN)
HOUR = 3600.0
Effect = Literal["present", "absent"]


class Executor:
    """Counts its calls, makes an effect on each, and says of its key what it is told to say."""

    name = "local-marker"
    effects = 1

    def __init__(self, *declares: str) -> None:
        self.declares = declares
        self.made: list[str] = []
        self.says: Known | Exception = Known(0, in_flight=False)

    def __call__(self, key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.made.append(str(request["target"]))
        return {"kind": self.name, "observed_count": len(self.made)}

    def look(self, key: str) -> Known:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class Store:
    """One approved operation whose attempt failed before its action, in a folder of its own."""

    def __init__(self, folder: Path, *declares: str, requester: str = "user") -> None:
        self.folder = folder
        self.now = 1_000.0
        self.executor = Executor(*declares)
        self.service = EvidenceGated(folder, now=lambda: self.now)
        self.attempts = folder / "attempts"
        self.attempts.mkdir()
        self.witness = folder / "witness.json"
        self.id = self.service.prepare(REQUEST, requester).id  # type: ignore[arg-type]
        token = self.service.approve(self.id, PERSON, "a marker of the tests")

        def fails(request: Mapping[str, Any]) -> Mapping[str, Any]:
            raise OSError(5, "before the action")

        os.close(fence.enter(self.attempts).fd)
        self.service.execute(self.id, token, REQUEST, fails)

    def sees(self, effects: int | None, covers: int | None = None) -> None:
        """What the witness says: so many effects, up to the last attempt; None: nothing."""
        self.witness.unlink(missing_ok=True)
        if effects is None:
            return
        at = len(os.listdir(self.attempts)) if covers is None else covers
        named = [
            {"effect_id": f"E{n}", "operation_key": KEY, "kind": "local-marker", "target": t}
            for n, t in enumerate(["marker-0"] * effects, 1)
        ]
        envelope = {
            "id": "one",
            "owner": KEY,
            "available_at": at,
            "kind": witness.EFFECTS,
            "body": {"effects": named, "in_flight": False},
        }
        manifest = {"one": witness.digest(envelope)}
        self.witness.write_bytes(witness.written(Timeline(KEY, (envelope,), manifest)))

    def operation(self, request: Mapping[str, Any] = REQUEST) -> tuple[Operation, int]:
        """The operation in a new attempt, and what keeps that attempt alive."""
        begun = fence.enter(self.attempts)
        made = Operation(KEY, request, self.folder, self.executor)
        given = replace(made, attempt=begun.number, attempts=self.attempts, witness=self.witness)
        return given, begun.fd

    def recover(self, request: Mapping[str, Any] = REQUEST) -> Record:
        operation, _ = self.operation(request)
        try:
            return self.service.recover(self.id, operation)
        finally:
            self.end()

    def end(self) -> None:
        """What the end of its process does to an attempt: nothing of the fence is held any more."""
        for fd in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}").startswith(str(self.attempts)):
                    os.close(int(fd))

    def refused(self, request: Mapping[str, Any] = REQUEST) -> str:
        with pytest.raises(ApprovalError) as caught:
            self.recover(request)
        return caught.value.code

    def rule(self, effect: Effect, until: float = HOUR) -> Record:
        return self.service.rule(self.id, PERSON, effect, "counted by hand", self.now + until)

    @property
    def record(self) -> Record:
        return self.service.records.read(self.id)

    @property
    def trail(self) -> list[audit.AuditLine]:
        return [e for e in audit.read(self.service.audit_path).lines if e.approval_id == self.id]

    def bytes(self) -> dict[str, bytes]:
        """Every file of the store."""
        found = self.folder.rglob("*")
        return {str(p): p.read_bytes() for p in found if p.is_file() and "attempts" not in str(p)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def stopped(store: Store) -> Record:
    """The operation after a recovery that had to stop, because nothing says what exists."""
    store.sees(None)
    return store.recover()


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


# Damage.


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", bytes(40), b"{}"], ids=["empty", "torn", "null", "NULs", "other"]
)
@pytest.mark.parametrize("effects", [0, 1, None])
def test_a_damaged_record_is_kept_and_needs_a_person(
    store: Store, data: bytes, effects: int | None
) -> None:
    """It is never read as a record of nothing; what takes its place was approved by nobody."""
    path = store.folder / "approvals" / f"{store.id}.json"
    path.write_bytes(data)
    store.sees(effects)
    for _ in range(2):
        record = store.recover()
        assert record.status == "verification_required"
        assert record.decided_by is None
        assert record.held is not None
        assert "record_damaged" in record.held.reasons
        assert Path(f"{path}{DAMAGED}").read_bytes() == data
    assert not store.executor.made


def test_a_missing_record_needs_a_person(store: Store) -> None:
    """Its caller has a ticket: once there was one."""
    (store.folder / "approvals" / f"{store.id}.json").unlink()
    store.sees(0)
    record = store.recover()
    assert record.held is not None
    assert "record_missing" in record.held.reasons
    assert not store.executor.made


@pytest.mark.parametrize("effects", [0, 1])
def test_a_record_that_contradicts_the_audit_is_not_believed(store: Store, effects: int) -> None:
    """It says that nothing was begun; the audit knows better."""
    path = store.folder / "approvals" / f"{store.id}.json"
    older = {**json.loads(path.read_bytes()), "status": "approved", "consumed": False}
    path.write_bytes(msgspec.json.encode(older))
    store.sees(effects)
    if effects:
        assert store.refused() == "APPROVAL_STATE_CONFLICT"
        assert store.record.status == "succeeded"
    else:
        assert store.recover().status == "verification_required"
    assert "record_contradicts_audit" in store.trail[-1].reasons
    assert not store.executor.made


def test_a_damaged_audit_is_told_of(store: Store) -> None:
    """Whatever is decided, it says that lines could not be read."""
    with Path(store.service.audit_path).open("ab") as file:
        file.write(b"\0\0\0\n")
    store.sees(1)
    store.recover()
    assert "audit_damaged" in store.trail[-1].reasons


def test_an_audit_that_cannot_be_read_is_told_of_in_the_record(store: Store) -> None:
    """The record is written before its audit line fails, as everywhere in this service."""
    os.rename(store.service.audit_path, f"{store.service.audit_path}.saved")
    os.mkdir(store.service.audit_path)
    store.sees(None)
    with pytest.raises(IsADirectoryError):
        store.recover()
    assert store.record.held is not None
    assert "audit_damaged" in store.record.held.reasons


# A stop, and what a person decides.


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
