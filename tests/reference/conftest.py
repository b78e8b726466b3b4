"""Real processes, points, audit faults, and what the tests of the reference runtime act on."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import points
from rcr_probes.reference import ApprovalError, ApprovalService
from tests.reference.asked import Clock, Marker
from tests.reference.attempted import Store

Work = Callable[[], object]
DEADLINE = 30  # seconds; a child that hangs ends by SIGALRM, and its test fails


def _started(work: Work) -> tuple[int, int]:
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid:
        os.close(sender)
        return pid, receiver
    status = 1
    try:
        signal.alarm(DEADLINE)
        os.close(receiver)
        os.write(sender, json.dumps(_outcome(work)).encode())
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)  # never back into pytest, and none of its clean-up


def _outcome(work: Work) -> object:
    try:
        return work()
    except ApprovalError as error:
        return error.code


def _ended(pid: int, receiver: int) -> tuple[str, Any]:
    with os.fdopen(receiver, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name, None
    assert os.WEXITSTATUS(status) == 0, "the child process raised; its traceback is above"
    return "exit", json.loads(said)


@pytest.fixture
def children() -> Callable[..., list[tuple[str, Any]]]:
    """Do each work in a process of its own, all at once.

    Each answers with how it ended (``exit`` or a signal's name) and what it returned, as JSON; an
    approval error stands for its code.
    """

    def run(*works: Work) -> list[tuple[str, Any]]:
        return [_ended(*child) for child in [_started(work) for work in works]]

    return run


@pytest.fixture
def child(children: Callable[..., list[tuple[str, Any]]]) -> Callable[[Work], tuple[str, Any]]:
    """As ``children``, for one work."""
    return lambda work: children(work)[0]


@pytest.fixture
def at_point() -> Iterator[Callable[[Mapping[str, Callable[[], object]]], list[str]]]:
    """Do something once, when a point is first reached; returns the list of the points reached."""

    def watch(strikes: Mapping[str, Callable[[], object]]) -> list[str]:
        seen: list[str] = []

        def reached(name: str, path: str | None) -> None:
            seen.append(name)
            if name in strikes and seen.count(name) == 1:
                strikes[name]()

        points.watch(reached)
        return seen

    yield watch
    points.watch(None)


@pytest.fixture
def broken_audit(tmp_path: Path) -> Callable[[], None]:
    """Put a directory where the audit file of the store in ``tmp_path`` is."""

    def break_it() -> None:
        audit = tmp_path / "audit.jsonl"
        audit.rename(tmp_path / "audit.saved")
        audit.mkdir()

    return break_it


@pytest.fixture
def mended_audit(tmp_path: Path) -> Callable[[], None]:
    """Undo ``broken_audit``."""

    def mend() -> None:
        audit = tmp_path / "audit.jsonl"
        audit.rmdir()
        (tmp_path / "audit.saved").rename(audit)

    return mend


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    return Marker(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> ApprovalService:
    return ApprovalService(tmp_path, now=clock, review_seconds=60)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)
