"""The guide's pages: made of captures alone, the same bytes on every run, and never markup."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rcr_probes.eligibility import decide, may_call
from rcr_probes.errors import EvidenceError, NotEvidence, printable
from rcr_probes.evidence.claims import FILE, PAGES
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.model import Facts
from rcr_probes.report.guide import material
from rcr_probes.report.guide.build import build
from rcr_probes.report.guide.chooser import DECLARED, Choice, choices
from rcr_probes.report.guide.markup import captured, prose, whole_table
from rcr_probes.report.guide.material import Material
from rcr_probes.report.guide.sections import SECTIONS
from rcr_probes.report.texts import LANGS, table, text
from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES
from tests.cli.typed import environment, example_of, process
from tests.pinned import written_by

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "evidence"


def article_alone(folder: Path) -> Path:
    """A folder with the article's evidence and the claims about it."""
    shutil.copytree(EVIDENCE / "article", folder / "article")
    entries = (EVIDENCE / FILE).read_text(encoding="utf-8").split("\n[[")
    kept = [one for one in entries if 'evidence = "article"' in one and one.startswith("claim]]")]
    (folder / FILE).write_text("".join(f"[[{one}\n" for one in kept), encoding="utf-8")
    return folder


@written_by("matplotlib", "mistune", "nbconvert")
def test_the_committed_pages_are_what_the_example_of_the_command_builds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever it is typed; where this fails, `make guide` helps."""
    words = process(*example_of("guide", capsys))
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in PAGES.values():
        built, committed = tmp_path / "runs" / "guide" / name, EVIDENCE / "guide" / name
        assert built.read_bytes() == committed.read_bytes(), name


@pytest.mark.parametrize("name", PAGES.values())
def test_a_page_names_no_other_host(name: str) -> None:
    """It loads nothing, and what it links to lies in itself or beside it."""
    page = (EVIDENCE / "guide" / name).read_text(encoding="utf-8")
    links = re.findall(r'(?:src|href|action)="([^"]*)"', page)
    assert {link for link in links if not link.startswith(("#", "data:"))} == set(PAGES.values())
    assert "@import" not in page
    assert {where[:5] for where in re.findall(r"url\(([^)]*)", page)} <= {
        "data:",
        "#chai",
        "#runt",
        "#wort",
    }


@pytest.mark.parametrize("key", [key for key in table() if key.startswith("guide.")])
def test_the_guide_types_no_number(key: str) -> None:
    """A number that a reader sees comes from a capture, unless a name or a command has it."""
    for said in table()[key].values():
        bare = re.sub(r"`[^`]*`|(?m:^    .*$)|P[0-3]|SHA-256|CC BY 4\.0", "", said)
        assert not re.search(r"\d", bare)


@pytest.fixture(scope="module")
def whole() -> Material:
    """All committed evidence, read once: no test changes it."""
    return material.read(EVIDENCE, "en")


@pytest.fixture(scope="module")
def chosen(whole: Material) -> Sequence[Choice]:
    return whole.choices


def test_every_combination_of_facts_is_decided_by_the_library(chosen: Sequence[Choice]) -> None:
    """None is missing, none is there twice, and each has an address of its own."""
    capabilities = {(), *((name,) for name in DECLARED), DECLARED}
    wanted = set(product(IDENTITIES, EFFECT_FACTS, capabilities))
    assert {(c.facts.identity, c.facts.effect, c.facts.capability) for c in chosen} == wanted
    assert len({one.anchor for one in chosen}) == len(chosen) == len(wanted)
    assert all(one.decision == decide(one.facts) for one in chosen)


def test_what_ignoring_a_decision_costs_is_told_by_a_capture_that_did(
    whole: Material, chosen: Sequence[Choice]
) -> None:
    """Of a decision not to call, one that was called; of one to call, one that was left alone."""
    by_place = dict(whole.references())
    told = [(one, cost) for one in chosen for cost in one.costs]
    assert {cost.kind for _, cost in told} >= {"called_twice", "wrong", "recognised", "blocked"}
    for one, cost in told:
        judged = by_place[cost.reference].judgement
        assert judged.facts is not None
        assert judged.facts.effect == (cost.supposed or one.facts.effect)
        assert (judged.facts == one.facts) == (cost.facts is None and cost.supposed is None)
        left = cost.supposed == "absent" if cost.supposed else may_call(one.decision)
        assert (cost.kind == "blocked") == left
        first, last = by_place[cost.reference].measurement.observations
        if cost.kind in ("called_twice", "recognised"):  # by recovery, and not by the runtime alone
            assert (last.calls or 0) > (first.calls or 0)


def test_what_an_unknown_effect_costs_is_told_of_either_world(chosen: Sequence[Choice]) -> None:
    """Not of a capture whose effect was unknown for a reason of its own, while there is a world."""
    unknown = [one for one in chosen if one.facts.effect == "unknown"]
    assert all(cost.supposed for one in unknown for cost in one.costs)
    assert all(one.costs for one in unknown)
    whole = [one for one in unknown if one.facts.identity == "valid"]
    assert {tuple(cost.supposed for cost in one.costs) for one in whole} == {("present", "absent")}


def test_an_unknown_effect_alone_speaks_where_no_world_does(whole: Material) -> None:
    """What was captured is not passed over."""
    alone = [
        (reference, capture)
        for reference, capture in whole.references()
        if capture.judgement.facts and capture.judgement.facts.effect == "unknown"
    ]
    assert alone
    told = [one.costs for one in choices(alone) if one.facts == Facts("valid", "unknown", ())]
    assert [[cost.supposed for cost in costs] for costs in told] == [[None]]


@pytest.mark.parametrize("lang", LANGS)
def test_captures_and_cells_stand_beside_a_claim_that_has_repeats(
    whole: Material, lang: str
) -> None:
    """Both numbers, counted from the captures; where they are the same, no second one."""
    found = replace(whole, lang=lang)
    page = SECTIONS["claims"](found)
    assert page is not None
    several = 0
    for one in found.claims.claims:
        row = page[page.index(f'<tr id="claim-{one.outcome.claim.id}"') :].split("</tr>")[0]
        said = re.sub(r"<[^>]*>", "", row)
        cells = {re.sub(r"/repeat=\d+", "", reference.cell) for reference in one.captures}
        count = {"count": len(one.captures), "cells": len(cells)}
        both = text("guide.claims.label.repeated", lang, **count)
        assert (both in said) == (len(cells) != len(one.captures)), one.outcome.claim.id
        several += both in said
    assert several > 1


@given(st.lists(st.text(max_size=20), min_size=4, max_size=6))
@example(["'", '"', "\\", "</style><script>"])
@example(["a", "b", "1", "\n"])
def test_no_heading_ends_the_style_that_carries_it(names: list[str]) -> None:
    """A column may be named by a captured word; read as CSS, its label is what a terminal shows."""
    made = str(whole_table(names, [], "caption"))
    found = re.match(r'<div[^>]*>\n<table class="stack" style="([^"<>]*)">', made)
    assert found
    labels = re.findall(
        r"--c(\d+):'((?:[^'\\]|\\[0-9a-f]{1,6} )*)'(?:;|$)", html.unescape(found[1])
    )
    read = [re.sub(r"\\([0-9a-f]+) ", lambda m: chr(int(m[1], 16)), label) for _, label in labels]
    assert read == [printable(name) for name in names]
    assert [int(place) for place, _ in labels] == list(range(1, len(names) + 1))


@given(st.text(max_size=200))
@example("<script>1</script>")
@example("\u202e\u2066\x00\u2028")
def test_what_was_captured_is_text(said: str) -> None:
    """However it is worded, a browser reads it as the words that a terminal shows."""
    shown = str(captured(said))
    inner = re.fullmatch(r'<bdi(?: class="long")?>([^<>]*)</bdi>', shown)
    assert inner
    assert html.unescape(inner[1]) == printable(said)


@given(st.text(max_size=50))
def test_what_is_filled_into_a_text_is_neither_markdown_nor_markup(said: str) -> None:
    """It is put in when the text is HTML already."""
    filled = str(prose("guide.recheck.text", "en", cell=said))
    assert str(captured(said)) in filled


def test_a_claim_that_does_not_hold_says_so(tmp_path: Path) -> None:
    """The page shows what was measured, what was expected, and why that is not the same."""
    folder = article_alone(tmp_path)
    source = (folder / FILE).read_text(encoding="utf-8")
    (folder / FILE).write_text(source.replace("expect = 2", "expect = 7"), encoding="utf-8")
    page = SECTIONS["claims"](material.read(folder, "en"))
    assert page is not None
    row = page[page.index('<tr id="claim-E-A1.none"') :].split("</tr>")[0]
    assert ">2</bdi>" in row
    assert ">7</bdi>" in row
    assert "no</td>" in row
    assert "expects 7" in row


@pytest.mark.parametrize("lang", LANGS)
def test_a_section_without_its_evidence_is_left_out(tmp_path: Path, lang: str) -> None:
    """What is there is told, and nothing fails for what is not."""
    found = material.read(article_alone(tmp_path), lang)
    there = {name for name, make in SECTIONS.items() if make(found) is not None}
    assert there == set(SECTIONS) - {"matrix", "worth", "runtimes", "policies"}


def test_a_folder_that_is_no_evidence_is_refused(tmp_path: Path) -> None:
    """Before a notebook runs, with what is wrong and what to do."""
    with pytest.raises(NotEvidence):
        build(tmp_path / "pages", evidence=tmp_path)
    folder = article_alone(tmp_path)
    with open(folder / "article" / CAPTURES, "ab") as file:
        file.write(b"\n")
    with pytest.raises(EvidenceError, match="changed after it was sealed"):
        build(tmp_path / "pages", evidence=folder)
    assert not (tmp_path / "pages").exists()
