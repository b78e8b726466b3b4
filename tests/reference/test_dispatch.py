"""The registry resumes with the executor of the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from rcr_probes.errors import UnknownName
from rcr_probes.reference import ApprovalService
from rcr_probes.reference.dispatch import ExecutorRegistry
from rcr_probes.reference.records import Record
from tests.reference.asked import (
    APPROVER,
    CHANGED,
    REQUEST,
    Marker,
    failed,
    granted,
    refusal,
)


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
