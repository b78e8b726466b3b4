"""The command line, driven as a person drives it."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from rcr_probes import grammar
from rcr_probes import run as runs
from rcr_probes.cli import main
from rcr_probes.evidence import store
from rcr_probes.evidence.rows import COLUMNS
from rcr_probes.evidence.store import CAPTURES
from rcr_probes.scratch import PREFIX
from tests.evidence import made

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = (
    "run",
    "probe",
    "runtimes",
    "conformance",
    "show",
    "export",
    "explain",
    "check",
    "publish",
    "compare",
    "import",
    "timeline",
    "decide",
    "guide",
    "notebooks",
)
P3 = "completion_audit/audit_is_directory/none/same/resume"
CONTROL = "none/none/none/same/again"
OPTION = r"(?<![\w-])--?[a-z]+(?:-[a-z]+)*"

FAULT_LOCATIONS = [
    ["probe", "caller sees", "persisted state", "effects"],
    ["P0", "APPROVAL_ALREADY_CONSUMED", "succeeded", "1"],
    ["P1", "EISDIR", "approved", "0"],
    ["P2", "EISDIR", "executing", "0"],
    ["P3", "EISDIR", "failed", "1"],
]
RESTART = [
    [
        "executor",
        "effects after fault",
        "after recovery in a new process",
        "calls",
        "recovery",
    ],
    ["no dedupe, same digest", "1", "2", "2", "succeeded"],
    ["stable operation key, same digest", "1", "1", "2", "succeeded"],
    ["changed digest", "1", "1", "1", "APPROVAL_STALE"],
]

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def article(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of the article's plan; no test changes it."""
    return runs.run("article", tmp_path_factory.mktemp("runs") / "article").folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command writes by default, it writes below the current directory."""
    monkeypatch.chdir(tmp_path)


def rcr(*argv: object) -> int:
    """One command in this process; what argparse exits with counts as returned."""
    try:
        return main([str(word) for word in argv])
    except SystemExit as stopped:
        return int(stopped.code or 0)


def process(*argv: object) -> list[str]:
    """The words that start ``rcr`` as a process of its own."""
    return [sys.executable, "-m", "rcr_probes.cli", *(str(word) for word in argv)]


def environment(**changes: str) -> dict[str, str]:
    """Ours, but for what would hide how streams are buffered where a user runs it."""
    ours = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**ours, "PYTHONPATH": str(ROOT), **changes}


def refused(capsys: Captured, *argv: object, code: int = 2) -> str:
    """What stderr says of a command that is refused: cause, then remedy, nothing on stdout."""
    assert rcr(*argv) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rcr: ")
    assert "Traceback" not in err
    assert len(err.splitlines()) >= 2
    return err


def drawn(out: str) -> list[list[list[str]]]:
    """The tables in an output: every line split where two blanks or more stand."""
    found: list[list[list[str]]] = []
    for block in out.split("\n\n"):
        lines = [line for line in block.splitlines() if line.strip() and "──" not in line]
        rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
        if len(rows) > 1:
            found.append(rows)
    return found


# Help.


def example(command: str, capsys: Captured) -> list[str]:
    """The words of the example in a command's help, after ``rcr``."""
    assert rcr(command, "--help") == 0
    first, *rest = shlex.split(capsys.readouterr().out.split("example:\n")[1])
    assert first == "rcr"
    return rest


