"""What is said of a worker: each case has its sentence, and none says what was not measured."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rcr_probes.evidence import consistency
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Cell
from rcr_probes.probe import strike
from rcr_probes.report.explain import explain
from rcr_probes.report.sentences import AT_CALL, MORE, SAYS, STRUCK, said, sentence
from rcr_probes.report.texts import LANGS, table, text
from tests.probe.courses import Call, Made, capture

CONTROL = strike.controls("again")[0]
CELLS = {(cell.point, cell.fault): cell for cell in strike.at_requests([1], "again")}
BEFORE, AFTER = CELLS["before_action", "kill"], CELLS["after_action", "kill"]
AT_NOTE = strike.at_call("openat@done#1", "again")
UNAVAILABLE = CELLS["before_action", "error_before_effect"]
LOST = CELLS["after_action", "response_lost"]
PLAIN, FIRST, SECOND = Call("a"), Call("a", "k1"), Call("a", "k2")
OTHER = Call("b", "k3")
BODY = Call("a", "k1", other=True)


def made(cell: Cell, sends: Call, *recovers: Call, ends: int | str = 0, varies: str = "") -> Made:
    return Made(cell, (sends,), recovers=recovers, recovery_ends=ends, varies=varies)


CASES: list[tuple[str, str, Made]] = [
    ("recovery", "left_alone", made(CONTROL, PLAIN)),
    ("recovery", "again_without_key", made(CONTROL, PLAIN, PLAIN)),
    ("recovery", "again_without_key", made(AFTER, PLAIN, PLAIN)),
    ("recovery", "again_with_new_key", made(AFTER, FIRST, SECOND)),
    ("recovery", "again_with_new_key", made(AFTER, PLAIN, SECOND)),
    ("recovery", "again_without_key", made(AFTER, FIRST, PLAIN)),
    ("recovery", "replayed", made(AFTER, FIRST, FIRST)),
    ("recovery", "refused_mismatch", made(AFTER, FIRST, BODY)),
    ("recovery", "refused_otherwise", made(AFTER, FIRST, Call("a", "\n"))),
    ("recovery", "left_alone", made(AFTER, FIRST)),
    ("recovery", "other_effect", made(AFTER, FIRST, replace(BODY, key="k9"))),
    ("recovery", "completed", made(BEFORE, PLAIN, PLAIN)),
    ("recovery", "lost_unsent", made(BEFORE, PLAIN)),
    ("recovery", "lost_unsent", Made(UNAVAILABLE, (PLAIN,), ends=0)),
    ("recovery", "completed", made(UNAVAILABLE, FIRST, FIRST)),
    ("recovery", "lost_refused", made(BEFORE, PLAIN, Call("a", "\n"))),
    ("recovery", "unsent", made(BEFORE, PLAIN, ends=1)),
    ("recovery", "refused", made(BEFORE, PLAIN, Call("a", "\n"), ends=1)),
    ("recovery", "ended_by_signal", made(AFTER, FIRST, ends="SIGSEGV")),
    ("recovery", "recovery_still_running", made(AFTER, FIRST, ends="deadline")),
    ("worker", "again_without_key", Made(LOST, (PLAIN,), retries=(PLAIN,), ends=0)),
    ("worker", "replayed", Made(LOST, (FIRST,), retries=(FIRST,), ends=0)),
    ("worker", "refused_mismatch", Made(LOST, (FIRST,), retries=(BODY,))),
    ("worker", "still_running", Made(LOST, (FIRST,), ends="deadline")),
    ("worker", "ended_by_signal", Made(LOST, (FIRST,), ends="SIGSEGV")),
    ("worker", "not_struck", Made(replace(AFTER, variant="request_2"), (FIRST,), ends=0)),
    ("worker", "not_struck", Made(AT_NOTE, (FIRST,), proven=False)),
    ("worker", "struck_below", Made(AT_NOTE, (FIRST,), proven=True)),
    ("recovery", "partial_done", Made(LOST, (FIRST, OTHER))),
    ("recovery", "partial_open", Made(LOST, (FIRST, OTHER), recovery_ends=1)),
    ("recovery", "completed", Made(BEFORE, (FIRST, OTHER), recovers=(FIRST, OTHER))),
    ("recovery", "replayed", Made(LOST, (FIRST, OTHER), recovers=(FIRST, OTHER))),
    ("recovery", "again_with_new_key", Made(LOST, (FIRST, OTHER), recovers=(SECOND, OTHER))),
    ("recovery", "again_with_new_key", Made(LOST, (FIRST, OTHER), recovers=(SECOND,))),
    ("recovery", "again_without_key", Made(BEFORE, (PLAIN, OTHER), recovers=(PLAIN, PLAIN))),
    ("recovery", "counted", Made(BEFORE, (PLAIN, OTHER), recovers=(PLAIN,) * 2, varies="body")),
    ("recovery", "counted", Made(BEFORE, (PLAIN, OTHER), recovers=(PLAIN,) * 2, varies="path")),
    ("recovery", "completed", made(BEFORE, PLAIN, PLAIN, varies="body")),
    ("recovery", "counted", made(BEFORE, PLAIN, PLAIN, varies="path")),
    ("worker", "counted", Made(LOST, (PLAIN, OTHER), retries=(PLAIN,), varies="body")),
    ("recovery", "left_alone", made(AFTER, PLAIN, varies="path")),
]


@pytest.mark.parametrize(
    ("who", "says", "case"), CASES, ids=[f"{n} {c[0]} {c[1]}" for n, c in enumerate(CASES)]
)
def test_each_case_has_its_sentence(who: str, says: str, case: Made) -> None:
    """Who did what is told from requests, keys, effects and exits alone."""
    found = sentence(capture(case))
    assert (found.who, found.says) == (who, says)
    assert not re.search(r"\b(\d+), not \1\b", said(found, "en"))


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("case", [c[2] for c in CASES], ids=[str(n) for n in range(len(CASES))])
def test_a_request_is_explained_with_its_key_or_as_one_without(case: Made, lang: str) -> None:
    """In words; and what a receiver does by a key is no capability where a request has none."""
    found = capture(case)
    calls = [event.value for event in found.measurement.events if event.lane == "call"]
    told = [line for line in explain(found, lang) if re.match(r"^ +\d+  ", line)]
    keyless, keyed = text("request.keyless", lang), text("request.key", lang, name="K1")
    assert any(keyless in line for line in told) == any(call["key"] is None for call in calls)
    assert any(keyed in line for line in told) == any(call["key"] == "K1" for call in calls)
    assert not any("operation_key" in line or "outcome" in line for line in told)
    assert found.judgement.facts is not None
    every = all(call["key"] is not None for call in calls)
    assert found.judgement.facts.capability == (("lookup", "replay") if every else ())
    assert (text("request.no_capability", lang) in "\n".join(explain(found, lang))) == (not every)


def damaged(verb: str, damage: str) -> Capture:
    """A capture in which something is wrong with one observation."""
    whole = capture(made(AFTER, FIRST, FIRST))
    observations = tuple(
        replace(o, damage=(damage,)) if o.after == verb else o
        for o in whole.measurement.observations
    )
    measured = replace(whole.measurement, observations=observations)
    return replace(whole, measurement=measured, judgement=derive(measured))


@pytest.mark.parametrize(
    ("verb", "damage", "who", "says"),
    [
        ("fault", "processes: some outlived the command, and were ended", "worker", "left_running"),
        ("recover", "processes: some outlived it", "recovery", "left_running"),
        ("recover", "receiver: something was in flight", "worker", "not_known"),
    ],
)
def test_what_is_not_known_is_said_to_be(verb: str, damage: str, who: str, says: str) -> None:
    """Damage is never turned into a finding about the worker's requests."""
    found = sentence(damaged(verb, damage))
    assert (found.who, found.says) == (who, says)


