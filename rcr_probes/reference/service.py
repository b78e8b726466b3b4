"""The approval service: who may do what, and in which order it is checked, persisted and audited.

Every transition is read, checked, persisted and audited under the lock of its approval; the action
itself runs outside it. Record and audit are two files: a failure between them splits them, and
that is what the probes look at. Where the publication is silent, "our choice" marks the rule.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from rcr_probes import points
from rcr_probes.errors import code_of
from rcr_probes.model import Json
from rcr_probes.reference import audit
from rcr_probes.reference.digest import Digest, request_digest, stored
from rcr_probes.reference.errors import ApprovalError, Code
from rcr_probes.reference.lapse import lapsed, usable
from rcr_probes.reference.locks import Lock
from rcr_probes.reference.records import (
    NOT_STARTED,
    Execution,
    Record,
    Records,
    Requester,
    Status,
    sync_folder,
)

APPROVALS = "approvals"
AUDIT = "audit.jsonl"
LOCK = ".lock"
ADMIN = "ADMIN"

REVIEW_SECONDS = 24 * 3600.0
"""How long a pending approval waits for its review: our choice."""
COMPLETION_PATIENCE = 1.0
"""Seconds for which a step after the action goes on trying its lock: our choice. Every other step
tries once. The action has run; giving up at once would lose its result to whoever is just being
told that it was consumed."""

RESUMABLE: tuple[Status, ...] = ("approved", "failed")

Act = Callable[[Mapping[str, Json]], Mapping[str, Json]]
"""Performs the action of a request, and returns evidence of it."""


class Actor(Struct, frozen=True):
    """Who decides: a name, and the role in which they do."""

    name: str
    role: str


class ApprovalService:
    """Approvals of one store, and the operations that run under them.

    Errors that its methods share: ``ApprovalError`` with APPROVAL_NOT_FOUND, APPROVAL_BUSY (the
    lock is taken, or was left behind by a process that was killed) or APPROVAL_STORE_CORRUPT; and
    the OSError of an audit line that could not be appended: what it would have told is persisted
    by then.

    Args:
        folder: holds the records, their locks and the audit file.
        now: the clock, seconds since the epoch.
        review_seconds: how long a new approval may wait for its review.
        completion_patience: seconds for which a step after the action goes on trying its lock.
        digest: what of a request its approval is bound to.
        durable: whether record and audit are flushed to the device, and their names with them.
        new_id: names a new approval: 32 hexadecimal digits that no other one has.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        now: Callable[[], float] = time.time,
        review_seconds: float = REVIEW_SECONDS,
        completion_patience: float = COMPLETION_PATIENCE,
        digest: Digest = request_digest,
        durable: bool = False,
        new_id: Callable[[], str] = lambda: os.urandom(16).hex(),
    ) -> None:
        self.records = Records(os.path.join(folder, APPROVALS), durable)
        self.audit_path = os.path.join(folder, AUDIT)
        self._now = now
        self._review_seconds = review_seconds
        self._patience = completion_patience
        self._digest = digest
        self._new_id = new_id
        with suppress(FileExistsError):
            os.mkdir(self.records.folder, 0o700)
            if durable:
                sync_folder(os.fspath(folder))

    def prepare(self, request: Mapping[str, Json], requester: Requester = "user") -> Record:
        """Ask for approval. Nothing is done yet.

        A request that already has an approval, pending or granted and unused, gets that one.
        That an approval is shared only among requesters of one kind is our choice: an agent
        must not come to hold what was granted to a user.

        Args:
            request: a JSON object; its ``executor`` names the executor.
            requester: ``user`` or ``agent``.

        Raises:
            ValueError: the request is not JSON, or names no executor.
        """
        name = request.get("executor")
        if not isinstance(name, str) or not name:
            raise ValueError("a request names its executor, as a string: {'executor': …}")
        digest = self._digest(request)
        with Lock(os.path.join(self.records.folder, "prepare.lock")):
            now = self._now()
            for known in self.records.all():
                if known.digest == digest and known.requester == requester and usable(known, now):
                    return known
            record = Record(
                id=self._new_id(),
                status="pending_approval",
                execution=NOT_STARTED,
                request=stored(request),
                digest=digest,
                executor=name,
                requester=requester,
                token_sha256=None,
                consumed=False,
                created_at=now,
                review_by=now + self._review_seconds,
                decided_by=None,
                reason=None,
                held=None,
                ruling=None,
            )
            self._commit(record, "prepared")
        return record

    def approve(self, approval_id: str, actor: Actor, reason: str) -> str:
        """Grant a pending approval, and return the token that executes it once.

        Raises:
            ApprovalError: APPROVER_NOT_AUTHORIZED, APPROVAL_REASON_REQUIRED,
                APPROVAL_NOT_PENDING, in this order (our choice).
        """
        token = os.urandom(32).hex()
        self._decide(approval_id, "approved", actor, reason, token)
        return token

    def reject(self, approval_id: str, actor: Actor, reason: str) -> None:
        """Refuse a pending approval. It takes what an approval takes (our choice).

        Raises:
            ApprovalError: as ``approve``.
        """
        self._decide(approval_id, "rejected", actor, reason, None)

    def cancel(self, approval_id: str) -> None:
        """Withdraw a request that is still pending (our choice: not one that was approved).

        Raises:
            ApprovalError: APPROVAL_NOT_PENDING.
        """
        with self._lock(approval_id):
            record = self._pending(approval_id)
            self._commit(replace(record, status="cancelled"), "cancelled")

    def execute(
        self, approval_id: str, token: str | None, request: Mapping[str, Json], executor: Act
    ) -> Record:
        """Run an approved operation under its one-use token.

        Returns:
            The record as it ended: ``succeeded``, or ``failed`` where the action or a step of its
            completion failed and that could be recorded.

        Raises:
            ValueError: the request is not JSON; nothing was changed.
            ApprovalError: in this order (our choice) APPROVAL_ALREADY_CONSUMED;
                PRE_APPROVAL_REQUIRED (still pending) or APPROVAL_STATE_CONFLICT (not approved);
                PRE_APPROVAL_REQUIRED (no token); APPROVAL_TOKEN_INVALID; APPROVAL_STALE.
        """
        digest = self._digest(request)  # a request that is not JSON is refused before all else
        with self._lock(approval_id):
            record = self._current(approval_id)
            if record.consumed:
                raise refused("APPROVAL_ALREADY_CONSUMED", record, "was executed before")
            if record.status == "pending_approval":
                raise refused("PRE_APPROVAL_REQUIRED", record, "waits for its review")
            if record.status != "approved":
                raise refused("APPROVAL_STATE_CONFLICT", record, "cannot be executed")
            if token is None:
                raise refused("PRE_APPROVAL_REQUIRED", record, "is executed with its token alone")
            # Both sides are SHA-256 of a random token, so comparing them leaks nothing of use.
            if _sha256(token) != record.token_sha256:
                raise refused("APPROVAL_TOKEN_INVALID", record, "was approved with another token")
            self._require_same(record, digest)
            record = self._begin(record, "execute")
        return self._perform(record, request, executor)

    def resume(self, approval_id: str, request: Mapping[str, Json], executor: Act) -> Record:
        """Run a user's approved or failed operation without its token, and without a new approval.

        The execution block is reset before anything else is asked, so that what it held of an
        earlier attempt is gone also where the digest then turns out to have changed. That a
        failed operation is taken for one that may be called again is the mechanism under study.

        Returns:
            As ``execute``.

        Raises:
            ValueError: the request is not JSON; nothing was changed.
            ApprovalError: in this order (our choice) PRE_APPROVAL_REQUIRED (an agent's);
                APPROVAL_ALREADY_CONSUMED (succeeded) or APPROVAL_STATE_CONFLICT (neither
                approved nor failed); APPROVAL_STALE.
        """
        digest = self._digest(request)
        with self._lock(approval_id):
            record = self._current(approval_id)
            if record.requester != "user":
                raise refused("PRE_APPROVAL_REQUIRED", record, "was asked for by an agent")
            if record.status == "succeeded":
                raise refused("APPROVAL_ALREADY_CONSUMED", record, "has succeeded")
            if record.status not in RESUMABLE:
                raise refused("APPROVAL_STATE_CONFLICT", record, "cannot be resumed")
            record = self.records.write(replace(record, execution=NOT_STARTED))
            self._require_same(record, digest)
            record = self._begin(record, "resume")
        return self._perform(record, request, executor)

    def get(self, approval_id: str) -> Record:
        """The approval as it stands now.

        An ``executing`` one whose process is dead becomes ``partial_failed``, and a pending one
        past its review time ``expired``; that is persisted and audited first.
        """
        record = self.records.read(approval_id)
        if lapsed(record, self._now()) is None:
            return record
        with self._lock(approval_id):
            return self._current(approval_id)

    def list(self) -> tuple[Record, ...]:
        """Every approval as it stands now (see ``get``), the oldest first.

        One that is damaged, or that has lapsed while its lock is taken, raises: a list without it
        would say that there is no such approval.
        """
        return tuple(self.get(record.id) for record in self.records.all())

    # What the methods above are made of. All but _perform are called under the lock.

    def _lock(self, approval_id: str, patience: float = 0.0) -> Lock:
        return Lock(self.records.path(approval_id, LOCK), patience)

    def _commit(
        self,
        record: Record,
        event: str,
        point: str | None = None,
        way: str | None = None,
    ) -> Record:
        """Persist, then audit: the order that leaves a gap between the two."""
        self.records.write(record)
        self._tell(record, event, point, way)
        return record

    def _tell(
        self,
        record: Record,
        event: str,
        point: str | None = None,
        way: str | None = None,
        reasons: tuple[str, ...] = (),
    ) -> None:
        ruling = record.ruling if event == "decided" else None
        line = audit.AuditLine(
            event=f"operation.{event}",
            approval_id=record.id,
            at=self._now(),
            way=way,
            code=record.execution.error_code,
            reasons=reasons,
            by=ruling.by if ruling else None,
            on=ruling.on if ruling else None,
            until=ruling.until if ruling else None,
        )
        audit.append(self.audit_path, line, point, self.records.durable)

    def _current(self, approval_id: str) -> Record:
        """The record, once what time and death have done to it is persisted and audited."""
        record = self.records.read(approval_id)
        turned = lapsed(record, self._now())
        return record if turned is None else self._commit(turned, turned.status)

    def _pending(self, approval_id: str) -> Record:
        record = self._current(approval_id)
        if record.status != "pending_approval":
            raise refused("APPROVAL_NOT_PENDING", record, "waits for no review")
        return record

    def _decide(
        self, approval_id: str, status: Status, actor: Actor, reason: str, token: str | None
    ) -> None:
        if actor.role != ADMIN:
            raise ApprovalError(
                "APPROVER_NOT_AUTHORIZED", f"{actor.name} is {actor.role}; only {ADMIN} decides."
            )
        if not reason.strip():
            raise ApprovalError("APPROVAL_REASON_REQUIRED", "A decision needs a reason.")
        with self._lock(approval_id):
            decided = replace(
                self._pending(approval_id),
                status=status,
                token_sha256=None if token is None else _sha256(token),
                decided_by=actor.name,
                reason=reason,
            )
            self._commit(decided, status, "approval_audit" if status == "approved" else None)

    def _require_same(self, record: Record, digest: str) -> None:
        if digest == record.digest:
            return
        record = replace(record, status="stale", token_sha256=None)
        self._commit(record, "stale")
        raise refused("APPROVAL_STALE", record, "was approved for another request")

    def _begin(self, record: Record, way: str) -> Record:
        executing = Execution(status="executing", pid=os.getpid(), evidence=(), error_code=None)
        record = replace(
            record, status="executing", execution=executing, token_sha256=None, consumed=True
        )
        return self._commit(record, "started", "start_audit", way)

    def _perform(
        self,
        record: Record,
        request: Mapping[str, Json],
        executor: Act,
        done: str = "succeeded",
    ) -> Record:
        """Call the executor, and complete; ``done`` is what the audit then says of it.

        One catch serves the action and its bookkeeping alike: where only the completion failed,
        an action that took effect becomes ``failed`` all the same.
        """
        try:
            points.reach("before_action")
            evidence = executor(request)
            points.reach("after_action")
            record = self._complete(record, evidence, done)
        except Exception as error:
            return self._fail(record.id, error)
        points.reach("response")
        return record

    def _complete(self, record: Record, evidence: Mapping[str, Json], event: str) -> Record:
        # While this process lives, nobody else may change an executing record: what was persisted
        # last still stands, and need not be read again.
        done = Execution(status="succeeded", pid=None, evidence=(dict(evidence),), error_code=None)
        with self._lock(record.id, self._patience):
            record = self.records.write(replace(record, status="succeeded", execution=done))
            points.reach("after_result")
            self._tell(record, event, "completion_audit")
        return record

    def _fail(self, approval_id: str, error: Exception) -> Record:
        with self._lock(approval_id, self._patience):
            record = self.records.read(approval_id)  # how far the completion came
            execution = replace(
                record.execution, status="failed", pid=None, error_code=code_of(error)
            )
            return self._commit(replace(record, status="failed", execution=execution), "failed")


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def refused(code: Code, record: Record, why: str) -> ApprovalError:
    """What is raised where an operation, as it stands, may not have what is asked."""
    return ApprovalError(code, f"The operation {record.id} ({record.status}) {why}.")
