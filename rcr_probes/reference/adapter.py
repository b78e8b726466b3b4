"""The approval service under probe: its points, its ways to recover, and what its states say."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from typing import Literal

import msgspec

from rcr_probes import files
from rcr_probes.model import Recorded
from rcr_probes.reference.damage import damage
from rcr_probes.reference.digest import Digest, meaning_digest, request_digest
from rcr_probes.reference.dispatch import ExecutorRegistry
from rcr_probes.reference.errors import ApprovalError
from rcr_probes.reference.lapse import standing
from rcr_probes.reference.policies import EvidenceGated, bound
from rcr_probes.reference.records import (
    BESIDE,
    SUFFIX,
    Records,
    decode,
    replace_file,
)
from rcr_probes.reference.service import ADMIN, APPROVALS, LOCK, Actor
from rcr_probes.runtime import Operation, require_way
from rcr_probes.vocabulary import (
    AGAIN,
    AUDIT_FAULTS,
    AUDIT_POINTS,
    BASELINE,
    EVIDENCE_GATED,
    FENCED,
    MISSING,
    POINTS,
    POWER_LOSSES,
    Says,
)

TICKET = "ticket.json"
FSYNC = "fsync"  # the variant that flushes what it writes to the device

_PROCESS_FAULTS = frozenset({"exception", "kill", "hang", *POWER_LOSSES})
_AUDIT_FAULTS = _PROCESS_FAULTS | {*AUDIT_FAULTS, "torn_append"}
# Variant → what of a request its approval is bound to.
_DIGESTS: Mapping[str, Digest] = {BASELINE: request_digest, "meaning_digest": meaning_digest}
_RESUME = "resume"
_APPROVER = Actor("probe-admin", ADMIN)
_REASON = "The probe approves its own synthetic marker."
_COUNTED = "The effects were counted where they are."
_DECIDED_SECONDS = 3600.0  # how long a person's decision may be carried out: our choice


class Ticket(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a caller keeps between the attempts: the id, and the token where one was returned."""

    id: str
    token: str | None


_tickets = msgspec.json.Decoder(Ticket)


class ApprovalRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for the approval service."""

    points: Mapping[str, frozenset[str]] = {
        **{p: _AUDIT_FAULTS if p in AUDIT_POINTS else _PROCESS_FAULTS for p in POINTS},
        "response": _PROCESS_FAULTS | {"response_lost"},
    }
    recoveries: tuple[str, ...] = (_RESUME, EVIDENCE_GATED)
    variants: tuple[str, ...] = (*_DIGESTS, FSYNC, FENCED)
    _digested: tuple[Operation, str] | None = None
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
        service = _service(operation)
        approval = service.prepare(operation.request)
        _keep(operation, Ticket(approval.id, None))
        token = service.approve(approval.id, _APPROVER, _REASON)
        _keep(operation, Ticket(approval.id, token))
        service.execute(approval.id, token, operation.request, bound(operation))

    def recover(self, operation: Operation, way: str) -> None:
        """``again``: execute once more with what the ticket holds. ``resume``: by the registry.

        ``evidence_gated``: as the evidence allows (policies.py).

        Raises:
            UnknownName: no such way.
            ApprovalError: what the service refuses; APPROVAL_NOT_FOUND where there is no ticket.
            Exception: whatever else the caller sees.
        """
        require_way(way, self.recoveries)
        ticket = _ticket(operation)
        if ticket is None:
            raise ApprovalError("APPROVAL_NOT_FOUND", "The caller holds no ticket.")
        service = _service(operation)
        if way == AGAIN:
            service.execute(ticket.id, ticket.token, operation.request, bound(operation))
            return
        if way == EVIDENCE_GATED:
            service.recover(ticket.id, operation)
            return
        registry = ExecutorRegistry(service)
        registry.register(
            operation.executor.name, bound(operation), lambda stored: operation.request
        )
        registry.resume(ticket.id)

    def state(self, operation: Operation) -> Recorded:
        """What the record says, as it is stored. Writes nothing, reclassifies nothing.

        Raises:
            ApprovalError: APPROVAL_STORE_CORRUPT, the record or the ticket is not valid.
        """
        current = self._current(operation)
        ticket = _ticket(operation)
        if ticket is None:
            return Recorded(MISSING, current_digest=current)
        try:
            record = Records(os.path.join(operation.folder, APPROVALS)).read(ticket.id)
        except ApprovalError as error:
            if error.code == "APPROVAL_NOT_FOUND":
                return Recorded(MISSING, current_digest=current)
            raise
        return Recorded(
            status=record.status,
            execution=record.execution.status,
            evidence=record.execution.evidence,
            approved_digest=record.digest if standing(record) else None,
            current_digest=current,
        )

    def _current(self, operation: Operation) -> str:
        """The digest of the request in hand; the state is asked for at each point, and it stays."""
        known = self._digested
        if known is None or known[0] is not operation:
            self._digested = known = operation, _digest(operation)(operation.request)
        return known[1]

    def damage(self, operation: Operation, kind: str) -> tuple[str | None, int | None]:
        """Put record or audit wrong; the audit file, and how many whole lines it has then.

        Raises:
            ApprovalError: there is no record, or it cannot be read.
        """
        service = _service(operation)
        of_audit = damage(service.records, service.audit_path, _id(operation), kind)
        if not of_audit:
            return None, None
        return service.audit_path, files.read(service.audit_path).count(b"\n")

    def lock(self, operation: Operation) -> str:
        """The lock file of the operation."""
        return _service(operation).records.path(_id(operation), LOCK)

    def decide(self, operation: Operation, effect: str) -> None:
        """Enter what a person found out after recovery had stopped, for an hour.

        Raises:
            ApprovalError: as ``EvidenceGated.rule``.
        """
        found: Literal["present", "absent"] = "present" if effect == "present" else "absent"
        until = time.time() + _DECIDED_SECONDS
        _service(operation).rule(_id(operation), _APPROVER, found, _COUNTED, until)

    def files(self, operation: Operation) -> Mapping[str, str]:
        """The files whose names hold the approval's id, by what they are."""
        own = f"{APPROVALS}/{_id(operation)}"
        record = f"{own}{SUFFIX}"
        return {"record": record, "record.tmp": f"{record}{BESIDE}", "lock": f"{own}{LOCK}"}


def _digest(operation: Operation) -> Digest:
    return _DIGESTS.get(operation.variant, request_digest)


def _service(operation: Operation) -> EvidenceGated:
    """The service in the configuration that the operation names."""
    return EvidenceGated(
        operation.folder,
        digest=_digest(operation),
        durable=operation.variant == FSYNC,
        new_id=lambda: _id(operation),
    )


def _id(operation: Operation) -> str:
    """One operation has one approval here: so its files have names that can be known before."""
    return hashlib.sha256(operation.key.encode()).hexdigest()[:32]


def _keep(operation: Operation, ticket: Ticket) -> None:
    path, data = os.path.join(operation.folder, TICKET), msgspec.json.encode(ticket)
    replace_file(path, data, operation.variant == FSYNC)


def _ticket(operation: Operation) -> Ticket | None:
    path = os.path.join(operation.folder, TICKET)
    try:
        return decode(_tickets, files.read(path), path)
    except FileNotFoundError:
        return None
