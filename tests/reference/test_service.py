"""The controls that the approval service keeps, and the order in which it refuses."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.errors import InjectedFault, UnknownName
from rcr_probes.reference import ADMIN, CODES, Actor, ApprovalError, ApprovalService, audit
from rcr_probes.reference.dispatch import ExecutorRegistry
from rcr_probes.reference.records import Record

AtPoint = Callable[[Mapping[str, Callable[[], object]]], list[str]]

REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}
CHANGED = {**REQUEST, "target": "marker-1"}
EVIDENCE = {"kind": "local-marker", "observed_count": 1}
APPROVER = Actor("admin-1", ADMIN)


class Clock:
    """A clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Marker:
    """Appends a line to a real file for each call, and keeps what it was called with."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "effects"
        self.requests: list[Mapping[str, Any]] = []

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.requests.append(request)
        with self.path.open("a") as file:
            file.write("marker\n")
        return EVIDENCE

    @property
    def effects(self) -> int:
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    return Marker(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> ApprovalService:
    return ApprovalService(tmp_path, now=clock, review_seconds=60)


def refusal(work: Callable[[], object]) -> str:
    """The code of the approval error that ``work`` raises."""
    with pytest.raises(ApprovalError) as caught:
        work()
    assert caught.value.code in CODES
    assert str(caught.value).startswith(f"{caught.value.code}: ")
    return caught.value.code


def granted(service: ApprovalService, requester: Any = "user") -> tuple[str, str]:
    """Id and token of an approved operation."""
    approval = service.prepare(REQUEST, requester)
    return approval.id, service.approve(approval.id, APPROVER, "needed")


def failed(service: ApprovalService, requester: Any = "user") -> str:
    """Id of an operation whose executor raised before it acted."""
    approval_id, token = granted(service, requester)

    def broken(request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise TimeoutError

    assert service.execute(approval_id, token, REQUEST, broken).status == "failed"
    return approval_id


def events(service: ApprovalService) -> list[str]:
    trail = audit.read(service.audit_path)
    assert not trail.damage
    return [line.event.removeprefix("operation.") for line in trail.lines]


def stored(folder: Path) -> dict[str, bytes]:
    """Every file of the store, by its path."""
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# The controls.


def test_prepare_has_no_effect(service: ApprovalService, marker: Marker) -> None:
    """Asking for approval calls no executor, gives no token and starts nothing."""
    record = service.prepare(REQUEST)
    assert (record.status, record.execution.status) == ("pending_approval", "not_started")
    assert (record.token_sha256, record.consumed, marker.effects) == (None, False, 0)
    assert events(service) == ["prepared"]


def test_approval_executes_its_exact_digest_once(service: ApprovalService, marker: Marker) -> None:
    """One approval: one call, its evidence in the record; the second attempt is refused."""
    approval_id, token = granted(service)
    record = service.execute(approval_id, token, REQUEST, marker)
    assert (record.status, record.execution.status) == ("succeeded", "succeeded")
    assert record.execution.evidence == (EVIDENCE,)
    assert record == service.get(approval_id)
    again = refusal(lambda: service.execute(approval_id, token, REQUEST, marker))
    assert (again, marker.effects) == ("APPROVAL_ALREADY_CONSUMED", 1)
    assert events(service) == ["prepared", "approved", "started", "succeeded"]


def test_session_and_key_order_are_not_the_request(
    service: ApprovalService, marker: Marker
) -> None:
    """The approved request executes from another session and with its keys in another order."""
    approval_id, token = granted(service)
    same = {**dict(reversed(REQUEST.items())), "session_id": "session-2"}
    assert service.execute(approval_id, token, same, marker).status == "succeeded"


def test_changed_target_is_stale_before_the_executor_is_called(
    service: ApprovalService, marker: Marker
) -> None:
    """Executing another request than the approved one persists stale, and calls nobody."""
    approval_id, token = granted(service)
    changed = refusal(lambda: service.execute(approval_id, token, CHANGED, marker))
    assert (changed, marker.effects) == ("APPROVAL_STALE", 0)
    record = service.get(approval_id)
    assert (record.status, record.token_sha256, record.consumed) == ("stale", None, False)
    back = refusal(lambda: service.execute(approval_id, token, REQUEST, marker))
    assert (back, marker.effects) == ("APPROVAL_STATE_CONFLICT", 0)


def test_rejecting_changes_nothing_else(
    service: ApprovalService, tmp_path: Path, marker: Marker
) -> None:
    """A rejection touches its own record and adds one audit line; all other bytes stay."""
    other, _ = granted(service)
    approval = service.prepare(CHANGED)
    before = stored(tmp_path)
    service.reject(approval.id, APPROVER, "not now")
    after = stored(tmp_path)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert changed == {str(tmp_path / "approvals" / f"{approval.id}.json"), service.audit_path}
    assert after[service.audit_path].startswith(before[service.audit_path])
    assert (events(service)[-1], marker.effects) == ("rejected", 0)
    assert service.get(approval.id).status == "rejected"
    assert service.get(other).status == "approved"
    assert refusal(lambda: service.execute(approval.id, None, CHANGED, marker)) == (
        "APPROVAL_STATE_CONFLICT"
    )


def test_prepare_returns_the_approval_that_there_is(
    service: ApprovalService, marker: Marker
) -> None:
    """The same digest gets its pending or unused approval; a used one is not given out again."""
    first = service.prepare(REQUEST)
    assert service.prepare({**REQUEST, "session_id": "session-2"}) == first
    token = service.approve(first.id, APPROVER, "needed")
    assert service.prepare(REQUEST) == service.get(first.id)
    assert service.prepare(CHANGED).id != first.id
    service.execute(first.id, token, REQUEST, marker)
    second = service.prepare(REQUEST)
    assert second.id != first.id
    service.reject(second.id, APPROVER, "not now")
    assert service.prepare(REQUEST).id not in (first.id, second.id)


def test_invalid_token_fails(service: ApprovalService, marker: Marker) -> None:
    """A token that is not the approval's is refused, and does not use the approval up."""
    approval_id, token = granted(service)
    for wrong in ("", token[:-1], token.upper(), "0" * 64):
        code = refusal(lambda wrong=wrong: service.execute(approval_id, wrong, REQUEST, marker))  # type: ignore[misc]
        assert code == "APPROVAL_TOKEN_INVALID"
    assert marker.effects == 0
    assert service.execute(approval_id, token, REQUEST, marker).status == "succeeded"


