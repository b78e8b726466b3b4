"""Bad input: one clear message, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

from rcr_probes.evidence import store, write
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.report import terminal
from tests.cli.typed import P3, ROOT, Captured, environment, process, rcr, refused, written


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["rnu", "article"], "Did you mean 'run'?"),
        (["run", "artcle"], "Did you mean 'article'?"),
        (["run", "article", "--agian"], "Did you mean '--again'?"),
        (["run", "article", "--start", "frok"], "Did you mean 'fork'?"),
        (["show", "x", "--mardown"], "Did you mean '--markdown'?"),
        (["run", "article", "--only", P3.replace("resume", "resum")], f"Did you mean '{P3}'?"),
        (["decide", "--identity", "vaild", "--effect", "absent"], "Did you mean 'valid'?"),
        (
            ["decide", "--identity", "valid", "--effect", "unknown", "--capability", "repaly"],
            "Did you mean 'replay'?",
        ),
        (["notebooks", "-p", "strat", "spawn"], "Did you mean 'start'?"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_a_misspelt_name_is_answered_with_the_right_one(
    argv: list[str], meant: str, capsys: Captured
) -> None:
    """A command, a plan, an option, a choice, a cell, a capability."""
    assert meant in refused(capsys, *argv)


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["run"],
        ["run", "article", "one too many"],
        ["run", "article", "--workers", "two"],
        ["run", "article", "--workers", "0"],
        ["run", "article", "--deadline", "soon"],
        ["run", "article", "--deadline", "-1"],
        ["run", "article", "--deadline", "nan"],
        ["run", "no-such-plan.toml"],
        ["show", "nowhere"],
        ["show", "."],
        ["show", "nowhere", "--json", "--csv"],
        ["explain", "nowhere", P3],
        ["check", "nowhere"],
        ["check", "."],
        ["compare", "nowhere", "nowhere"],
        ["import", "nowhere"],
        ["import", "."],
        ["decide", "--identity", "valid"],
        ["notebooks", "-p", "start"],
        ["notebooks", "-p", "start", "7"],
    ],
    ids=" ".join,
)
def test_misuse_exits_2_with_cause_and_remedy(argv: list[str], capsys: Captured) -> None:
    """Whatever is mistyped, two lines say what is wrong and what to do."""
    refused(capsys, *argv)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[[cells]]\npiont = 'none'\nfault = 'none'", "Did you mean 'point'?"),
        ("[[cells]]\npoint = 'after_acton'\nfault = 'kill'", "Did you mean 'after_action'?"),
        ("[[cells]]\npoint = 'after_action'\nfault = 'kil'", "Did you mean 'kill'?"),
        ("[[cells]]\npoint = 'none'\nfault = 'none'\nseed = '1'", "whole number"),
        ("[[cells]]\npoint = 'after_action'\nfault = 'audit_is_directory'", "cannot strike"),
        ("[[cells]]\npoint = 'none'\nfault = 'none'\nruntime = 'nowhere:it'", "cannot be loaded"),
        ("[[cells]\n", "is not TOML"),
        ("name = 'empty'", "has no cells"),
        ("cells = 3", "has no cells"),
    ],
)
def test_a_plan_that_cannot_be_run_is_refused(
    toml: str, said: str, tmp_path: Path, capsys: Captured
) -> None:
    """Before anything runs, and before a folder is made."""
    assert said in refused(capsys, "run", written(tmp_path / "mine.toml", toml))
    assert not (tmp_path / "runs").exists()


def test_a_part_of_some_ids_is_answered_with_these(capsys: Captured) -> None:
    """--only takes whole ids: who types a part is shown those that hold it, to copy from."""
    said = refused(capsys, "run", "article", "--only", "completion_audit")
    assert "It is a part of 3 of those known" in said
    assert f"\n    {P3}\n" in said
    said = refused(capsys, "run", "article", "--only", "start_audit")
    assert "Did you mean 'start_audit/audit_is_directory/none/same/resume'?" in said


def test_an_unknown_cell_is_refused(article: Path, capsys: Captured) -> None:
    """The message lists the cells that there are."""
    assert P3 in refused(capsys, "explain", article, "no-such-cell")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "Begin with: rcr run article"),
        (["decide"], "example: rcr decide --identity valid"),
        (["compare", "nowhere"], "example: rcr compare runs/article"),
        (["--lang", "zh", "run", "article"], "Options come after a command"),
        (["--verbose"], "rcr itself has no option '--verbose'"),
        (["run", "article.toml"], "Did you mean article?"),
        (["run", "mien.toml"], "Did you mean mine.toml?"),
        (["run", "mine"], "Did you mean mine.toml?"),
        (["run", "yours"], "A plan of your own is a file, and named with .toml"),
        (["run", "unlike-any.toml"], "named without .toml: article, contrast"),
        (["notebooks", "03"], "Did you mean '03_p3_causal_chain'?"),
        (["import", ROOT / "evidence" / "article"], "rcr show DIR"),
        (["probe", "--answer", "nowhere.json", "--", "true"], "no file nowhere.json to answer"),
        (["probe", "--status", "700", "--", "true"], "200 to 599"),
        (["publish", "mine", "--into", "p", "--sign", "no.pem"], "openssl genpkey"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else "",
)
def test_who_types_it_for_the_first_time_is_told_what_to_type(
    argv: list[object], said: str, tmp_path: Path, capsys: Captured
) -> None:
    """What is missing, where an option belongs, what there is, and what a value can be."""
    written(tmp_path / "mine.toml", "")
    assert said in refused(capsys, *argv)


def test_another_plan_in_the_folder_is_refused(article: Path, capsys: Captured) -> None:
    """Evidence of one plan is never mixed with another's."""
    said = refused(capsys, "run", "locations", "--into", article)
    assert str(article) in said


