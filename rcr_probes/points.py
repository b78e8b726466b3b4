"""Named points in the life of an operation: a no-op, unless this process is under probe."""

from __future__ import annotations

import os
from collections.abc import Callable

Reached = Callable[[str, str | None], None]
_reached: Reached | None = None


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


def watch(reached: Reached | None) -> None:
    """Put this process under probe: ``reached(name, path)`` is called at each point from now on."""
    global _reached
    _reached = reached
