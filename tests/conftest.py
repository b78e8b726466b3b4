"""What holds for all tests: the order of their files, their patience, and their signals."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No test asserts seconds, and so none of its examples may: the machine may be busy.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell has what it starts with & ignore Ctrl-C, and whatever that starts ignores it, too: then no
# test of an interruption would interrupt anything.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test that is out of time hears SIGALRM. A child that it forked may set an alarm, and dies of it.
os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGALRM, signal.SIG_DFL))

ROOT = Path(__file__).resolve().parents[1]
# One process runs all tests of a file: what takes longest begins first, so that none is left alone
# with it at the end. The longest of them first.
LONGEST = (
    "tests/cli/test_help.py",
    "tests/test_killed.py",
    "tests/browser/test_guide.py",
    "tests/browser/test_axe.py",
    "tests/run/test_wrong.py",
    "tests/test_pages.py",
    "tests/report/test_execute.py",
    "notebooks/00_evidence_guide.ipynb",
    "tests/cluster/test_refused.py",
    "tests/cluster/test_cells.py",
    "tests/report/test_guide.py",
    "tests/probe/test_probe.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort them so; files that are not named stay behind, in their order.

    Raises:
        FileNotFoundError: a file was renamed, and is named here as it was.
    """
    rank = {(ROOT / name).resolve(strict=True): place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))  # stable: the others keep theirs
