"""Run something in a process below one that adopts orphans, as a worker does with a phase."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rcr_probes import following, linux, process

WHY_NOT = following.without_tracer()
needs_ptrace = pytest.mark.skipif(WHY_NOT is not None, reason=" ".join(WHY_NOT or ()))


@dataclass(frozen=True, slots=True)
class Below:
    """What became of it.

    Attributes:
        ended: ``exit``, or the signal's name.
        told: what it returned; None where it did not.
        left: how many processes had to be ended after it.
    """

    ended: str
    told: Any
    left: int


def below(work: Callable[[], object], meanwhile: Callable[[int], object] | None = None) -> Below:
    """Do the work in a process of its own, and say how that ended.

    Args:
        work: what it returns is told as JSON.
        meanwhile: called with its pid by the process above it, while it is at work.
    """
    ready, tell = os.pipe()
    above = os.fork()
    if above == 0:
        try:
            signal.alarm(60)
            os.write(tell, json.dumps(_above(work, meanwhile)).encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(ready, "rb") as file:
        said = file.read()
    os.waitpid(above, 0)
    return Below(*json.loads(said))


def _above(work: Callable[[], object], meanwhile: Callable[[int], object] | None) -> list[Any]:
    linux.adopt_descendants()
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ready)
            os.set_inheritable(tell, False)
            os.write(tell, json.dumps(work()).encode())
        except BaseException as raised:
            os.write(tell, json.dumps(f"{type(raised).__name__}: {raised}").encode())
        finally:
            os._exit(0)
    os.close(tell)
    if meanwhile is not None:
        meanwhile(pid)
    _, status = os.waitpid(pid, 0)
    left = process.end_orphans()
    with os.fdopen(ready, "rb") as file:
        said = file.read()
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
    return [how, json.loads(said) if said else None, left]