def test_approved_token_outlives_the_review_deadline(
    service: ApprovalService, marker: Marker, clock: Clock
) -> None:
    """The deadline is for the review: what was approved in time executes after it."""
    approval_id, token = granted(service)
    clock.seconds += 61
    assert service.get(approval_id).status == "approved"
    assert service.execute(approval_id, token, REQUEST, marker).status == "succeeded"


def test_user_operation_resumes_after_its_token_was_lost(
    service: ApprovalService, marker: Marker
) -> None:
    """An approved user operation runs without its token; then the token is worth nothing."""
    approval_id, token = granted(service)
    assert service.resume(approval_id, REQUEST, marker).status == "succeeded"
    code = refusal(lambda: service.execute(approval_id, token, REQUEST, marker))
    assert (code, marker.effects) == ("APPROVAL_ALREADY_CONSUMED", 1)
    assert [line.way for line in audit.read(service.audit_path).lines][2:] == ["resume", None]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda service: granted(service, "agent")[0], id="approved"),
        pytest.param(lambda service: failed(service, "agent"), id="failed"),
    ],
)
def test_resume_cannot_consume_an_agents_approval(
    service: ApprovalService, marker: Marker, make: Callable[[ApprovalService], str]
) -> None:
    """An agent's operation, approved or failed, is not resumed, and nothing of it changes."""
    approval_id = make(service)
    before = service.get(approval_id)
    code = refusal(lambda: service.resume(approval_id, REQUEST, marker))
    assert (code, marker.effects) == ("PRE_APPROVAL_REQUIRED", 0)
    assert service.get(approval_id) == before


