"""The approval service behind the contract of a runtime: every point, every fault, every way."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from rcr_probes import points
from rcr_probes.errors import InjectedFault, UnknownName
from rcr_probes.model import Recorded
from rcr_probes.reference import ApprovalError, ApprovalRuntime, ApprovalService, approval
from rcr_probes.reference.digest import request_digest
from rcr_probes.reference.records import Status
from rcr_probes.runtime import SEAMS, Operation, load
from rcr_probes.vocabulary import FAULT_POINTS, POINTS, REFERENCE, Says

Child = Callable[[Callable[[], object]], tuple[str, Any]]

REQUEST = {
    "executor": "local-marker",
    "action": "append",
    "target": "marker-0",
    "session_id": "session-1",
}
AGAIN = {**REQUEST, "session_id": "session-2"}
CHANGED = {**AGAIN, "target": "marker-1"}
CONSUMED = "APPROVAL_ALREADY_CONSUMED"
CONFLICT = "APPROVAL_STATE_CONFLICT"
BUSY = "APPROVAL_BUSY"


class MarkerExecutor:
    """Appends the operation key to a file outside the runtime's folder."""

    name = "local-marker"
    declares: tuple[str, ...] = ()
    effects = 1

    def __init__(self, path: Path) -> None:
        self.path = path

    def raise_fence(self) -> None:
        """Its calls carry no fencing tokens."""

    def __call__(self, operation_key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        with self.path.open("a") as file:
            file.write(f"{operation_key}\n")
        return {"kind": "local-marker", "observed_count": self.made}

    @property
    def made(self) -> int:
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0


@pytest.fixture
def runtime() -> ApprovalRuntime:
    return approval()


@pytest.fixture
def operation(tmp_path: Path) -> Operation:
    return asked(tmp_path, REQUEST)


def asked(tmp_path: Path, request: Mapping[str, Any]) -> Operation:
    """One operation of this test, with the request as it is in hand."""
    folder = tmp_path / "runtime 运行时"
    folder.mkdir(exist_ok=True)
    return Operation("key-1", request, folder, MarkerExecutor(tmp_path / "effects"))


def seen_by_caller(work: Callable[[], object]) -> str:
    try:
        work()
    except (ApprovalError, InjectedFault) as error:
        return error.code
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "none"


def under(fault: str, point: str, work: Callable[[], object]) -> Callable[[], object]:
    """The work, in a process where the fault strikes at the point once."""

    def strike(path: str | None) -> None:
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "exception":
            raise InjectedFault(point)
        assert path is not None
        os.rename(path, f"{path}.saved")
        os.mkdir(path)

    def reached(name: str, path: str | None) -> None:
        if name == point:
            points.watch(None)
            strike(path)

    def armed() -> object:
        points.watch(reached)
        return seen_by_caller(work)

    return armed


def mend(folder: Path) -> None:
    audit = folder / "audit.jsonl"
    if audit.is_dir():
        audit.rmdir()
        (folder / "audit.jsonl.saved").rename(audit)


def test_factory_makes_a_runtime() -> None:
    """The name that plans use loads something that keeps the contract."""
    runtime = load(REFERENCE)
    assert load(REFERENCE).points == runtime.points
    assert isinstance(runtime, ApprovalRuntime)
    assert runtime.recoveries == ("resume", "evidence_gated")


def test_faults_are_declared_for_all_seven_points(runtime: ApprovalRuntime) -> None:
    """Every kind that can strike at a point does, but those for which a runtime needs a seam."""
    assert tuple(runtime.points) == POINTS
    for point, kinds in runtime.points.items():
        possible = {kind for kind, points in FAULT_POINTS.items() if point in points}
        assert kinds == possible - set(SEAMS), point


def test_every_status_of_a_record_says_something(runtime: ApprovalRuntime) -> None:
    """No status is without a meaning; failed does not say that there is no effect."""
    assert set(runtime.says) == set(get_args(Status))
    assert set(runtime.says.values()) == set(get_args(Says)) - {"due"}  # it acts when it is asked
    assert [s for s, meaning in runtime.says.items() if meaning == "done"] == ["succeeded"]
    assert runtime.says["failed"] == "open"


# What the caller sees, the status, the effects | again: the same | resume: the same.
Seen = tuple[str, str, int]
CELLS: Mapping[tuple[str, str], tuple[Seen, Seen, Seen]] = {
    ("none", "none"): (
        ("none", "succeeded", 1),
        (CONSUMED, "succeeded", 1),
        (CONSUMED, "succeeded", 1),
    ),
    ("approval_audit", "exception"): (
        ("INJECTED_FAULT", "approved", 0),
        ("PRE_APPROVAL_REQUIRED", "approved", 0),
        ("none", "succeeded", 1),
    ),
    ("start_audit", "exception"): (
        ("INJECTED_FAULT", "executing", 0),
        (CONSUMED, "partial_failed", 0),
        (CONFLICT, "partial_failed", 0),
    ),
    ("before_action", "exception"): (
        ("none", "failed", 0),
        (CONSUMED, "failed", 0),
        ("none", "succeeded", 1),
    ),
    ("after_action", "exception"): (
        ("none", "failed", 1),
        (CONSUMED, "failed", 1),
        ("none", "succeeded", 2),
    ),
    ("after_result", "exception"): (
        ("none", "failed", 1),
        (CONSUMED, "failed", 1),
        ("none", "succeeded", 2),
    ),
    ("completion_audit", "exception"): (
        ("none", "failed", 1),
        (CONSUMED, "failed", 1),
        ("none", "succeeded", 2),
    ),
    ("response", "exception"): (
        ("INJECTED_FAULT", "succeeded", 1),
        (CONSUMED, "succeeded", 1),
        (CONSUMED, "succeeded", 1),
    ),
    ("approval_audit", "kill"): (
        ("SIGKILL", "approved", 0),
        (BUSY, "approved", 0),
        (BUSY, "approved", 0),
    ),
    ("start_audit", "kill"): (
        ("SIGKILL", "executing", 0),
        (BUSY, "executing", 0),
        (BUSY, "executing", 0),
    ),
    ("before_action", "kill"): (
        ("SIGKILL", "executing", 0),
        (CONSUMED, "partial_failed", 0),
        (CONFLICT, "partial_failed", 0),
    ),
    ("after_action", "kill"): (
        ("SIGKILL", "executing", 1),
        (CONSUMED, "partial_failed", 1),
        (CONFLICT, "partial_failed", 1),
    ),
    ("after_result", "kill"): (
        ("SIGKILL", "succeeded", 1),
        (BUSY, "succeeded", 1),
        (BUSY, "succeeded", 1),
    ),
    ("completion_audit", "kill"): (
        ("SIGKILL", "succeeded", 1),
        (BUSY, "succeeded", 1),
        (BUSY, "succeeded", 1),
    ),
    ("response", "kill"): (
        ("SIGKILL", "succeeded", 1),
        (CONSUMED, "succeeded", 1),
        (CONSUMED, "succeeded", 1),
    ),
    ("approval_audit", "audit_is_directory"): (
        ("EISDIR", "approved", 0),
        ("PRE_APPROVAL_REQUIRED", "approved", 0),
        ("none", "succeeded", 1),
    ),
    ("start_audit", "audit_is_directory"): (
        ("EISDIR", "executing", 0),
        (CONSUMED, "partial_failed", 0),
        (CONFLICT, "partial_failed", 0),
    ),
    ("completion_audit", "audit_is_directory"): (
        ("EISDIR", "failed", 1),
        (CONSUMED, "failed", 1),
        ("none", "succeeded", 2),
    ),
}


def test_table_has_every_declared_fault(runtime: ApprovalRuntime) -> None:
    """Of these three kinds all is tested here; of the others in tests/faults, in real cells."""
    three = {"exception", "kill", "audit_is_directory"}
    declared = {(point, kind) for point, kinds in runtime.points.items() for kind in kinds & three}
    assert CELLS.keys() - {("none", "none")} == declared


@pytest.mark.parametrize("way", ["again", "resume"])
@pytest.mark.parametrize(("point", "fault"), CELLS)
def test_fault_and_recovery_in_two_processes(
    runtime: ApprovalRuntime, tmp_path: Path, child: Child, point: str, fault: str, way: str
) -> None:
    """The state and the effects after a fault, and what recovery in a new process makes of them."""
    operation = asked(tmp_path, REQUEST)
    effects = MarkerExecutor(tmp_path / "effects")

    def seen(ended: tuple[str, Any], operation: Operation) -> Seen:
        how, error = ended
        status = runtime.state(operation).status
        return error if how == "exit" else how, status, effects.made

    at_fault, again, resumed = CELLS[point, fault]
    assert seen(child(under(fault, point, lambda: runtime.start(operation))), operation) == at_fault
    mend(operation.folder)
    later = asked(tmp_path, AGAIN)
    recovered = child(lambda: seen_by_caller(lambda: runtime.recover(later, way)))
    assert seen(recovered, later) == (again if way == "again" else resumed)


def test_recovery_of_a_changed_request_is_stale_and_forgets(
    runtime: ApprovalRuntime, tmp_path: Path, child: Child
) -> None:
    """The failed record holds the first effect's evidence; the stale one holds nothing of it."""
    operation = asked(tmp_path, REQUEST)
    child(under("audit_is_directory", "completion_audit", lambda: runtime.start(operation)))
    mend(operation.folder)
    digest, changed = request_digest(REQUEST), request_digest(CHANGED)
    later = asked(tmp_path, CHANGED)
    evidence = ({"kind": "local-marker", "observed_count": 1},)
    assert runtime.state(later) == Recorded("failed", "failed", evidence, digest, changed)
    recovered = child(lambda: seen_by_caller(lambda: runtime.recover(later, "resume")))
    assert recovered == ("exit", "APPROVAL_STALE")
    assert runtime.state(later) == Recorded("stale", "not_started", (), None, changed)
    assert MarkerExecutor(tmp_path / "effects").made == 1


def test_executor_is_called_with_the_key_and_the_request(
    runtime: ApprovalRuntime, tmp_path: Path
) -> None:
    """The executor gets the operation's key and the request in hand, session id included."""
    calls: list[tuple[str, Mapping[str, Any]]] = []

    class Listening(MarkerExecutor):
        def __call__(self, operation_key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
            calls.append((operation_key, request))
            return super().__call__(operation_key, request)

    folder = asked(tmp_path, REQUEST).folder
    runtime.start(Operation("key-7", REQUEST, folder, Listening(tmp_path / "effects")))
    assert calls == [("key-7", REQUEST)]


def test_state_is_missing_where_nothing_is_stored(
    runtime: ApprovalRuntime, operation: Operation
) -> None:
    """No ticket, or a ticket whose record is gone: missing; and looking makes no file."""
    current = request_digest(REQUEST)
    assert runtime.state(operation) == Recorded("missing", current_digest=current)
    assert list(operation.folder.iterdir()) == []
    runtime.start(operation)
    next((operation.folder / "approvals").iterdir()).unlink()
    assert runtime.state(operation) == Recorded("missing", current_digest=current)


def test_state_reads_and_turns_nothing(
    runtime: ApprovalRuntime, operation: Operation, child: Child
) -> None:
    """A dead executor's record is executing for as long as nobody but state() has looked."""
    child(under("kill", "after_action", lambda: runtime.start(operation)))
    before = {p: p.read_bytes() for p in operation.folder.rglob("*") if p.is_file()}
    for _ in range(3):
        assert runtime.state(operation).status == "executing"
    assert {p: p.read_bytes() for p in operation.folder.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("name", ["ticket.json", "approvals/*.json"])
def test_damaged_file_is_said_and_kept(
    runtime: ApprovalRuntime, operation: Operation, name: str
) -> None:
    """A record or ticket that is not valid: a clear error on every way, and no byte of it lost."""
    runtime.start(operation)
    (path,) = operation.folder.glob(name)
    path.write_bytes(path.read_bytes()[:-9])
    kept = path.read_bytes()
    for work in (
        lambda: runtime.state(operation),
        lambda: runtime.recover(operation, "again"),
        lambda: runtime.recover(operation, "resume"),
    ):
        with pytest.raises(ApprovalError, match=path.name) as caught:
            work()
        assert caught.value.code == "APPROVAL_STORE_CORRUPT"
    assert path.read_bytes() == kept


@pytest.mark.parametrize("way", ["", "retry", "Resume"])
def test_unknown_way_is_refused(runtime: ApprovalRuntime, operation: Operation, way: str) -> None:
    """A way that the runtime does not document does nothing, and the error lists those it does."""
    runtime.start(operation)
    with pytest.raises(UnknownName, match="again, resume"):
        runtime.recover(operation, way)
    assert runtime.state(operation).status == "succeeded"


@pytest.mark.parametrize("way", ["again", "resume"])
def test_recovery_without_a_ticket_finds_nothing(
    runtime: ApprovalRuntime, operation: Operation, way: str
) -> None:
    """Where start never came to ask, there is no approval to recover."""
    with pytest.raises(ApprovalError, match="APPROVAL_NOT_FOUND"):
        runtime.recover(operation, way)


def test_ticket_holds_what_the_caller_was_told(
    runtime: ApprovalRuntime, operation: Operation, tmp_path: Path, child: Child
) -> None:
    """The token is in the ticket only where approve returned it."""

    def ticket() -> dict[str, Any]:
        return dict(json.loads((operation.folder / "ticket.json").read_bytes()))

    child(under("audit_is_directory", "approval_audit", lambda: runtime.start(operation)))
    assert ticket()["token"] is None
    mend(operation.folder)
    record = ApprovalService(operation.folder).get(ticket()["id"])
    assert (record.status, record.token_sha256 is None) == ("approved", False)
    other = Operation("key-2", REQUEST, tmp_path / "other", operation.executor)
    other.folder.mkdir()
    runtime.start(other)
    assert len(json.loads((other.folder / "ticket.json").read_bytes())["token"]) == 64
