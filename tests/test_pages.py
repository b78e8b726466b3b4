"""Both READMEs say what the evidence gives, and say the same."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "README.zh.md")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def fill(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = root / "scripts" / "fill_pages.py"
    return subprocess.run(
        [sys.executable, script, *arguments], capture_output=True, text=True, timeout=120
    )


def test_the_pages_and_their_figures_are_what_the_evidence_gives() -> None:
    """Filling them again changes no byte of a page, nor of a figure."""
    done = fill(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_number_typed_by_hand_is_found_and_put_right(tmp_path: Path) -> None:
    """In a copy: one cell of a table is changed, told, and filled again."""
    for name in ("scripts", "evidence", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for page in PAGES:
        shutil.copy(ROOT / page, tmp_path)
    edited = tmp_path / "README.md"
    edited.write_text(text("README.md").replace("| P3 | EISDIR | failed | 1 |", "| P3 | 0 |"))
    done = fill(tmp_path, "--check")
    assert (done.returncode, done.stdout) == (1, "README.md: is not what the evidence gives\n")
    assert fill(tmp_path).returncode == 0
    assert edited.read_text() == text("README.md")


@pytest.mark.parametrize(
    "pattern",
    [
        r"<!-- fill: (\w+) -->",
        r"^    (make \w+)",
        r"`((?:\.venv/bin/)?rcr [^`]+?)(?: --lang zh)?`",
    ],
)
def test_both_languages_have_the_same_places_and_commands(pattern: str) -> None:
    """What one reader is shown and told to type, the other is too."""
    english, chinese = (sorted(re.findall(pattern, text(page), re.MULTILINE)) for page in PAGES)
    assert english
    assert english == chinese


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    """No file that it names is missing."""
    for target in re.findall(r"\]\(([^)#:]+)\)", text(page)):
        assert (ROOT / target).exists(), target
