"""Claims: bound to captures by a query, and never borne out by what is not there."""

from __future__ import annotations

import json
import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes.errors import EvidenceError, NotEvidence, UnknownName
from rcr_probes.evidence import form, store
from rcr_probes.evidence.claimed import held
from rcr_probes.evidence.claims import (
    FILE,
    Claim,
    Row,
    Table,
    evaluate,
    parsed,
    places,
    said,
    tables,
    written,
)
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.rows import rows
from rcr_probes.report.texts import table as texts
from tests.evidence import made

ROOT = Path(__file__).parents[2]
WHOLE: Mapping[str, Any] = {
    "id": "P3",
    "en": "Effects: {value}.",
    "zh": "效果数为 {value}。",
    "evidence": "small",
    "where": {"point": "completion_audit", "policy": "resume"},
    "take": "effects_after_recovery",
    "expect": 2,
    "not_shown_en": "A rate.",
    "not_shown_zh": "比率。",
    "source": "measured here",
}


def literal(value: Any) -> str:
    """A value in TOML, which writes texts, numbers and lists as JSON does."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(k)} = {literal(v)}" for k, v in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value, ensure_ascii=False)


def entry(kind: str = "claim", **fields: Any) -> str:
    return "\n".join([f"[[{kind}]]", *(f"{k} = {literal(v)}" for k, v in fields.items()), ""])


def toml(**changes: Any) -> str:
    """A file of one whole claim with some of its fields changed; None leaves one out."""
    fields = {**WHOLE, **changes}
    return entry(**{name: value for name, value in fields.items() if value is not None})


def claim(**changes: Any) -> Claim:
    [one] = parsed(toml(**changes), FILE)
    return one


def row(cell: str = "c", **columns: object) -> Row:
    return {"cell": cell, **columns}


# What a file must be.


def test_a_whole_claim_is_read_as_it_is_written() -> None:
    """One value and a list of one ask for the same."""
    one = claim()
    assert (one.id, one.take, one.expect) == ("P3", "effects_after_recovery", 2)
    assert one.where == {"point": ("completion_audit",), "policy": ("resume",)}
    assert claim(where={"point": ["completion_audit"], "policy": "resume"}).where == one.where


BAD: Sequence[tuple[str, str, str]] = [
    ("", FILE, "no claim"),
    ("[[claim]\n", FILE, "line 1"),
    ("x = 1\n" + toml(), FILE, "'x'"),
    ("claim = 3\n", FILE, "'claim'"),
    (toml() + toml(), FILE, "'P3' twice"),
    (toml(source=None), "claim 1 (P3)", "no source"),
    (toml(id=None), "claim 1", "no id"),
    (toml(tke="count"), "claim 1 (P3)", "'tke'"),
    (toml(id="../P3"), "claim 1 (../P3)", "'../P3'"),
    (toml(evidence=".."), "claim 1 (P3)", "'..'"),
    (toml(evidence="a/b"), "claim 1 (P3)", "'a/b'"),
    (toml(en="Two effects."), "claim 1 (P3)", "en needs {value}"),
    (toml(zh="{value} {other}"), "claim 1 (P3)", "zh needs {value}"),
    (toml(not_shown_zh=" "), "claim 1 (P3)", "not_shown_zh"),
    (toml(source="a\x1b[2J"), "claim 1 (P3)", "source"),
    (toml(take="sum  effects"), "claim 1 (P3)", "'sum  effects'"),
    (toml(take="count", expect="2"), "claim 1 (P3)", "a number"),
    (toml(take="sum calls_after_fault", expect=True), "claim 1 (P3)", "a number"),
    (toml(expect=1.5), "claim 1 (P3)", "expect"),
    (toml(expect=1 << 63), "claim 1 (P3)", "expect"),
    (toml().replace("expect = 2", "expect = 0x" + "f" * 10_000), "claim 1 (P3)", "expect"),
    (toml(where=3), "claim 1 (P3)", "where"),
    (toml(where={"point": []}), "claim 1 (P3)", "point"),
    (toml(where={"point": [1.5]}), "claim 1 (P3)", "point"),
    (toml(where={"Point": "none"}), "claim 1 (P3)", "'Point'"),
]


@pytest.mark.parametrize(("text", "place", "what"), BAD)
def test_a_bad_file_is_refused_with_place_cause_and_remedy(
    text: str, place: str, what: str
) -> None:
    """Whoever wrote it is told where, what and how to mend it."""
    with pytest.raises(EvidenceError) as caught:
        parsed(text, FILE)
    assert place in caught.value.place
    assert what in caught.value.cause
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"name": "verdicts", "evidence": "small", "where": {}}, "no page"),
        ({"name": "verdicts", "page": "p", "evidence": "..", "where": {}}, "'..'"),
        ({"name": "verdicts", "page": "p", "evidence": "small", "where": []}, "where"),
    ],
)
def test_a_bad_table_is_refused_too(fields: dict[str, Any], what: str) -> None:
    """What pages are said to show is data like a claim."""
    with pytest.raises(EvidenceError, match=re.escape(what)) as caught:
        tables(entry("table", **fields), FILE)
    assert "table 1 (verdicts)" in caught.value.place


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.lists(st.one_of(st.text(max_size=3), st.integers(), st.booleans()), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)


@given(st.one_of(st.text(), st.builds(toml, **dict.fromkeys(WHOLE, VALUES))))
def test_no_file_ends_in_another_error(text: str) -> None:
    """Whatever stands in it: claims, or one error of ours."""
    for read in (parsed, tables):
        try:
            read(text, FILE)
        except EvidenceError as error:
            assert error.place and error.remedy  # noqa: PT017, PT018 (there may be none)


def test_a_file_of_deep_nesting_is_refused() -> None:
    """It exhausts no stack."""
    with pytest.raises(EvidenceError, match="no TOML"):
        parsed("x = " + "[" * 100_000, FILE)


@pytest.mark.parametrize("values", [["a", "a"], [1, True, 1], [False, 0, False]])
def test_a_value_that_is_asked_for_twice_is_refused(values: list[Any]) -> None:
    """It says nothing more; true and 1 are two."""
    with pytest.raises(EvidenceError, match="for a value twice"):
        claim(where={"x": values})
    once = [value for n, value in enumerate(values) if n == 0 or type(value) is not type(values[0])]
    assert claim(where={"x": once}).where == {"x": tuple(once)}


@pytest.mark.parametrize("kind", ["claim", "table"])
def test_a_file_of_very_many_entries_is_refused(kind: str) -> None:
    """Each costs a look at every capture."""
    text = f"[[{kind}]]\n" * 1_001
    with pytest.raises(EvidenceError, match="more than 1000 entries"):
        (parsed if kind == "claim" else tables)(text, FILE)


def test_many_values_of_a_query_cost_no_time() -> None:
    """Thousands of them over thousands of rows: each row is looked at once, not once a value."""
    many = 20_000
    found = [row(f"c{number}", x=number) for number in range(many)]
    one = claim(where={"x": list(range(many))}, take="count", expect=many)
    begun = time.process_time()
    assert evaluate(one, found).holds
    assert time.process_time() - begun < 5  # looking at every pair takes minutes


# What the rows say to it.


WORDS = st.sampled_from([None, "a", "b", 0, 1, 2, True, False])
NUMBERS = st.sampled_from([None, 0, 1, 2])
ROWS = st.lists(
    st.builds(lambda x, y, n: {"x": x, "y": y, "n": n}, WORDS, WORDS, NUMBERS), max_size=8
).map(lambda found: [{"cell": f"c{i}", **columns} for i, columns in enumerate(found)])
GIVEN = st.sampled_from(["a", "b", 0, 1, 2, True, False])
ASKED = st.lists(GIVEN, min_size=1, max_size=3, unique_by=json.dumps)
WHERE = st.dictionaries(st.sampled_from("xy"), ASKED, max_size=2)
TAKES = st.sampled_from(["count", "sum n", "n", "x"])


def wants(where: Mapping[str, Sequence[object]], one: Row) -> bool:
    """What a query means, said by the JSON of the values: there true is not 1, and 1 is not "1"."""
    return all(
        json.dumps(one[column]) in [json.dumps(value) for value in values]
        for column, values in where.items()
    )


@given(ROWS, WHERE, TAKES, st.integers(0, 8))
def test_a_query_gives_what_its_words_mean(
    found: list[Row], where: dict[str, list[Any]], take: str, expect: int
) -> None:
    """Filter, then count, sum, or one column in which all agree; what it cannot say, fails."""
    outcome = evaluate(claim(where=where, take=take, expect=expect), found)
    chosen = [one for one in found if wants(where, one)]
    asked = [(column, value) for column, values in where.items() for value in values]
    if not chosen or not all(any(wants({c: [v]}, one) for one in found) for c, v in asked):
        assert (outcome.value, outcome.cells, outcome.holds) == (None, (), False)
        return
    assert outcome.cells == tuple(one["cell"] for one in chosen)
    taken: list[Any] = [one[take.removeprefix("sum ")] for one in chosen if take != "count"]
    if None in taken or (take in "nx" and len({json.dumps(value) for value in taken}) > 1):
        assert (outcome.value, outcome.holds) == (None, False)
        return
    value = {"count": len(chosen), "sum n": sum(taken) if take == "sum n" else 0}.get(take)
    value = taken[0] if value is None else value
    assert json.dumps(outcome.value) == json.dumps(value)
    assert outcome.holds == (json.dumps(value) == json.dumps(expect))


@given(ROWS, WHERE, TAKES, st.data())
def test_the_order_of_rows_and_rows_elsewhere_change_nothing(
    found: list[Row], where: dict[str, list[Any]], take: str, data: st.DataObject
) -> None:
    """A claim is about a set of captures."""
    one = claim(where=where, take=take, expect=1)
    before = evaluate(one, found)
    after = evaluate(one, data.draw(st.permutations(found)))
    assert (before.value, before.problem) == (after.value, after.problem)
    assert sorted(before.cells) == sorted(after.cells)
    if where and before.cells:
        elsewhere = row("other", x="elsewhere", y="elsewhere", n=2)
        assert evaluate(one, [*found, elsewhere]) == before


@given(ROWS, WHERE, st.sampled_from("xy"), GIVEN)
def test_asking_for_more_never_selects_more(
    found: list[Row], where: dict[str, list[Any]], column: str, value: Any
) -> None:
    """Each further column narrows the query."""
    wide = {name: tuple(values) for name, values in where.items() if name != column}
    assert set(places({**wide, column: (value,)}, found)) <= set(places(wide, found))


@pytest.mark.parametrize(
    ("changes", "found", "problem", "about"),
    [
        ({}, [], "no_captures", ""),
        ({"where": {}, "take": "count", "expect": 0}, [], "no_captures", ""),
        ({"where": {"x": "a", "y": "b"}}, [row(x="a", y="c"), row(x="c", y="b")], None, ""),
        ({"where": {"z": "a"}}, [row(x="a")], "no_column", "z"),
        ({"where": {"x": "a"}, "take": "z"}, [row(x="a")], "no_column", "z"),
        ({"where": {"x": ["a", "q"]}}, [row(x="a")], "no_such_value", "x = q"),
        ({"where": {"x": 1}}, [row(x=True)], "no_such_value", "x = 1"),
        ({"where": {}, "take": "x"}, [row(x=None)], "not_known", ""),
        ({"where": {}, "take": "sum x"}, [row(x=2), row(x=None)], "not_known", ""),
        ({"where": {}, "take": "sum x"}, [row(x=2), row(x="a")], "no_number", ""),
        ({"where": {}, "take": "sum x"}, [row(x=1), row(x=True)], "no_number", ""),
        ({"where": {}, "take": "x"}, [row(x=2), row(x=3)], "not_one_value", ""),
        ({"where": {}, "take": "x"}, [row(x=3)], "other_value", ""),
        ({"where": {}, "take": "x", "expect": 1}, [row(x=True)], "other_value", ""),
    ],
)
def test_why_a_claim_does_not_hold(
    changes: dict[str, Any], found: list[Row], problem: str | None, about: str
) -> None:
    """Each way has its own name, and says what it is with."""
    outcome = evaluate(claim(**{"take": "count", **changes}), found)
    assert not outcome.holds
    assert (outcome.problem, outcome.about) == (problem or "no_captures", about)


def test_a_sentence_says_what_was_measured_and_not_what_was_expected() -> None:
    """In both languages; a value is written as JSON writes it, and none as a question."""
    one = claim(expect=7)
    assert said(one, "en", 2) == "Effects: 2."
    assert said(one, "zh", 2) == "效果数为 2。"
    assert (written(True), written("a{value}"), written(None)) == ("true", "a{value}", "?")
    with pytest.raises(UnknownName, match="fr"):
        said(one, "fr", 2)


# A folder of evidence folders.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sound evidence of three cells, and one claim over one of them."""
    made.small(tmp_path / "small")
    (tmp_path / FILE).write_text(toml(), encoding="utf-8")
    return tmp_path


