"""Whatever strikes an operation, and strikes its recovery, again and again: one effect at most.

Hypothesis chooses what strikes where, in real processes that really die; the witness is exact. What
is tried in each course: a second effect, a wrong one, and a call over an effect that exists.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rcr_probes import executors, faults, fence, folder, ledger, points, testimony
from rcr_probes.faults import Target
from rcr_probes.ledger import EffectLine
from rcr_probes.model import Cell
from rcr_probes.phase import operation
from rcr_probes.reference import ApprovalRuntime, approval, audit
from rcr_probes.runtime import Operation
from rcr_probes.vocabulary import AUDIT_POINTS, POINTS
from tests.recovery.broken import fence_of_others, repair_of_what_is_there

DEADLINE = 30  # seconds; a process that hangs ends by SIGALRM
ANYWHERE = [(kind, point) for kind in ("exception", "kill") for point in POINTS]
STRIKES = [*ANYWHERE, *(("audit_is_directory", point) for point in AUDIT_POINTS)]
Strike = tuple[str, str]
NOWHERE: Strike = ("none", "none")
STRUCK = st.sampled_from([NOWHERE, *STRIKES])


class Course(RuleBasedStateMachine):
    """One operation, from its start through as many recoveries as it takes."""

    runtime: ApprovalRuntime = approval()

    @initialize(dedupe=st.sampled_from(("none", "operation_key")), struck=STRUCK)
    def start(self, dedupe: str, struck: Strike) -> None:
        """Begin the operation; something may strike it."""
        self.folder = Path(tempfile.mkdtemp(prefix="course-"))
        self.place = str(self.folder / "cell")
        self.cell = Cell(point="none", fault="none", dedupe=dedupe, policy="evidence_gated")
        folder.make(self.place, self.cell)
        self.phase("fault", struck)

    @rule(struck=STRUCK)
    def recover(self, struck: Strike) -> None:
        """Recover it; something may strike that too."""
        self.phase("recover", struck)

    @precondition(lambda self: self.approved())
    @rule(point=st.sampled_from(POINTS))
    def recover_beside_a_recoverer_that_stays(self, point: str) -> None:
        """One stands still on its way; another one must leave everything as it is."""
        self.testify()
        told, tell = os.pipe()
        pid = self.begin("recover", ("hold", point), tell)
        os.close(tell)
        os.read(told, 1)  # it stands at its point, or has come to its end
        os.close(told)
        standing = os.waitpid(pid, os.WNOHANG) == (0, 0)
        before = self.stored()
        if standing:
            self.phase("recover", NOWHERE)
            assert self.stored() == before
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self.harmless()

    def teardown(self) -> None:
        """Left alone, recovery brings every approved operation to its one effect."""
        if not hasattr(self, "folder"):
            return
        try:
            if self.approved():
                self.phase("recover", NOWHERE)
                assert len(self.effects()) == 1
                assert self.runtime.state(self.operation(0)).status == "succeeded"
        finally:
            shutil.rmtree(self.folder)

    # What is done.

    def phase(self, verb: str, struck: Strike) -> None:
        """Run one phase to its end, and look whether it did any harm."""
        self.testify()
        existed, begun = self.effects(), self.reexecutions()
        pid = self.begin(verb, struck, None)
        _, status = os.waitpid(pid, 0)
        assert not os.WIFSIGNALED(status) or struck[0] == "kill"
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        if struck[0] == "audit_is_directory":
            at = Target(struck[1], self.audit(), self.runtime, self.operation(0))
            faults.KINDS[struck[0]].lift(at)
        assert not (existed and self.reexecutions() > begun), "absent was said of what was there"
        self.harmless()

    def harmless(self) -> None:
        found = [effect.target for effect in self.effects()]
        assert found in ([], ["marker-0"])

    def testify(self) -> None:
        testimony.testify(self.place, self.cell, in_flight=False)

    def begin(self, verb: str, struck: Strike, tell: int | None) -> int:
        """Fork a phase: it comes to its points, and is struck, or stays, at one of them."""
        pid = os.fork()
        if pid:
            return pid
        try:
            signal.alarm(DEADLINE)
            attempt = fence.enter(os.path.join(self.place, folder.ATTEMPTS)).number
            given = self.operation(attempt, verb)
            kind, point = struck

            def reached(name: str, path: str | None) -> None:
                if name != point:
                    return
                points.watch(None)
                if kind == "hold":
                    assert tell is not None
                    os.write(tell, b".")
                    signal.pause()
                at = Target(name, path, self.runtime, given)
                faults.KINDS[kind].strike(at, lambda error: None)

            points.watch(reached)
            try:
                if verb == "fault":
                    self.runtime.start(given)
                else:
                    self.runtime.recover(given, "evidence_gated")
            except Exception:  # what its caller saw is not asked here
                pass
            os._exit(0)
        finally:
            os._exit(3)

    # What there is.

    def operation(self, attempt: int, verb: str = "recover") -> Operation:
        made = executors.make(self.place, self.cell.dedupe, lambda lane, value: None)
        return operation(self.cell, self.place, verb, made, attempt)

    def effects(self) -> tuple[EffectLine, ...]:
        read = ledger.read(os.path.join(self.place, folder.EFFECTS), EffectLine)
        assert not read.damage
        return read.lines

    def audit(self) -> str:
        return os.path.join(self.place, folder.RUNTIME, "audit.jsonl")

    def reexecutions(self) -> int:
        return sum(line.way == "reexecute" for line in audit.read(self.audit()).lines)

    def approved(self) -> bool:
        """Whether somebody holds a ticket for an operation that was approved."""
        status = self.runtime.state(self.operation(0)).status
        return status not in ("missing", "pending_approval")

    def stored(self) -> dict[str, bytes]:
        private = Path(self.place, folder.RUNTIME)
        return {str(p): p.read_bytes() for p in private.rglob("*") if p.is_file()}


SETTINGS = settings(
    max_examples=25,
    stateful_step_count=5,
    suppress_health_check=[HealthCheck.too_slow],
)
Course.TestCase.settings = SETTINGS
TestNoCourseMakesASecondEffect = Course.TestCase


@pytest.mark.parametrize("broken", [repair_of_what_is_there, fence_of_others])
def test_the_search_can_fail(broken: Callable[[], ApprovalRuntime]) -> None:
    """A policy that lacks a part is found out by the courses that are tried."""

    class Broken(Course):
        runtime = broken()

    found = settings(SETTINGS, phases=[Phase.generate], derandomize=True, database=None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Broken, settings=found)
