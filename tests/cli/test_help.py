"""What each command says of itself: its help, its example, and what that costs."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from rcr_probes import grammar
from rcr_probes.cli import main
from tests.cli.typed import COMMANDS, ROOT, Captured, environment, example_of, process, rcr
from tests.evidence import made

OPTION = r"(?<![\w-])--?[a-z]+(?:-[a-z]+)*"


def test_help_names_every_command_and_a_first_thing_to_type(capsys: Captured) -> None:
    """Nobody has to know a command beforehand."""
    for words in (("--help",), ("--help", "run")):
        assert rcr(*words) == 0
        out = capsys.readouterr().out
        assert re.findall(r"^    (\w+)", out, re.MULTILINE) == list(COMMANDS)
        assert "rcr run article" in out


# The guide takes longest to build: tests/report/test_guide.py types its example, and reads it too.
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "guide"])
def test_the_example_of_each_command_works(
    command: str, article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """What a help text shows can be typed as it stands, in a clone where ``make run`` was typed."""
    if command != "run":
        shutil.copytree(article, tmp_path / "runs" / "article")
    shutil.copytree(ROOT / "evidence", tmp_path / "evidence")
    made.package(tmp_path / "rcr-20260831")
    words = process(*example_of(command, capsys))
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


def test_the_version_is_that_of_what_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reports a fault can say what they have."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"rcr-probes {version('rcr-probes')}\n"


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