def test_a_claim_that_holds_names_its_captures_and_their_digests(folder: Path) -> None:
    """What else is there, nothing uses."""
    report = held(folder)
    captures = list(store.read(folder / "small").captures())
    number = [capture.cell for capture in captures].index(made.P3)
    [one] = report.claims
    assert (one.outcome.value, one.outcome.holds, report.sound) == (2, True, True)
    [found] = one.captures
    assert (found.evidence, found.number, found.cell) == ("small", number, made.P3.id)
    assert found.facts_sha256 == captures[number].facts_sha256
    assert [one.cell for one in report.unused["small"]] == [made.CONTROL.id, made.LEFT.id]


def test_what_a_table_shows_is_used(folder: Path) -> None:
    """The table selects as a claim does."""
    table = {"name": "verdicts", "page": "README.md", "evidence": "small"}
    text = toml() + entry("table", **table, where={"policy": ["again", "never"]})
    (folder / FILE).write_text(text, encoding="utf-8")
    assert (held(folder).sound, held(folder).unused) == (True, {})
    (folder / FILE).write_text(toml() + entry("table", **table, where={"point": "nowhere"}))
    [unshown] = held(folder).unshown
    assert (unshown.problem, unshown.about) == ("no_such_value", "point = nowhere")
    assert not held(folder).sound


