"""What a page says of the claims: in whole sentences, once each, and in what a reader sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes.evidence import claims, names
from rcr_probes.evidence.claimed import held
from rcr_probes.publish.layout import PAGES
from rcr_probes.publish.page import Page

EVIDENCE = Path(__file__).parents[2] / "evidence"
P3 = "E-A0.P3"


def unsaid(source: str, lang: str) -> set[str]:
    """The claims of which this page does not say what the captures give."""
    page = Page(source)
    return {
        one.claim.id
        for one in (claimed.outcome for claimed in held(EVIDENCE).claims)
        if not page.says(
            one.claim.id,
            claims.said(one.claim, lang, one.value),
            claims.written(one.value),
            claims.written(one.claim.expect),
        )
    }


def source(name: str) -> str:
    return (EVIDENCE / "guide" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_pages_say_every_claim_and_no_other(name: str) -> None:
    """Nothing that follows is vacuous."""
    assert not unsaid(source(name), PAGES[name])
    known = {claimed.outcome.claim.id for claimed in held(EVIDENCE).claims}
    assert Page(source(name)).claims == known


def hidden(row: str) -> str:
    return f"<!-- {row} -->{row.replace('exist by then: 1', 'exist by then: 0')}"


FORGED: dict[str, Callable[[str], str]] = {
    "the opposite": lambda row: row.replace("<bdi>P3:", "<bdi>It is false that P3:"),
    "a digit more": lambda row: row.replace("by then: 1.", "by then: 12."),
    "the true row in a comment": hidden,
    "a second row": lambda row: f"{row}{row}",
    "a row that is no such row": lambda row: f"{row}<tr class='x' id=\"claim-{P3}\"></tr>",
    "no row": lambda row: "",
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_sentence_that_is_not_the_claims_is_found(forged: Callable[[str], str]) -> None:
    """Whatever is added around the true one."""
    page = source("index.html")
    begin = page.index(f'<tr id="claim-{P3}">')
    row = page[begin : page.index("</tr>", begin) + len("</tr>")]
    assert forged(row) != row
    assert P3 in unsaid(page.replace(row, forged(row)), "en")


def test_a_claim_that_only_the_page_makes_is_seen() -> None:
    """As where it was taken out of claims.toml."""
    assert "made.up" in Page('<tr id="claim-made.up"><th></th></tr>').claims


def test_two_names_of_one_letter_clash() -> None:
    """The interpreter keeps such a text once, so that only its value tells."""
    assert names.clash(["a", "a"]) == ("a", "a")
