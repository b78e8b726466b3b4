"""What a page says of the claims: in whole sentences, once each, and in what a reader sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from rcr_probes.evidence import names
from rcr_probes.evidence.claimed import held
from rcr_probes.evidence.claims import Outcome
from rcr_probes.publish.layout import PAGES
from rcr_probes.publish.page import NOT_SHOWN, SOURCE, Page
from rcr_probes.report.texts import LANGS, text

EVIDENCE = Path(__file__).parents[2] / "evidence"
P3 = "E-A0.P3"


def unsaid(source: str, lang: str) -> set[str]:
    """The claims of which this page does not say what the captures give."""
    page = Page(source)
    return {one.claim.id for one in outcomes() if not page.says(one, lang)}


@cache
def outcomes() -> tuple[Outcome, ...]:
    """What became of the committed claims."""
    return tuple(claimed.outcome for claimed in held(EVIDENCE).claims)


def source(name: str) -> str:
    return (EVIDENCE / "guide" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_pages_say_every_claim_and_no_other(name: str) -> None:
    """Nothing that follows is vacuous."""
    assert not unsaid(source(name), PAGES[name])
    known = {outcome.claim.id for outcome in outcomes()}
    assert Page(source(name)).claims == known


def hidden(row: str) -> str:
    return f"<!-- {row} -->{row.replace('exist by then: 1', 'exist by then: 0')}"


def between(row: str, first: str, last: str) -> str:
    """The first part of a row that begins and ends so."""
    begin = row.index(first)
    return row[begin : row.index(last, begin) + len(last)]


FORGED: dict[str, Callable[[str], str]] = {
    "the opposite": lambda row: row.replace("<bdi>P3:", "<bdi>It is false that P3:"),
    "a digit more": lambda row: row.replace("by then: 1.", "by then: 12."),
    "the true row in a comment": hidden,
    "a second row": lambda row: f"{row}{row}",
    "a row that is no such row": lambda row: f"{row}<tr class='x' id=\"claim-{P3}\"></tr>",
    "no row": lambda row: "",
    "what it does not show": lambda row: row.replace("Not shown: How", "Not shown: Nor how"),
    "no note of what it does not show": lambda row: row.replace(
        between(row, '<p class="note">', "</p>"), ""
    ),
    "where it was said": lambda row: row.replace("RCR-20260831-01", "RCR-20260831-02"),
    "a note more": lambda row: row.replace('<p class="note">', '<p class="note">Proven.</p><p>', 1),
    "another capture": lambda row: row.replace("#capture-article-3", "#capture-article-2"),
    "a capture fewer": lambda row: row.replace(between(row, ", <a href", "</a>"), "", 1),
    "another number of a capture": lambda row: row.replace(">4</a>", ">3</a>"),
}
# A list of claims in other letters than publishing writes: a browser shows all of these alike.
WRITTEN = [
    '<ul class="claims" >',
    "<ul class='claims'>",
    "<ul class=claims>",
    '<UL CLASS="claims">',
    '<ul  class="claims">',
    '<ul class="claims more">',
    '<ul id="x" class="claims">',
    '<ul class="&#99;laims">',
    '<ol class="claims">',
]


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_sentence_that_is_not_the_claims_is_found(forged: Callable[[str], str]) -> None:
    """Whatever is added around the true one."""
    page = source("index.html")
    begin = page.index(f'<tr id="claim-{P3}">')
    row = page[begin : page.index("</tr>", begin) + len("</tr>")]
    assert forged(row) != row
    assert P3 in unsaid(page.replace(row, forged(row)), "en")


@pytest.mark.parametrize("mark", WRITTEN)
def test_a_list_of_claims_that_is_written_otherwise_is_no_hiding_place(mark: str) -> None:
    """What it says is not read, and so the page is not what publishing writes."""
    page = source("index.html")
    said = "effects that exist by then: 1.</bdi> <a"
    assert said in page
    forged = page.replace('<ul class="claims">', mark).replace(said, said.replace("1.", "0."))
    assert P3 in unsaid(forged, "en")


@pytest.mark.parametrize("place", ['<tr id="claim-{}">', "<td{}", '<i class="{}">', "{}"])
@pytest.mark.parametrize("digits", ["9" * 5000, "0" * 5000 + "65", "x" + "f" * 5000])
def test_a_letter_by_thousands_of_digits_ends_no_check(place: str, digits: str) -> None:
    """Python makes no number of so many; wherever they stand, the page is read to its end."""
    page = Page(source("index.html") + place.format(f"&#{digits};"))
    assert {outcome.claim.id for outcome in outcomes()} <= page.claims


@pytest.mark.parametrize("zeros", [0, 5, 5000])
def test_a_letter_by_its_number_is_no_hiding_place(zeros: int) -> None:
    """A browser takes it for the letter, with whatever zeros before it."""
    whole = source("index.html")
    listed = f'<ul class="cl&#{"0" * zeros}97;ims"><li>The opposite.</li></ul>'
    assert unsaid(whole + listed, "en") == {outcome.claim.id for outcome in outcomes()}
    row = whole.replace("by then: 1.", f"by then: &#{'0' * zeros}49;.")
    assert row != whole
    assert not unsaid(row, "en")


@pytest.mark.parametrize("mark", ["<li >", "<LI>", '<li class="x">'])
def test_an_item_that_is_written_otherwise_is_no_hiding_place(mark: str) -> None:
    """The same of an item of a list."""
    page = source("index.html")
    begin = page.index('<ul class="claims">')
    item = page.index("<li>", begin)
    forged = page[:item] + mark + "<bdi>False.</bdi> " + page[item + len("<li>") :]
    assert unsaid(forged, "en")


@pytest.mark.parametrize("lang", LANGS)
def test_the_notes_begin_as_the_texts_say(lang: str) -> None:
    """The checker has no table of texts for what the guide says."""
    assert NOT_SHOWN[lang] == text("claim.not_shown", lang, said="")
    assert SOURCE[lang] == text("claim.source", lang, source="")


def test_a_claim_over_many_captures_is_held_by_those_shown_and_by_how_many_are_left() -> None:
    """Their links are its first ones; the number of the others is said."""
    many = next(one for one in outcomes() if len(one.numbers) > 60)
    page = Page(source("index.html"))
    assert page.says(many, "en")
    for numbers in (many.numbers[:-1], many.numbers[1:], (*many.numbers, 9_999)):
        assert not page.says(replace(many, numbers=numbers), "en")


def test_a_page_of_very_many_items_costs_each_claim_no_time() -> None:
    """A hostile page of lists is read once, and not once a claim."""
    item = '<li>x <a href="#claim-x"></a></li>'
    page = f'<ul class="claims">{item * 200_000}</ul>'
    begun = time.process_time()
    read = Page(page)
    for one in outcomes():
        read.says(one, "en")
    assert time.process_time() - begun < 10  # for each claim anew it takes minutes


def test_a_claim_that_only_the_page_makes_is_seen() -> None:
    """As where it was taken out of claims.toml."""
    assert "made.up" in Page('<tr id="claim-made.up"><th></th></tr>').claims


def test_two_names_of_one_letter_clash() -> None:
    """The interpreter keeps such a text once, so that only its value tells."""
    assert names.clash(["a", "a"]) == ("a", "a")
