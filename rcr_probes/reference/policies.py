"""Recovery by evidence: what is known decides whether to call, to repair, or to stop and say why.

The article's design direction, built on the same records and the same audit. It asks eligibility
(docs/design.md §6) under the fence: no other attempt can act while it reads and acts. What the
record says of itself is no proof of an effect, and its own word for how it ended is not asked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from rcr_probes import eligibility, fence, points, witness
from rcr_probes.model import Approved, Decision, Effect, Facts, Json, Observation, Recorded
from rcr_probes.reference import audit
from rcr_probes.reference.digest import real_target, stored
from rcr_probes.reference.errors import ApprovalError, Code
from rcr_probes.reference.lapse import standing
from rcr_probes.reference.locks import free
from rcr_probes.reference.records import NOT_STARTED, Held, Record, Ruling, Status
from rcr_probes.reference.service import ADMIN, LOCK, Act, Actor, ApprovalService, refused
from rcr_probes.runtime import Operation, askable
from rcr_probes.vocabulary import STOPPED, EffectFact
from rcr_probes.witness import Snapshot

DAMAGED = ".damaged"  # what is added to the name of a record that could not be read, and is kept

# Under these nothing was ever begun, so that no effect is theirs.
_NEVER: frozenset[Status] = frozenset({"pending_approval", "rejected", "cancelled", "expired"})
_BEGUN = frozenset({"operation.started", "operation.succeeded", "operation.reconciled"})
_DONE = frozenset({"operation.succeeded", "operation.reconciled"})


class Found(Struct, frozen=True):
    """All that recovery knows when it decides.

    Attributes:
        record: None where it cannot be read, or is not there.
        facts: identity, effect, capability.
        effects: that the witness shows; empty where it shows none.
        trail: what the audit holds.
        notes: what was wrong with record, audit and lock, as stable codes.
    """

    record: Record | None
    facts: Facts
    effects: tuple[Effect, ...]
    trail: audit.Trail
    notes: tuple[str, ...]


class EvidenceGated(ApprovalService):
    """The approval service with a recovery that acts on evidence alone."""

    def recover(self, approval_id: str, operation: Operation) -> Record:
        """Recover the operation as eligibility allows.

        Returns:
            The record as it ended: ``succeeded`` where the effect was there or was made now;
            ``verification_required`` with the reasons where nothing else was allowed; ``failed``
            where a call, or a step of its completion, failed.

        Raises:
            ApprovalError: APPROVAL_BUSY (another attempt may still act: nothing was read or
                written); APPROVAL_STALE or APPROVAL_STATE_CONFLICT (the original request was
                reconciled, and what was asked for now is another, or nobody knows);
                PRE_APPROVAL_REQUIRED or APPROVAL_STATE_CONFLICT (there is no effect, and no
                approval stands); DECISION_EXPIRED or DECISION_FOREIGN (what a person decided
                cannot be carried out).
            OSError: as of ``ApprovalService``.
        """
        last = self._alone(operation)
        if last is None:
            raise ApprovalError("APPROVAL_BUSY", "Another attempt on this operation may still act.")
        # What stands there is no living attempt's lock: the fence has proven it. Of those who make
        # no attempt (a person who rules, a look at the record) it proves nothing: while recovery
        # runs, nobody else may use the approval.
        freed = free(self.records.path(approval_id, LOCK))
        with self._lock(approval_id):
            found = self._found(approval_id, operation, last, freed)
            found, decision = self._decided(found, operation)
            if decision.eligibility == "stop":
                return self._stop(approval_id, operation, found, decision)
            if not eligibility.may_call(decision):
                return self._reconcile(found, decision, operation)
            assert found.record is not None
            if found.record.requester != "user":
                raise refused("PRE_APPROVAL_REQUIRED", found.record, "was asked for by an agent")
            way = decision.way or decision.eligibility
            record = self._begin(found.record, way)
        done = "reconciled" if decision.way == "replay" else "succeeded"
        return self._perform(record, operation.request, bound(operation), done)

    def rule(
        self,
        approval_id: str,
        actor: Actor,
        effect: Literal["present", "absent"],
        on: str,
        until: float,
    ) -> Record:
        """Enter what a person found out about an operation that was stopped.

        The next recovery carries it out, under the fence. It does not stand against evidence, nor
        for a request that is another one. While it is valid, nobody but who entered it may enter
        another: two who found out different things have to talk.

        Args:
            approval_id: whose.
            actor: who decides.
            effect: whether the approved effect is there.
            on: on what evidence.
            until: seconds since the epoch, after which it is void.

        Raises:
            ApprovalError: in this order APPROVER_NOT_AUTHORIZED; APPROVAL_REASON_REQUIRED (no
                evidence is named); DECISION_EXPIRED; APPROVAL_STATE_CONFLICT (it was not stopped,
                or another's decision on this stop is valid).
        """
        if actor.role != ADMIN:
            raise ApprovalError(
                "APPROVER_NOT_AUTHORIZED", f"{actor.name} is {actor.role}; only {ADMIN} decides."
            )
        if not on.strip():
            raise ApprovalError("APPROVAL_REASON_REQUIRED", "A decision names its evidence.")
        now = self._now()
        if until < now:
            raise ApprovalError("DECISION_EXPIRED", "A decision must be valid when it is entered.")
        with self._lock(approval_id):
            record = self.records.read(approval_id)
            if record.status != STOPPED or record.held is None:
                raise refused("APPROVAL_STATE_CONFLICT", record, "was not stopped")
            stands = record.ruling
            if (
                stands is not None
                and (stands.approval_id, stands.attempt) == (record.id, record.held.attempt)
                and stands.by != actor.name
                and now <= stands.until
            ):
                raise refused(
                    "APPROVAL_STATE_CONFLICT", record, f"has a valid decision by {stands.by}"
                )
            ruling = Ruling(
                approval_id=record.id,
                attempt=record.held.attempt,
                effect=effect,
                by=actor.name,
                on=on,
                until=until,
                at=now,
            )
            ruled = self.records.write(replace(record, ruling=ruling))
            self._tell(ruled, "decided", reasons=(f"effect_{effect}",))
        return ruled

    # What is known.

    def _alone(self, operation: Operation) -> int | None:
        """The number of the last other attempt, once none of them can act any more; else None."""
        if operation.attempts is None:
            return None
        return fence.alone(operation.attempts, operation.attempt)

    def _found(self, approval_id: str, operation: Operation, last: int, freed: bool) -> Found:
        trail = self._trail()
        record, notes = self._stored(approval_id)
        if trail.damage:
            notes = (*notes, "audit_damaged")
        if freed:
            notes = (*notes, "stale_lock")
        contradicts = record is not None and _contradicts(record, trail)
        if contradicts:
            notes = (*notes, "record_contradicts_audit")
        known = record is not None and not contradicts
        current = self._digest(operation.request)
        approved = record.digest if known and record and standing(record) else None
        # Before the witness is read: what is on its way can then not land after that.
        raised = operation.executor.raise_fence()
        seen = _snapshot(operation, last)
        facts = Facts(
            identity=eligibility.identity(
                Recorded("", approved_digest=approved, current_digest=current)
            ),
            effect=self._effect(operation, record, seen, _settled(seen, last, raised)),
            capability=operation.executor.declares,
        )
        return Found(record, facts, seen.effects or (), trail, notes)

    def _effect(
        self, operation: Operation, record: Record | None, seen: Snapshot, settled: bool
    ) -> EffectFact:
        """The effect fact: ``absent`` and ``partial`` of a settled attempt alone."""
        request = operation.request if record is None else record.request
        target = str(real_target(request))
        approved = Approved(operation.key, target, operation.executor.effects)
        observed = Observation("fault", 0, Recorded(""), seen.effects, None, settled=settled)
        return eligibility.effect(approved, observed)

    def _trail(self) -> audit.Trail:
        try:
            return audit.read(self.audit_path)
        except OSError as error:
            return audit.Trail((), (f"{os.path.basename(self.audit_path)}: {error.strerror}",))

    def _stored(self, approval_id: str) -> tuple[Record | None, tuple[str, ...]]:
        try:
            record = self.records.read(approval_id)
        except ApprovalError as error:
            missing = error.code == "APPROVAL_NOT_FOUND"
            return None, ("record_missing" if missing else "record_damaged",)
        aside = os.path.exists(self.records.path(approval_id) + DAMAGED)
        return record, ("record_damaged",) if aside else ()

    # What is decided.

    def _decided(self, found: Found, operation: Operation) -> tuple[Found, Decision]:
        """The decision, once whoever can be asked was asked: the executor, then a person."""
        decision = eligibility.decide(found.facts)
        if decision.way == "lookup":
            found = replace(found, facts=_looked_up(operation, found.facts))
            decision = eligibility.decide(found.facts)
        if decision.eligibility == "stop" and found.facts.effect == "unknown":
            decision = self._ruled(found) or decision
        record = found.record
        if record is None or record.decided_by is None or record.status in _NEVER:
            # There is no record of an approval that a call could be under, or that could be
            # repaired: whatever exists, a person has to look.
            decision = Decision("stop", None, decision.reasons)
        return found, decision

    def _ruled(self, found: Found) -> Decision | None:
        """What a person decided of this stop, as a decision; None where nobody did.

        It speaks of the effect alone: a call still needs an identity that is valid.
        """
        record = found.record
        if record is None or record.status != STOPPED or record.ruling is None:
            return None
        ruling = record.ruling
        assert record.held is not None
        if (ruling.approval_id, ruling.attempt) != (record.id, record.held.attempt):
            raise refused("DECISION_FOREIGN", record, "was not what that decision is about")
        if ruling.until < self._now():
            raise refused("DECISION_EXPIRED", record, "has a decision that is void by now")
        decision = eligibility.decide(Facts(found.facts.identity, ruling.effect, ()))
        return Decision(
            decision.eligibility, decision.way, (*decision.reasons, "decided_by_person")
        )

    # What is done. All under the lock.

    def _reconcile(self, found: Found, decision: Decision, operation: Operation) -> Record:
        """Repair record and audit, and call nothing."""
        record = found.record
        assert record is not None
        # Present means so many as one call makes: a look-up, or a person, says no more than that.
        count = len(found.effects) or operation.executor.effects
        shown: dict[str, Json] = {"kind": record.executor, "observed_count": count}
        execution = replace(
            record.execution,
            status="succeeded",
            pid=None,
            evidence=record.execution.evidence or (shown,),
            error_code=None,
        )
        repaired = replace(
            record, status="succeeded", execution=execution, token_sha256=None, consumed=True
        )
        told = [line.event for line in found.trail.lines if line.approval_id == record.id]
        reported = found.trail.damage and "operation.reconciled" not in told
        if repaired != record or reported or not _DONE.intersection(told):
            self.records.write(repaired)
            points.reach("after_result")
            reasons = (*decision.reasons, *found.notes)
            self._tell(repaired, "reconciled", "completion_audit", reasons=reasons)
        points.reach("response")
        if found.facts.identity == "changed":
            raise refused("APPROVAL_STALE", repaired, "was approved for another request")
        if found.facts.identity == "unknown":
            raise refused("APPROVAL_STATE_CONFLICT", repaired, "may be of another request")
        return repaired

    def _stop(
        self, approval_id: str, operation: Operation, found: Found, decision: Decision
    ) -> Record:
        """Persist that this needs a person, and why."""
        record, reasons = found.record, (*decision.reasons, *found.notes)
        if record is None:
            record = self._set_aside(approval_id, operation)
        elif found.facts.effect == "absent" and record.status in _NEVER:
            pending = record.status == "pending_approval"
            code: Code = "PRE_APPROVAL_REQUIRED" if pending else "APPROVAL_STATE_CONFLICT"
            raise refused(code, record, "has no approval that stands")
        if record.status == STOPPED and record.held and record.held.reasons == reasons:
            return record  # a decision on this stop still answers it
        execution = record.execution
        if execution.status == "executing":
            execution = replace(execution, status="partial_failed", pid=None)
        held = Held(reasons=reasons, attempt=operation.attempt, at=self._now())
        record = self.records.write(
            replace(
                record,
                status=STOPPED,
                execution=execution,
                token_sha256=None,
                held=held,
                ruling=None,
            )
        )
        points.reach("after_result")
        self._tell(record, STOPPED, "completion_audit", reasons=reasons)
        points.reach("response")
        return record

    def _set_aside(self, approval_id: str, operation: Operation) -> Record:
        """In the place of a record that says nothing, one that nobody approved; its bytes stay."""
        path = self.records.path(approval_id)
        with suppress(FileNotFoundError, FileExistsError):
            os.link(path, path + DAMAGED)
        return Record(
            id=approval_id,
            status=STOPPED,
            execution=NOT_STARTED,
            request=stored(operation.request),
            digest=self._digest(operation.request),
            executor=operation.executor.name,
            requester="user",
            token_sha256=None,
            consumed=True,
            created_at=self._now(),
            review_by=self._now(),
            decided_by=None,
            reason=None,
            held=None,
            ruling=None,
        )


def bound(operation: Operation) -> Act:
    """The executor, bound to the operation's key."""

    def act(request: Mapping[str, Json]) -> Mapping[str, Json]:
        return operation.executor(operation.key, request)

    return act


def _snapshot(operation: Operation, last: int) -> Snapshot:
    """What the witness says to this operation, of the time up to the last other attempt."""
    if operation.witness is None:
        return witness.NOTHING
    try:
        with open(operation.witness, "rb") as file:
            return witness.snapshot(file.read(), operation.key, last)
    except OSError:
        return witness.NOTHING


def _settled(seen: Snapshot, last: int, raised: int | None) -> bool:
    """Whether what the snapshot does not show will not come any more from before it.

    It was taken when every other attempt was over, and nothing that they had sent can still land:
    nothing is in flight, or a fence was raised at the executor, which had no more effects by then.
    """
    fenced = raised is not None and seen.effects is not None and raised == len(seen.effects)
    return seen.covers == last and (fenced if raised is not None else not seen.in_flight)


def _looked_up(operation: Operation, facts: Facts) -> Facts:
    """The facts once the executor was asked under the original key; nobody asks it twice."""
    executor = operation.executor
    assert askable(executor)  # no other declares what leads here
    try:
        known = executor.look(operation.key)
        effects = None if known.in_flight else known.effects
    except Exception:  # no answer, whatever the reason, says nothing
        effects = None
    return eligibility.looked_up(facts, effects, executor.effects)


def _contradicts(record: Record, trail: audit.Trail) -> bool:
    """The audit tells that the operation was begun, and the record that it never was."""
    begun = any(e.approval_id == record.id and e.event in _BEGUN for e in trail.lines)
    return begun and not record.consumed