@pytest.mark.parametrize("change", ["gone", "link", "unsealed", "tampered"])
def test_evidence_that_cannot_be_taken_bears_nothing_out(folder: Path, change: str) -> None:
    """It is missing, leads elsewhere, was never sealed, or was changed since."""
    small, problem = folder / "small", "no_folder" if change == "gone" else "not_read"
    if change == "tampered":
        lines = made.edit(small, 1, lambda data: data["circumstances"].update(parent=1))
        (small / CAPTURES).write_bytes(b"".join(lines))
    elif change == "unsealed":
        (small / form.MANIFEST).unlink()
    else:
        moved = small.rename(folder.parent / f"{folder.name}-moved")
        if change == "link":
            small.symlink_to(moved)
    report = held(folder)
    assert not report.sound
    assert report.claims[0].outcome.problem == problem
    assert report.claims[0].captures == ()


def test_a_changed_number_in_resealed_captures_is_found_by_the_claim(folder: Path) -> None:
    """Every digest fits again; the sentence does not."""
    assert held(folder).sound

    def one_effect(data: Any) -> None:
        data["measurement"]["observations"][1]["effects"].pop()

    number = [c.cell for c in store.read(folder / "small").captures()].index(made.P3)
    made.remake(folder / "small", number, one_effect)
    [one] = held(folder).claims
    assert (one.outcome.value, one.outcome.problem) == (1, "other_value")


