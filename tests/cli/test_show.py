"""``rcr show``: the same rows in every form, in both languages, on any terminal or pipe."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rcr_probes.errors import installing
from rcr_probes.evidence.rows import COLUMNS
from tests.cli.typed import (
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
)


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
    pytest.importorskip("pyarrow", reason=installing("parquet"))
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
    assert rcr("show", "faults.parquet", "--lang", "zh") == 0
    assert capsys.readouterr().err.startswith("只凭数据行得不出")
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


def test_publishing_is_seen_to_go_on(article: Path, tmp_path: Path) -> None:
    """It takes a minute over all of the evidence."""
    pytest.importorskip("cryptography", reason=installing("publish"))
    pytest.importorskip("matplotlib", reason=installing("publish"))
    words = ("publish", article, "--date", "2026-11-30", "--into")
    out = in_terminal(process(*words, tmp_path / "seen.zip"), TERM="xterm")
    assert "/3" in out  # a bar is drawn ten times a second, and the last step may be shorter
    done = subprocess.run(
        process(*words, tmp_path / "unseen.zip"),
        env=environment(),
        capture_output=True,
        check=True,
    )
    assert done.stderr == b""


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
