"""``rcr run``: what it prints, keeps and resumes, and what is left where it is interrupted."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rcr_probes.evidence.form import CAPTURES
from rcr_probes.scratch import PREFIX
from tests.cli.typed import (
    CONTROL,
    FAULT_LOCATIONS,
    P3,
    RESTART,
    ROOT,
    Captured,
    drawn,
    environment,
    process,
    rcr,
    refused,
    written,
)


def test_run_prints_both_tables_of_the_article(capsys: Captured, tmp_path: Path) -> None:
    """Measured on this machine, they equal the published figures; results alone are on stdout."""
    assert rcr("run", "article") == 0
    out, err = capsys.readouterr()
    assert drawn(out) == [FAULT_LOCATIONS, RESTART]
    assert out.splitlines()[0] == "Fault locations"
    assert (tmp_path / "runs" / "article" / CAPTURES).exists()
    assert err.splitlines()[0] == "runs/article: measured, cells: 6"


def test_run_says_what_to_act_on_and_what_to_type(capsys: Captured) -> None:
    """One sentence for each verdict that needs a person, on stderr, and a command that works."""
    rcr("run", "article")
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines[1::2]] == ["duplicate_effect", "blocked"]
    assert lines[1].startswith("duplicate_effect in 1 of 6 cells. Do not call again")
    command = shlex.split(lines[2])
    assert command == ["rcr", "explain", "runs/article", P3]
    assert rcr(*command[1:]) == 0


def test_run_says_in_chinese_what_it_says_beside_its_tables(capsys: Captured) -> None:
    """What it did, what to act on, and a command that answers in the same language."""
    rcr("run", "article", "--lang", "zh")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "runs/article：已测量，单元：6 个"
    command = shlex.split(lines[2])
    assert command == ["rcr", "explain", "runs/article", P3, "--lang", "zh"]
    assert rcr(*command[1:]) == 0
    rcr("run", "article", "--lang", "zh")
    assert "这次没有运行" in capsys.readouterr().err.splitlines()[0]


def test_a_complete_folder_is_not_run_again(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """It says so, says how to run anew, and prints the tables all the same."""
    copy = Path(shutil.copytree(article, tmp_path / "copy"))
    before = (copy / CAPTURES).read_bytes()
    assert rcr("run", "article", "--into", copy, "--start", "spawn") == 0
    out, err = capsys.readouterr()
    assert drawn(out) == [FAULT_LOCATIONS, RESTART]
    assert "nothing was run" in err
    assert "--again" in err
    assert (copy / CAPTURES).read_bytes() == before


def test_again_runs_anew_and_keeps_what_was_there(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """The old evidence stands beside the new one."""
    copy = Path(shutil.copytree(article, tmp_path / "copy"))
    before = (copy / CAPTURES).read_bytes()
    assert rcr("run", "article", "--into", copy, "--again") == 0
    assert "nothing was run" not in capsys.readouterr().err
    assert (tmp_path / "copy.previous" / CAPTURES).read_bytes() == before
    assert (copy / CAPTURES).read_bytes() != before


def test_only_runs_the_cells_that_are_named(tmp_path: Path, capsys: Captured) -> None:
    """They go to a folder of their own, in the plan's order, and verdicts are what is drawn."""
    assert rcr("run", "article", "--only", P3, "--only", CONTROL) == 0
    out, err = capsys.readouterr()
    assert err.splitlines()[0] == "runs/article.only: measured, cells: 2"
    assert drawn(out)[0][1:] == [
        ["none", "none", "none", "same", "protected", "-"],
        ["completion_audit", "audit_is_directory", "none", "same", "-", "duplicate_effect"],
    ]
    assert rcr("show", "runs/article.only", "--json") == 0
    assert [row["cell"] for row in json.loads(capsys.readouterr().out)] == [CONTROL, P3]


def test_keep_keeps_the_folder_of_each_cell(tmp_path: Path) -> None:
    """For whoever wants to look at the records themselves."""
    assert rcr("run", "article", "--only", P3, "--keep", "--into", "kept") == 0
    assert [p.name[:22] for p in (tmp_path / "kept.cells").iterdir()] == ["0000-completion_audit-"]


def test_a_cell_that_cannot_be_judged_makes_the_exit_code_3(capsys: Captured) -> None:
    """A phase that overruns its deadline says nothing about the runtime."""
    assert rcr("run", "article", "--only", P3, "--start", "spawn", "--deadline", "0.001") == 3
    out, err = capsys.readouterr()
    assert "unknown" in out
    assert "unknown in 1 of 1 cells. Conclude nothing from this cell" in err


