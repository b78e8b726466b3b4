"""Runtimes that do one thing wrong on purpose: controls that the harness must see through.

Each factory wraps the reference runtime, or is a runtime of a few lines; plans name them
``tests.runtimes_under_test:factory``, as a user's own runtime is named.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from rcr_probes import points
from rcr_probes.model import POINTS, Json, Recorded, Says
from rcr_probes.reference import approval
from rcr_probes.runtime import Executor, Operation, Runtime

PROCESS_FAULTS = frozenset({"exception", "kill"})


class Around:
    """An executor around another one."""

    name = "local-marker"

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def __call__(self, key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        return self._executor(key, request)


class Silent(Around):
    """An executor that says that it acted, and did not."""

    def __call__(self, key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        return {"kind": "local-marker", "observed_count": 1}


class Twice(Around):
    """An executor that acts twice on purpose."""

    def __call__(self, key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        self._executor(key, request)
        return self._executor(key, request)


class Elsewhere(Around):
    """An executor that acts on another target than the approved one."""

    def __call__(self, key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        return self._executor(key, {**request, "target": "elsewhere"})


class Wrapped:
    """The reference runtime, with an executor around the one that it is handed."""

    def __init__(self, wrap: type[Around]) -> None:
        self._wrap = wrap
        self._runtime: Runtime = approval()
        self.points = self._runtime.points
        self.recoveries = self._runtime.recoveries
        self.says = self._runtime.says

    def _wrapped(self, operation: Operation) -> Operation:
        return dataclasses.replace(operation, executor=self._wrap(operation.executor))

    def start(self, operation: Operation) -> None:
        self._runtime.start(self._wrapped(operation))

    def recover(self, operation: Operation, way: str) -> None:
        self._runtime.recover(self._wrapped(operation), way)

    def state(self, operation: Operation) -> Recorded:
        return self._runtime.state(operation)


def silent() -> Runtime:
    """No effect is made, and success is reported."""
    return Wrapped(Silent)


def twice() -> Runtime:
    """Every call makes two effects."""
    return Wrapped(Twice)


def elsewhere() -> Runtime:
    """Every call makes an effect that was not approved."""
    return Wrapped(Elsewhere)


class Plain:
    """A runtime of a few lines: it acts, and keeps one word in a file."""

    points: Mapping[str, frozenset[str]] = dict.fromkeys(POINTS, PROCESS_FAULTS)
    recoveries: tuple[str, ...] = ()
    says: Mapping[str, Says] = {"done": "done", "missing": "open"}

    def start(self, operation: Operation) -> None:
        points.reach("before_action")
        operation.executor(operation.key, operation.request)
        points.reach("after_action")
        self.stored(operation).write_text("done")

    def recover(self, operation: Operation, way: str) -> None:
        self.start(operation)

    def state(self, operation: Operation) -> Recorded:
        stored = self.stored(operation)
        return Recorded(stored.read_text() if stored.exists() else "missing")

    def stored(self, operation: Operation) -> Path:
        return operation.folder / "state"


class Disarmed(Plain):
    """Declares ``response``, and never comes to it."""


class Misspelt(Plain):
    """Comes to a point that does not exist, on its way to one that does."""

    def start(self, operation: Operation) -> None:
        points.reach("before_actoin")
        super().start(operation)


class Hanging(Plain):
    """Never comes back, and neither does the child that it started."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        leave_child(operation, new_group=False)
        time.sleep(600)


class Daemon(Plain):
    """Leaves a grandchild behind that moved to a process group of its own."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        leave_child(operation, new_group=True)


class Vanishing(Plain):
    """Ends its process with status 0 in the middle of the operation."""

    def start(self, operation: Operation) -> None:
        operation.executor(operation.key, operation.request)
        os._exit(0)


class Exiting(Plain):
    """Asks the interpreter to exit, as a command line program does."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        sys.exit(3)


class Talkative(Plain):
    """Prints to both of its streams."""

    def start(self, operation: Operation) -> None:
        print('{"this": "is no capture"}', flush=True)
        print("nor is this", file=sys.stderr, flush=True)
        super().start(operation)


class Suicidal(Plain):
    """Is killed by somebody before it comes to its fault's point."""

    def start(self, operation: Operation) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Parricide(Plain):
    """Kills the process that started it."""

    def start(self, operation: Operation) -> None:
        os.kill(os.getppid(), signal.SIGKILL)


class Unreadable(Plain):
    """Its state cannot be read."""

    def state(self, operation: Operation) -> Recorded:
        raise ValueError("the record is not JSON")


def leave_child(operation: Operation, *, new_group: bool) -> None:
    """Start a process that would outlive this one, and note its pid."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=new_group
    )
    (operation.folder / "child").write_text(str(child.pid))
    child.returncode = 0  # it is left on purpose; Popen need not warn
