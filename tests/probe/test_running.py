"""A command that runs is looked at while it is waited for, whatever else is waited for."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rcr_probes import room
from rcr_probes.probe.process import Running


class Counted(room.Watch):
    """Counts how often it is asked to look."""

    looks = 0

    def look(self) -> None:
        super().look()
        self.looks += 1


def test_what_always_has_something_to_read_hides_no_look(tmp_path: Path) -> None:
    """As strace's log has, of a worker that writes without a pause."""
    watch, (readable, writable) = Counted(str(tmp_path)), os.pipe()
    os.write(writable, b"x")
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    try:
        with Running(words, os.environ, str(tmp_path / "output"), watch) as running:
            for _ in range(5):
                assert running.wait(1, readable) == {readable}
            running.kill()
    finally:
        os.close(readable)
        os.close(writable)
    assert watch.looks >= 5
