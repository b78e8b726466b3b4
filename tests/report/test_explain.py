"""One cell in plain words: every code has its sentence, and every part of a capture is told."""

from __future__ import annotations

import ast
import inspect
import itertools
import string
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from rcr_probes import eligibility, judge, worker
from rcr_probes.errors import RcrError, UnknownName, printable
from rcr_probes.evidence import derive, seal
from rcr_probes.model import Capture, Circumstances, Facts, Json, Judgement, Measurement, Recorded
from rcr_probes.report.explain import decided, explain, matching
from rcr_probes.report.texts import LANGS, table, text
from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES, VERDICTS, Lane
from tests.measurements import events, measured

P3 = {"point": "completion_audit", "fault": "audit_is_directory"}
LOST: Mapping[str, Json] = {
    "lines": 0,
    "point": "response",
    "state": 0,
    "states": 1,
    "unexplored": 0,
}
CAPABILITIES = ((), ("lookup",), ("replay",), ("lookup", "replay"))
FACTS = [Facts(*facts) for facts in itertools.product(IDENTITIES, EFFECT_FACTS, CAPABILITIES)]


def captured(measurement: Measurement, start: str | None = "fork") -> Capture:
    return seal.seal(measurement, derive.derive(measurement), Circumstances(start))


def codes(module: ModuleType) -> set[str]:
    """Every reason code in a module: keys of its tables of reasons, tuples given as such."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        match node:
            case ast.Assign(targets=[ast.Name(id="reasons")], value=ast.Dict(keys=keys)):
                found += keys
            case ast.keyword(arg="reasons", value=ast.Tuple(elts=given)):
                found += given
            case ast.IfExp(body=ast.Tuple(elts=given)):
                found += given
            case ast.Call(func=ast.Name(id="Verdict"), args=[_, ast.Tuple(elts=given)]):
                found += given
            case _:
                pass
    return {str(node.value) for node in found if isinstance(node, ast.Constant)}


EMITTED = sorted(
    {code for facts in FACTS for code in eligibility.decide(facts).reasons}
    | {code for module in (judge, derive, worker) for code in codes(module)}
)


def test_the_codes_of_every_module_are_found() -> None:
    """One of each source, so that the test below cannot pass by finding none."""
    assert {
        "identity_unknown",
        "original_request_only",
        "deadline_passed",
        "evidence_erased",
        "called_without_eligibility",
        "judge_failed",
        "partial_effect",
    } <= set(EMITTED)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("code", EMITTED)
def test_every_reason_code_has_its_sentence(code: str, lang: str) -> None:
    """A code is for programs; a person reads a sentence."""
    said = text(f"reason.{code}", lang)
    assert said.endswith("." if lang == "en" else "。")


def test_no_sentence_is_left_over() -> None:
    """What no module says any more is deleted."""
    assert {f"reason.{code}" for code in EMITTED} == {k for k in table() if k.startswith("reason.")}


@pytest.mark.parametrize("lang", LANGS)
def test_every_verdict_says_why_it_holds(lang: str) -> None:
    """With the numbers of the capture in it."""
    for name in VERDICTS:
        assert text(f"because.{name}", lang, effects=2, approved=1)


def test_both_languages_fill_in_the_same_values() -> None:
    """No language says less than the other."""
    for key, said in table().items():
        en, zh = ({part[1] for part in string.Formatter().parse(said[lang])} for lang in LANGS)
        assert en - {None} == zh - {None}, key


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("facts", FACTS)
def test_every_decision_can_be_said(facts: Facts, lang: str) -> None:
    """Over every combination of facts, with each reason's code beside its sentence."""
    decision = eligibility.decide(facts)
    lines = decided(facts, decision, lang)
    assert decision.eligibility in "\n".join(lines)
    assert [line.split("[")[-1][:-1] for line in lines if line.startswith("- ")] == list(
        decision.reasons
    )


def test_in_chinese_a_fact_stands_beside_its_code() -> None:
    """Also what an executor declares; a capability from elsewhere is shown as it is."""
    facts = Facts("changed", "many", ("lookup", "of_its_own"))
    lines = decided(facts, eligibility.decide(facts), "zh")
    assert [line.split("  ")[-1].strip() for line in lines[:3]] == [
        "已变（changed）",
        "过多或不同（many）",
        "可查询（lookup）, of_its_own",
    ]


@pytest.mark.parametrize("lang", LANGS)
def test_events_and_observations_come_in_order(lang: str) -> None:
    """Each observation stands where it cuts the events."""
    one = measured(
        lanes=[
            ("fault", "state", {"status": "failed", "execution": "failed", "evidence": []}),
            ("fault", "fault", {"point": "completion_audit", "fault": "audit_is_directory"}),
            ("fault", "return", {"error": "EISDIR"}),
            ("recover", "call", {"operation_key": "operation-0"}),
            ("recover", "return", {"error": "none"}),
        ],
        calls=(1, 2),
    )
    first, last = one.observations
    one = replace(one, observations=(replace(first, events=3), replace(last, events=5)))
    lines = explain(captured(one), lang)
    happened = [line.split()[0] for line in lines if line[:5].strip().isdigit() or "────" in line]
    assert happened == ["0", "1", "2", "────", "3", "4", "────"]


