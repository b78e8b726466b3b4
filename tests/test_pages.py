"""The pages say what the evidence gives, in both languages alike; none has a number of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence.claims import FILE
from rcr_probes.report import texts
from rcr_probes.vocabulary import VERDICTS
from scripts import fill_pages
from tests.pinned import written_by

ROOT = Path(__file__).parents[1]
PAGES = tuple(fill_pages.PAGES)
PAIRS = (("README.md", "README.zh.md"), ("docs/results.md", "docs/results.zh.md"))
MARKDOWN = [
    path for pattern in ("", "docs/", "examples/*/") for path in ROOT.glob(f"{pattern}*.md")
]
# Where each page begins to need larger evidence than the plans of the article and the points.
LARGER = re.compile(r"^.*<!-- fill: (?:claim faults|faults_cells)", re.MULTILINE)
Captured = pytest.CaptureFixture[str]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# What is no number of the text: what is filled in, code, headings, where a link leads, and a digit
# that is part of a name or of a version.
NOT_PROSE = (
    r"<!-- fill: .*?<!-- /fill -->",
    r"```.*?```",
    r"`[^`\n]+`",
    r"^(?:    |#).*$",
    r"\]\([^)]*\)",
    r"\b[A-Za-z]+-?\d[\w-]*",
    r"\b(?:Python|BY) \d+(?:\.\d+)+",
)
NUMBER = (
    r"\d|(?<!第)[两二三四五六七八九十百]+(?=[个种张行条处对项])"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred)\b"
)


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def typed(prose: str) -> list[str]:
    """The numbers that somebody typed into a text, in digits or in words, from two on."""
    for pattern in NOT_PROSE:
        prose = re.sub(pattern, " ", prose, flags=re.MULTILINE | re.DOTALL)
    return re.findall(NUMBER, prose, re.IGNORECASE)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pages as far as they need the smallest evidence alone, that evidence, and one figure."""
    for name in ("article", "locations"):
        shutil.copytree(ROOT / "evidence" / name, tmp_path / "evidence" / name)
    shutil.copy(ROOT / "evidence" / FILE, tmp_path / "evidence")
    shutil.copytree(ROOT / "docs" / "figures", tmp_path / "docs" / "figures")
    for page in PAGES:
        begins, _ = LARGER.split(text(page), maxsplit=1)
        (tmp_path / page).write_text(begins, encoding="utf-8")
    monkeypatch.setattr(fill_pages, "ROOT", tmp_path)
    name = "p3_causal_chain"
    monkeypatch.setattr(fill_pages, "FIGURES", {name: fill_pages.FIGURES[name]})
    return tmp_path


