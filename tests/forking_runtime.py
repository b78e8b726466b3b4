"""A runtime of a few lines that works as queues do: in a process that it forks, under a host.

``start`` forks a host, and the host a process that acts, so that neither is the phase's own. It has
two variants, refuses its result where a directory stands in its place, and says what may be left
out of the contract.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from rcr_probes import Operation, Recorded, reach
from rcr_probes.vocabulary import Says

RESULT = "result"


class Lost(Exception):
    """What the caller sees of an operation that came to no result."""

    code = "LOST"


class InItsPlace:
    """A refusal: a directory stands where the result is to be written."""

    def __init__(self, result: Path) -> None:
        self._result = result

    def place(self) -> None:
        self._result.mkdir()

    def standing(self) -> bool:
        return self._result.is_dir()

    def lift(self) -> None:
        if self._result.is_dir():
            self._result.rmdir()


class Forking:
    """Acts in a grandchild of the phase's process."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": frozenset({"kill", "kill_host"}),
        "after_action": frozenset({"kill", "kill_host", "result_refused"}),
    }
    recoveries: tuple[str, ...] = ()
    says: Mapping[str, Says] = {"done": "done", "twice": "done", "missing": "open"}
    variants = ("baseline", "twice")
    state_at_points = False

    def __init__(self) -> None:
        self._host = 0

    def start(self, operation: Operation) -> None:
        acted = _in_a_child(lambda: self._hosted(operation))
        if not acted or not (operation.folder / RESULT).is_file():
            raise Lost

    def recover(self, operation: Operation, way: str) -> None:
        if self.state(operation).status == "missing":
            self.start(operation)

    def state(self, operation: Operation) -> Recorded:
        result = operation.folder / RESULT
        return Recorded(result.read_text() if result.is_file() else "missing")

    def refusal(self, operation: Operation) -> InItsPlace:
        return InItsPlace(operation.folder / RESULT)

    def hosts(self, operation: Operation) -> Sequence[int]:
        return [self._host, os.getpid()]

    def _hosted(self, operation: Operation) -> bool:
        """What the host does: one attempt, and in the variant ``twice`` one more if it failed."""
        self._host = os.getpid()
        attempts = 2 if operation.variant == "twice" else 1
        return any(_in_a_child(lambda: _act(operation)) for _ in range(attempts))


def runtime() -> Forking:
    return Forking()


def _act(operation: Operation) -> bool:
    reach("before_action")
    operation.executor(operation.key, operation.request)
    reach("after_action")
    (operation.folder / RESULT).write_text("twice" if operation.variant == "twice" else "done")
    return True


def _in_a_child(work: object) -> bool:
    """Whether the work was done to its end, in a process of its own."""
    assert callable(work)
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
