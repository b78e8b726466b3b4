"""The text table: everything in both languages, and never a guess."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from rcr_probes.errors import UnknownName
from rcr_probes.evidence.admissibility import APPROVAL, Observed
from rcr_probes.report import texts
from rcr_probes.report.texts import LANGS, section, table, text
from rcr_probes.vocabulary import (
    CAPABILITIES,
    DEDUPES,
    DIGESTS,
    EFFECT_FACTS,
    EXECUTOR_POINTS,
    FAULTS,
    NONE,
    RECEIVER_FAULTS,
    RECOVERY_FAULTS,
    RECOVERY_STRIKES,
    VERDICTS,
    WITNESSES,
    Eligibility,
    Harm,
)
from rcr_probes.witness import EFFECTS, Reason

NAMES = ("verdict", "eligibility")
DESIGN = Path(__file__).parents[2] / "docs" / "design.md"
# Codes whose Chinese term has the code beside it, by the section of their texts.
CODES = {
    "eligibility": get_args(Eligibility),
    "effect_fact": EFFECT_FACTS,
    "harm": get_args(Harm),
    "timeline.observed": get_args(Observed),
    "timeline.refused": get_args(Reason),
    "timeline.kind": (APPROVAL, EFFECTS),
}
# A column's text → the noun of the glossary that it names.
HEADINGS = {
    "runtime": "runtime",
    "variant": "configuration",
    "point": "point",
    "fault": "fault",
    "executor": "executor",
    "dedupe": "dedupe",
    "digest": "digest",
    "policy": "policy",
    "witness": "witness",
    "probe": "probe",
    "effect": "effect",
    "eligibility": "eligibility",
    "verdict": "verdict",
    "phase": "phase",
}


def test_a_section_that_is_read_alone_is_what_the_whole_file_holds_of_it() -> None:
    """An answer parses no text but its own; so no line of a long text begins as a section does."""
    folder = Path(texts.__file__).parent
    whole: dict[str, object] = {}
    for source, prefix in texts.SOURCES.items():
        whole |= texts._flat(tomllib.loads((folder / source).read_text("utf-8")), prefix)
    assert dict(table()) == whole
    assert {key: section(key.split(".")[0])[key] for key in whole} == whole


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
        (r"\bblocked\b", "应调未调", "误阻断"),
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


@pytest.mark.parametrize(
    ("section", "code"), [(section, code) for section, codes in CODES.items() for code in codes]
)
def test_a_code_stands_beside_its_chinese_term(section: str, code: str) -> None:
    """One way to name it, wherever it stands; English has the code alone."""
    assert text(f"{section}.{code}", "en") == code
    assert re.fullmatch(rf"[\u4e00-\u9fff]+（{code}）", text(f"{section}.{code}", "zh"))


@pytest.mark.parametrize(
    "key",
    [f"legend.faults.{fault}" for fault in dict.fromkeys((*FAULTS, *RECEIVER_FAULTS))]
    + [f"legend.dedupes.{dedupe}" for dedupe in DEDUPES]
    + [f"legend.digests.{digest}" for digest in DIGESTS]
    + [f"legend.points.{point}" for point in EXECUTOR_POINTS]
    + [f"legend.decisions.{code}" for code in CODES["eligibility"]]
    + [f"guide.glossary.harm.{code}" for code in CODES["harm"]],
)
def test_every_code_of_a_legend_has_its_meaning(key: str) -> None:
    """A new one is not shown without a word about it."""
    assert all(text(key, lang).endswith((".", "。")) for lang in LANGS)


def test_every_noun_of_the_design_is_in_the_glossary_under_the_same_names() -> None:
    """Who reads the guide alone finds each, and no other Chinese word for it."""
    nouns = re.findall(r"^\| \*\*(\w+)\*\* \| ([^|]+) \|", DESIGN.read_text("utf-8"), re.M)
    assert len(nouns) > 15
    for english, chinese in nouns:
        name = f"guide.term.{english.lower()}.name"
        assert (text(name, "en"), text(name, "zh")) == (english.lower(), chinese)


@pytest.mark.parametrize(("column", "term"), HEADINGS.items())
def test_a_heading_of_a_table_is_a_word_of_the_glossary(column: str, term: str) -> None:
    """What stands over a column can be looked up."""
    assert text(f"column.{column}", "zh") == text(f"guide.term.{term}.name", "zh")


@pytest.mark.parametrize("lang", LANGS)
def test_what_a_witness_is_and_what_happens_around_recovery_is_told(lang: str) -> None:
    """Each word that a plan can name has a meaning, and no other has one."""
    strikes = (*(name for name in RECOVERY_FAULTS if name != NONE), *RECOVERY_STRIKES)
    for kind, words in {"witnesses": WITNESSES, "recovery_faults": strikes}.items():
        said = {key for key in table() if key.startswith(f"legend.{kind}.")}
        assert said == {f"legend.{kind}.{word}" for word in words}
        assert all(text(key, lang).endswith((".", "。")) for key in said)


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