def test_a_plan_that_kept_the_name_of_the_one_that_it_was_copied_from_is_told_so(
    tmp_path: Path, capsys: Captured
) -> None:
    """The folder is named by it, and holds the evidence of the other plan."""
    plan = "name = 'ours'\n[[cells]]\npoint = 'none'\nfault = 'none'\n"
    assert rcr("run", written(tmp_path / "ours.toml", plan)) == 0
    capsys.readouterr()
    copy = written(tmp_path / "copy.toml", f"{plan}seed = 1\n")
    said = refused(capsys, "run", copy)
    assert "runs/ours holds another plan than this one, whose name is 'ours'" in said
    assert "change name in its TOML" in said


def test_a_file_is_no_folder(tmp_path: Path, capsys: Captured) -> None:
    """Neither to write evidence into, nor to read it from; the file stays as it is."""
    file = written(tmp_path / "file", "mine")
    assert "file" in refused(capsys, "run", "article", "--into", file)
    assert "file" in refused(capsys, "run", "article", "--into", file / "below")
    assert "file" in refused(capsys, "show", file)
    assert "Name a folder, or a package's .zip" in refused(capsys, "check", file)
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("argv", "place"),
    [
        (["run", "article", "--into"], "/proc/evidence"),
        (["probe", "--into", "/proc/evidence", "--", "true"], ""),
        (["publish", ROOT / "evidence" / "article", "--date", "2026-11-30", "--into"], "/proc/it"),
        (["export", ROOT / "evidence" / "article", "--to"], "/proc/it.parquet"),
        (["import", ROOT / "examples" / "synthetic-package", "--into"], "/proc/it"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_place_that_takes_nothing_is_said(
    argv: list[object], place: str, capsys: Captured
) -> None:
    """The system's own word, with the place that was typed, and no other."""
    for needed in ("matplotlib", "cryptography", "pyarrow"):
        if argv[0] in ("publish", "export"):
            pytest.importorskip(needed)
    said = refused(capsys, *argv, *([place] if place else []))
    assert f"rcr: {place or '/proc/evidence'}: No such file or directory." in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_said(tmp_path: Path, capsys: Captured) -> None:
    """And what to do instead."""
    tmp_path.chmod(0o500)
    try:
        assert "Permission denied" in refused(capsys, "run", "article", "--into", "here")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("command", [["show"], ["explain", P3], ["compare", "same"]])
def test_evidence_that_cannot_be_read_is_not_shown(
    command: list[str], article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """A cut capture file: exit 1 and the line, instead of the rows that are left."""
    torn = Path(shutil.copytree(article, tmp_path / "torn"))
    data = (torn / CAPTURES).read_bytes()
    (torn / CAPTURES).write_bytes(data[: len(data) // 2])
    rest = [str(article) if word == "same" else word for word in command[1:]]
    assert f"{CAPTURES}:" in refused(capsys, command[0], torn, *rest, code=1)


def test_evidence_that_no_run_makes_is_not_shown(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """It may say what nobody can count or draw, and be sealed: it is refused, with its check."""
    forged = Path(shutil.copytree(article, tmp_path / "forged"))
    said = (forged / CAPTURES).read_text(encoding="utf-8")
    (forged / CAPTURES).write_text(said.replace('"calls":1,', f'"calls":{1 << 70},'))
    write.write_manifest(forged, store.read_plan(forged))
    assert f"rcr check {forged}" in refused(capsys, "show", forged, code=1)


def test_what_breaks_over_sound_evidence_is_not_laid_to_it(
    article: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error of ours, and comes out as one."""

    def broken(*_: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr(terminal, "every", broken)
    with pytest.raises(ZeroDivisionError):
        rcr("show", article)


@pytest.mark.parametrize("argv", [["--help"], ["show", "--help"], ["decide", "--help"]])
def test_help_that_cannot_be_written_is_no_success(argv: list[str]) -> None:
    """As whatever else goes to a full disk."""
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            process(*argv), stdout=full, stderr=subprocess.PIPE, env=environment(), text=True
        )
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (2, "rcr: No space left on device.")


def test_too_little_memory_is_said(
    article: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Whoever set a limit is told of it; what was sealed has nothing to do with it."""

    def greedy(*_: object) -> NoReturn:
        raise MemoryError

    monkeypatch.setattr(terminal, "every", greedy)
    assert "ulimit -v" in refused(capsys, "show", article)


def test_a_cutoff_is_a_moment_of_the_cell_by_its_events_number(
    article: Path, capsys: Captured
) -> None:
    """From its first event to its last, as rcr explain numbers them; none before, none after."""
    assert rcr("explain", article, P3) == 0
    numbers = re.findall(r"^ +(\d+)  ", capsys.readouterr().out, re.MULTILINE)
    first, last = int(numbers[0]), int(numbers[-1])
    for at in (first, last):
        assert rcr("timeline", article, P3, "--at", at) == 0
    assert f" {last} " in capsys.readouterr().out
    for at in (first - 1, last + 1, 1 << 40):
        said = refused(capsys, "timeline", article, P3, "--at", at)
        assert f"{at} is no moment of {P3}" in said
        assert f"a number from {first} to {last};" in said


@pytest.mark.parametrize("at", ["9" * 4300, str(1 << 63), "True", "1.0"])
def test_a_cutoff_is_a_number_that_can_be_written_again(at: str, capsys: Captured) -> None:
    """One of thousands of digits can be read, and then not be said."""
    assert "64 bits" in refused(capsys, "timeline", "evidence/article", P3, "--at", at)
