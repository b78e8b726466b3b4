"""The guide under axe, which looks for what keeps somebody from reading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Open

AXE = Path(__file__).parent / "axe" / "axe.min.js"
# Axe takes minutes for the whole page, which repeats itself: what is folded away is left out, as
# nobody sees it, and of the rows and items of one list that have the same elements and classes two
# stay, since rows may be striped.
FEW_ALIKE = """() => {
  const looks = (one) => [one, ...one.querySelectorAll("*")]
    .map((each) => `${each.tagName}.${each.getAttribute("class")}`).join();
  for (const folded of document.querySelectorAll("details:not([open]) > :not(summary)"))
    folded.remove();
  for (const list of new Set([...document.querySelectorAll("tr, li, details")]
    .map((one) => one.parentElement))) {
    const seen = {};
    for (const one of [...list.children].filter((child) => child.matches("tr, li, details"))) {
      seen[looks(one)] = (seen[looks(one)] || 0) + 1;
      if (seen[looks(one)] > 2) one.remove();
    }
  }
}"""
# What is not colour is the same in both schemes, and the colours are the same in both languages.
ALL_RULES = "resultTypes: ['violations']"
COLOURS = "runOnly: ['color-contrast']"
NO_COLOURS = f"{ALL_RULES}, rules: {{ 'color-contrast': {{ enabled: false }} }}"


@pytest.mark.parametrize(
    ("lang", "scheme", "width", "only"),
    [
        ("en", "light", 1280, ALL_RULES),
        ("zh", "light", 390, NO_COLOURS),
        ("en", "dark", 1280, COLOURS),
    ],
)
def test_axe_finds_nothing_serious(
    opened: Open, lang: str, scheme: str, width: int, only: str
) -> None:
    """With what is folded away open, of each kind; contrast is AA, tables are also lists."""
    page, _ = opened(lang, "#decide-valid-present-none", scheme=scheme, width=width)
    folded = "#chain details, #decisions, h3 + details"
    page.eval_on_selector_all(folded, "(all) => all.forEach((one) => { one.open = true; })")
    page.evaluate(FEW_ALIKE)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate(f"axe.run({{ {only} }})")
    assert found["testEngine"]["name"] == "axe-core"
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]][:3])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
