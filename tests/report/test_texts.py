"""The text table: everything in both languages, and never a guess."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from rcr_probes.errors import UnknownName
from rcr_probes.model import CAPABILITIES, VERDICTS
from rcr_probes.report.texts import LANGS, table, text

NAMES = ("verdict", "eligibility")
DESIGN = Path(__file__).parents[2] / "docs" / "design.md"


def placeholders(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


@pytest.mark.parametrize("key", table())
def test_every_text_is_there_in_every_language_and_takes_the_same_values(key: str) -> None:
    """A fact that one language fills in is filled in by the other."""
    texts = table()[key]
    assert tuple(texts) == LANGS
    assert all(said.strip() for said in texts.values())
    english, chinese = (placeholders(said) for said in texts.values())
    assert english == chinese
    assert all(name.isidentifier() for name in english)


@pytest.mark.parametrize("key", table())
def test_english_texts_hold_no_chinese(key: str) -> None:
    """Neither language stands in the other's place."""
    assert not re.search("[\u3000-\u9fff\uff00-\uffef]", table()[key]["en"])


@pytest.mark.parametrize("key", [key for key in table() if key.startswith("prose.")])
def test_prose_types_no_number(key: str) -> None:
    """A number that a reader sees comes from a capture, unless it is part of a name."""
    for said in table()[key].values():
        bare = re.sub(r"\b(P[0-3]|RCR-20260831-01|p3_\w+)\b|P[0-3]", "", said)
        assert not re.search(r"\d", bare)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_has_a_name_and_says_what_to_do(verdict: str) -> None:
    """Whoever sees a verdict is told what to do about it, in one or a few sentences."""
    for lang in LANGS:
        assert text(f"verdict.{verdict}", lang)
        assert text(f"action.{verdict}", lang).endswith((".", "。"))
    assert text(f"verdict.{verdict}", "en") == verdict


@pytest.mark.parametrize("lang", LANGS)
def test_what_stands_in_one_table_has_names_of_its_own(lang: str) -> None:
    """A verdict and an eligibility may stand side by side, and neither is taken for the other."""
    names = [said[lang] for key, said in table().items() if key.split(".")[0] in NAMES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("english", "chinese", "never"),
    [
        (r"\bfault(s provably)? fired|\bstrikes?\b|\bhad struck\b", "触发", "发生"),
        (r"\bnot.done\b", "未执行", "未完成"),
        (r"\bdeclares\b", "执行器", "接收方声明"),
    ],
)
def test_one_thing_has_one_word_in_chinese(english: str, chinese: str, never: str) -> None:
    """Wherever the English text says the one, the Chinese text says the other."""
    found = [said["zh"] for said in table().values() if re.search(english, said["en"])]
    assert len(found) > 1
    assert all(chinese in said for said in found)
    assert not any(never in said for said in found)


@pytest.mark.parametrize("lang", LANGS)
def test_what_an_executor_can_do_is_what_it_declares(lang: str) -> None:
    """Nobody has tried it: each capability is told as the executor's word."""
    says = {"en": "The executor declares", "zh": "执行器声明"}[lang]
    for capability in {name for names in CAPABILITIES.values() for name in names}:
        assert text(f"reason.{capability}_declared", lang).startswith(says)


def test_the_design_names_verdicts_as_the_texts_do() -> None:
    """The Chinese word of docs/design.md §7 is the one that a reader is shown."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*[\u4e00-\u9fff]) \|", DESIGN.read_text("utf-8"), re.M)
    assert rows == [(verdict, text(f"verdict.{verdict}", "zh")) for verdict in VERDICTS]


def test_values_are_filled_in_and_more_may_be_given() -> None:
    """A caller may hand over all that it knows."""
    said = text("figure.outcome", "en", calls=2, effects=1, unused="x")
    assert said == "calls: 2, effects: 1"


@pytest.mark.parametrize(
    ("key", "lang", "named"),
    [
        ("verdict.protcted", "en", "verdict.protcted"),
        ("verdict", "en", "verdict"),
        ("verdict.protected", "fr", "fr"),
        ("figure.outcome", "zh", "calls"),
    ],
)
def test_an_unknown_key_language_or_value_is_an_error(key: str, lang: str, named: str) -> None:
    """Nothing is said that is not written."""
    with pytest.raises(UnknownName) as caught:
        text(key, lang)
    assert caught.value.name == named