def test_failed_user_operation_resumes_without_another_approval(
    service: ApprovalService, marker: Marker
) -> None:
    """After a failure the operation is resumed under the approval that it had, and succeeds."""
    approval_id = failed(service)
    record = service.resume(approval_id, REQUEST, marker)
    assert (record.status, record.execution.evidence) == ("succeeded", (EVIDENCE,))
    assert (record.execution.error_code, marker.effects) == (None, 1)
    assert events(service) == [
        "prepared",
        "approved",
        "started",
        "failed",
        "started",
        "succeeded",
    ]


@pytest.mark.parametrize("role", ["USER", "admin", "", "AGENT"])
def test_only_admin_approves(service: ApprovalService, role: str) -> None:
    """No other role approves or rejects, and the attempt leaves the approval pending."""
    approval = service.prepare(REQUEST)
    other = Actor("someone", role)
    for decide in (service.approve, service.reject):
        code = refusal(lambda decide=decide: decide(approval.id, other, "please"))  # type: ignore[misc]
        assert code == "APPROVER_NOT_AUTHORIZED"
    assert service.get(approval.id) == approval


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_approval_needs_a_reason(service: ApprovalService, reason: str) -> None:
    """Nobody approves or rejects without saying why."""
    approval = service.prepare(REQUEST)
    for decide in (service.approve, service.reject):
        code = refusal(lambda decide=decide: decide(approval.id, APPROVER, reason))  # type: ignore[misc]
        assert code == "APPROVAL_REASON_REQUIRED"
    assert service.get(approval.id) == approval
    service.approve(approval.id, APPROVER, "needed")
    record = service.get(approval.id)
    assert (record.decided_by, record.reason) == ("admin-1", "needed")


# What else it refuses, and in which order.


def test_token_itself_is_never_stored(
    service: ApprovalService, marker: Marker, tmp_path: Path
) -> None:
    """No file of the store holds the token, before it is used or after; two are never equal."""
    approval_id, token = granted(service)
    assert len(token) == 64
    assert not any(token.encode() in data for data in stored(tmp_path).values())
    assert service.get(approval_id).token_sha256 is not None
    service.execute(approval_id, token, REQUEST, marker)
    assert service.get(approval_id).token_sha256 is None
    assert granted(service)[1] != token


def test_pending_operation_needs_its_approval_first(
    service: ApprovalService, marker: Marker
) -> None:
    """Neither way runs what nobody has approved."""
    approval = service.prepare(REQUEST)
    assert refusal(lambda: service.execute(approval.id, "x", REQUEST, marker)) == (
        "PRE_APPROVAL_REQUIRED"
    )
    assert refusal(lambda: service.resume(approval.id, REQUEST, marker)) == (
        "APPROVAL_STATE_CONFLICT"
    )
    assert marker.effects == 0


def test_approved_operation_is_executed_with_its_token_alone(
    service: ApprovalService, marker: Marker
) -> None:
    """A caller without the token cannot execute, and the approval stays unused."""
    approval_id, token = granted(service)
    assert refusal(lambda: service.execute(approval_id, None, REQUEST, marker)) == (
        "PRE_APPROVAL_REQUIRED"
    )
    assert service.execute(approval_id, token, REQUEST, marker).status == "succeeded"


def test_wrong_token_is_said_before_another_digest(
    service: ApprovalService, marker: Marker
) -> None:
    """Who does not hold the token cannot make an approval stale."""
    approval_id, _ = granted(service)
    assert refusal(lambda: service.execute(approval_id, "x", CHANGED, marker)) == (
        "APPROVAL_TOKEN_INVALID"
    )
    assert service.get(approval_id).status == "approved"


def test_unknown_approval_is_not_found(service: ApprovalService, marker: Marker) -> None:
    """Every method says so, and leaves nothing behind."""
    unknown = "0" * 32
    for work in (
        lambda: service.get(unknown),
        lambda: service.approve(unknown, APPROVER, "needed"),
        lambda: service.reject(unknown, APPROVER, "needed"),
        lambda: service.cancel(unknown),
        lambda: service.execute(unknown, "x", REQUEST, marker),
        lambda: service.resume(unknown, REQUEST, marker),
        lambda: service.get("../audit"),
    ):
        assert refusal(work) == "APPROVAL_NOT_FOUND"
    assert os.listdir(service.records.folder) == []


