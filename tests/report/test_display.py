"""What a notebook's own shell shows of the nouns."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter

from rcr_probes.errors import UnknownName
from rcr_probes.evidence import store
from rcr_probes.report import load_ipython_extension
from rcr_probes.report.display import SHOWN
from rcr_probes.report.explain import explain
from rcr_probes.report.texts import LANGS, text

ARTICLE = Path(__file__).parents[2] / "evidence" / "article"
P3 = "completion_audit/audit_is_directory/none/same/resume"


class Shell:
    """As much of IPython's shell as is asked for: a whole one keeps a history at home."""

    def __init__(self) -> None:
        self.display_formatter = DisplayFormatter()


@pytest.fixture
def shell() -> Any:
    """One that knows nothing of the nouns yet."""
    return Shell()


def shown(shell: Any, noun: object) -> dict[str, str]:
    """What a cell that ends with it displays, by its kind."""
    found: dict[str, str] = shell.display_formatter.format(noun)[0]
    return found


def test_a_cell_shows_a_capture_once_the_extension_is_loaded(tmp_path: Path) -> None:
    """As a person types it: before, it is the noun's own repr; after, what explain says."""
    cell = f"""from rcr_probes.evidence import store
capture = store.read({str(ARTICLE)!r}).capture({P3!r})
display(capture)
%load_ext rcr_probes.report
display(capture)
"""
    (tmp_path / "cell.ipy").write_text(cell)
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--HistoryManager.enabled=False", "cell.ipy"],
        cwd=tmp_path, env={**os.environ, "IPYTHONDIR": str(tmp_path)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before, _, after = done.stdout.partition(f"{P3}: {text('verdict.duplicate_effect', 'en')}\n")
    assert before.startswith("Capture(")
    assert after.splitlines() == explain(store.read(ARTICLE).capture(P3))[1:]


@pytest.mark.parametrize("lang", LANGS)
def test_a_capture_is_told_as_html_in_either_language(shell: Any, lang: str) -> None:
    """Its events stand in numbered lists, and what follows from them below."""
    load_ipython_extension(shell, lang)
    html = shown(shell, store.read(ARTICLE).capture(P3))["text/html"]
    assert html.count("<ol") == 2
    assert text("verdict.duplicate_effect", lang) in html
    assert text("explain.verdict", lang) in html


def test_in_a_list_each_takes_one_line(shell: Any) -> None:
    """All captures of a plan are no wall of their events."""
    load_ipython_extension(shell)
    captures = list(store.read(ARTICLE).captures())
    said = shown(shell, captures)["text/plain"]
    assert all(capture.cell.id in said for capture in captures)
    assert len(said.splitlines()) == len(captures)


def test_evidence_and_its_plan_say_what_they_hold_and_not_all_of_it(shell: Any) -> None:
    """Whose repr lists every cell of a sweep."""
    load_ipython_extension(shell)
    evidence = store.read(ARTICLE)
    for noun in (evidence, evidence.plan):
        said = shown(shell, noun)["text/plain"]
        assert str(len(evidence.plan.cells)) in said
        assert evidence.plan.cells[0].id in said
        assert len(said) < 500


@pytest.mark.parametrize("kind", SHOWN, ids=lambda kind: kind.__name__)
def test_each_kind_is_shown_in_words_and_as_html(shell: Any, kind: type) -> None:
    """Both say the same first line; none is the dataclass's repr."""
    load_ipython_extension(shell)
    evidence = store.read(ARTICLE)
    capture = evidence.capture(P3)
    judged = capture.judgement
    nouns = (evidence, evidence.plan, capture, capture.cell, judged.decision, judged.verdict)
    [noun] = [one for one in nouns if isinstance(one, kind)]
    found = shown(shell, noun)
    assert found["text/plain"]
    assert not found["text/plain"].startswith(f"{kind.__name__}(")
    assert found["text/html"].startswith("<p>")


def test_what_was_captured_is_text_and_never_markup(shell: Any) -> None:
    """A status that somebody's runtime stored may look like HTML."""
    load_ipython_extension(shell)
    capture = store.read(ARTICLE).capture(P3)
    observed = capture.measurement.observations[0]
    hostile = replace(observed, recorded=replace(observed.recorded, status="<script>x</script>"))
    forged = replace(capture, measurement=replace(capture.measurement, observations=(hostile,)))
    assert "<script>" not in shown(shell, forged)["text/html"]
    assert "&lt;script&gt;" in shown(shell, forged)["text/html"]


def test_another_language_is_refused(shell: Any) -> None:
    """With those that are known."""
    with pytest.raises(UnknownName, match="Known: en, zh"):
        load_ipython_extension(shell, "fr")