def test_help_names_every_command_and_a_first_thing_to_type(capsys: Captured) -> None:
    """Nobody has to know a command beforehand."""
    assert rcr("--help") == 0
    out = capsys.readouterr().out
    assert re.findall(r"^    (\w+)", out, re.MULTILINE) == list(COMMANDS)
    assert "rcr run article" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_of_each_command_works(
    command: str, article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """What a help text shows can be typed as it stands, in a clone where ``make run`` was typed."""
    if command != "run":
        shutil.copytree(article, tmp_path / "runs" / "article")
    shutil.copytree(ROOT / "evidence", tmp_path / "evidence")
    made.package(tmp_path / "rcr-20260831")
    words = process(*example(command, capsys))
    done = subprocess.run(words, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def options(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a command, but for those of its help."""
    given = {name for action in parser._actions for name in action.option_strings}
    return given - {"-h", "--help"}


def test_the_design_names_every_command_and_option_and_no_other() -> None:
    """docs/design.md §9 is the command line; the language is said once, for all that take it."""
    section = (ROOT / "docs" / "design.md").read_text(encoding="utf-8").split("## 9.")[1]
    block, rest = section.split("## 10.")[0].split("\n\n`run`, `probe`")
    take_language = {"run", "probe", *re.findall(r"`(\w+)`", rest.split(" take `--lang ")[0])}
    parts = re.split(r"^    rcr (?=\w)", block, flags=re.MULTILINE)
    named = {part.split()[0]: set(re.findall(OPTION, part)) for part in parts[1:]}
    [commands] = [
        a.choices for a in grammar.reader(*grammar.COMMANDS)._actions if isinstance(a.choices, dict)
    ]
    assert list(named) == list(commands) == list(COMMANDS)
    for name, parser in commands.items():
        language = {"--lang"} if name in take_language else set()
        assert options(parser) == named[name] | language, name


# Run, and what comes after it.


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


def test_the_whole_way_from_run_to_compare(tmp_path: Path, capsys: Captured) -> None:
    """Each command takes what the one before it made, in a folder with blanks and Chinese."""
    folder = tmp_path / "a path" / "证据"
    assert rcr("run", "article", "--into", folder) == 0
    assert rcr("show", folder) == 0
    assert rcr("explain", folder, P3) == 0
    assert rcr("check", folder) == 0
    assert rcr("compare", folder, folder) == 0
    assert "sound, captures: 6" in capsys.readouterr().out


# Show.


def test_show_prints_tables_and_verdicts(article: Path, capsys: Captured) -> None:
    """Without options a reader sees all that there is to see at once."""
    assert rcr("show", article) == 0
    first, second, verdicts = drawn(capsys.readouterr().out)
    assert [first, second] == [FAULT_LOCATIONS, RESTART]
    assert verdicts[-2] == [*P3.split("/")[:3], "changed", "-", "protected"]


def test_json_has_exactly_the_designed_columns(article: Path, capsys: Captured) -> None:
    """The tidy table: the same names everywhere, in the same order."""
    assert rcr("show", article, "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 6
    assert all(list(row) == list(COLUMNS) for row in rows)
    designed = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    listed = designed.split("## 7.")[1].split("\n\n")[2]
    assert [name.strip() for name in listed.replace("\n", " ").split(",")] == list(COLUMNS)


def test_csv_holds_the_same_rows_as_json(article: Path, capsys: Captured) -> None:
    """Null is an empty field, and true and false are written as JSON writes them."""
    rcr("show", article, "--json")
    rows = json.loads(capsys.readouterr().out)
    assert rcr("show", article, "--csv") == 0
    read = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert read == [
        {
            name: "" if value is None else value if isinstance(value, str) else json.dumps(value)
            for name, value in row.items()
        }
        for row in rows
    ]


def test_exported_rows_are_shown_as_the_evidence_is(article: Path, capsys: Captured) -> None:
    """The same tables, the same JSON, the same CSV; what rows alone do not draw is named."""
    pytest.importorskip("pyarrow", reason="pip install 'rcr-probes[parquet]'")
    assert rcr("export", article, "--to", "article.parquet") == 0
    assert capsys.readouterr().out == "article.parquet: rows: 6\n"
    for form in ([], ["--json"], ["--csv"], ["--markdown"], ["--lang", "zh"]):
        assert rcr("show", article, *form) == 0
        whole = capsys.readouterr()
        assert rcr("show", "article.parquet", *form) == 0
        assert capsys.readouterr() == whole
    assert "there already" in refused(capsys, "export", article, "--to", "article.parquet")
    assert rcr("export", ROOT / "evidence" / "faults", "--to", "faults.parquet") == 0
    assert rcr("show", "faults.parquet") == 0
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "Rows alone do not draw, and rcr show DIR does:"
    assert "  What happened around recovery" in said
    assert "There is no file" in refused(capsys, "show", "none.parquet")


def test_markdown_holds_the_same_tables(article: Path, capsys: Captured) -> None:
    """As GitHub draws them."""
    assert rcr("show", article, "--markdown") == 0
    out = capsys.readouterr().out
    for table in (FAULT_LOCATIONS, RESTART):
        for row in table:
            assert f"| {' | '.join(row)} |" in out
    assert "| --- | --- | --- | ---: |" in out


def test_show_speaks_chinese(article: Path, capsys: Captured) -> None:
    """Headings and verdicts are translated; what names a value in the data is not."""
    assert rcr("show", article, "--lang", "zh") == 0
    out = capsys.readouterr().out
    assert "重复效果" in out
    assert "APPROVAL_ALREADY_CONSUMED" in out
    assert "effects" not in out


def test_published_rows_are_shown_though_they_are_not_judged(capsys: Captured) -> None:
    """Both baselines stand in the tables."""
    published = ROOT / "evidence" / "rcr-20260831"
    assert rcr("show", published) == 0
    first, _ = drawn(capsys.readouterr().out)
    assert {row[0] for row in first[1:]} == {"P0", "P1", "P2", "P3"}


def test_a_pipe_gets_no_colour_and_every_letter(article: Path) -> None:
    """Nothing is cut to 80 columns, and no line ends in blanks."""
    done = subprocess.run(
        process("show", article), env=environment(COLUMNS="40"), capture_output=True, check=True
    )
    out = done.stdout.decode()
    assert "\x1b" not in out
    assert drawn(out)[:2] == [FAULT_LOCATIONS, RESTART]
    assert all(line == line.rstrip() for line in out.splitlines())


def test_a_narrow_terminal_gets_every_letter_too(article: Path) -> None:
    """What does not fit is folded, never cut."""
    out = in_terminal(process("show", article, "--lang", "zh"), COLUMNS="50")
    assert "…" not in out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
    row = plain[plain.index("  P0 ") : plain.index("  P1 ")].splitlines()
    column = row[0].index("APPROVAL")
    seen = [line[column:].split(" ")[0] for line in row]
    assert len(seen) > 1
    assert "".join(seen) == "APPROVAL_ALREADY_CONSUMED"


def test_a_terminal_sees_progress(tmp_path: Path) -> None:
    """The bar is on stderr, and only where stderr is a terminal."""
    out = in_terminal(process("run", "article", "--into", tmp_path / "seen"), TERM="xterm")
    assert "6/6" in out
    done = subprocess.run(
        process("run", "article", "--into", tmp_path / "unseen"),
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert b"6/6" not in done.stdout + done.stderr


def in_terminal(words: Sequence[str], **changes: str) -> str:
    """What a terminal receives of a command."""
    controller, terminal = pty.openpty()
    received: list[bytes] = []

    def read() -> None:
        while True:
            try:
                data = os.read(controller, 65536)
            except OSError:  # the other side is closed
                return
            if not data:
                return
            received.append(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        subprocess.run(
            words, stdout=terminal, stderr=terminal, env=environment(**changes), check=True
        )
    finally:
        os.close(terminal)
        reader.join(10)
        os.close(controller)
    return b"".join(received).decode()


@pytest.mark.parametrize("argv", [["show"], ["show", "--json"], ["explain"]])
def test_a_reader_that_has_seen_enough_is_no_error(article: Path, argv: list[str]) -> None:
    """``rcr show … | head -1`` ends quietly."""
    rest = [P3] if argv[0] == "explain" else []
    words = process(argv[0], article, *rest, *argv[1:])
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, env=environment())
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


def test_a_full_disk_under_stdout_is_said(article: Path) -> None:
    """Half a table is not a success."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            process("show", article), stdout=full, stderr=subprocess.PIPE, env=environment()
        )
    assert done.returncode == 2
    assert done.stderr.decode().startswith("rcr: No space left on device.")
    assert b"Exception ignored" not in done.stderr


def test_a_locale_without_chinese_still_gets_an_answer(article: Path) -> None:
    """A sign that the locale cannot write is replaced; the report goes on."""
    done = subprocess.run(
        process("explain", article, P3, "--lang", "zh"),
        env=environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
    )
    assert done.returncode == 0
    assert b"duplicate_effect" in done.stdout


# Explain.


def test_explain_tells_the_whole_cell(article: Path, capsys: Captured) -> None:
    """Events in order, what could be known, what was true, and why the verdict holds."""
    assert rcr("explain", article, P3) == 0
    out = capsys.readouterr().out
    for said in ("E1 appears", "EISDIR", "E2 appears", "[effect_present]", "duplicate_effect"):
        out = out[out.index(said) :]


def test_a_part_of_an_id_names_a_cell(article: Path, capsys: Captured) -> None:
    """As long as no other id holds it."""
    assert rcr("explain", article, "start_audit") == 0
    assert capsys.readouterr().out.startswith("start_audit/audit_is_directory/none/same/resume\n")


def test_an_ambiguous_part_lists_what_it_may_mean(article: Path, capsys: Captured) -> None:
    """The reader copies the right one."""
    said = refused(capsys, "explain", article, "completion_audit")
    assert said.count("completion_audit/audit_is_directory/") == 3


# Check, compare, import, decide.


def test_check_names_what_is_not_to_be_trusted(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """An edited capture: exit 1, with the file on stdout; a folder of folders checks them all."""
    shutil.copytree(article, tmp_path / "all" / "good")
    bad = Path(shutil.copytree(article, tmp_path / "all" / "bad")) / CAPTURES
    bad.write_bytes(bad.read_bytes().replace(b'"calls":1', b'"calls":7', 1))
    assert rcr("check", "all/good") == 0
    assert rcr("check", "all/bad") == 1
    assert rcr("check", "all") == 1
    out = capsys.readouterr().out
    assert "all/good: sound, captures: 6" in out
    assert f"all/bad: {CAPTURES}" in out


def claims_of(folder: Path, **changes: object) -> Path:
    """A claim over the folder's P3, in a claims.toml beside it."""
    expect, where = changes.get("expect", 2), changes.get("where", 'policy = "resume"')
    (folder.parent / "claims.toml").write_text(
        f'''[[claim]]
id = "P3"
en = "Effects: {{value}}."
zh = "效果数为 {{value}}。"
evidence = "{folder.name}"
where = {{ point = "completion_audit", dedupe = "none", digest = "same", {where} }}
take = "effects_after_recovery"
expect = {expect}
not_shown_en = "A rate."
not_shown_zh = "比率。"
source = "measured here"
''',
        encoding="utf-8",
    )
    return folder.parent


def test_check_evaluates_the_claims_of_a_folder_of_folders(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """They hold, and what nothing uses is a note; or one does not, and the exit code is 1."""
    good = Path(shutil.copytree(article, tmp_path / "all" / "good"))
    every = claims_of(good)
    assert rcr("check", every) == 0
    *_, holding, note = capsys.readouterr().out.splitlines()
    assert holding == f"{every}/claims.toml: all hold, claims: 1"
    assert note.startswith(f"{every}/claims.toml: note: captures of good that no claim")
    claims_of(good, expect=1)
    assert rcr("check", every) == 1
    out = capsys.readouterr().out
    assert "claims.toml: P3: It expects 1, and the captures of good give 2." in out
    assert "all hold" not in out
    claims_of(good, where='polcy = "resume"')
    assert rcr("check", every) == 1
    assert "P3: It names a column that good does not have: polcy." in capsys.readouterr().out
    (every / "claims.toml").write_text("[[claim]]\nid = 'P3'\n")
    assert rcr("check", every) == 1
    assert "claims.toml claim 1 (P3): has no " in capsys.readouterr().out
    assert rcr("check", good) == 0


def test_show_claims_tells_what_each_rests_on(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Query, capture, digest, value, and whether it holds: in both languages, and as JSON."""
    every = claims_of(Path(shutil.copytree(article, tmp_path / "all" / "good")))
    [digest] = [c.facts_sha256 for c in store.read(article).captures() if c.cell.id == P3]
    capture = f"good/{CAPTURES}:4"
    for lang, words in (("en", ["P3: holds", "Effects: 2."]), ("zh", ["P3: 成立", "效果数为 2。"])):
        assert rcr("show", every, "--claims", "--lang", lang) == 0
        out = capsys.readouterr().out
        assert all(word in out for word in (*words, "policy = resume", capture, P3, digest))
    assert rcr("show", every, "--claims", "--json") == 0
    [one] = json.loads(capsys.readouterr().out)
    assert (one["value"], one["expect"], one["holds"], one["zh"]) == (2, 2, True, "效果数为 2。")
    assert one["captures"] == [{"place": capture, "cell": P3, "facts_sha256": digest}]


def test_claims_are_shown_where_they_are_and_in_their_own_forms(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """A folder without any, and a form that they do not have, are misuse."""
    assert "holds it beside its evidence" in refused(capsys, "show", article, "--claims")
    every = claims_of(Path(shutil.copytree(article, tmp_path / "all" / "good")))
    assert "--json" in refused(capsys, "show", every, "--claims", "--csv")


def test_compare_with_the_published_figures(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """They agree; what the publication does not give is listed; a changed run differs."""
    assert rcr("compare", article, ROOT / "evidence" / "rcr-20260831") == 0
    assert "Not given by" in capsys.readouterr().out
    rcr("run", "article", "--into", "late", "--start", "spawn", "--deadline", "0.001")
    capsys.readouterr()
    assert rcr("compare", article, "late") == 1
    assert "verdict" in capsys.readouterr().out


def test_import_lists_what_it_did_not_take(tmp_path: Path, capsys: Captured) -> None:
    """Absent files, and rows for which there is no place; the evidence can be shown and checked."""
    made.package(tmp_path / "taken")
    assert rcr("import", "taken") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "runs/taken: captures: 7"
    assert lines[1:3] == ["absent from the package: 1", "  README.md"]
    assert lines[3] == "not imported: 1"
    assert "P9" in lines[4]
    assert rcr("check", "runs/taken") == 0
    capsys.readouterr()
    assert rcr("show", "runs/taken", "--csv") == 0
    assert capsys.readouterr().out.splitlines()[0] == ",".join([*COLUMNS, "published_verdict"])


def test_import_refuses_a_changed_file(tmp_path: Path, capsys: Captured) -> None:
    """Exit 1, the file is named, and nothing is written."""
    file = made.package(tmp_path / "taken") / "fixtures" / "restart.json"
    file.write_bytes(file.read_bytes().replace(b"EISDIR", b"EISDIS", 1))
    assert "fixtures/restart.json" in refused(capsys, "import", "taken", code=1)
    assert not (tmp_path / "runs").exists()


def test_decide_answers_with_its_reasons(capsys: Captured) -> None:
    """In words for a person, and as one object for a program."""
    facts = ("--identity", "changed", "--effect", "absent")
    assert rcr("decide", *facts) == 0
    out = capsys.readouterr().out
    assert "stop: do not call" in out
    assert "[identity_changed]" in out
    assert rcr("decide", *facts, "--capability", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "identity": "changed",
        "effect": "absent",
        "capability": [],
        "eligibility": "stop",
        "way": None,
        "reasons": ["effect_absent", "identity_changed"],
    }
    assert rcr("decide", *facts, "--lang", "zh") == 0
    assert "停止待核查" in capsys.readouterr().out


# Bad input: one clear message, and nothing else.


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


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


def test_an_unknown_cell_is_refused(article: Path, capsys: Captured) -> None:
    """The message lists the cells that there are."""
    assert P3 in refused(capsys, "explain", article, "no-such-cell")


def test_another_plan_in_the_folder_is_refused(article: Path, capsys: Captured) -> None:
    """Evidence of one plan is never mixed with another's."""
    said = refused(capsys, "run", "locations", "--into", article)
    assert str(article) in said


def test_a_file_is_no_folder(tmp_path: Path, capsys: Captured) -> None:
    """Neither to write evidence into, nor to read it from; the file stays as it is."""
    file = written(tmp_path / "file", "mine")
    assert "file" in refused(capsys, "run", "article", "--into", file)
    assert "file" in refused(capsys, "run", "article", "--into", file / "below")
    assert "file" in refused(capsys, "show", file)
    assert "file" in refused(capsys, "check", file)
    assert file.read_text(encoding="utf-8") == "mine"


def test_a_place_that_takes_no_folder_is_said(capsys: Captured) -> None:
    """The system's own word, with the place."""
    assert "/proc/evidence" in refused(capsys, "run", "article", "--into", "/proc/evidence")


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


# Interrupted.


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


@pytest.mark.parametrize(("start", "by"), [("spawn", signal.SIGINT), ("fork", signal.SIGTERM)])
def test_an_interrupted_run_leaves_nothing_and_says_how_to_resume(
    start: str, by: signal.Signals, tmp_path: Path, capsys: Captured
) -> None:
    """Exit 130, what is measured stays, no process or folder does, and what is shown resumes."""
    folder = tmp_path / "long run"
    mark = f"rcr-test-{os.getpid()}-{start}-{by.name}"
    plan = written(
        tmp_path / "long.toml",
        f"[[cells]]\npoint = 'after_action'\nfault = 'kill'\nrepeat = {list(range(100))}",
    )
    words = ["run", str(plan), "--start", start, "--workers", "1", "--into", str(folder)]
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
    resume = shlex.split(err.splitlines()[-1].split("To resume: ")[1])
    assert resume == ["rcr", *words]
    assert rcr(*resume[1:], "--start", "fork") == 0
    assert captures.read_bytes().startswith(measured)
    assert rcr("check", folder) == 0
    assert "captures: 100" in capsys.readouterr().out


# What the commands cost.

HEAVY = {"pandas", "numpy", "matplotlib", "rich", "papermill", "msgspec", "subprocess"}
# What argparse, dataclasses and a table of texts would bring along, and nothing here needs.
NEEDLESS = {"shutil", "zipfile", "tempfile", "importlib.resources", "json"}


@pytest.mark.parametrize(
    "argv",
    [["--help"], ["run", "--help"], ["decide", "--identity", "valid", "--effect", "absent"]],
    ids=" ".join,
)
def test_help_and_decide_import_nothing_that_they_do_not_need(argv: list[str]) -> None:
    """They answer at once; for a list of the commands, not even the nouns are made."""
    program = (
        "import sys\nfrom rcr_probes.cli import main\n"
        f"try: main({argv!r})\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0
    nouns = {"dataclasses", "rcr_probes.model", "tomllib"} if argv == ["--help"] else set()
    assert not (HEAVY | NEEDLESS | nouns) & set(done.stderr.split())


@pytest.mark.parametrize("at", ["9" * 4300, str(1 << 63), "True", "1.0"])
def test_a_cutoff_is_a_number_that_can_be_written_again(at: str, capsys: Captured) -> None:
    """One of thousands of digits can be read, and then not be said."""
    assert "64 bits" in refused(capsys, "timeline", "evidence/article", P3, "--at", at)