def test_decided_approval_is_not_decided_again(service: ApprovalService) -> None:
    """Approve, reject and cancel are for the pending alone."""
    approval_id, _ = granted(service)
    before = service.get(approval_id)
    for work in (
        lambda: service.approve(approval_id, APPROVER, "needed"),
        lambda: service.reject(approval_id, APPROVER, "needed"),
        lambda: service.cancel(approval_id),
    ):
        assert refusal(work) == "APPROVAL_NOT_PENDING"
    assert service.get(approval_id) == before


def test_cancelled_request_can_be_asked_for_again(service: ApprovalService, marker: Marker) -> None:
    """What was withdrawn is never executed; asking again makes a new approval."""
    approval = service.prepare(REQUEST)
    service.cancel(approval.id)
    assert refusal(lambda: service.approve(approval.id, APPROVER, "needed")) == (
        "APPROVAL_NOT_PENDING"
    )
    assert refusal(lambda: service.resume(approval.id, REQUEST, marker)) == (
        "APPROVAL_STATE_CONFLICT"
    )
    assert service.prepare(REQUEST).id != approval.id


def test_pending_approval_expires_at_its_review_deadline(
    service: ApprovalService, clock: Clock
) -> None:
    """In time it can be approved; after it, it has expired, is audited once, and is not reused."""
    approval = service.prepare(REQUEST)
    clock.seconds += 60
    assert service.get(approval.id).status == "pending_approval"
    clock.seconds += 0.001
    assert service.prepare(REQUEST).id != approval.id
    assert refusal(lambda: service.approve(approval.id, APPROVER, "needed")) == (
        "APPROVAL_NOT_PENDING"
    )
    assert service.get(approval.id).status == "expired"
    assert events(service).count("expired") == 1


def test_agent_and_user_do_not_share_an_approval(service: ApprovalService) -> None:
    """An agent that asks for what a user asked for gets an approval of its own."""
    users = service.prepare(REQUEST, "user")
    agents = service.prepare(REQUEST, "agent")
    assert agents.id != users.id
    assert service.prepare(REQUEST, "agent") == agents
    assert (users.requester, agents.requester) == ("user", "agent")


def test_list_is_in_order_of_asking(service: ApprovalService, clock: Clock) -> None:
    """Every approval is listed, the oldest first, as it stands now."""
    asked = []
    for number in range(5):
        asked.append(service.prepare({**REQUEST, "target": f"marker-{number}"}).id)
        clock.seconds += 15
    assert [record.id for record in service.list()] == asked
    assert [record.status for record in service.list()] == ["expired"] + ["pending_approval"] * 4


@pytest.mark.parametrize("request_", [{}, {"executor": ""}, {"executor": 1}, {**REQUEST, "x": {1}}])
def test_request_that_cannot_be_approved_is_refused(
    service: ApprovalService, request_: Mapping[str, Any]
) -> None:
    """A request that is not JSON, or names no executor, makes no approval."""
    with pytest.raises(ValueError, match=r"executor|unsupported type"):
        service.prepare(request_)
    assert service.list() == ()


def test_request_that_is_not_json_erases_nothing(service: ApprovalService, marker: Marker) -> None:
    """Resuming with what has no digest is refused before the execution block is reset."""
    approval_id = failed(service)
    before = service.get(approval_id)
    with pytest.raises(ValueError, match="unsupported type"):
        service.resume(approval_id, {**REQUEST, "x": {1}}, marker)
    assert service.get(approval_id) == before


