"""The fence around a process and its orphan: who may still act is known, not guessed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from rcr_probes import fence, folder
from rcr_probes.model import Cell


def test_a_fence_is_free_when_nobody_who_inherited_it_is_alive(tmp_path: Path) -> None:
    """Held by a process, then by its orphan alone, then by nobody."""
    place = str(tmp_path / "cell")
    folder.make(place, Cell(point="none", fault="none"))
    attempts = os.path.join(place, folder.ATTEMPTS)
    assert fence.all_over(attempts)
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        fence.enter(attempts)
        orphan = os.fork()
        if orphan == 0:
            signal.pause()
        os.write(tell, orphan.to_bytes(4, "big"))
        os._exit(0)
    orphan = int.from_bytes(os.read(told, 4), "big")
    try:
        os.waitpid(pid, 0)
        assert not fence.all_over(attempts)
    finally:
        os.kill(orphan, signal.SIGKILL)
        os.close(told)
        os.close(tell)
    while not fence.all_over(attempts):  # the kernel frees it when the orphan is gone
        os.sched_yield()
