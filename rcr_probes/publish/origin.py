"""Where evidence comes from: its day and its commit, as given or as git tells, and never "now".

The evidence may be a stranger's, and so may the repository that it lies in. Git is asked only what
its objects say: nothing that a repository's configuration names (a filter, a monitor, a hook, a
program for signatures, a remote) is ever run, and whether a file differs from its commit is told
by its bytes, which are hashed here.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from rcr_probes.errors import RcrError
from rcr_probes.evidence import names
from rcr_probes.publish.provenance import COMMIT

# Only commands that read objects are given to it. What is set here wins over a repository's own.
_GIT = (
    "git", "--no-pager", "--no-optional-locks", "--no-replace-objects",
    "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false",
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip
# A lazy clone fetches what it lacks, by a program that its configuration names: from nowhere.
_ALONE = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0"}
# What the caller's environment may say: where configuration of theirs lies, where a repository may.
_KEPT = ("GIT_CONFIG_", "GIT_CEILING_", "GIT_DISCOVERY_")
_SECONDS = 60  # for git, which answers in some milliseconds
_CHUNK = 1 << 20
_REGULAR, _LINK, _OTHER = "100", "120", "160"  # how the kinds of a tree's entries begin


@dataclass(frozen=True, slots=True)
class Origin:
    """Where evidence comes from.

    Attributes:
        date: its day, as ``YYYY-MM-DD``.
        commit: of the repository that it lies in; None where it is in none.
        modified: whether a published file, or one that the commit has in this folder, is not there
            as the commit has it, byte for byte; None where nobody looked.
    """

    date: str
    commit: str | None
    modified: bool | None


def origin(folder: Path, day: str | None, commit: str | None, published: Iterable[str]) -> Origin:
    """Where the evidence in a folder comes from.

    Args:
        folder: it.
        day: as given; else the day of the last commit that touched the folder.
        commit: as given; else the one that is checked out, where some commit touched the folder.
        published: what is taken of the folder: paths from it, with ``/``.

    Raises:
        RcrError: what is given is no day or no commit; or no day is given, and git knows none, or
            a shallow clone does not say.
        OSError: a file cannot be read.
    """
    if commit is not None and not COMMIT.fullmatch(commit):
        raise RcrError(f"{commit!r} is no full commit id.", "Take it from: git rev-parse HEAD")
    given = None if day is None else _day(day)
    head = _line(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    touched = head and _line(folder, "rev-list", "-1", head, "--", ".")
    if given is None and touched:
        given = _committed(folder, touched)
    if given is None:
        raise RcrError(
            "The evidence does not say of which day it is: no commit of a git repository holds it.",
            "Give its day: --date YYYY-MM-DD",
        )
    if commit is not None or not touched:
        return Origin(given, commit, None)
    tree = _tree(folder, str(head))
    return Origin(given, head, None if tree is None else _differs(folder, tree, published))


def _committed(folder: Path, commit: str) -> str | None:
    """The day of a commit.

    Raises:
        RcrError: the clone ends there, so that an earlier one may have touched the folder last.
    """
    parents = _line(folder, "rev-list", "-1", "--parents", commit) or ""
    raw = _git(folder, "cat-file", "commit", commit) or b""
    header = raw.partition(b"\n\n")[0].splitlines()
    if len(parents.split()) == 1 and any(line.startswith(b"parent ") for line in header):
        raise RcrError(
            "The clone is shallow: it does not say which commit touched the evidence last.",
            "Give its day with --date YYYY-MM-DD, or fetch the rest: git fetch --unshallow",
        )
    told = _line(folder, "rev-list", "-1", "--format=%cs", commit)
    return told and told.split()[-1]


def _day(given: str) -> str:
    try:
        return date.fromisoformat(given).isoformat()
    except ValueError:
        raise RcrError(f"{given!r} is no day.", "Write it as YYYY-MM-DD.") from None


def _tree(folder: Path, commit: str) -> Mapping[str, tuple[str, str]] | None:
    """What a commit has in a folder: path from it → kind and hash; None where git does not say."""
    told = _git(folder, "ls-tree", "-r", "-z", commit)
    if told is None:
        return None
    found: dict[str, tuple[str, str]] = {}
    for entry in told.split(b"\0")[:-1]:
        about, _, path = entry.partition(b"\t")
        mode, _, digest = about.decode().split()
        found[os.fsdecode(path)] = mode[:3], digest
    return found


def _differs(folder: Path, tree: Mapping[str, tuple[str, str]], published: Iterable[str]) -> bool:
    """Whether a file is not there as the commit has it: another kind, other bytes, or none."""
    if any(path not in tree for path in published):
        return True
    return any(
        _hashed(folder, path, len(digest)) != (kind, digest)
        for path, (kind, digest) in tree.items()
        if kind != _OTHER  # another repository's commit is no file of this one
    )


def _hashed(folder: Path, name: str, digits: int) -> tuple[str, str] | None:
    """Kind and hash of a file as git has them of one, without what filters would make of it."""
    path = folder / name
    try:
        if any((folder / one).is_symlink() for one in names.above(name)):
            return None
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISLNK(found.st_mode):
        kind, chunks = _LINK, iter([os.fsencode(os.readlink(path))])
    elif stat.S_ISREG(found.st_mode):
        kind, chunks = _REGULAR, _chunks(path)
    else:
        return None
    digest = hashlib.new("sha1" if digits == 40 else "sha256", usedforsecurity=False)
    digest.update(b"blob %d\0" % found.st_size)
    for chunk in chunks:
        digest.update(chunk)
    return kind, digest.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _line(folder: Path, *words: str) -> str | None:
    """What git answers, without its last line's end; None where it has nothing to say."""
    told = _git(folder, *words)
    return told.decode(errors="replace").strip() or None if told is not None else None


def _git(folder: Path, *words: str) -> bytes | None:
    said = {name: v for name, v in os.environ.items() if not name.startswith("GIT_")}
    said |= {name: v for name, v in os.environ.items() if name.startswith(_KEPT)}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(folder), *words],
            capture_output=True,
            env=said | _ALONE,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
