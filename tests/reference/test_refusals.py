"""What the service refuses besides, and in which order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.reference import ApprovalService
from tests.reference.asked import (
    APPROVER,
    CHANGED,
    REQUEST,
    Clock,
    Marker,
    events,
    failed,
    granted,
    refusal,
    stored,
)


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
