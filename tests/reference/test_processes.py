"""Locks, deaths and races of the approval service, with real processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import points
from rcr_probes.reference import ADMIN, Actor, ApprovalError, ApprovalService, audit
from rcr_probes.reference.locks import Lock

Ended = tuple[str, Any]
Child = Callable[[Callable[[], object]], Ended]
Children = Callable[..., list[Ended]]

REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}
APPROVER = Actor("admin-1", ADMIN)


@pytest.fixture
def service(tmp_path: Path) -> ApprovalService:
    return ApprovalService(tmp_path)


def granted(service: ApprovalService, target: str = "marker-0") -> tuple[str, str]:
    """Id and token of an approved operation."""
    approval = service.prepare({**REQUEST, "target": target})
    return approval.id, service.approve(approval.id, APPROVER, "needed")


def mark(folder: Path) -> Mapping[str, Any]:
    with (folder / "effects").open("a") as file:
        file.write("marker\n")
    return {"kind": "local-marker", "observed_count": effects(folder)}


def effects(folder: Path) -> int:
    path = folder / "effects"
    return len(path.read_text().splitlines()) if path.exists() else 0


def killed_at(point: str, work: Callable[[], object]) -> Callable[[], object]:
    """Do the work, and be killed when it reaches the point."""

    def reached(name: str, path: str | None) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def until_killed() -> object:
        points.watch(reached)
        return work()

    return until_killed


def code(work: Callable[[], object]) -> str:
    try:
        work()
    except ApprovalError as error:
        return error.code
    return "none"


def enter(path: str) -> None:
    with Lock(path):
        pass


def test_lock_is_held_by_one_process_and_refused_at_once(tmp_path: Path, child: Child) -> None:
    """While one holds it, another is told APPROVAL_BUSY without waiting; then it is free."""
    path = str(tmp_path / "a.lock")

    def take() -> float:
        began = time.monotonic()
        if code(lambda: enter(path)) == "none":
            return -1.0
        return time.monotonic() - began

    with Lock(path):
        how, waited = child(take)
        assert how == "exit"
        assert 0 <= waited < 0.1
    assert child(take) == ("exit", -1.0)


def test_lock_is_released_by_an_error(tmp_path: Path) -> None:
    """Only a killed process leaves its lock behind."""
    path = tmp_path / "a.lock"

    def interrupted() -> None:
        with Lock(str(path)):
            assert path.read_text() == f"{os.getpid()}\n"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not path.exists()


@pytest.mark.parametrize(
    ("point", "status", "effects_then"),
    [
        ("approval_audit", "approved", 0),
        ("start_audit", "executing", 0),
        ("after_result", "succeeded", 1),
        ("completion_audit", "succeeded", 1),
    ],
)
def test_lock_of_a_killed_process_stays(
    service: ApprovalService,
    tmp_path: Path,
    child: Child,
    point: str,
    status: str,
    effects_then: int,
) -> None:
    """Killed under the lock: the record tells how far it came, and everybody is refused."""
    approval = service.prepare(REQUEST)

    def run() -> object:
        token = service.approve(approval.id, APPROVER, "needed")
        return service.execute(approval.id, token, REQUEST, lambda _: mark(tmp_path)).status

    assert child(killed_at(point, run)) == ("SIGKILL", None)
    assert service.records.read(approval.id).status == status

    def act(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return mark(tmp_path)

    for work in (
        lambda: service.approve(approval.id, APPROVER, "needed"),
        lambda: service.cancel(approval.id),
        lambda: service.execute(approval.id, "token", REQUEST, act),
        lambda: service.resume(approval.id, REQUEST, act),
    ):
        assert code(work) == "APPROVAL_BUSY"
    # Only reading needs no lock, unless the record has lapsed.
    look = "APPROVAL_BUSY" if status == "executing" else "none"
    assert code(lambda: service.get(approval.id)) == code(service.list) == look
    assert service.records.read(approval.id).status == status
    assert effects(tmp_path) == effects_then


def test_other_approvals_are_not_busy(
    service: ApprovalService, tmp_path: Path, child: Child
) -> None:
    """A lock that was left behind blocks its own approval alone."""
    first, token = granted(service)
    run = killed_at(
        "start_audit", lambda: service.execute(first, token, REQUEST, lambda _: mark(tmp_path))
    )
    assert child(run) == ("SIGKILL", None)
    other = {**REQUEST, "target": "marker-1"}
    done = service.execute(*granted(service, "marker-1"), other, lambda _: mark(tmp_path))
    assert done.status == "succeeded"


@pytest.mark.parametrize(("point", "effects_then"), [("before_action", 0), ("after_action", 1)])
@pytest.mark.parametrize("way", ["get", "list", "execute", "resume"])
def test_dead_executors_record_becomes_partial_failed_without_a_token(
    service: ApprovalService,
    tmp_path: Path,
    child: Child,
    point: str,
    effects_then: int,
    way: str,
) -> None:
    """Whoever looks next brings it up to date, audits that once, and nobody can go ahead."""
    approval_id, token = granted(service)

    def act(_: Mapping[str, Any]) -> Mapping[str, Any]:
        return mark(tmp_path)

    run = killed_at(point, lambda: service.execute(approval_id, token, REQUEST, act))
    assert child(run) == ("SIGKILL", None)
    assert service.records.read(approval_id).status == "executing"
    ways: dict[str, tuple[Callable[[], object], str]] = {
        "get": (lambda: service.get(approval_id), "none"),
        "list": (service.list, "none"),
        "execute": (
            lambda: service.execute(approval_id, token, REQUEST, act),
            "APPROVAL_ALREADY_CONSUMED",
        ),
        "resume": (lambda: service.resume(approval_id, REQUEST, act), "APPROVAL_STATE_CONFLICT"),
    }
    first = ways.pop(way)
    for work, expected in (first, *ways.values()):
        assert code(work) == expected
        record = service.records.read(approval_id)
        assert (record.status, record.execution.status) == ("partial_failed", "partial_failed")
        assert (record.execution.pid, record.token_sha256) == (None, None)
    assert effects(tmp_path) == effects_then
    lapsed = [line.event for line in audit.read(service.audit_path).lines]
    assert lapsed.count("operation.partial_failed") == 1


def test_zombie_counts_as_alive_until_it_is_reaped(
    service: ApprovalService, tmp_path: Path
) -> None:
    """A dead executor whose parent has not waited for it still has its pid: it has not lapsed."""
    approval_id, token = granted(service)
    pid = os.fork()
    if not pid:
        try:
            killed_at("before_action", lambda: service.execute(approval_id, token, REQUEST, dict))()
        finally:
            os._exit(1)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert service.get(approval_id).status == "executing"
    os.waitpid(pid, 0)
    assert service.get(approval_id).status == "partial_failed"


def test_killed_preparer_blocks_the_next(
    service: ApprovalService, tmp_path: Path, child: Child
) -> None:
    """The lock of prepare is fail-closed too: two askers never make two approvals."""

    def hold() -> None:
        with Lock(str(tmp_path / "approvals" / "prepare.lock")):
            os.kill(os.getpid(), signal.SIGKILL)

    assert child(hold) == ("SIGKILL", None)
    assert code(lambda: service.prepare(REQUEST)) == "APPROVAL_BUSY"
    assert service.list() == ()


def test_two_concurrent_executions_call_the_executor_once(
    service: ApprovalService, tmp_path: Path, children: Children
) -> None:
    """Of two processes that execute at once, one acts and succeeds; the other is refused."""
    for turn in range(25):
        approval_id, token = granted(service, f"marker-{turn}")
        request = {**REQUEST, "target": f"marker-{turn}"}
        gate = tmp_path / f"gate-{turn}"

        def execute(
            approval_id: str = approval_id,
            token: str = token,
            request: Mapping[str, Any] = request,
            gate: Path = gate,
        ) -> str:
            (gate.with_name(f"{gate.name}.{os.getpid()}")).touch()
            while len(list(tmp_path.glob(f"{gate.name}.*"))) < 2:
                pass  # both start together
            return service.execute(approval_id, token, request, lambda _: mark(tmp_path)).status

        said = sorted(value for _, value in children(execute, execute))
        assert said[1] == "succeeded"
        assert said[0] in ("APPROVAL_ALREADY_CONSUMED", "APPROVAL_BUSY")
        assert effects(tmp_path) == turn + 1
        assert service.get(approval_id).status == "succeeded"


def test_second_execution_is_refused_while_the_first_acts(
    service: ApprovalService, tmp_path: Path, children: Children
) -> None:
    """The action runs outside the lock, under a record that says so to everybody else."""
    approval_id, token = granted(service)
    acting, tried = tmp_path / "acting", tmp_path / "tried"

    def first() -> str:
        def act(_: Mapping[str, Any]) -> Mapping[str, Any]:
            acting.touch()
            while not tried.exists():
                time.sleep(0.001)
            return mark(tmp_path)

        return service.execute(approval_id, token, REQUEST, act).status

    def second() -> list[str]:
        while not acting.exists():
            time.sleep(0.001)
        codes = [
            code(lambda: service.execute(approval_id, token, REQUEST, lambda _: mark(tmp_path))),
            code(lambda: service.resume(approval_id, REQUEST, lambda _: mark(tmp_path))),
            service.get(approval_id).status,
        ]
        tried.touch()
        return codes

    assert children(first, second) == [
        ("exit", "succeeded"),
        ("exit", ["APPROVAL_ALREADY_CONSUMED", "APPROVAL_STATE_CONFLICT", "executing"]),
    ]
    assert effects(tmp_path) == 1


def test_completion_waits_for_who_only_looks(
    service: ApprovalService, tmp_path: Path, children: Children
) -> None:
    """A lock that is held for a moment after the action does not turn success into failure."""
    approval_id, token = granted(service)
    held = tmp_path / "held"

    def look() -> None:
        with Lock(service.records.path(approval_id, ".lock")):
            held.touch()
            time.sleep(0.05)

    def execute() -> str:
        def act(_: Mapping[str, Any]) -> Mapping[str, Any]:
            (tmp_path / "acting").touch()
            while not held.exists():
                time.sleep(0.001)
            return mark(tmp_path)

        return service.execute(approval_id, token, REQUEST, act).status

    def look_while_acting() -> None:
        while not (tmp_path / "acting").exists():
            time.sleep(0.001)
        look()

    assert children(execute, look_while_acting) == [("exit", "succeeded"), ("exit", None)]


def test_completion_does_not_wait_for_ever(tmp_path: Path) -> None:
    """A lock that is never freed leaves the record executing, and the caller sees BUSY."""
    service = ApprovalService(tmp_path, completion_patience=0.02)
    approval_id, token = granted(service)
    lock = Path(service.records.path(approval_id, ".lock"))

    def act(_: Mapping[str, Any]) -> Mapping[str, Any]:
        lock.touch()
        return mark(tmp_path)

    assert code(lambda: service.execute(approval_id, token, REQUEST, act)) == "APPROVAL_BUSY"
    assert service.records.read(approval_id).status == "executing"
    assert effects(tmp_path) == 1


def test_two_preparers_share_one_approval(
    service: ApprovalService, tmp_path: Path, children: Children
) -> None:
    """Processes that ask for the same at once never make two approvals of it."""

    def prepare() -> str:
        return service.prepare(REQUEST).id

    answers = {value for _, value in children(*[prepare] * 6)}
    assert len(answers - {"APPROVAL_BUSY"}) == len(service.list()) == 1
