"""The guide in a real browser: without a network, by keyboard, on a phone, and in print."""

from __future__ import annotations

import base64
import io
import re
from itertools import combinations, pairwise, product
from urllib.parse import unquote, urlsplit

import pytest
from fontTools.ttLib import TTFont
from playwright.sync_api import Page

from rcr_probes.eligibility import decide
from rcr_probes.evidence.claimed import held
from rcr_probes.evidence.claims import PAGES, said, written
from rcr_probes.model import Facts
from rcr_probes.report.guide.material import shown
from rcr_probes.report.texts import LANGS, text
from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES
from tests.browser.conftest import GUIDE, ROOT, Open, Still

CHINESE = re.compile("[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]")


# What each claim's row says, and which cells its links lead to.
CLAIMS = """(rows) => rows.map((row) => ({
  id: row.id, said: row.cells[0].innerText, value: row.cells[1].innerText,
  cells: [...row.querySelectorAll('a[href^="#capture-"]')].map((link) => document
    .getElementById(link.hash.slice(1)).querySelector("summary code").textContent),
}))"""
# Mark what is seen and holds Chinese letters of its own; the answer says how many each holds.
MARK_CHINESE = """() => [...document.querySelectorAll("body *")].map((one) => {
  const own = [...one.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
  const letters = own.flatMap((node) => node.data.match(/[\\u4e00-\\u9fff]/g) || []).length;
  if (!letters || !one.checkVisibility()) return 0;
  one.dataset.chinese = "";
  return letters;
}).filter((letters) => letters)"""
# Choose each combination in the form, then leave it, and come back to it by its address.
CHOOSE = """async (wanted) => {
  const form = document.getElementById("chooser"), answer = document.getElementById("decision");
  const shown = () => ({
    address: location.hash.slice(1), decision: [answer.dataset.decision, answer.dataset.way],
    said: answer.textContent,
    checked: [...form.querySelectorAll(":checked")].map((input) => input.value),
  });
  const go = (hash) => new Promise((arrived) => {
    addEventListener("hashchange", arrived, { once: true });
    location.hash = hash;
  });
  const answers = [];
  for (const [address, identity, effect, capability] of wanted) {
    for (const input of form.elements) {
      const chosen = { identity: [identity], effect: [effect], capability }[input.name] || [];
      if (input.checked !== chosen.includes(input.value)) input.click();
    }
    const byHand = shown();
    await go("verdict");
    form.reset();
    await go(address);
    answers.push([byHand, shown()]);
  }
  return answers;
}"""


# What each wide table shows on a phone: whether it scrolls, its headings, and the label of each
# value of its first row that has one.
STACKS = """(tables) => tables.map((table) => {
  const heads = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  const labels = [...table.tBodies[0].rows[0].cells].map((cell) => {
    const label = getComputedStyle(cell, "::before").content;
    return getComputedStyle(cell).display === "none" ? null : label.replace(/^"|"$/g, "");
  });
  const { scrollWidth, clientWidth } = table.parentElement;
  return { heads, labels, scrolls: scrollWidth > clientWidth };
})"""


# How a browser calls the parts of a table to who listens, and what they are in HTML.
ROLES = {
    "row": "tr",
    "columnheader": "thead th",
    "rowheader": "tbody th",
    "cell": "tbody td",
}


def anchor_of(page: Page) -> str:
    return unquote(urlsplit(page.url).fragment)


def every_row_is_a_list(page: Page) -> None:
    """On a phone no table scrolls, and each value of a wide one stands beside its heading."""
    folded = "details:has(table)"
    page.eval_on_selector_all(folded, "(all) => all.forEach((one) => { one.open = true; })")
    stacks = page.eval_on_selector_all("table.stack", STACKS)
    assert len(stacks) > 5
    for one in stacks:
        assert not one["scrolls"], one["heads"]
        assert len(one["heads"]) == len(one["labels"]) > 3
        pairs = zip(one["heads"], one["labels"], strict=True)
        assert all(label in (head, None, "none") for head, label in pairs), one
        assert sum(label == head for head, label in zip(one["heads"], one["labels"], strict=True))
    narrow = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).length"
    assert page.eval_on_selector_all(".wide:not(.drawing)", narrow) == 0


