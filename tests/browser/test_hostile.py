"""What was captured is shown as text, whatever it holds."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.evidence.claims import PAGES
from rcr_probes.report.texts import LANGS
from tests.browser.conftest import ROOT, Open
from tests.evidence import made

SCRIPT = "<script>window.struck = 1</script><img src=x onerror='window.struck = 2'>"
QUOTES = "\"' onmouseover='window.struck = 3' {value} ${x}$ `a` **b** </td></details> &amp;"
MARKS = "\u202e\u2066 right \u05d0\u05d1 to left \u200f"
LONG = "x" * 10_000
STRANGE = {"failed": SCRIPT, "EISDIR": QUOTES, "operation.approved": MARKS, "local-marker": LONG}
P3 = 3  # its line in the captures of the article
CLAIM = """
[[claim]]
id = "strange"
en = "The state is {value}."
zh = "状态为 {value}。"
evidence = "article"
where = { point = "completion_audit", dedupe = "none", digest = "same" }
take = "state_after_fault"
expect = '''%s'''
not_shown_en = "Anything else."
not_shown_zh = "其他一切。"
source = "made for a test"
"""


def strange(value: Any) -> Any:
    """The same JSON with other words in it; its names stay."""
    if isinstance(value, dict):
        return {name: strange(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [strange(inner) for inner in value]
    return STRANGE.get(value, value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The guide to evidence in which captured words are anything but words."""
    folder = tmp_path_factory.mktemp("hostile")
    shutil.copytree(ROOT / "evidence" / "article", folder / "evidence" / "article")
    made.remake(
        folder / "evidence" / "article",
        P3,
        lambda capture: capture.update(measurement=strange(capture["measurement"])),
    )
    (folder / "evidence" / "claims.toml").write_text(CLAIM % SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "rcr_probes.cli", "guide", "--into", str(folder / "guide")]
    command += ["--evidence", str(folder / "evidence")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "guide"


@pytest.mark.parametrize("lang", LANGS)
def test_captured_strings_are_shown_as_text(hostile: Path, opened: Open, lang: str) -> None:
    """Markup is read, not run; marks that turn text around are written out; nothing is cut."""
    page, seen = opened(lang, f"#capture-article-{P3}", guide=hostile, width=390)
    capture = page.locator(f"#capture-article-{P3}").inner_text()
    for word in (SCRIPT, QUOTES, LONG):
        assert word in capture
    assert r"\u202e\u2066 right" in capture
    text = page.evaluate("document.body.innerText")
    assert not set("\u202e\u2066\u200f") & set(text)
    assert SCRIPT in page.locator("#claim-strange").inner_text()
    assert page.evaluate("window.struck") is None
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert seen.complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_hostile_page_stays_a_page(hostile: Path, opened: Open) -> None:
    """Its chooser, its tables and its links work, and a peek at the capture shows text."""
    page, seen = opened("en", "#decide-valid-present-none", guide=hostile)
    assert page.locator("#decision").get_attribute("data-decision") == "reconcile"
    page.locator("#claim-strange a").first.hover()
    assert SCRIPT in page.get_by_role("tooltip").inner_text()
    assert page.evaluate("window.struck") is None
    assert seen.complaints == []


def test_sections_whose_evidence_is_not_there_are_left_out(hostile: Path) -> None:
    """That folder holds the article's cells alone."""
    for name in PAGES.values():
        page = (hostile / name).read_text(encoding="utf-8")
        assert '<section id="chain"' in page
        assert '<section id="matrix"' not in page
        assert '<section id="runtimes"' not in page
        there = set(re.findall(r' id="([^"]*)"', page))
        assert set(re.findall(r'href="#([^"]*)"', page)) <= there