def test_published_nulls_are_not_values(folder: Path) -> None:
    """What was not published can be neither asked for nor taken."""
    published = rows(store.read(ROOT / "evidence" / "rcr-20260831").captures())
    one = claim(where={"point": "start_audit"}, take="effects_after_recovery", expect=0)
    assert evaluate(one, published).problem == "not_known"


@pytest.mark.parametrize("change", ["absent", "folder", "link", "gbk", "huge"])
def test_a_file_that_is_none_is_refused(folder: Path, change: str) -> None:
    """It is never followed, and never read without end."""
    place = folder / FILE
    data = place.read_bytes()
    place.unlink()
    match change:
        case "folder":
            place.mkdir()
        case "link":
            place.symlink_to(folder / "small" / CAPTURES)
        case "gbk":
            place.write_bytes(data.decode().encode("gbk"))
        case "huge":
            place.write_bytes(data + b"#" * (1 << 20))
    with pytest.raises(NotEvidence if change == "absent" else EvidenceError, match=FILE):
        held(folder)


# The committed claims.


COMMITTED = (ROOT / "evidence" / FILE).read_text(encoding="utf-8")
CLAIMS = parsed(COMMITTED, FILE)
NAMES = r"RCR-20260831-01|P[0-3]"
CHINESE = re.compile("[\u3000-\u9fff\uff00-\uffef]")


