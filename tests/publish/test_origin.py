"""Day and commit come from git's objects, and nothing that a repository names is ever run."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes.errors import RcrError
from rcr_probes.publish.origin import Origin, origin
from tests.publish.packaged import ORIGIN

FILES = {"captures.jsonl": b'{"a":1}\r\n', "guide/index.html": b"<p>"}


def git(folder: Path, *words: str, given: bytes | None = None) -> str:
    said = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    day = {f"GIT_{who}_DATE": "2025-06-07T08:09:10+0000" for who in ("AUTHOR", "COMMITTER")}
    day |= {name: said for name, said in os.environ.items() if name in day}
    who = ("-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid")
    done = subprocess.run(
        ["git", *who, "-C", str(folder), *words],
        env={**os.environ, **day, **said},
        input=given,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def template(folder: Path, form: str) -> Path:
    """A repository with evidence in it, of one commit, made once; no test changes it."""
    if folder.exists():
        return folder
    evidence = folder / "evidence"
    for name, data in FILES.items():
        (evidence / name).parent.mkdir(parents=True, exist_ok=True)
        (evidence / name).write_bytes(data)
    (folder / "README").write_text("beside it")
    git(folder, "init", "-q", f"--object-format={form}")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Keep the evidence")
    return folder


def repository(folder: Path, form: str = "sha1") -> Path:
    """A copy of such a repository for one test to change; the folder of the evidence."""
    made = template(folder.parents[1] / f"origin-{form}", form)  # beside the tests' own folders
    shutil.copytree(made, folder, symlinks=True)
    return folder / "evidence"


def found(evidence: Path) -> Origin:
    return origin(evidence, None, None, FILES)


def program(folder: Path) -> tuple[str, Path]:
    """A command that leaves a mark where it ran."""
    mark = folder / "was-run"
    path = folder / "program.sh"
    path.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    path.chmod(0o755)
    return str(path), mark


def signed(folder: Path) -> None:
    """The commit again, with what looks like a signature: git asks a program about it."""
    raw = git(folder, "cat-file", "commit", "HEAD")
    head, _, message = raw.partition("\n\n")
    text = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n"
    made = git(folder, "hash-object", "-t", "commit", "-w", "--stdin",
               given=f"{text}{message}\n".encode())  # fmt: skip
    git(folder, "update-ref", "HEAD", made)


def lazy(folder: Path) -> None:
    """A clone that fetches what it lacks, and lacks the files and the folders of its commit."""
    git(folder, "config", "core.repositoryFormatVersion", "1")
    git(folder, "config", "extensions.partialClone", "origin")
    git(folder, "config", "remote.origin.promisor", "true")
    names = ("HEAD:evidence", "HEAD:README", "HEAD:evidence/guide")
    for digest in git(folder, "rev-parse", *names).split():
        (folder / ".git" / "objects" / digest[:2] / digest[2:]).unlink()


Prepare = Callable[[Path], object]
HOOKS = ("post-index-change", "fsmonitor-watchman", "post-checkout")
# What a configuration names, and what must be so that git comes to it.
NAMED: dict[str, tuple[dict[str, str], Prepare]] = {
    "monitor": ({"core.fsmonitor": "{program}"}, lambda _: None),
    "hooks": (
        {"core.hooksPath": "{folder}/hooks"},
        lambda folder: [
            shutil.copytree(folder / ".git/hooks", folder / "hooks"),
            *(shutil.copy(folder / "program.sh", folder / "hooks" / name) for name in HOOKS),
        ],
    ),
    "filter": (
        {"filter.x.clean": "{program}", "filter.x.smudge": "{program}"},
        lambda folder: (folder / "evidence/.gitattributes").write_text("* filter=x diff=x\n"),
    ),
    "process": (
        {"filter.x.process": "{program}", "filter.x.required": "true"},
        lambda folder: (folder / ".git/info/attributes").write_text("* filter=x\n"),
    ),
    "difference": (
        {
            "diff.external": "{program}",
            "diff.x.textconv": "{program}",
            "diff.x.command": "{program}",
        },
        lambda folder: (folder / ".git/info/attributes").write_text("* diff=x\n"),
    ),
    "pager": ({"core.pager": "{program}", "pager.log": "{program}"}, lambda _: None),
    "signature": ({"log.showSignature": "true", "gpg.program": "{program}"}, signed),
    "editor": ({"core.editor": "{program}", "core.askPass": "{program}"}, lambda _: None),
    "lazy, by a command": ({"remote.origin.url": "ext::{program}"}, lazy),
    "lazy, by a path": (
        {"remote.origin.url": "{folder}", "remote.origin.uploadpack": "{program}"},
        lazy,
    ),
    "lazy, by ssh": (
        {"remote.origin.url": "ssh://127.0.0.1/x", "core.sshCommand": "{program}"},
        lazy,
    ),
    "lazy, and allowed": (
        {"remote.origin.url": "ext::{program}", "protocol.ext.allow": "always"},
        lazy,
    ),
}


@pytest.mark.parametrize("what", NAMED)
def test_nothing_that_a_configuration_names_is_run(tmp_path: Path, what: str) -> None:
    """Filters, monitors, hooks, programs for signatures and differences, and remotes."""
    settings, prepare = NAMED[what]
    evidence = repository(tmp_path / "theirs")
    folder = evidence.parent
    command, mark = program(folder)
    prepare(folder)
    for key, said in settings.items():
        git(folder, "config", key, said.format(program=command, folder=folder))
    for path in evidence.rglob("*"):
        os.utime(path, (1, 1))  # git would look at the files themselves
    (evidence / "captures.jsonl").write_bytes(b"changed")
    with contextlib.suppress(RcrError):  # what is not there says no day
        assert found(evidence).modified is True
    assert not mark.exists()


def test_these_configurations_do_run_programs(tmp_path: Path) -> None:
    """The test above could fail: what was asked before comes to them."""
    evidence = repository(tmp_path / "theirs")
    folder = evidence.parent
    command, mark = program(folder)
    for number, (what, words) in enumerate(
        (
            ("monitor", ("status", "--porcelain")),
            ("filter", ("status", "--porcelain", "--", ".")),
            ("signature", ("log", "-1", "--format=%cs")),
            ("lazy, by a path", ("log", "-1", "--", "evidence/guide")),
        )
    ):
        settings, prepare = NAMED[what]
        prepare(folder)
        for key, said in settings.items():
            git(folder, "config", key, said.format(program=command, folder=folder))
        for path in evidence.rglob("*"):
            os.utime(path, (number, number))
        with contextlib.suppress(subprocess.CalledProcessError):  # a remote that answers nothing
            git(folder, *words)
        assert mark.exists(), what
        mark.unlink()
        for key in settings:
            git(folder, "config", "--unset", key)


def test_a_bare_repository_in_the_evidence_is_none(tmp_path: Path) -> None:
    """Its objects could be in any file of it; the repository above is the one that holds it."""
    evidence = repository(tmp_path / "theirs")
    git(evidence, "init", "-q", "--bare", ".")
    with pytest.raises(RcrError, match="does not say of which day"):
        found(evidence)


@pytest.mark.parametrize(
    "name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"]
)
def test_the_callers_environment_names_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As inside a hook of another one."""
    evidence = repository(tmp_path / "theirs")
    commit = git(evidence, "rev-parse", "HEAD")
    monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert found(evidence) == Origin("2025-06-07", commit, False)


