"""Whether the system calls of a process can be followed on this machine, and what to do if not.

Both are tried, and not guessed: a program that is installed may still not be permitted to follow,
in a container, or where the process that asks is followed itself.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

from rcr_probes import strace, tracer

Hindrance = tuple[str, str]  # a cause and a remedy

_ELSEWHERE = "System calls are followed on Linux alone.", "Run it there, or in a container."
_LAST = "exit_group"  # the call that every program makes at its end


@cache
def without_tracer() -> Hindrance | None:
    """Why no tracer of ours can follow a process here; None where one can.

    It is tried in a new interpreter: who asks may have threads, and is not to be traced.
    """
    if sys.platform != "linux":
        return _ELSEWHERE
    done = _tried((sys.executable, "-P", "-m", tracer.__name__))
    if done.returncode == 0:
        return None
    cause, _, remedy = done.stderr.strip().partition("\n")
    return cause, remedy or "Leave the fault out."


def without_strace() -> Hindrance | None:
    """Why strace can follow no process here; None where it can."""
    if sys.platform != "linux":
        return _ELSEWHERE
    if shutil.which(strace.PROGRAM) is None:
        return "strace is not installed here.", "Type: sudo apt install strace"
    return _not_permitted()


@cache
def _not_permitted() -> Hindrance | None:
    """What strace says where it is refused, as the grandchild that it is under a probe.

    There the command ends well all the same, so that its log alone tells whether it was followed.
    """
    done = _tried((*strace.base("/dev/fd/1"), "-D", "-e", f"trace={_LAST}", "--", "true"))
    if _LAST in done.stdout:
        return None
    said = done.stderr.strip().splitlines() or ["it does not say why"]
    return f"strace may not follow a process here ({said[-1]}).", tracer.PERMIT


def _tried(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