def test_every_committed_claim_holds_and_every_capture_is_used() -> None:
    """Over the committed evidence, all of it."""
    report = held(ROOT / "evidence")
    assert [one.outcome for one in report.claims if not one.outcome.holds] == []
    assert (report.unshown, report.unused) == ((), {})
    folders = {path.parent.name for path in (ROOT / "evidence").glob(f"*/{form.MANIFEST}")}
    assert {one.evidence for one in CLAIMS} == folders


@pytest.mark.parametrize("one", CLAIMS, ids=lambda one: one.id)
def test_a_committed_claim_is_one_sentence_in_each_language_without_a_typed_number(
    one: Claim,
) -> None:
    """What a reader sees as a number comes from the captures, unless it is part of a name."""
    for english, chinese in ((one.en, one.zh), (one.not_shown_en, one.not_shown_zh)):
        assert not CHINESE.search(english)
        assert CHINESE.search(chinese)
        assert not re.search(r"\d", re.sub(NAMES, "", english + chinese))
        assert not re.search(r"\. |。.", english + chinese.removesuffix("。"))
        assert (english[-1], chinese[-1]) == (".", "。")


@pytest.mark.parametrize(
    "one", tables(COMMITTED, FILE), ids=lambda one: f"{one.name}-{one.evidence}-{one.page}"
)
def test_a_committed_table_stands_in_its_page(one: Table) -> None:
    """A page of Markdown has a place for it; a notebook calls the library by its name."""
    page = (ROOT / one.page).read_text(encoding="utf-8")
    assert f"table.{one.name}" in texts()
    assert (f"fill: {one.name} -->" if one.page.endswith(".md") else one.name) in page


def test_a_claim_says_of_a_state_only_what_its_query_binds() -> None:
    """A word of the data in a sentence is one that the query asks for, or the value."""
    words = r"EISDIR|APPROVAL_\w+|\b(?:approved|executing|succeeded|failed|partial_failed)\b"
    for one in CLAIMS:
        asked = tomllib.loads(f"x = {literal(list(sum(one.where.values(), ())))}")["x"]
        named = set(re.findall(words, one.zh))
        assert named <= {*map(str, asked)}, one.id