def test_a_plan_with_other_cells_is_shown_as_verdicts(capsys: Captured) -> None:
    """The plan ``locations`` holds some of the article's rows, and no table of it whole."""
    assert rcr("run", "locations") == 0
    tables = drawn(capsys.readouterr().out)
    assert len(tables) == 1
    assert tables[0][0][:4] == ["point", "fault", "dedupe", "digest"]


@pytest.mark.parametrize(
    ("written_so", "instead", "row", "whole"),
    [
        ("operation_key", "late_key", "completion_audit audit_is_directory late_key same", 1),
        ('"changed"', '"reordered"', "completion_audit audit_is_directory none reordered", 1),
        ('"again"', '"never"', "none none none same", 1),
        ("# P0", "[[cells]]\npoint = 'response'\nfault = 'kill'\n# P0", "response kill", 2),
    ],
)
def test_a_changed_copy_of_the_article_shows_every_cell(
    written_so: str, instead: str, row: str, whole: int, tmp_path: Path, capsys: Captured
) -> None:
    """The article's tables where they are whole, and all verdicts where a cell is in neither."""
    plan = (ROOT / "rcr_probes" / "plans" / "article.toml").read_text(encoding="utf-8")
    assert written_so in plan
    copy = written(tmp_path / "copy.toml", plan.replace(written_so, instead, 1))
    assert rcr("run", copy) in (0, 3)
    *tables, verdicts = drawn(capsys.readouterr().out)
    assert len(tables) == whole
    assert any(" ".join(line).startswith(row) for line in verdicts)


def test_the_whole_way_from_run_to_compare(tmp_path: Path, capsys: Captured) -> None:
    """Each command takes what the one before it made, in a folder with blanks and Chinese."""
    folder = tmp_path / "a path" / "证据"
    assert rcr("run", "article", "--into", folder) == 0
    assert rcr("show", folder) == 0
    assert rcr("explain", folder, P3) == 0
    assert rcr("check", folder) == 0
    assert rcr("compare", folder, folder) == 0
    assert "sound, captures: 6" in capsys.readouterr().out


def running(mark: str) -> set[int]:
    """The processes that were started with this mark in their environment, at whatever depth."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is another user's
            if f"RCR_TEST_MARK={mark}".encode() in (place / "environ").read_bytes():
                found.add(int(place.name))
    return found


def scratch(pid: int) -> list[Path]:
    """Where the cells of a run stand."""
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [found for place in places for found in place.glob(f"{PREFIX}{pid}-*")]


def test_a_run_in_the_callers_process_leaves_its_signals_as_they_were(capsys: Captured) -> None:
    """Whether it comes to its end or is refused."""
    before = {by: signal.getsignal(by) for by in (signal.SIGINT, signal.SIGTERM)}
    assert rcr("run", "article") == 0
    capsys.readouterr()
    refused(capsys, "run", "locations", "--into", "runs/article")
    assert {by: signal.getsignal(by) for by in before} == before


@pytest.mark.parametrize(
    ("start", "by", "lang", "to_resume"),
    [
        ("spawn", signal.SIGINT, "en", "To resume: "),
        ("fork", signal.SIGTERM, "zh", "要继续，请运行："),
    ],
)
def test_an_interrupted_run_leaves_nothing_and_says_how_to_resume(
    start: str, by: signal.Signals, lang: str, to_resume: str, tmp_path: Path, capsys: Captured
) -> None:
    """Exit 130, what is measured stays, no process or folder does, and what is shown resumes."""
    folder = tmp_path / "long run"
    mark = f"rcr-test-{os.getpid()}-{start}-{by.name}"
    plan = written(
        tmp_path / "long.toml",
        f"[[cells]]\npoint = 'after_action'\nfault = 'kill'\nrepeat = {list(range(100))}",
    )
    words = ["run", str(plan), "--start", start, "--workers", "1", "--into", str(folder)]
    words += ["--lang", lang]
    captures = folder / CAPTURES
    deadline = time.monotonic() + 60
    with subprocess.Popen(
        process(*words, "--again"),
        env=environment(RCR_TEST_MARK=mark),
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(by, signal.SIG_DFL),  # a shell's & ignores SIGINT
    ) as started:
        while not (captures.exists() and captures.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        seen = running(mark), scratch(started.pid)
        started.send_signal(by)
        _, err = started.communicate(timeout=60)
    assert seen[0] > {started.pid}  # the worker at least
    assert seen[1]
    assert started.returncode == 130
    assert "Traceback" not in err
    assert running(mark) == set()
    assert scratch(started.pid) == []
    measured = captures.read_bytes()
    assert 0 < measured.count(b"\n") < 100
    resume = shlex.split(err.splitlines()[-1].split(to_resume)[1])
    assert resume == ["rcr", *words]
    assert rcr(*resume[1:], "--start", "fork") == 0
    assert captures.read_bytes().startswith(measured)
    assert rcr("check", folder) == 0
    assert "captures: 100" in capsys.readouterr().out
