"""What a runtime in another language runs instead of calling us: the executor, and ``reach``.

    python -P -m rcr_probes.foreign call CWD PLACE VERB ATTEMPT PID [KEY]
    python -P -m rcr_probes.foreign reach CWD PLACE VERB ATTEMPT PID POINT [AUDIT_FILE]

The harness makes both commands up to the part in brackets and POINT; ATTEMPT and PID are the
phase's. Each is a process of its own, so the runtime owns neither the ledgers nor the events; what
this module imports is paid each time. Whoever it was that ran one, a shell perhaps, it is the
runtime that came there: the process that the phase started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from rcr_probes import folder, phase
from rcr_probes.errors import RuntimeUnusable, code_of
from rcr_probes.model import Json
from rcr_probes.runtime import load

_FAILED = 1


def _call(running: phase.Phase, given: bytes, key: str | None) -> None:
    """Perform the action once: the evidence goes to stdout.

    Args:
        running: the phase in which it is called.
        given: the request, as JSON.
        key: the operation key to act under, where it is another than the operation's.
    """
    request = msgspec.json.decode(given, type=dict[str, Json])
    operation = running.operation
    evidence = operation.executor(key or operation.key, request)
    sys.stdout.buffer.write(msgspec.json.encode(evidence) + b"\n")
    sys.stdout.buffer.flush()


class _Outside(phase.Phase):
    """The phase that is running, seen from the runtime's process: whoever tells of it, it came."""

    def __init__(self, place: str, verb: str, attempt: int, above: Sequence[int]) -> None:
        """Look at what is there.

        Args:
            place: the cell's folder.
            verb: of the phase.
            attempt: the number of its attempt.
            above: the processes between the phase's and this one, from the runtime's own.
        """
        self._above = above
        runtime, cell = above[0] if above else os.getppid(), folder.read_cell(place)
        super().__init__(place, verb, cell, load(cell.runtime), verb, lambda: runtime, attempt)

    def reached(self, name: str, path: str | None) -> None:
        """As for any phase.

        Where the strike kills the runtime, what it had between itself and us ends with it, and so
        do we: nobody is left who could take our end for an answer, or an action for its own.

        Raises:
            RuntimeUnusable: nobody above us is the runtime, so that a strike would not be its end.
            Exception: whatever the fault that strikes raises; the process is to fail as well.
        """
        if not self._above:
            raise RuntimeUnusable(
                f"The point {name!r} was told by a process that is not below the command.",
                "Run RCR_REACH from the command, or from a process that it started and waits for; "
                "and so the executor.",
            )
        runtime = os.pidfd_open(self._above[0])
        super().reached(name, path)
        gone, _, _ = select.select([runtime], [], [], 0)
        os.close(runtime)
        if not gone:
            return
        for pid in self._above[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os._exit(_FAILED)


def _above(top: int) -> list[int]:
    """The processes between one and this one, from the top; none where it is not above us."""
    found: list[int] = []
    pid = os.getppid()
    while pid > 1 and pid != top:
        found.insert(0, pid)
        pid = _parent(pid)
    return found if pid == top else []


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except FileNotFoundError:  # it has ended, and we have another one above us
        return 0


def main(words: Sequence[str]) -> NoReturn:
    """Do what the words say, in the directory in which the harness is, and end this process."""
    what, where, place, verb, attempt, top, *rest = words
    point, path = (*rest, None, None)[:2]
    if path is not None:
        path = os.path.abspath(path)  # as the runtime means it
    os.chdir(where)
    try:
        given = sys.stdin.buffer.read() if what == "call" else b""
        running = _Outside(place, verb, int(attempt), _above(int(top)))
        if what == "call":
            _call(running, given, point)
        else:
            assert point is not None
            running.reached(point, path)
    except Exception as raised:
        sys.stderr.write(f"{code_of(raised)}: {raised}\n")
        sys.stderr.flush()
        os._exit(_FAILED)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