def linked(path: Path) -> None:
    """Move something out of the folder, and leave a link to it."""
    path.symlink_to(path.rename(path.parents[1] / "moved"))


def emptied(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES: dict[str, tuple[Prepare, bool]] = {
    "nothing": (lambda _: None, False),
    "times": (lambda f: os.utime(f / "captures.jsonl", (1, 1)), False),
    "a mode, which is not published": (lambda f: (f / "captures.jsonl").chmod(0o755), False),
    "what lies beside it": (lambda f: (f.parent / "README").write_text("other"), False),
    "a file more that is not published": (lambda f: (f / "notes").write_text("x"), False),
    "bytes": (lambda f: (f / "captures.jsonl").write_bytes(b'{"a":2}\r\n'), True),
    "the ends of lines": (lambda f: (f / "captures.jsonl").write_bytes(b'{"a":1}\n'), True),
    "a file less": (lambda f: (f / "guide/index.html").unlink(), True),
    "a link to the same": (lambda f: linked(f / "captures.jsonl"), True),
    "a folder that is a link": (lambda f: linked(f / "guide"), True),
    "a folder in place of a file": (lambda f: emptied(f / "captures.jsonl"), True),
    "bytes that the index knows": (
        lambda f: (f / "captures.jsonl").write_bytes(b"new") and git(f, "add", "."),
        True,
    ),
    "a file that git was told to take for unchanged": (
        lambda f: (
            git(f, "update-index", "--assume-unchanged", "captures.jsonl")
            or (f / "captures.jsonl").write_bytes(b"new")
        ),
        True,
    ),
}


@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("what", CHANGES)
def test_what_differs_from_the_commit_is_told_by_its_bytes(
    tmp_path: Path, what: str, form: str
) -> None:
    """Of what is published, and of what the commit has in the folder; of nothing else."""
    change, modified = CHANGES[what]
    evidence = repository(tmp_path / "ours", form)
    commit = git(evidence, "rev-parse", "HEAD")
    change(evidence)
    assert found(evidence) == Origin("2025-06-07", commit, modified)


def test_a_published_file_that_no_commit_holds_differs(tmp_path: Path) -> None:
    """Also where all others are as they were."""
    evidence = repository(tmp_path / "ours")
    assert origin(evidence, None, None, [*FILES, "more"]).modified is True


def test_a_link_in_the_commit_is_told_by_where_it_leads(tmp_path: Path) -> None:
    """The same as a regular file with that text it is not."""
    evidence = repository(tmp_path / "ours")
    (evidence / "link").symlink_to("captures.jsonl")
    git(evidence, "add", ".")
    git(evidence, "commit", "-qm", "Add a link")
    assert found(evidence).modified is False
    (evidence / "link").unlink()
    (evidence / "link").write_text("captures.jsonl")
    assert found(evidence).modified is True


def test_the_day_is_that_of_the_last_commit_that_touched_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the commit is the one that is checked out."""
    evidence = repository(tmp_path / "ours")
    (evidence.parent / "README").write_text("later")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2025-09-09T00:00:00+0000")
    git(evidence.parent, "commit", "-qam", "Say more")
    told = found(evidence)
    assert told.date == "2025-06-07"
    assert told.commit == git(evidence, "rev-parse", "HEAD")


def test_a_shallow_clone_says_no_day_that_it_cannot_know(tmp_path: Path) -> None:
    """Where it ends, an earlier commit may have touched the evidence last; the day can be given."""
    evidence = repository(tmp_path / "ours")
    (evidence.parent / "README").write_text("later")
    git(evidence.parent, "commit", "-qam", "Say more")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{evidence.parent}", "shallow")
    clone = tmp_path / "shallow" / "evidence"
    with pytest.raises(RcrError, match="shallow") as raised:
        found(clone)
    assert "--date" in raised.value.remedy
    assert "--unshallow" in raised.value.remedy
    commit = git(evidence, "rev-parse", "HEAD")
    assert origin(clone, "2025-06-07", None, FILES) == Origin("2025-06-07", commit, False)
    (clone / "captures.jsonl").write_bytes(b"new")
    git(clone, "commit", "-qam", "Change the evidence")
    assert found(clone).date == "2025-06-07"  # that commit is seen whole


def test_what_is_given_is_what_is_said(tmp_path: Path) -> None:
    """Nobody looks at the files then; without git, too."""
    assert origin(tmp_path, ORIGIN["date"], ORIGIN["commit"], FILES) == Origin(
        ORIGIN["date"], ORIGIN["commit"], None
    )
    for day, commit, match in (
        ("yesterday", None, "no day"),
        ("2026-02-30", None, "no day"),
        (None, None, "--date"),
        (ORIGIN["date"], "main", "commit"),
    ):
        with pytest.raises(RcrError, match=match):
            origin(tmp_path, day, commit, FILES)


def test_a_hash_is_gits_own(tmp_path: Path) -> None:
    """Of bytes of every size, as git's own program gives it."""
    from rcr_probes.publish.origin import _hashed

    git(tmp_path, "init", "-q")
    for size in (0, 1, 1 << 20, (1 << 20) + 1):
        data = hashlib.sha256(b"x").digest() * (size // 32 + 1)
        (tmp_path / "file").write_bytes(data[:size])
        told = git(tmp_path, "hash-object", "--no-filters", "file")
        assert _hashed(tmp_path, "file", 40) == ("100", told)