def test_a_verdict_comes_with_its_reasons_and_numbers() -> None:
    """Why this verdict: the rule that held, then what else a reader should know."""
    lines = explain(captured(measured(last=("marker-0", "marker-0"), calls=(1, 2))))
    told = lines[lines.index("What the cell shows") :]
    assert told[1:3] == ["  duplicate_effect", "  There are 2 effects, and 1 was approved."]
    assert told[3].endswith("[called_without_eligibility]")


def test_damage_is_shown_where_it_was_seen() -> None:
    """A reader must see what the observation lacks."""
    lines = explain(captured(measured(damage=("calls.jsonl:2: not a ledger line",))))
    assert "       damaged: calls.jsonl:2: not a ledger line" in lines
    assert any(line.endswith("[observation_damaged]") for line in lines)


def test_a_cell_without_recovery_says_so() -> None:
    """The policy never has no recovery phase to observe."""
    one = measured(cell={"policy": "never"} | P3, ended=("exit", None), errors=("EISDIR", None))
    assert "  ──── Observed at the end, without a recovery" in explain(captured(one))


def test_a_published_row_is_told_and_not_judged() -> None:
    """What was not published is not known, and no section pretends otherwise."""
    one = measured()
    first = replace(
        one.observations[0],
        recorded=Recorded("failed", evidence=None),
        calls=None,
        error=None,
        ended=None,
        settled=None,
    )
    shown = events(("fault", "call", {"stage": "01-effect"}), ("fault", "effect", {"id": "E1"}))
    one = replace(
        one,
        source="published",
        events=shown,
        observations=(replace(first, events=2),),
        forced=None,
        published_verdict="reproduced",
    )
    lines = explain(captured(one, start=None))
    assert "    0  fault phase  call    the executor is entered  [01-effect]" in lines
    assert "    1  fault phase  effect  id E1" in lines
    assert (
        "       state failed · effects 1 (E1) · calls not known · the caller saw not known" in lines
    )
    assert lines[-2:] == ["  reproduced", f"  {text('because.unpublished', 'en')}"]
    assert text("explain.known", "en") not in lines


def test_a_cell_that_nothing_judged_is_still_told() -> None:
    """A judge that broke takes nothing away from what was measured."""
    one = measured()
    judged = Judgement(verdict=derive.derive(one).verdict)
    assert explain(seal.seal(one, judged, Circumstances("fork")))


def test_evidence_cannot_steer_the_terminal() -> None:
    """A folder from elsewhere may hold anything; control characters are shown, not sent."""
    one = measured(lanes=[("fault", "audit", {"event": "\x1b[2Jgone\r\x07"})])
    lines = explain(captured(one))
    assert all(line.isprintable() for line in lines)
    assert any("\\x1b[2Jgone\\r\\x07" in line for line in lines)
    assert printable("效果 E1") == "效果 E1"


@pytest.mark.parametrize(
    ("lane", "value"),
    [
        ("audit", {"event": "refused", "reasons": [1, None]}),
        ("audit", {"event": "refused", "reasons": 7}),
        ("fault", {**LOST, "lost": 7}),
        ("fault", {**LOST, "lost": [7]}),
        ("fault", {**LOST, "lost": [["audit", 7]]}),
    ],
)
def test_an_event_of_another_shape_is_told(lane: Lane, value: Mapping[str, Json]) -> None:
    """A folder from elsewhere may hold anything under the names of ours."""
    lines = explain(captured(measured(lanes=[("fault", lane, value)])))
    assert all(line.isprintable() for line in lines)


def test_a_cell_is_named_by_its_id_or_by_what_only_it_holds() -> None:
    """An exact id wins over longer ones that hold it."""
    cells, place = ("a/b", "a/b/seed=1", "a/c"), Path("runs/my cells")
    assert matching("a/b", cells, place) == "a/b"
    assert matching("seed=1", cells, place) == "a/b/seed=1"
    assert matching(None, cells[:1], place) == "a/b"
    with pytest.raises(RcrError, match="part of 3 cells"):
        matching("a/", cells, place)
    with pytest.raises(UnknownName, match="Did you mean 'a/c'"):
        matching("a/d", cells[2:], place)


def test_of_many_cells_a_few_are_named_and_how_to_see_them_all() -> None:
    """Nobody reads a hundred; those of a part that was typed are among these."""
    cells = [f"point/{n}" for n in range(100)]
    for given, said in ((None, "holds 100 cells"), ("point", "is a part of 100 cells")):
        with pytest.raises(RcrError) as raised:
            matching(given, cells, Path("my runs"))
        assert said in raised.value.cause
        first, *listed = raised.value.remedy.splitlines()
        assert "rcr show 'my runs' --csv has all" in first
        assert [line.strip() for line in listed] == [*cells[:8], "… and 92 more"]
