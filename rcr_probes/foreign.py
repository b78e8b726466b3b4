"""What a runtime in another language runs instead of calling us: the executor, and ``reach``.

    python -P -m rcr_probes.foreign call CWD PLACE VERB [KEY]
    python -P -m rcr_probes.foreign reach CWD PLACE VERB POINT [AUDIT_FILE]

The harness makes both commands up to the part in brackets and POINT. Each is a process of its own,
so the runtime owns neither the ledgers nor the events; what this module imports is paid each time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from rcr_probes import folder, phase
from rcr_probes.errors import code_of
from rcr_probes.model import Json
from rcr_probes.runtime import load

_FAILED = 1


def _call(place: str, verb: str, key: str | None) -> None:
    """Perform the action once: the request comes on stdin, the evidence goes to stdout.

    Args:
        place: the cell's folder.
        verb: of the phase in which it is called.
        key: the operation key to act under, where it is another than the operation's.
    """
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=dict[str, Json])
    events = _phase(place, verb)
    operation = events.operation
    evidence = operation.executor(key or operation.key, request)
    sys.stdout.buffer.write(msgspec.json.encode(evidence) + b"\n")
    sys.stdout.buffer.flush()


def _reach(place: str, verb: str, point: str, path: str | None) -> None:
    """Say for the process that started this one that it came to a point; a fault may strike it.

    Raises:
        Exception: whatever the fault that strikes here raises; the process is to fail as well.
    """
    _phase(place, verb).reached(point, path)


def _phase(place: str, verb: str) -> phase.Phase:
    """The phase that is running, seen from the process that started this one."""
    caller = os.getppid()
    cell = folder.read_cell(place)
    return phase.Phase(place, verb, cell, load(cell.runtime), verb, lambda: caller)


def main(words: Sequence[str]) -> NoReturn:
    """Do what the words say, in the directory in which the harness is, and end this process."""
    what, where, place, verb, *rest = words
    point, path = (*rest, None, None)[:2]
    if path is not None:
        path = os.path.abspath(path)  # as the runtime means it
    os.chdir(where)
    try:
        if what == "call":
            _call(place, verb, point)
        else:
            assert point is not None
            _reach(place, verb, point, path)
    except Exception as raised:
        sys.stderr.write(f"{code_of(raised)}: {raised}\n")
        sys.stderr.flush()
        os._exit(_FAILED)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
