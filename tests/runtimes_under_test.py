"""Runtimes that do one thing wrong on purpose: controls that the harness must see through.

Each factory wraps the reference runtime, or is a runtime of a few lines; plans name them
``tests.runtimes_under_test:factory``, as a user's own runtime is named.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from rcr_probes import points
from rcr_probes.model import Json, Recorded
from rcr_probes.reference import approval
from rcr_probes.runtime import Executor, Operation, Runtime
from rcr_probes.vocabulary import POINTS, Says

PROCESS_FAULTS = frozenset({"exception", "kill"})


class Around:
    """An executor around another one."""

    name = "local-marker"

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.declares, self.effects = executor.declares, executor.effects

    def raise_fence(self) -> int | None:
        return self._executor.raise_fence()

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


class Forgets(Plain):
    """Forks once it has acted, and forgets that a child must end: both come back to the caller."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        os.fork()


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


class EndedByANumber(Plain):
    """Is ended by a signal that has no name, as real-time ones have none."""

    def start(self, operation: Operation) -> None:
        os.kill(os.getpid(), signal.SIGRTMIN + 6)


class ParricideOfTwo(Plain):
    """Kills its worker, once it has left two processes in sessions of their own.

    One is forked, and so holds all that this one has open; the other is a program.
    """

    def start(self, operation: Operation) -> None:
        leave_child(operation, new_group=True)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            time.sleep(600)
            os._exit(0)
        (operation.folder / "forked").write_text(str(pid))
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)


class Parricide(Plain):
    """Kills the process that started it."""

    def start(self, operation: Operation) -> None:
        os.kill(os.getppid(), signal.SIGKILL)


class ParricideAndHang(Plain):
    """Kills the process that started it, and would go on for a long time."""

    def start(self, operation: Operation) -> None:
        (operation.folder / "pid").write_text(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)


class ClosesItsStreams(Plain):
    """Leaves its process without streams, as a daemon does."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        sys.stdout.close()
        sys.stderr.close()
        os.closerange(0, 3)


class Unwritable(Plain):
    """Makes the harness's own events impossible to write, and sees no error of its own."""

    def start(self, operation: Operation) -> None:
        events = operation.folder.parent / "harness" / "events.jsonl"
        events.rename(events.with_suffix(".aside"))
        events.mkdir()
        with contextlib.suppress(Exception):
            points.reach("before_action")
        events.rmdir()
        events.with_suffix(".aside").rename(events)
        super().start(operation)


class Floating(Plain):
    """Keeps evidence that is different on every run."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded("done", evidence=({"at": time.time()},))


class Nested(Plain):
    """Keeps evidence in shapes of Python's own, which come back from a file as others."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded("done", evidence=({"pairs": ((1, 2), MappingProxyType({"a": None}))},))


class Deep(Plain):
    """Keeps evidence that nobody could read out without an end in sight."""

    def state(self, operation: Operation) -> Recorded:
        inner: Json = None
        for _ in range(101):
            inner = [inner]
        return Recorded("done", evidence=({"inner": inner},))


class Huge(Plain):
    """Keeps a number that no file of facts can hold."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded("done", evidence=({"n": 1 << 64},))


class Halved(Plain):
    """Keeps a text that no file can hold."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded("done", evidence=({"text": "\ud800"},))


class PrintsItsState(Plain):
    """Prints when it is made, and whenever it is asked for its state."""

    def __init__(self) -> None:
        print("made", flush=True)

    def state(self, operation: Operation) -> Recorded:
        print("asked", flush=True)
        return super().state(operation)


class TextEvidence(Plain):
    """Gives text where a map of evidence belongs."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded("done", evidence=("abc",))  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Annotated(Recorded):
    """A Recorded with something of its own."""

    note: str = "mine"


class Subclassed(Plain):
    """Returns a Recorded of its own making."""

    def state(self, operation: Operation) -> Recorded:
        return Annotated("done")


class Fickle(Plain):
    """Says something else in every process."""

    def state(self, operation: Operation) -> Recorded:
        return Recorded(f"state-{os.getpid()}")


class Late(Plain):
    """Acts in a thread that outlives the call, and once more on the way out."""

    def start(self, operation: Operation) -> None:
        def act() -> None:
            time.sleep(0.2)
            operation.executor(operation.key, operation.request)

        threading.Thread(target=act).start()
        atexit.register(operation.executor, operation.key, operation.request)


class Interrupts(Plain):
    """Raises what a person at the keyboard would."""

    def start(self, operation: Operation) -> None:
        raise KeyboardInterrupt


class Denies(Plain):
    """Raises an error whose code says that there was none."""

    def start(self, operation: Operation) -> None:
        class NoError(Exception):
            code = "none"

        raise NoError

    def recover(self, operation: Operation, way: str) -> None:
        sys.exit("cannot write /somewhere/on/this/machine")


class Piped(Plain):
    """Leaves a pipe in the outside world, which nobody will ever write to."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        os.mkfifo(operation.folder.parent / "world" / "pipe")


class Interjects(Plain):
    """Writes a line into every pipe that it finds open, whoever reads there."""

    def start(self, operation: Operation) -> None:
        self.interject()
        super().start(operation)

    def interject(self) -> None:
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if int(name) > 2 and stat.S_ISFIFO(os.fstat(int(name)).st_mode):
                    os.write(int(name), b"garbage\n")


class InterjectsWhereAsked(Interjects):
    """Does so also wherever its state is asked for, in the harness's own process too."""

    def state(self, operation: Operation) -> Recorded:
        self.interject()
        return super().state(operation)


class Vandal(Plain):
    """Removes its cell's whole folder when it recovers."""

    def recover(self, operation: Operation, way: str) -> None:
        shutil.rmtree(operation.folder.parent)


class Stubborn(Plain):
    """Leaves a folder that cannot be looked into."""

    def start(self, operation: Operation) -> None:
        super().start(operation)
        (operation.folder / "closed" / "inner").mkdir(parents=True)
        (operation.folder / "closed").chmod(0)


class Sleepless(Plain):
    """Does not tell its state to the parent of its phases."""

    def __init__(self) -> None:
        self._made_in = os.getpid()

    def state(self, operation: Operation) -> Recorded:
        # Under fork, a phase has the runtime that its parent made.
        if os.getpid() == self._made_in and operation.request["session_id"] == "session-2":
            time.sleep(600)
        return super().state(operation)


class Deaf(Hanging):
    """Hangs with a child in a group of its own; whoever loads it ignores SIGTERM from then on."""

    def __init__(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def start(self, operation: Operation) -> None:
        leave_child(operation, new_group=True)
        time.sleep(600)


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