@pytest.mark.parametrize("scripts", [True, False])
def test_a_table_is_one_to_who_listens_though_it_is_shown_as_lists(
    opened: Open, scripts: bool
) -> None:
    """On a phone its rows, headings and cells keep their roles, also where no script runs."""
    page, _ = opened("zh", width=390, scripts=scripts)
    cdp = page.context.new_cdp_session(page)
    root = cdp.send("DOM.getDocument")["root"]["nodeId"]
    for table in ("#matrix table.tools", "#controls table"):
        node = cdp.send("DOM.querySelector", {"nodeId": root, "selector": table})["nodeId"]
        assert page.locator(table).first.evaluate("(t) => getComputedStyle(t).display") == "block"
        for role, parts in ROLES.items():
            asked = {"nodeId": node, "role": role}
            told = cdp.send("Accessibility.queryAXTree", asked)["nodes"]
            there = page.locator(table).first.locator(parts)
            assert len([one for one in told if not one["ignored"]]) == there.count() > 0, role
            if scripts:  # said, too, for a browser that forgets what a list is made of
                assert {there.nth(0).get_attribute("role")} == {role}


def test_a_table_filters_and_sorts_on_a_phone(opened: Open) -> None:
    """Its headings are there to be pressed, above the lists."""
    page, _ = opened("zh", width=390)
    rows = page.locator("#matrix table.tools tbody tr:visible")
    every = rows.count()
    page.locator("#matrix .filter input").fill("kill operation_key")
    assert 0 < rows.count() < every
    page.locator("#matrix .filter input").fill("")
    button = page.locator("#matrix table.tools thead th").nth(1).get_by_role("button")
    for down in (False, True):
        button.click()
        column = page.locator("#matrix table.tools tbody tr td:nth-child(2)").all_inner_texts()
        assert column == sorted(column, reverse=down)
    assert len(set(column)) > 1


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_needs_nothing_but_its_file(opened: Open, lang: str, width: int) -> None:
    """With the network cut it loads whole: no request, no complaint, nothing beside the screen."""
    page, seen = opened(lang, width=width)
    assert page.title() == text("guide.page.title", lang)
    assert page.locator("html").get_attribute("lang") == lang
    assert [url for url in seen.requests if not url.startswith("data:")] == [page.url]
    assert seen.complaints == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 640:
        every_row_is_a_list(page)


@pytest.mark.parametrize("anchor", ["recheck", "claim-E-A0.P3", "decide-valid-present-none"])
def test_the_language_switch_goes_both_ways_and_keeps_the_anchor(opened: Open, anchor: str) -> None:
    """A reader who changes the language stays at the same place."""
    page, _ = opened("en", f"#{anchor}")
    for lang, name in (("zh", "中文"), ("en", "English")):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_url(f"**/{PAGES[lang]}#{anchor}")
        page.locator(f"[id='{anchor}']").wait_for(state="attached")


def test_the_language_switch_keeps_the_place_of_who_only_scrolled(opened: Open) -> None:
    """Without an anchor in the address, the section that is being read is the place."""
    page, _ = opened("zh")
    page.evaluate("document.getElementById('limits').scrollIntoView()")
    page.locator(".languages a[lang=en]").evaluate("(link) => link.click()")
    page.wait_for_url("**/index.html#limits")


@pytest.mark.parametrize("lang", LANGS)
def test_every_claim_is_said_and_links_to_its_captures(still: Still, lang: str) -> None:
    """Each claim links to the captures that it rests on, in order; of very many, to the first."""
    page, _ = still(lang)
    rows = {row["id"]: row for row in page.eval_on_selector_all("#claims tbody tr", CLAIMS)}
    for one in held(ROOT / "evidence").claims:
        claim, value = one.outcome.claim, one.outcome.value
        row = rows[f"claim-{claim.id}"]
        assert said(claim, lang, value) in row["said"]
        assert row["value"] == written(value)
        assert row["cells"]
        assert row["cells"] == [reference.cell for reference in shown(one)]


def test_a_link_to_a_capture_opens_it(opened: Open) -> None:
    """Though it is folded away."""
    page, _ = opened("en")
    page.evaluate("location.hash = document.querySelector('#claims a[href^=\"#capture-\"]').hash")
    page.locator("details:target[open]").wait_for()


