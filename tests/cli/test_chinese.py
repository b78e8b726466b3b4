"""With ``--lang zh`` a command says its result in Chinese; data alone stays as it is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from rcr_probes.evidence.form import ENVIRONMENT
from rcr_probes.grammar import COMMANDS
from tests.cli.typed import P3, ROOT, Captured, environment, process, rcr

EVIDENCE = ROOT / "evidence"
ARTICLE, PUBLISHED = EVIDENCE / "article", EVIDENCE / "rcr-20260831"
# A worker that calls once, does not wait for long, and says nothing itself.
WORKER = "import os, urllib.request as u; u.urlopen(os.environ['RCR_RECEIVER'], b'{}', 1)"
# Command → what is typed after it. ``claimed`` is made of the committed evidence.
TYPED: Mapping[str, Sequence[Sequence[object]]] = {
    "run": [["article"]],
    "probe": [["--", sys.executable, "-c", WORKER]],
    "runtimes": [[]],
    "conformance": [["rcr_probes.reference:approval"], ["mistaken:Runtime"]],
    "show": [
        [ARTICLE],
        [EVIDENCE / "contrast", "--markdown"],
        [PUBLISHED],
        ["claimed", "--claims"],
    ],
    "explain": [
        [ARTICLE, P3],
        [PUBLISHED, "none/none/none/same/again/runtime=published:919c3b48/variant=E-A0"],
        [EVIDENCE / "power", "approval_audit/power_loss#0/none/same/evidence_gated"],
    ],
    "check": [[ARTICLE], ["claimed"]],
    "compare": [[ARTICLE, PUBLISHED], [ARTICLE, EVIDENCE / "locations"]],
    "timeline": [[ARTICLE, P3, "--at", 16], [ARTICLE, P3, "--at", 0]],
    "decide": [
        ["--identity", "valid", "--effect", "unknown", "--capability", "replay,lookup"],
        ["--identity", "changed", "--effect", "many"],
    ],
}
# Beside codes and commands: where a claim comes from is written once, in one language.
DATA = re.compile(r"`[^`]*`|\([^)]*\)|（[^）]*）|\[[^\]]*\]|\brcr [^\u4e00-\u9fff]*|出处：.*")
SENTENCE = re.compile(r"(?<![\w./=-])[a-z]+(?: [a-z]+){2,}(?![\w./=-])")


def english(out: str) -> list[str]:
    """What reads as English: three lower-case words or more, with one blank between them."""
    return SENTENCE.findall(DATA.sub("", out))


def printed(command: str, lang: str, words: Sequence[object], capsys: Captured) -> str:
    """What a command prints on stdout; a probe is a process of its own, for it adopts others."""
    typed = (command, "--lang", lang, *words)
    if command == "probe":
        return subprocess.run(
            process(*typed), env=environment(), capture_output=True, text=True
        ).stdout
    assert rcr(*typed) in (0, 1)
    return capsys.readouterr().out


# Wrong in every way that is found at once, as somebody's first try is.
MISTAKEN = """
from rcr_probes import Recorded, reach

class Runtime:
    points = {"before_action": {"exception", "kill"}, "completion_audit": {"audit_is_directory"}}
    recoveries = ("resume",)
    says = {"sure": "done"}

    def start(self, operation):
        try:
            reach("before_action")
        except BaseException:
            pass
        reach("after_result")
        operation.executor(operation.key)

    def recover(self, operation, way):
        self.start(operation, way)

    def state(self, operation):
        (operation.folder / "asked").write_text("so")
        return Recorded("failed", approved_digest="a", current_digest="b")
"""


@pytest.fixture
def mistaken(tmp_path: Path) -> None:
    """A runtime in the current directory that keeps little of the contract."""
    (tmp_path / "mistaken.py").write_text(MISTAKEN, encoding="utf-8")


@pytest.fixture
def claimed(tmp_path: Path) -> None:
    """A folder of which some claims hold, most have no evidence, and a file is missing."""
    shutil.copytree(ARTICLE, tmp_path / "claimed" / "article")
    shutil.copy(EVIDENCE / "claims.toml", tmp_path / "claimed")
    (tmp_path / "claimed" / "article" / ENVIRONMENT).unlink()


def test_every_command_that_takes_a_language_is_held_to_it() -> None:
    """A new one is typed above, too."""
    assert set(TYPED) == {name for name, command in COMMANDS.items() if command.speaks}


@pytest.mark.usefixtures("claimed", "mistaken")
@pytest.mark.parametrize("command", TYPED)
def test_what_a_command_prints_in_chinese_holds_no_english(command: str, capsys: Captured) -> None:
    """On stdout, over committed evidence; by the same rule, what it prints in English does."""
    found = {
        lang: [english(printed(command, lang, words, capsys)) for words in TYPED[command]]
        for lang in ("en", "zh")
    }
    assert found["zh"] == [[] for _ in TYPED[command]]
    assert any(found["en"])