def test_the_cases_leave_no_sentence_out() -> None:
    """Whatever can be said is said in one of the cases above."""
    assert {says for _, says, _ in CASES} | {"left_running", "not_known"} == set(SAYS)


def every() -> Iterator[Made]:
    """Each fault × key × further calls in its own run × calls of recovery × exit."""
    keys = {"none": (None, None), "new": ("k1", "k2"), "same": ("k1", "k1")}
    for cell, (first, again) in itertools.product((CONTROL, *CELLS.values()), keys.values()):
        call, further = Call("a", first), Call("a", again)
        calls = ((), (further,), (replace(further, other=True),))
        for retries, recovers, ends in itertools.product(calls, calls, (0, 1)):
            if retries and (cell == CONTROL or cell.fault == "kill"):
                continue
            yield Made(cell, (call,), retries, recovers, ends=ends, recovery_ends=ends)


def test_over_every_case_the_sentence_agrees_with_the_count() -> None:
    """Too many, too few, another: the words say so exactly where effects do; and check agrees."""
    for case in every():
        found = capture(case)
        last = found.measurement.after("recover")
        assert last is not None
        assert list(consistency.problems(found)) == [], case
        told = sentence(found)
        effects = [effect.target == "marker-0" for effect in last.effects or ()]
        assert (told.says == "other_effect") == (not all(effects)), case
        if all(effects):
            assert told.says.startswith("again_") == (len(effects) > 1), case
            missing = told.says in ("lost_unsent", "lost_refused", "unsent", "refused")
            assert missing == (not effects), case
        for lang in LANGS:
            assert said(told, lang).endswith((".", "。")), case


@pytest.mark.parametrize("lang", LANGS)
def test_every_code_has_a_text_in_each_language(lang: str) -> None:
    """No worker is answered with a missing text."""
    keys = [
        *(f"probe.struck.{name}" for name in (*STRUCK.values(), AT_CALL)),
        *(f"probe.says.{says}" for says in SAYS),
        *(f"probe.more.{more}" for more in MORE),
        *(f"probe.who.{who}" for who in ("worker", "recovery")),
        *(f"probe.told.{level}" for level in ("payload", "path", "count")),
        *(f"probe.count.{count}" for count in ("many", "short")),
    ]
    assert all(table()[key][lang] for key in keys)
    assert {k for k in table() if k.startswith("probe.says.")} == {
        k for k in keys if k.startswith("probe.says.")
    }


def test_what_is_added_is_added_only_where_it_holds() -> None:
    """A recovery that does not know that it is done, one that asks, one that waits for ever."""
    told = sentence(capture(made(AFTER, FIRST, FIRST, ends=1)))
    assert told.more == ("open_end",)
    assert "But it ended with exit_1" in said(told, "en")
    asked = sentence(capture(made(AFTER, FIRST, Call("a", method="GET"))))
    assert asked.more == ("asked",)
    assert sentence(capture(made(AFTER, FIRST, FIRST))).more == ()
    believed = sentence(capture(Made(UNAVAILABLE, (FIRST,), recovers=(FIRST,), ends=0)))
    assert (believed.says, believed.more) == ("completed", ("believed",))
    assert "ended with exit_0" in said(believed, "en")
    assert sentence(capture(made(UNAVAILABLE, FIRST, FIRST))).more == ()
