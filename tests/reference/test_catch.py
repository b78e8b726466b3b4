"""The shared catch, and the erasing resume."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rcr_probes.errors import InjectedFault
from rcr_probes.reference import ApprovalService, audit
from tests.reference.asked import (
    CHANGED,
    EVIDENCE,
    REQUEST,
    AtPoint,
    Marker,
    events,
    granted,
    refusal,
)


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
