"""Named points in the life of an operation: a no-op, unless this process is under probe."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

Reached = Callable[[str, str | None], None]


@dataclass(frozen=True, slots=True)
class Outside:
    """How a process in any language does what is done here with a call: commands, as their words.

    Attributes:
        call: performs the action: the request as JSON on stdin, the evidence as a line on stdout.
        reach: followed by a point, and at an audit point by the audit file: says that the process
            below which it runs came there. It does not come back where that process is killed, and
            fails where it is to fail.
        armed: the point at which a fault strikes in this phase; None where none does.
    """

    call: tuple[str, ...]
    reach: tuple[str, ...]
    armed: str | None


_reached: Reached | None = None
_outside: Outside | None = None


def reach(name: str, path: str | os.PathLike[str] | None = None) -> None:
    """Say that the operation has come to the point ``name``; a fault may strike here.

    Args:
        name: one of the points of docs/design.md §3; under probe an unknown one makes the cell's
            verdict ``unknown``, so that a misspelt point cannot pass for one that is never reached.
        path: at an audit point, the audit file that is about to be appended to.

    Raises:
        Exception: whatever the fault that strikes here raises.
    """
    if _reached is not None:
        _reached(name, None if path is None else os.fspath(path))


def outside() -> Outside | None:
    """How another process is put under probe; None where this one is not."""
    return _outside


def watch(reached: Reached | None, outside: Outside | None = None) -> None:
    """Put this process under probe: ``reached(name, path)`` is called at each point from now on."""
    global _reached, _outside
    _reached, _outside = reached, outside