def fill(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The script, in this process; what it exits with."""
    monkeypatch.setattr(sys, "argv", ["fill_pages.py", *arguments])
    fill_pages.outcomes.cache_clear()  # else it knows the claims of the evidence before
    try:
        return fill_pages.main()
    finally:
        fill_pages.outcomes.cache_clear()


@written_by("matplotlib", "numpy", "pillow")
def test_the_pages_and_their_figures_are_what_the_evidence_gives() -> None:
    """Filling them again changes no byte of a page, nor of a figure."""
    script = ROOT / "scripts" / "fill_pages.py"
    words = [sys.executable, str(script), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@written_by("matplotlib", "numpy", "pillow")
def test_a_number_typed_by_hand_is_found_and_put_right(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """One cell of a table is changed, told, and filled again."""
    page = small / "README.md"
    right = page.read_text("utf-8")
    page.write_text(right.replace("| P3 | EISDIR | failed | 1 |", "| P3 | 0 |"), "utf-8")
    assert page.read_text("utf-8") != right
    assert fill(monkeypatch, "--check") == 1
    assert capsys.readouterr().out == "README.md: is not what the evidence gives\n"
    assert fill(monkeypatch) == 0
    assert capsys.readouterr().out == "README.md: filled\n"
    assert page.read_text("utf-8") == right


@pytest.mark.parametrize(
    ("page", "old", "new", "code", "says"),
    [
        ("evidence/claims.toml", "expect = 54", "expect = 53", 1, "locations.fired: does not hold"),
        ("README.zh.md", "claim E-A0.P3", "claim E-A0.P4", 2, "Did you mean 'E-A0.P"),
        ("README.md", "fill: restart ", "fill: restarts ", 2, "Did you mean 'restart'?"),
    ],
)
def test_what_is_not_borne_out_is_filled_into_no_page(
    small: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
    page: str,
    old: str,
    new: str,
    code: int,
    says: str,
) -> None:
    """A claim that does not hold, or a name that nothing has, is refused; no page is written."""
    edited = small / page
    assert old in edited.read_text("utf-8")
    edited.write_text(edited.read_text("utf-8").replace(old, new), "utf-8")
    for name in PAGES:
        stale = small / name
        stale.write_text(stale.read_text("utf-8") + "<!-- fill: claim locations.fired -->")
        stale.write_text(stale.read_text("utf-8") + "old<!-- /fill -->")
    assert fill(monkeypatch) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert all("old<!--" in (small / name).read_text("utf-8") for name in PAGES)


BEGIN, END = "<!-- fill: article_cells -->", "<!-- /fill -->"


@pytest.mark.parametrize(
    ("marks", "says"),
    [
        (f"{BEGIN}6 prose", "'article_cells' has no end"),
        (f"{BEGIN}6 prose {BEGIN}6{END}", "'article_cells' has no end"),
        (f"6{END}", "has no beginning"),
        (f"{BEGIN}6{END}{END}", "has no beginning"),
        ("<!-- fil: article_cells -->6<!-- /fill -->", "is no mark"),
        ("<!-- Fill: article_cells -->6<!-- /fill -->", "is no mark"),
        ("<!--fill: article_cells -->6<!-- /fill -->", "is no mark"),
        ("<!-- fill:article_cells -->6<!-- /fill -->", "is no mark"),
        ("<!-- fill article_cells -->6<!-- /fill -->", "is no mark"),
        ("<!-- fill: claim A B -->6<!-- /fill -->", "is no mark"),
        ("<!-- fill: article_cells ->6<!-- /fill -->", "is no mark"),
        ("<!- fill: article_cells -->6<!-- /fill -->", "is no mark"),
        ("<! -- fill: article_cells -->6<!-- /fill -->", "is no mark"),
        ("<-- fill: article_cells -->6<!-- /fill -->", "is no mark"),
        (f"{BEGIN}6<!-- /fil -->", "is no mark"),
        (f"{BEGIN}6<!-- / fill -->", "is no mark"),
        (f"{BEGIN}6<!-- fill -->", "is no mark"),
        ("<!-- fill: article_cells", "is no mark"),
        ("<!-- anything -->", "is no mark"),
    ],
)
def test_a_mark_that_is_mistyped_or_has_no_end_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, marks: str, says: str
) -> None:
    """It is named with its line; else it would swallow prose, or be skipped and stay as it is."""
    monkeypatch.setattr(fill_pages, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text(f"one\ntwo {marks} three\n", encoding="utf-8")
    monkeypatch.setattr(fill_pages, "fill", lambda *_: "6")
    with pytest.raises(EvidenceError) as raised:
        fill_pages.filled("README.md", "en")
    assert says in raised.value.cause
    assert raised.value.place.startswith("README.md")
    assert "<!-- fill: NAME -->" in raised.value.remedy


def test_what_stands_around_the_places_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Byte for byte, with arrows of other kinds in it."""
    monkeypatch.setattr(fill_pages, "ROOT", tmp_path)
    monkeypatch.setattr(fill_pages, "fill", lambda name, lang: f"[{name} {lang}]")
    text = f"a -> b <br> x <- y {BEGIN}{END}\n{BEGIN}old\n\nold{END}<b>c</b>"
    (tmp_path / "README.md").write_text(text, encoding="utf-8")
    said = "[article_cells zh]"
    wanted = f"a -> b <br> x <- y {BEGIN}{said}{END}\n{BEGIN}{said}{END}<b>c</b>"
    assert fill_pages.filled("README.md", "zh") == wanted


@pytest.mark.parametrize("page", PAGES)
def test_no_number_is_typed_into_a_page(page: str) -> None:
    """A number that a reader sees is filled in from the evidence."""
    assert typed(text(page)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_no_number_is_typed_into_a_notebook(path: Path) -> None:
    """What is counted there, its code counts."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    prose = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    assert prose
    assert typed("\n\n".join(prose)) == []


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("In 12 cells.", ["1", "2"]),
        ("In twelve cells, and two of them.", ["twelve", "two"]),
        ("共 54 个单元，其中两个如此；第二个效果。", ["5", "4", "两"]),
        ("In <!-- fill: cells -->12<!-- /fill --> and 3.", ["3"]),
        ("P3 of RCR-20260831-01, on Python 3.11, by SHA-256, `x = 3` and [here](a3.md).", []),
        ("# Two commands\n\n    make 2\n\n```\n3\n```\n", []),
    ],
)
def test_a_typed_number_is_found_and_a_name_is_none(prose: str, found: list[str]) -> None:
    """The rule by which the pages are read."""
    assert typed(prose) == found


FILLED, TYPED = r"<!-- fill: ([\w. -]+?) -->", r"`((?:\.venv/bin/)?rcr [^`]+?)(?: --lang zh)?`"
MADE = r"^    (make \w+)"


@pytest.mark.parametrize(
    ("pages", "pattern"),
    [*((pair, pattern) for pair in PAIRS for pattern in (FILLED, TYPED)), (PAIRS[0], MADE)],
)
def test_both_languages_have_the_same_places_and_commands(
    pages: tuple[str, str], pattern: str
) -> None:
    """What one reader is shown and told to type, the other is too."""
    english, chinese = (sorted(re.findall(pattern, text(page), re.MULTILINE)) for page in pages)
    assert english
    assert english == chinese


def anchors(page: Path) -> set[str]:
    """Where a link can lead in a page: its headings, as forges name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    """No file that it names is missing, and no heading."""
    for target in re.findall(r"\]\(([^)\s:]+)\)", page.read_text(encoding="utf-8")):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_what_contributing_names_stands_in_the_files_that_it_names() -> None:
    """Of each line of "To add something", every file is there and holds the names after it."""
    _, _, section = text("CONTRIBUTING.md").partition("## To add something\n")
    added, _, _ = section.partition("\n## ")
    lines = [line for line in added.splitlines() if line.startswith("- ")]
    assert len(lines) > 20
    for line in lines:
        source = ""
        for name in re.findall(r"`([^`]+)`", line):
            if (ROOT / name).is_file():
                source = text(name)
            elif not name.startswith("make "):
                assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source), (name, line)


@pytest.mark.parametrize("example", ["node-runtime", "shell-runtime"])
def test_an_example_shows_the_same_verdicts_in_both_languages(example: str) -> None:
    """Line by line; all else in such a table is a word of the data."""
    english, chinese = (
        [line.split() for line in re.findall(r"^ {6}(.+)$", text(page), re.MULTILINE)[1:]]
        for page in (f"examples/{example}/README.md", f"examples/{example}/README.zh.md")
    )
    assert english
    said = {name: texts.text(f"verdict.{name}", "zh") for name in VERDICTS}
    assert [[said.get(word, word) for word in line] for line in english] == chinese
