"""The approval service under probe: its points, its ways to recover, and what its states say."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from rcr_probes.errors import UnknownName
from rcr_probes.model import AUDIT_POINTS, POINTS, Json, Recorded, Says
from rcr_probes.reference.digest import request_digest
from rcr_probes.reference.dispatch import ExecutorRegistry
from rcr_probes.reference.errors import ApprovalError
from rcr_probes.reference.records import Records, Status, decode, read_file, replace_file
from rcr_probes.reference.service import ADMIN, APPROVALS, Act, Actor, ApprovalService
from rcr_probes.runtime import Operation

TICKET = "ticket.json"

_PROCESS_FAULTS = frozenset({"exception", "kill"})
_AUDIT_FAULTS = _PROCESS_FAULTS | {"audit_is_directory"}
_AGAIN = "again"
_RESUME = "resume"
_APPROVER = Actor("probe-admin", ADMIN)
_REASON = "The probe approves its own synthetic marker."

# No approval stands in these: not yet, no more, or not for the request in hand.
_NOT_STANDING: frozenset[Status] = frozenset(
    {"pending_approval", "rejected", "cancelled", "expired", "stale"}
)


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a caller keeps between the attempts: the id, and the token where one was returned."""

    id: str
    token: str | None


_tickets = msgspec.json.Decoder(Ticket)


class ApprovalRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for the approval service."""

    points: Mapping[str, frozenset[str]] = {
        point: _AUDIT_FAULTS if point in AUDIT_POINTS else _PROCESS_FAULTS for point in POINTS
    }
    recoveries: tuple[str, ...] = (_RESUME,)
    # A state says not_done only where the executor cannot have been called. ``failed`` is open:
    # the shared catch (service._perform) writes it over an action that took effect, too.
    says: Mapping[str, Says] = {
        "succeeded": "done",
        "pending_approval": "not_done",
        "approved": "not_done",
        "rejected": "not_done",
        "cancelled": "not_done",
        "expired": "not_done",
        "executing": "open",
        "failed": "open",
        "partial_failed": "open",
        "stale": "open",
        "verification_required": "open",
    }

    def start(self, operation: Operation) -> None:
        """Prepare, approve as an ADMIN, execute.

        What a caller learns goes to its ticket as soon as it is learned.

        Raises:
            Exception: what the caller sees. A failure that the service records and returns is
                none.
        """
        service = ApprovalService(operation.folder)
        approval = service.prepare(operation.request)
        _keep(operation, Ticket(approval.id, None))
        token = service.approve(approval.id, _APPROVER, _REASON)
        _keep(operation, Ticket(approval.id, token))
        service.execute(approval.id, token, operation.request, _act(operation))

    def recover(self, operation: Operation, way: str) -> None:
        """``again``: execute once more with what the ticket holds. ``resume``: by the registry.

        Raises:
            UnknownName: no such way.
            ApprovalError: what the service refuses; APPROVAL_NOT_FOUND where there is no ticket.
            Exception: whatever else the caller sees.
        """
        if way not in (_AGAIN, *self.recoveries):
            raise UnknownName("way to recover", way, (_AGAIN, *self.recoveries))
        ticket = _ticket(operation)
        if ticket is None:
            raise ApprovalError("APPROVAL_NOT_FOUND", "The caller holds no ticket.")
        service = ApprovalService(operation.folder)
        if way == _AGAIN:
            service.execute(ticket.id, ticket.token, operation.request, _act(operation))
            return
        registry = ExecutorRegistry(service)
        registry.register(
            operation.executor.name, _act(operation), lambda stored: operation.request
        )
        registry.resume(ticket.id)

    def state(self, operation: Operation) -> Recorded:
        """What the record says, as it is stored. Writes nothing, reclassifies nothing.

        Raises:
            ApprovalError: APPROVAL_STORE_CORRUPT, the record or the ticket is not valid.
        """
        current = request_digest(operation.request)
        ticket = _ticket(operation)
        if ticket is None:
            return Recorded("missing", current_digest=current)
        try:
            record = Records(os.path.join(operation.folder, APPROVALS)).read(ticket.id)
        except ApprovalError as error:
            if error.code == "APPROVAL_NOT_FOUND":
                return Recorded("missing", current_digest=current)
            raise
        return Recorded(
            status=record.status,
            execution=record.execution.status,
            evidence=record.execution.evidence,
            approved_digest=None if record.status in _NOT_STANDING else record.digest,
            current_digest=current,
        )


def _act(operation: Operation) -> Act:
    """The executor, bound to the operation's key."""

    def act(request: Mapping[str, Json]) -> Mapping[str, Json]:
        return operation.executor(operation.key, request)

    return act


def _keep(operation: Operation, ticket: Ticket) -> None:
    replace_file(os.path.join(operation.folder, TICKET), msgspec.json.encode(ticket))


def _ticket(operation: Operation) -> Ticket | None:
    path = os.path.join(operation.folder, TICKET)
    try:
        return decode(_tickets, read_file(path), path)
    except FileNotFoundError:
        return None
