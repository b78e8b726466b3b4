"""What it costs to start the command line, beside an interpreter that does nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence

from benchmarks.frame import Pair, Ratio, Taking, seconds

FLOOR = "an interpreter that does nothing"
RATIOS = (
    Ratio("help", "`rcr --help`", FLOOR, 8.0),
    Ratio("decide", "`rcr decide`, facts on the command line", FLOOR, 8.0),
)
PAGE = """
## Starting

The floor is `python -c pass`. Help needs argparse; a decision needs the nouns besides (a frozen \
dataclass is compiled when it is made), and of the texts the sections that it says.
"""
RCR = (sys.executable, "-m", "rcr_probes.cli")
DECIDE = ("decide", "--identity", "valid", "--effect", "unknown", "--capability", "replay")


def run(*words: str) -> None:
    """Run a command to its end, and let nobody see what it prints."""
    quiet: Sequence[tuple[object, ...]] = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(words[0], words, os.environ, file_actions=quiet)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError(f"it failed: {' '.join(words)}")


@contextlib.contextmanager
def taking() -> Iterator[Taking]:
    def pair() -> dict[str, Pair]:
        bare = (sys.executable, "-c", "pass")
        return {
            "help": (seconds(lambda: run(*RCR, "--help")), seconds(lambda: run(*bare))),
            "decide": (seconds(lambda: run(*RCR, *DECIDE)), seconds(lambda: run(*bare))),
        }

    pair()  # warm
    yield Taking(pair, 31)
