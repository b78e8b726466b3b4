"""Elsewhere than on Linux nothing is run, and everything that was measured can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ARTICLE = str(ROOT / "evidence" / "article")
P3 = "completion_audit/audit_is_directory/none/same/resume"
# What of Linux Python does not offer on a Mac, and we use somewhere.
MAC = """
import os, signal, sys
import pandas  # it asks for its own platform, and is no part of this
sys.platform = "darwin"
for name in ("O_PATH", "eventfd", "memfd_create", "pidfd_open", "sched_getaffinity"):
    delattr(os, name)
del signal.pidfd_send_signal
from rcr_probes.cli import main
sys.exit(main(sys.argv[1:]))
"""
# What a Python lacks that was built with the headers of an older Linux.
OLD = """
import os, sys
del os.pidfd_open
from rcr_probes.cli import main
sys.exit(main(sys.argv[1:]))
"""


def rcr_in(*words: str, cwd: Path, program: str = MAC) -> subprocess.CompletedProcess[str]:
    """One command in a Python that is less than ours: one that takes this machine for a Mac."""
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


READERS = {
    "show": ("show", ARTICLE),
    "explain": ("explain", ARTICLE, P3),
    "check": ("check", ARTICLE),
    "compare": ("compare", ARTICLE, ARTICLE),
    "timeline": ("timeline", ARTICLE, P3, "--at", "16"),
    "decide": ("decide", "--identity", "valid", "--effect", "absent"),
    "help": ("run", "--help"),
}
ALONE = "Cells are run on Linux alone, and this is darwin."
REFUSED = {
    "fork": (("run", "article", "--start", "fork"), ALONE),
    "spawn": (("run", "article", "--start", "spawn"), ALONE),
    "probe": (("probe", "--", sys.executable, "-c", "pass"), ALONE),
    "strace": (("run", "syscalls"), "System calls are followed on Linux alone."),
}


@pytest.mark.parametrize(("words", "cause"), REFUSED.values(), ids=REFUSED)
def test_what_runs_cells_is_refused(words: tuple[str, ...], cause: str, tmp_path: Path) -> None:
    """In words, with a remedy, and before anything is written."""
    done = rcr_in(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    said, remedy = done.stderr.splitlines()
    assert said.startswith("rcr: ")
    assert said.endswith(cause)
    assert "in a container" in remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", READERS.values(), ids=READERS)
def test_what_was_measured_can_be_read(words: tuple[str, ...], tmp_path: Path) -> None:
    """Tables, verdicts, checks and decisions need nothing of Linux."""
    done = rcr_in(*words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize(("lang", "said"), [("en", "this is darwin"), ("zh", "这里是 darwin")])
def test_no_runtime_is_said_to_run_here(lang: str, said: str, tmp_path: Path) -> None:
    """Whatever is installed: each lacks Linux, and nothing is to be installed on this machine."""
    done = rcr_in("runtimes", "--lang", lang, cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert said in done.stderr
    rows = [line for line in done.stdout.splitlines() if "rcr_probes.runtimes." in line]
    assert len(rows) > 1
    assert all("Linux" in row for row in rows)


def test_a_complete_folder_is_shown_by_run_as_well(tmp_path: Path) -> None:
    """Nothing is run, so nothing is missing."""
    done = rcr_in("run", "article", "--into", ARTICLE, cwd=tmp_path)
    assert done.returncode == 0
    assert "nothing was run" in done.stderr


def test_a_python_that_was_built_for_an_old_linux_is_told_so(tmp_path: Path) -> None:
    """What it lacks is named before a worker starts."""
    done = rcr_in("run", "article", cwd=tmp_path, program=OLD)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it has no os.pidfd_open" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