@pytest.mark.parametrize("lang", LANGS)
def test_every_link_in_the_page_leads_somewhere(still: Still, lang: str) -> None:
    """No anchor is missing, and both pages have the same ones."""
    page, _ = still(lang)
    anchors = "(all) => all.map((one) => one.id)"
    there = page.eval_on_selector_all("[id]", anchors)
    assert len(there) == len(set(there))
    links = page.eval_on_selector_all("a[href^='#']", "(all) => all.map((one) => one.hash)")
    assert {unquote(link[1:]) for link in links} <= set(there)
    other, _ = still(LANGS[1 - LANGS.index(lang)])
    assert other.eval_on_selector_all("main [id]", anchors) == page.eval_on_selector_all(
        "main [id]", anchors
    )


def test_pointing_at_a_claim_or_moving_to_it_shows_its_capture(opened: Open) -> None:
    """What is shown is said to a screen reader too; Escape takes it away."""
    page, _ = opened("en")
    peek = page.get_by_role("tooltip")
    links = page.locator("#locations ul.claims li", has_text="E-A0.P3 ").locator("a")
    for link in (links.first, links.last):
        link.hover()
        assert "failed" in peek.inner_text()
        assert link.get_attribute("aria-describedby") == peek.get_attribute("id")
        page.keyboard.press("Escape")
        assert peek.count() == 0
        link.focus()
        assert re.search(r"[0-9a-f]{64}", peek.inner_text())
        page.keyboard.press("Escape")


def every_combination() -> dict[str, Facts]:
    """All facts, by the address of their choice."""
    declared = [c for size in range(3) for c in combinations(("lookup", "replay"), size)]
    every = [Facts(*facts) for facts in product(IDENTITIES, EFFECT_FACTS, declared)]
    return {f"decide-{f.identity}-{f.effect}-{'-'.join(f.capability) or 'none'}": f for f in every}


@pytest.mark.parametrize("lang", LANGS)
def test_the_chooser_decides_as_the_library_does(opened: Open, lang: str) -> None:
    """For every combination: chosen by hand, and come to by its address."""
    every = every_combination()
    page, _ = opened(lang)
    wanted = [[address, f.identity, f.effect, f.capability] for address, f in every.items()]
    answers = page.evaluate(CHOOSE, wanted)
    for (address, facts), (by_hand, by_address) in zip(every.items(), answers, strict=True):
        decision = decide(facts)
        assert by_hand == by_address
        assert by_hand["address"] == address
        assert by_hand["decision"] == [decision.eligibility, decision.way or ""]
        assert re.findall(r"\[(\w+)\]", by_hand["said"]) == list(decision.reasons)
        assert by_hand["checked"] == [facts.identity, facts.effect, *facts.capability]


def test_a_choice_is_restored_from_the_address_that_was_sent(opened: Open) -> None:
    """A colleague who opens it sees the same choice, its reasons, and a captured cell."""
    page, _ = opened("zh", "#decide-valid-present-none")
    chosen = page.locator("#chooser input:checked")
    values = [chosen.nth(n).get_attribute("value") for n in range(chosen.count())]
    assert values == ["valid", "present"]
    assert page.locator("#decision").get_attribute("data-decision") == "reconcile"
    assert page.locator("#decision a[href^='#capture-']").count() > 0
    page.locator("#decisions:not([open])").wait_for()  # what was asked for is the answer alone


@pytest.mark.parametrize("lang", LANGS)
def test_no_chinese_letter_becomes_a_box(still: Still, lang: str) -> None:
    """The page brings a font that has them all, and the browser draws them with it."""
    source = (GUIDE / PAGES[lang]).read_text(encoding="utf-8")
    embedded = re.search(r"data:font/woff2;base64,([^)]+)\)", source)
    assert embedded
    covered = TTFont(io.BytesIO(base64.b64decode(embedded[1]))).getBestCmap()
    page, _ = still(lang)
    used = CHINESE.findall(page.evaluate("document.body.textContent"))
    assert used
    assert {letter for letter in used if ord(letter) not in covered} == set()
    page.evaluate("document.fonts.ready.then(() => true)")
    wanted = page.evaluate(MARK_CHINESE)
    cdp = page.context.new_cdp_session(page)
    for domain in ("DOM", "CSS"):
        cdp.send(f"{domain}.enable")
    root = cdp.send("DOM.getDocument")["root"]["nodeId"]
    marked = {"nodeId": root, "selector": "[data-chinese]"}
    nodes = cdp.send("DOM.querySelectorAll", marked)["nodeIds"]
    assert len(nodes) == len(wanted) > 0
    for node, letters in zip(nodes, wanted, strict=True):
        fonts = cdp.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
        drawn = sum(font["glyphCount"] for font in fonts if font["isCustomFont"])
        assert drawn >= letters, fonts


