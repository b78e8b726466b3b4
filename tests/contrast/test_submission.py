"""A submission that is sent again: what the server remembers, and in which process."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes import points
from rcr_probes.contrast.store import Refused
from rcr_probes.contrast.submission import Server, runtime
from rcr_probes.errors import InjectedFault, UnknownName
from tests.contrast.conftest import REQUEST, Executor, asked

OTHER = {**REQUEST, "target": "marker-1"}


@pytest.mark.parametrize(("memory", "objects"), [("none", 3), ("memory", 1), ("durable", 1)])
def test_the_same_process_answers_as_it_remembers(
    tmp_path: Path, executor: Executor, memory: str, objects: int
) -> None:
    """A remembered submission gets the very answer of the first."""
    server = Server(asked(tmp_path, memory, executor), memory)
    answers = [server.submit("id-1", REQUEST) for _ in range(3)]
    assert len(executor.called) == objects
    assert [one["observed_count"] for one in answers] == ([1, 2, 3] if objects == 3 else [1] * 3)


@pytest.mark.parametrize(("memory", "objects"), [("none", 2), ("memory", 2), ("durable", 1)])
def test_a_new_process_knows_what_is_durable(
    tmp_path: Path, executor: Executor, memory: str, objects: int
) -> None:
    """Another server over the same folder stands for it."""
    for _ in range(2):
        Server(asked(tmp_path, memory, executor), memory).submit("id-1", REQUEST)
    assert len(executor.called) == objects


def test_two_ids_are_two_submissions(tmp_path: Path, executor: Executor) -> None:
    """Though they ask for the same."""
    server = Server(asked(tmp_path, "durable", executor), "durable")
    server.submit("id-1", REQUEST)
    server.submit("id-2", REQUEST)
    assert len(executor.called) == 2


@pytest.mark.parametrize("answered", [True, False])
def test_another_request_under_the_same_id_is_a_conflict(
    tmp_path: Path, executor: Executor, answered: bool
) -> None:
    """Also before it is answered; another session of the same request is none."""
    server = Server(asked(tmp_path, "durable", executor), "durable")
    if not answered:
        broken(server)
    else:
        server.submit("id-1", REQUEST)
    with pytest.raises(Refused) as caught:
        server.submit("id-1", OTHER)
    assert caught.value.code == "SUBMISSION_CONFLICT"
    if answered:
        assert server.submit("id-1", {**REQUEST, "session_id": "session-2"})
    assert len(executor.called) == 1


def broken(server: Server) -> None:
    """Let the server fail between its action and its memory of it."""

    def reached(name: str, path: str | None) -> None:
        if name == "after_action":
            raise InjectedFault(name)

    points.watch(reached)
    try:
        with pytest.raises(InjectedFault):
            server.submit("id-1", REQUEST)
    finally:
        points.watch(None)


def test_a_known_id_without_an_answer_is_not_executed_again(
    tmp_path: Path, executor: Executor
) -> None:
    """There is nothing to replay, and whether a call is allowed is another question."""
    server = Server(asked(tmp_path, "durable", executor), "durable")
    broken(server)
    with pytest.raises(Refused) as caught:
        server.submit("id-1", REQUEST)
    assert caught.value.code == "SUBMISSION_UNRESOLVED"
    assert len(executor.called) == 1


def test_only_again_recovers(tmp_path: Path, executor: Executor) -> None:
    """There is no other way, and nothing is done."""
    with pytest.raises(UnknownName):
        runtime().recover(asked(tmp_path, "none", executor), "resume")
    assert executor.called == []