# The shared catch, and the erasing resume.


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TimeoutError(), "TimeoutError"),
        (OSError(28, "No space left on device"), "ENOSPC"),
        (InjectedFault("before_action"), "INJECTED_FAULT"),
    ],
)
def test_error_of_the_executor_is_recorded_and_not_raised(
    service: ApprovalService, error: Exception, code: str
) -> None:
    """Execute returns the failed record, with the code of the error in record and audit."""
    approval_id, token = granted(service)

    def broken(request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise error

    record = service.execute(approval_id, token, REQUEST, broken)
    assert (record.status, record.execution.status) == ("failed", "failed")
    assert (record.execution.error_code, record.execution.evidence) == (code, ())
    assert record == service.get(approval_id)
    assert audit.read(service.audit_path).lines[-1].code == code


def test_evidence_that_is_not_json_fails_an_action_that_ran(service: ApprovalService) -> None:
    """What cannot be stored is an error of the completion: the record says failed, without it."""
    approval_id, token = granted(service)
    record = service.execute(approval_id, token, REQUEST, lambda request: {"lock": object()})
    assert (record.status, record.execution.evidence) == ("failed", ())
    assert record == service.get(approval_id)


@pytest.mark.parametrize(
    ("point", "evidence", "effects"),
    [
        ("before_action", (), 0),
        ("after_action", (), 1),
        ("after_result", (EVIDENCE,), 1),
        ("completion_audit", (EVIDENCE,), 1),
    ],
)
def test_completion_shares_the_catch_of_the_executor(
    service: ApprovalService,
    marker: Marker,
    at_point: AtPoint,
    point: str,
    evidence: tuple[Mapping[str, Any], ...],
    effects: int,
) -> None:
    """An error at any of these points makes the record failed, keeping the evidence it had."""
    approval_id, token = granted(service)

    def strike() -> None:
        raise InjectedFault(point)

    at_point({point: strike})
    record = service.execute(approval_id, token, REQUEST, marker)
    assert (record.status, record.execution.evidence) == ("failed", evidence)
    assert marker.effects == effects
    assert events(service)[-1] == "failed"


@pytest.mark.parametrize(
    ("point", "status"),
    [("approval_audit", "approved"), ("start_audit", "executing"), ("response", "succeeded")],
)
def test_other_points_are_outside_the_catch(
    service: ApprovalService, marker: Marker, at_point: AtPoint, point: str, status: str
) -> None:
    """There the caller sees the error, over what was already persisted."""

    def strike() -> None:
        raise InjectedFault(point)

    at_point({point: strike})
    with pytest.raises(InjectedFault):
        service.execute(*granted(service), REQUEST, marker)
    assert [record.status for record in service.list()] == [status]
    assert marker.effects == (point == "response")


def test_points_come_in_the_order_of_the_operations_life(
    service: ApprovalService, marker: Marker, at_point: AtPoint
) -> None:
    """A whole operation reaches all seven points, each once."""
    seen = at_point({})
    service.execute(*granted(service), REQUEST, marker)
    assert seen == [
        "approval_audit", "start_audit", "before_action", "after_action",
        "after_result", "completion_audit", "response",
    ]  # fmt: skip


def test_broken_completion_audit_fails_a_success(
    service: ApprovalService,
    marker: Marker,
    at_point: AtPoint,
    broken_audit: Callable[[], None],
    mended_audit: Callable[[], None],
) -> None:
    """The action ran, its audit could not be written: failed, with the evidence, and EISDIR."""
    approval_id, token = granted(service)
    at_point({"completion_audit": broken_audit})
    with pytest.raises(IsADirectoryError):
        service.execute(approval_id, token, REQUEST, marker)
    record = service.get(approval_id)
    assert (record.status, record.execution.error_code) == ("failed", "EISDIR")
    assert (record.execution.evidence, marker.effects) == ((EVIDENCE,), 1)
    mended_audit()
    assert events(service) == ["prepared", "approved", "started"]
    assert service.resume(approval_id, REQUEST, marker).status == "succeeded"
    assert marker.effects == 2


def test_changed_digest_erases_the_memory_of_the_first_effect(
    service: ApprovalService, marker: Marker, at_point: AtPoint
) -> None:
    """Resuming with another request ends stale, and the record no longer knows what happened."""
    approval_id, token = granted(service)

    def strike() -> None:
        raise InjectedFault("completion_audit")

    at_point({"completion_audit": strike})
    assert service.execute(approval_id, token, REQUEST, marker).execution.evidence == (EVIDENCE,)
    assert refusal(lambda: service.resume(approval_id, CHANGED, marker)) == "APPROVAL_STALE"
    record = service.get(approval_id)
    assert (record.status, record.execution.status) == ("stale", "not_started")
    assert (record.execution.evidence, record.execution.error_code) == ((), None)
    assert marker.effects == 1
    assert refusal(lambda: service.resume(approval_id, REQUEST, marker)) == (
        "APPROVAL_STATE_CONFLICT"
    )


def test_succeeded_operation_is_not_resumed(service: ApprovalService, marker: Marker) -> None:
    """Normal success is consumed for both ways, and stays as it is."""
    approval_id, token = granted(service)
    done = service.execute(approval_id, token, REQUEST, marker)
    assert refusal(lambda: service.resume(approval_id, REQUEST, marker)) == (
        "APPROVAL_ALREADY_CONSUMED"
    )
    assert (service.get(approval_id), marker.effects) == (done, 1)


def test_executing_of_a_living_process_is_left_alone(
    service: ApprovalService,
    marker: Marker,
    at_point: AtPoint,
    broken_audit: Callable[[], None],
    mended_audit: Callable[[], None],
) -> None:
    """Executing is persisted, its audit is not, and the process lives on: nobody may go ahead."""
    approval_id, token = granted(service)
    at_point({"start_audit": broken_audit})
    with pytest.raises(IsADirectoryError):
        service.execute(approval_id, token, REQUEST, marker)
    mended_audit()
    record = service.get(approval_id)
    assert (record.status, record.execution.pid) == ("executing", os.getpid())
    assert refusal(lambda: service.resume(approval_id, REQUEST, marker)) == (
        "APPROVAL_STATE_CONFLICT"
    )
    assert refusal(lambda: service.execute(approval_id, token, REQUEST, marker)) == (
        "APPROVAL_ALREADY_CONSUMED"
    )
    assert (service.list(), marker.effects) == ((record,), 0)


# The registry.


def test_registry_resumes_with_the_executor_of_the_record(
    service: ApprovalService, marker: Marker
) -> None:
    """The recorded name finds its executor, which acts on the recomputed request."""
    approval = service.prepare({**REQUEST, "session_id": "session-1"})
    service.approve(approval.id, APPROVER, "needed")
    stored: list[Mapping[str, Any]] = []

    def recompute(request: Mapping[str, Any]) -> Mapping[str, Any]:
        stored.append(request)
        return {**request, "session_id": "session-2"}

    def other(request: Mapping[str, Any]) -> Mapping[str, Any]:
        raise AssertionError("the wrong executor")

    registry = ExecutorRegistry(service)
    registry.register("another", other, recompute)
    registry.register("local-marker", marker, recompute)
    record: Record = registry.resume(approval.id)
    assert (record.status, stored) == ("succeeded", [REQUEST])
    assert marker.requests == [{**REQUEST, "session_id": "session-2"}]


def test_registry_lets_a_changed_request_go_stale(service: ApprovalService, marker: Marker) -> None:
    """What is recomputed differently is stale, and is not executed."""
    approval_id, _ = granted(service)
    registry = ExecutorRegistry(service)
    registry.register("local-marker", marker, lambda _: CHANGED)
    assert refusal(lambda: registry.resume(approval_id)) == "APPROVAL_STALE"
    assert marker.effects == 0


def test_registry_refuses_an_executor_that_it_does_not_know(
    service: ApprovalService, marker: Marker
) -> None:
    """Nothing changes where the recorded name is registered under no executor of this process."""
    approval_id = failed(service)
    before = service.get(approval_id)
    registry = ExecutorRegistry(service)
    registry.register("local-marked", marker, lambda request: request)
    with pytest.raises(UnknownName, match="local-marker"):
        registry.resume(approval_id)
    assert service.get(approval_id) == before
