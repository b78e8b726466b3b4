"""Where evidence comes from: its day and its commit, as given or as git tells, and never "now"."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rcr_probes.errors import RcrError
from rcr_probes.publish.provenance import COMMIT

_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false")
_SECONDS = 60  # for git, which answers in some milliseconds


@dataclass(frozen=True, slots=True)
class Origin:
    """Where evidence comes from.

    Attributes:
        date: its day, as ``YYYY-MM-DD``.
        commit: of the repository that it lies in; None where it is in none.
        modified: whether a tracked file, or anything of the evidence, differed from that commit;
            None where nobody looked.
    """

    date: str
    commit: str | None
    modified: bool | None


def origin(folder: Path, day: str | None, commit: str | None) -> Origin:
    """Where the evidence in a folder comes from.

    Args:
        folder: it.
        day: as given; else the day of the last commit that touched the folder.
        commit: as given; else the one that is checked out, where some commit touched the folder.

    Raises:
        RcrError: what is given is no day or no commit, or no day is given and git knows none.
    """
    if commit is not None and not COMMIT.fullmatch(commit):
        raise RcrError(f"{commit!r} is no full commit id.", "Take it from: git rev-parse HEAD")
    kept = _git(folder, "log", "-1", "--format=%cs", "--", ".")
    day = _day(day) if day is not None else kept
    if not day:
        raise RcrError(
            "The evidence does not say of which day it is: no commit of a git repository holds it.",
            "Give its day: --date YYYY-MM-DD",
        )
    if commit is not None or not kept:
        return Origin(day, commit, None)
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    added = _git(folder, "status", "--porcelain", "--", ".")
    looked = changes is not None and added is not None
    return Origin(
        day, _git(folder, "rev-parse", "HEAD"), bool(changes or added) if looked else None
    )


def _day(given: str) -> str:
    try:
        return date.fromisoformat(given).isoformat()
    except ValueError:
        raise RcrError(f"{given!r} is no day.", "Write it as YYYY-MM-DD.") from None


def _git(folder: Path, *words: str) -> str | None:
    """What git answers; None where it has nothing to say."""
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *words],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
