"""A request, its executor and a clock that tests move, and what the service makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.reference import ADMIN, CODES, Actor, ApprovalError, ApprovalService, audit

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
