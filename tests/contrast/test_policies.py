"""The audit-failure policies, in one process: what each keeps when its audit is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes import points
from rcr_probes.contrast.policies import KINDS, POLICIES, runtime
from rcr_probes.contrast.store import AuditFailed, Refused
from rcr_probes.errors import UnknownName
from rcr_probes.model import Recorded
from rcr_probes.runtime import Operation
from tests.contrast.conftest import Executor, asked

VARIANTS = runtime().variants
# Before which point a refusal comes that meets the audit of a policy.
AUDITED_FIRST = {"audit_first": "start_audit"}


def refused(operation: Operation) -> str:
    """Run it with its audit refused, and say what its caller saw."""
    policy = operation.variant.rpartition("_")[0]
    refusal = runtime().refusal(operation)

    def reached(name: str, path: str | None) -> None:
        if name == AUDITED_FIRST.get(policy, "after_action"):
            refusal.place()

    points.watch(reached)
    try:
        runtime().start(operation)
    except (AuditFailed, Refused) as error:
        return error.code
    finally:
        points.watch(None)
        refusal.lift()
    return "none"


def audit(seen: Recorded) -> list[str]:
    return [str(one["audit"]) for one in seen.evidence or () if "audit" in one]


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_a_fault_all_policies_do_the_same(
    tmp_path: Path, executor: Executor, variant: str
) -> None:
    """One effect, the setting on, one row of the audit; once more is refused."""
    operation = asked(tmp_path, variant, executor)
    runtime().start(operation)
    seen = runtime().state(operation)
    assert (seen.status, audit(seen), executor.called) == ("done", ["changed"], ["key-1"])
    assert (seen.evidence or ())[0] == {"setting": "on", "generation": 1}
    assert seen.approved_digest == seen.current_digest
    with pytest.raises(Refused) as caught:
        runtime().recover(operation, "again")
    assert caught.value.code == "ALREADY_DONE"
    assert executor.called == ["key-1"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_refused_audit_is_met_by_every_policy(
    tmp_path: Path, executor: Executor, variant: str
) -> None:
    """Each caller or each log tells of it, and no row that says so was written."""
    operation = asked(tmp_path, variant, executor)
    told = refused(operation)
    seen = runtime().state(operation)
    assert audit(seen) == []
    logged = {"log": "AUDIT_FAILED"} in (seen.evidence or ())
    assert (told == "AUDIT_FAILED") != logged
    assert logged == variant.startswith("side_path")


@pytest.mark.parametrize("policy", ["rollback", "fail_closed"])
def test_what_is_ones_own_is_rolled_back_and_what_has_left_is_not(
    tmp_path: Path, executor: Executor, policy: str
) -> None:
    """The setting is off in both kinds; the effect that has left is still there."""
    for kind in KINDS:
        folder = tmp_path / kind
        folder.mkdir()
        refused(asked(folder, f"{policy}_{kind}", executor))
        seen = runtime().state(asked(folder, f"{policy}_{kind}", executor))
        assert (seen.evidence or ())[0]["setting"] == "off"
    assert executor.called == ["key-1"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_started_and_not_resolved_is_not_started_again(
    tmp_path: Path, executor: Executor, policy: str
) -> None:
    """Where the policy marks it; the others do not know that it was started."""
    operation = asked(tmp_path, f"{policy}_irreversible", executor)

    class Died(BaseException):
        """Nothing of the service is run after it, as after a kill."""

    def reached(name: str, path: str | None) -> None:
        if name == "after_action":
            raise Died

    points.watch(reached)
    try:
        with pytest.raises(Died):
            runtime().start(operation)
    finally:
        points.watch(None)
    marked = policy in ("shared_catch", "fail_closed")
    assert runtime().state(operation).status == ("started" if marked else "missing")
    if marked:
        with pytest.raises(Refused) as caught:
            runtime().recover(operation, "again")
        assert caught.value.code == "UNRESOLVED"
    else:
        runtime().recover(operation, "again")
    assert len(executor.called) == (1 if marked else 2)


def test_a_newer_change_is_not_overwritten_by_a_rollback(
    tmp_path: Path, executor: Executor
) -> None:
    """The generation that the change stamped is not the one that stands."""
    operation = asked(tmp_path, "rollback_reversible", executor)
    refusal = runtime().refusal(operation)
    other = Operation("key-2", operation.request, tmp_path, Executor(), operation.variant)

    def reached(name: str, path: str | None) -> None:
        if name == "after_action":
            points.watch(None)
            runtime().start(other)
            refusal.place()

    points.watch(reached)
    try:
        with pytest.raises(AuditFailed):
            runtime().start(operation)
    finally:
        points.watch(None)
    seen = runtime().state(other)
    assert seen.status == "done"
    assert (seen.evidence or ())[0] == {"setting": "on", "generation": 2}


def test_only_again_recovers(tmp_path: Path, executor: Executor) -> None:
    """There is no other way, and nothing is done."""
    with pytest.raises(UnknownName):
        runtime().recover(asked(tmp_path, VARIANTS[0], executor), "resume")
    assert executor.called == []
