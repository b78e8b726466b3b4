"""A lock file of the runtime's that somebody left, or holds: what stands there, and who that is."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

from rcr_probes import fence, folder, linux, process


@contextlib.contextmanager
def standing(kind: str, path: str, place: str) -> Iterator[None]:
    """Have a lock file stand while the block runs; nobody's process is left after it.

    Args:
        kind: ``lock_dead``: its holder has ended, and nobody has its pid. ``lock_recycled``: the
            holder has ended, and another process has its pid. ``lock_zombie``: the holder has
            ended, and its parent has not waited for it yet. ``lock_live``: the holder is alive, an
            attempt of its own.
        path: the runtime's lock file.
        place: the cell's folder.
    """
    match kind:
        case "lock_dead":
            pid = _child(place)
            os.waitpid(pid, 0)
            _write(path, pid)
            yield
        case "lock_recycled":
            _write(path, os.getpid())  # it lives, and has never held a lock of this runtime
            yield
        case "lock_zombie":
            pid = _child(place)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
            _write(path, pid)
            with process.spared(pid):
                yield
            os.waitpid(pid, 0)
        case _:
            pid = _child(place, lives=True)
            _write(path, pid)
            try:
                with process.spared(pid):
                    yield
            finally:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)  # what a holder does at its end


def _write(path: str, pid: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{pid}\n")


def _child(place: str, *, lives: bool = False) -> int:
    """A process that begins an attempt of its own, and ends at once unless it ``lives``."""
    told, tell = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        os.close(tell)
        os.read(told, 1)
        os.close(told)
        return pid
    try:
        linux.die_with(parent)
        fence.enter(os.path.join(place, folder.ATTEMPTS))
        os.write(tell, b".")
        if lives:
            signal.pause()
    finally:
        os._exit(0)
