"""Evidence from elsewhere is data: whatever its texts hold, each command shows them as text."""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rcr_probes.cli import main
from rcr_probes.errors import installing
from rcr_probes.evidence import form, seal, write
from rcr_probes.evidence.exported import opened
from rcr_probes.evidence.rows import as_csv
from rcr_probes.model import Capture, Plan

ARTICLE = Path(__file__).parents[2] / "evidence" / "article"
# A formula, rich's markup, HTML, a terminal's commands, a line's end, letters turned round, code.
HOSTILE = (
    "=cmd|'/C touch canary'!A1[red]x[/red]<script>open('canary','w')</script>\x1b[2J\x1b]0;t\x07"
    "\r\n\u202egnp.exe\u2066{{7*7}}__import__('os').system('touch canary')../../canary"
)


def texts(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every text in a decoded JSON value."""
    if isinstance(value, str):
        yield path
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(one, (*path, key))


def put(value: Any, path: tuple[Any, ...], text: str) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = text
    return changed


def forged_capture(line: bytes) -> dict[str, Any]:
    """The capture with the hostile text in each field that takes one."""
    capture: dict[str, Any] = json.loads(line)
    for path in texts(capture):
        changed = put(capture, path, HOSTILE)
        try:
            msgspec.convert(changed, Capture)
        except msgspec.ValidationError:
            continue  # a word of ours alone is read there
        capture = changed
    return capture


@pytest.fixture
def forged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sealed evidence that is decoded well, and hostile wherever it may say what it likes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "from\x1b[2Jelsewhere"
    folder.mkdir()
    lines = (ARTICLE / form.CAPTURES).read_bytes().splitlines()[:1]
    captures = [msgspec.convert(forged_capture(line), Capture) for line in lines]
    assert captures[0].cell.runtime == HOSTILE
    assert captures[0].measurement.observations[0].recorded.status == HOSTILE
    (folder / form.CAPTURES).write_bytes(b"".join(map(seal.encode, captures)))
    plan = Plan(HOSTILE, tuple(c.cell for c in captures))
    (folder / form.PLAN).write_bytes(write.encoded(plan))
    environment = {"schema": 1, "python": HOSTILE, "packages": {HOSTILE: HOSTILE}}
    (folder / form.ENVIRONMENT).write_bytes(write.encoded(environment))
    write.write_manifest(folder, plan)
    return folder


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("show", "--lang", "zh"),
    ("show", "--markdown"),
    ("show", "--json"),
    ("show", "--csv"),
    ("explain", "canary"),
    ("explain", "canary", "--lang", "zh"),
    ("explain", "no such cell"),
    ("check",),
    ("check", "--lang", "zh"),
    ("compare", str(ARTICLE)),
    ("timeline", "canary", "--at", "3"),
    ("timeline", "canary", "--at", "3", "--json"),
    ("publish", "--into", "package", "--date", "2026-01-01"),
    ("import",),
    ("run",),
    ("export", "--to", "rows.parquet"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_hostile_texts_are_shown_and_nothing_else(
    forged: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """No command is broken by them, obeys them, or has a terminal obey them."""
    name, *rest = command
    words = (
        [name, "article", "--into", str(forged), *rest]
        if name == "run"
        else [name, str(forged), *rest]
    )
    assert main(words) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert out + err
    assert all(char.isprintable() or char == "\n" for char in out + err)
    assert not list(forged.parent.glob("**/canary"))


def test_rows_stay_readable_by_machines(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and Parquet hold the text as it is; CSV spells it out, so that it is no formula."""
    pytest.importorskip("pyarrow", reason=installing("parquet"))
    assert main(["show", str(forged), "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["runtime"] == HOSTILE
    assert main(["export", str(forged), "--to", "rows.parquet"]) == 0
    capsys.readouterr()
    assert list(opened("rows.parquet").rows()) == [row]
    for words in ((), ("--csv",), ("--markdown",)):
        assert main(["show", "rows.parquet", *words]) == 0
        out, err = capsys.readouterr()
        assert all(char.isprintable() or char == "\n" for char in out + err)
    [read] = csv.DictReader(io.StringIO(as_csv([row])))
    assert read.keys() == row.keys()
    assert not [text for text in read.values() if text.startswith(tuple("=+-@\t\r"))]
    assert read["runtime"].startswith("'=cmd|")
