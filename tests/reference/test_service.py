"""The controls that the reference keeps: what is approved is what is done, once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes.reference import Actor, ApprovalService, audit
from tests.reference.asked import (
    APPROVER,
    CHANGED,
    EVIDENCE,
    REQUEST,
    Clock,
    Marker,
    events,
    failed,
    granted,
    refusal,
    stored,
)


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
