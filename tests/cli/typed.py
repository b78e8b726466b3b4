"""What the tests of the command line share: how a command is typed, and how its output is read."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from rcr_probes.cli import main

ROOT = Path(__file__).resolve().parents[2]

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


def example_of(command: str, capsys: Captured) -> list[str]:
    """The words of the example in a command's help, after ``rcr``."""
    assert rcr(command, "--help") == 0
    first, *rest = shlex.split(capsys.readouterr().out.split("example:\n")[1])
    assert first == "rcr"
    return rest


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