@pytest.mark.parametrize("lang", LANGS)
def test_a_table_filters_and_sorts(opened: Open, lang: str) -> None:
    """Rows with the words stay, their number is said, and a heading sorts them both ways."""
    page, _ = opened(lang)
    table = page.locator("#matrix table.tools")
    rows = table.locator("tbody tr:visible")
    every = rows.count()
    page.locator("#matrix .filter input").fill("kill operation_key")
    kept = rows.count()
    assert 0 < kept < every
    assert all("kill" in row and "operation_key" in row for row in rows.all_inner_texts())
    assert f"{kept} / {every}" in page.locator("#matrix .filter").inner_text()
    page.locator("#matrix .filter input").fill("")
    head = table.locator("thead th").nth(1)
    for order in ("ascending", "descending"):
        head.get_by_role("button").press("Enter")
        assert head.get_attribute("aria-sort") == order
        column = [row.split("\t")[1] for row in rows.all_inner_texts()]
        assert column == sorted(column, reverse=order == "descending")


def test_print_leaves_the_controls_out_and_the_text_in(opened: Open) -> None:
    """What can only be pressed is not on paper; the picture, the claims and the answer are."""
    page, _ = opened("zh", "#decide-valid-absent-none")
    assert page.locator(".control:visible").count() > 0
    page.emulate_media(media="print")
    assert page.locator(".control:visible").count() == 0
    for place in (".tiles", "#chain svg", "#claims table", "#decision"):
        assert page.locator(place).first.is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_the_keyboard_comes_first_to_a_way_past_the_head(opened: Open) -> None:
    """The first stop leads to the text."""
    page, _ = opened("en")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hash") == "#verdict"
    page.keyboard.press("Enter")
    assert anchor_of(page) == "verdict"


@pytest.mark.parametrize("lang", LANGS)
def test_headings_come_in_order(still: Still, lang: str) -> None:
    """One first heading, and none is more than one level below the one before it."""
    page, _ = still(lang)
    found = page.eval_on_selector_all("h1, h2, h3, h4", "(all) => all.map((h) => +h.tagName[1])")
    assert found[0] == 1
    assert found.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(found))


SCROLLS = """() => [...document.querySelectorAll(".wide")].map((one) => [
  one.scrollWidth > one.clientWidth + 1,
  one.previousElementSibling !== null && one.previousElementSibling.className === "sideways",
])"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll(".drawing svg")].flatMap((drawn) => {
  const scale = drawn.getBoundingClientRect().width / drawn.viewBox.baseVal.width;
  return [...drawn.querySelectorAll("text, tspan")].map(
    (letters) => parseFloat(getComputedStyle(letters).fontSize) * scale);
}))"""


@pytest.mark.parametrize(("lang", "width"), list(product(LANGS, (390, 1280))))
def test_what_scrolls_sideways_says_so_and_figures_can_be_read(
    opened: Open, lang: str, width: int
) -> None:
    """Only where it does; and no letter of a figure is smaller than eleven pixels."""
    page, _ = opened(lang, width=width)
    page.wait_for_function(f"({SCROLLS})().every(([scrolls, hinted]) => scrolls === hinted)")
    hinted = [hint for _, hint in page.evaluate(SCROLLS)]
    assert any(hinted) or width > 640
    assert page.evaluate(SMALLEST) >= 10.99


def test_the_language_switch_knows_the_choice_before_it_is_used(opened: Open) -> None:
    """Whoever copies its address, or opens it in another tab, keeps what was chosen."""
    page, _ = opened("en")
    page.locator("input[name=effect][value=present]").check()
    chosen = urlsplit(page.url).fragment
    assert chosen.startswith("decide-")
    link = page.locator(".languages a[lang=zh]").get_attribute("href")
    assert link == f"{PAGES['zh']}#{chosen}"
