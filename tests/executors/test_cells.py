"""Cells whose executor is not what its name says: struck inside, forgotten by, or half done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rcr_probes import process
from rcr_probes import run as runs
from rcr_probes.evidence import consistency, seal, store
from rcr_probes.evidence.check import check
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Cell, Event, Plan
from rcr_probes.product import product
from rcr_probes.report.explain import happened
from rcr_probes.report.texts import LANGS
from rcr_probes.scratch import PREFIX
from rcr_probes.vocabulary import (
    CAPABILITIES,
    EXECUTOR_POINTS,
    INNER_POINTS,
    RECEIVED,
    RECEIVER_FAULTS,
    TRULY,
)

# dedupe, point, fault → the verdict under again, resume, never.
VERDICTS = """
claim_first         after_claim      exception            no_effect  lost_effect         no_effect
claim_first         after_claim      kill                 no_effect  no_effect           no_effect
late_key            before_key       exception            protected  duplicate_effect    protected
late_key            before_key       kill                 protected  protected           protected
pair                between_effects  exception            unknown    duplicate_effect    unknown
pair                between_effects  kill                 unknown    unknown             unknown
pair_operation_key  between_effects  exception            unknown    state_effect_split  unknown
pair_operation_key  between_effects  kill                 unknown    unknown             unknown
pair_effect_key     between_effects  exception            blocked    consistent          blocked
pair_effect_key     between_effects  kill                 blocked    blocked             blocked
claim_first         after_action     exception            consistent deduplicated        consistent
late_key            after_action     exception            consistent deduplicated        consistent
pair                after_action     exception            protected  duplicate_effect    protected
pair_operation_key  after_action     exception            consistent deduplicated        consistent
pair_effect_key     after_action     exception            consistent deduplicated        consistent
pair_effect_key     before_action    exception            blocked    consistent          blocked
receiver_key        before_action    error_before_effect  blocked    consistent          blocked
receiver_key        after_action     response_lost        consistent deduplicated        consistent
receiver_key        after_action     error_after_effect   consistent deduplicated        consistent
receiver_key        after_action     timeout              consistent deduplicated        consistent
receiver_key        after_action     kill                 consistent consistent          consistent
expired_key         before_action    error_before_effect  blocked    consistent          blocked
expired_key         after_action     response_lost        protected  duplicate_effect    protected
expired_key         after_action     error_after_effect   protected  duplicate_effect    protected
expired_key         after_action     timeout              protected  duplicate_effect    protected
expired_key         after_action     exception            protected  duplicate_effect    protected
"""
POLICIES = ("again", "resume", "never")
EXPECTED = {
    Cell(point=point, fault=fault, dedupe=dedupe, policy=policy): verdict
    for dedupe, point, fault, *verdicts in map(str.split, VERDICTS.strip().splitlines())
    for policy, verdict in zip(POLICIES, verdicts, strict=True)
}
# Fault, digest, variant of the reference → identity, and the verdicts under resume without dedupe
# where the effect is missing, and where it is there.
SCOPES = {
    ("volatile", "baseline"): ("changed", "blocked", "protected"),
    ("volatile", "meaning_digest"): ("valid", "consistent", "duplicate_effect"),
    ("coarse", "baseline"): ("valid", "wrong_effect", "wrong_effect"),
    ("coarse", "meaning_digest"): ("changed", "protected", "protected"),
    ("same", "meaning_digest"): ("valid", "consistent", "duplicate_effect"),
    ("changed", "meaning_digest"): ("changed", "protected", "protected"),
    ("reordered", "meaning_digest"): ("valid", "consistent", "duplicate_effect"),
}
IDENTIFIED = {
    cell: (identity, verdict)
    for (digest, variant), (identity, *verdicts) in SCOPES.items()
    for cell, verdict in zip(
        product(
            point=["before_action", "after_action"],
            fault="exception",
            digest=digest,
            variant=variant,
            policy="resume",
        ),
        verdicts,
        strict=True,
    )
}
# Digest, variant → the verdicts of recovery by evidence, where the effect is missing, and is there.
GATED = {
    ("volatile", "baseline"): ("held", "protected"),
    ("volatile", "meaning_digest"): ("consistent", "protected"),
    ("coarse", "baseline"): ("wrong_effect", "protected"),
    ("coarse", "meaning_digest"): ("held", "protected"),
}
BY_EVIDENCE = {
    replace(cell, policy="evidence_gated"): verdict
    for cell, verdict in zip(
        [c for c in IDENTIFIED if (c.digest, c.variant) in GATED],
        [verdict for verdicts in GATED.values() for verdict in verdicts],
        strict=True,
    )
}
CHANGED = Cell(
    point="after_action", fault="exception", dedupe="receiver_key", digest="changed", policy="never"
)
CELLS = (*EXPECTED, *IDENTIFIED, *BY_EVIDENCE, CHANGED)


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> store.Evidence:
    return runs.run(Plan("inside", CELLS), tmp_path_factory.mktemp("inside") / "evidence")


@pytest.fixture(scope="module")
def captures(evidence: store.Evidence) -> Mapping[Cell, Capture]:
    return {capture.cell: capture for capture in evidence.captures()}


def verdict(capture: Capture) -> str:
    assert capture.judgement.verdict is not None
    return capture.judgement.verdict.verdict


def test_what_each_executor_leaves_is_as_expected(captures: Mapping[Cell, Capture]) -> None:
    """``late_key`` and ``expired_key`` show a duplicate, ``claim_first`` a loss; halves stay."""
    assert {cell.id: verdict(captures[cell]) for cell in EXPECTED} == {
        cell.id: expected for cell, expected in EXPECTED.items()
    }
    assert all(captures[cell].judgement.fired for cell in EXPECTED)


def test_the_right_scope_of_a_digest_blocks_nothing_and_lets_nothing_else_pass(
    captures: Mapping[Cell, Capture],
) -> None:
    """The baseline's covers a credential, and leaves out the session that a target depends on."""
    found = {
        cell.id: (facts.identity, verdict(captures[cell]))
        for cell in IDENTIFIED
        if (facts := captures[cell].judgement.facts)
    }
    assert found == {cell.id: expected for cell, expected in IDENTIFIED.items()}


def test_recovery_by_evidence_is_as_good_as_the_digest(captures: Mapping[Cell, Capture]) -> None:
    """A volatile field makes it stop where it need not, and a coarse digest make a wrong effect."""
    assert {cell.id: verdict(captures[cell]) for cell in BY_EVIDENCE} == {
        cell.id: expected for cell, expected in BY_EVIDENCE.items()
    }


@pytest.mark.parametrize("lang", LANGS)
def test_what_happened_in_an_executor_is_told_in_words(lang: str) -> None:
    """A part of an action, and a question, are no maps of names to a reader."""
    told = {"operation_key": "operation-0", "effects": None, "in_flight": True}
    effect = {"effect_id": "E2", "operation_key": "operation-0", "kind": "2", "target": "marker-0"}
    for lane, value, names in (
        ("ask", told, ("operation-0",)),
        ("effect", effect, ("E2", "marker-0", "2")),
    ):
        _, _, said = happened(Event(0, "recover", lane, value), lang)  # type: ignore[arg-type]
        assert all(name in said for name in names)
        assert not any(name in said for name in value if "_" in name)


def test_what_an_executor_does_is_sound_evidence(evidence: store.Evidence) -> None:
    """No look finds anything against what a run really measured."""
    assert check(evidence.folder).findings == ()


def test_each_inner_point_and_each_fault_of_a_receiver_is_tried() -> None:
    """The table leaves out none."""
    inside = {(c.dedupe, c.point) for c in EXPECTED if c.point in EXECUTOR_POINTS}
    assert inside == {(d, point) for d, points in INNER_POINTS.items() for point in points}
    struck = {(c.dedupe, c.fault) for c in EXPECTED if c.fault in RECEIVER_FAULTS}
    assert struck == {(dedupe, fault) for dedupe in RECEIVED for fault in RECEIVER_FAULTS}


def test_a_declared_capability_may_be_none(captures: Mapping[Cell, Capture]) -> None:
    """One more call under the key harms, or is of no use, where it is declared and is not had.

    Where it is truly had, one more call with the same request leaves exactly the action.
    """
    for cell, capture in captures.items():
        truth = capture.judgement.truth
        assert truth is not None
        if cell.digest != "same":
            continue
        if "replay" in TRULY[cell.dedupe]:
            assert truth.call_harm == "none", cell.id
    harmed = {c.dedupe for c in EXPECTED if captures[c].judgement.truth.call_harm != "none"}  # type: ignore[union-attr]
    assert {d for d in CAPABILITIES if CAPABILITIES[d] != TRULY[d]} <= harmed


def test_a_receiver_refuses_the_key_of_another_request(captures: Mapping[Cell, Capture]) -> None:
    """The forced call comes with what recovery would send: another payload under the same key."""
    measured = captures[CHANGED].measurement
    assert measured.forced is not None
    assert (measured.forced.error, len(measured.forced.effects)) == ("HTTP_422", 1)


def test_effects_are_counted_from_the_receiver_and_not_from_its_answers(
    captures: Mapping[Cell, Capture],
) -> None:
    """The answer is lost, or comes too late: the runtime knows of no effect, and there is one."""
    for fault in ("response_lost", "timeout", "error_after_effect"):
        cell = Cell(point="after_action", fault=fault, dedupe="receiver_key", policy="never")
        first, _ = captures[cell].measurement.observations
        assert (len(first.effects or ()), first.recorded.evidence) == (1, ())
        assert first.recorded.status == "failed"


# The same facts everywhere, and nothing left behind.

SOME = (
    Cell(point="after_claim", fault="kill", dedupe="claim_first", policy="resume"),
    Cell(point="between_effects", fault="exception", dedupe="pair", policy="resume"),
    Cell(point="after_action", fault="response_lost", dedupe="expired_key", policy="resume"),
    Cell(point="before_action", fault="error_before_effect", dedupe="receiver_key", policy="again"),
    Cell(point="before_action", fault="exception", digest="coarse", policy="resume"),
)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_facts_do_not_depend_on_the_run(
    tmp_path: Path, captures: Mapping[Cell, Capture], start: str
) -> None:
    """A second run, and phases that are new interpreters, measure the same."""
    again = runs.run(Plan("inside", SOME), tmp_path / "again", start=start)
    assert {c.cell.id: c.facts_sha256 for c in again.captures()} == {
        cell.id: captures[cell].facts_sha256 for cell in SOME
    }


def receivers(run: int) -> set[int]:
    """The receivers of the run with this pid, by the folder in which they run."""
    found = set()
    for proc in Path("/proc").iterdir():
        with suppress(OSError):
            words = (proc / "cmdline").read_bytes().decode(errors="replace").split("\0")
            mine = any(f"{PREFIX}{run}-" in word for word in words)
            if "rcr_probes.receiver" in words and mine:
                found.add(int(proc.name))
    return found


def within(seconds: float, holds: Callable[[], object]) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(holds())


RUN = """
from rcr_probes import run
from rcr_probes.model import Plan
from rcr_probes.product import product
cells = product(
    point="after_action", fault="timeout", dedupe="receiver_key", repeat=list(range(99))
)
run.run(Plan("long", cells), "evidence", workers=1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_receiver_ends_with_its_run(tmp_path: Path, number: int) -> None:
    """However the run ends, no receiver of it is left."""
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    run = subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert within(60, lambda: receivers(run.pid))
    finally:
        run.send_signal(number)
        run.wait()
    assert within(20, lambda: not receivers(run.pid))


def test_a_child_that_is_spared_outlives_the_phases_of_others() -> None:
    """What belongs to no phase is not taken for what one left; what one left is still ended."""
    kept = subprocess.Popen(["sleep", "60"])
    left = subprocess.Popen(["sleep", "60"])
    try:
        with process.spared(kept.pid):
            assert process.end_orphans() == 1
            assert kept.poll() is None
        assert process.end_orphans() == 1
    finally:
        for one in (kept, left):
            one.kill()
            one.wait()


# Forged captures.

Change = Callable[[Any], object]


def found(capture: Capture, change: Change) -> list[str]:
    """What the check says of a capture after a careful forger changed it."""
    data = json.loads(msgspec.json.encode(capture))
    change(data["measurement"])
    changed = msgspec.convert(data, Capture)
    forged = seal.seal(changed.measurement, derive(changed.measurement), changed.circumstances)
    return list(consistency.problems(forged))


def effects(data: Any) -> Iterator[Any]:
    for observed in data["observations"]:
        yield from observed["effects"]
    yield from data["forced"]["effects"]


def renumber(data: Any) -> None:
    arrived = 0
    for number, event in enumerate(data["events"]):
        event["seq"] = number
        if event["lane"] == "effect":
            arrived += 1
            event["value"]["effect_id"] = f"E{arrived}"


def made_in_recovery(kind: str | None) -> Change:
    """Let recovery's call have made one effect more, in every place."""

    def change(data: Any) -> None:
        last = data["observations"][1]
        at = next(
            n
            for n, e in enumerate(data["events"])
            if (e["phase"], e["lane"]) == ("recover", "call")
        )
        told: dict[str, Any] = {"operation_key": "operation-0", "target": "marker-0"}
        effect = {
            **told,
            "effect_id": f"E{len(last['effects']) + 1}",
            "kind": kind or "local-marker",
        }
        value = told if kind is None else {**told, "kind": kind}
        event = {"seq": 0, "phase": "recover", "lane": "effect", "value": value}
        data["events"].insert(at + 1, event)
        last["events"] += 1
        last["effects"].append(effect)
        renumber(data)

    return change


def forced(*kinds: str) -> Change:
    """Let the forced call have made these."""

    def change(data: Any) -> None:
        before = data["observations"][0]["effects"]
        told = {"operation_key": "operation-0", "target": "marker-0"}
        new = [
            {**told, "kind": kind, "effect_id": f"E{n}"}
            for n, kind in enumerate(kinds, len(before) + 1)
        ]
        data["forced"]["effects"] = [*before, *new]

    return change


def called(name: str) -> Change:
    return lambda data: data["cell"].update(dedupe=name)


def of_kind(kind: str) -> Change:
    def change(data: Any) -> None:
        for effect in effects(data):
            effect["kind"] = kind
        for event in data["events"]:
            if event["lane"] == "effect" and "kind" in event["value"]:
                event["value"]["kind"] = kind

    return change


def asking(**value: Any) -> Change:
    """Let recovery have asked for the key first."""

    def change(data: Any) -> None:
        at = data["observations"][0]["events"]
        told = {"operation_key": "operation-0", "in_flight": False, **value}
        data["events"].insert(at, {"seq": 0, "phase": "recover", "lane": "ask", "value": told})
        data["observations"][1]["events"] += 1
        renumber(data)

    return change


def cell(dedupe: str, point: str, fault: str, policy: str = "resume") -> Cell:
    return Cell(point=point, fault=fault, dedupe=dedupe, policy=policy)


LOST = cell("claim_first", "after_claim", "exception")
LATE = cell("late_key", "before_key", "exception")
HALF = cell("pair_operation_key", "between_effects", "exception")
WHOLE = cell("pair_effect_key", "between_effects", "exception")
PAIR = cell("pair", "between_effects", "exception")
KEPT = cell("late_key", "after_action", "exception")
REMEMBERED = cell("receiver_key", "after_action", "response_lost")
FORGOTTEN = cell("expired_key", "after_action", "response_lost")
SCOPED = Cell(
    point="before_action", fault="exception", digest="volatile", variant="meaning_digest",
    policy="resume",
)  # fmt: skip
FORGED: dict[str, tuple[Cell, Change, str]] = {
    "an effect whose claim was taken": (LOST, made_in_recovery(None), "an earlier call had taken"),
    "a claim that is called a key in the effect": (LOST, called("operation_key"), "comes to"),
    "a forced call over a claim": (LOST, forced("local-marker"), "executor makes 0"),
    "a duplicate of a key that was kept": (KEPT, made_in_recovery(None), "which its executor"),
    "a duplicate that is called deduplicated": (LATE, called("operation_key"), "comes to"),
    "a late key that was kept after all": (LATE, forced(), "executor makes 1"),
    "a half that is completed": (HALF, made_in_recovery("2"), "an earlier call had taken"),
    "a half that a forced call completes": (HALF, forced("2"), "executor makes 0"),
    "a second without a first": (WHOLE, of_kind("2"), "is there before the first"),
    "a part of another name": (WHOLE, of_kind("3"), "which none is"),
    "a pair that is one effect": (PAIR, of_kind("local-marker"), "which none is"),
    "one effect of a pair's call": (PAIR, forced("1"), "executor makes 2"),
    "three effects of a pair's call": (PAIR, forced("1", "2", "2"), "made 3 effects"),
    "a forced call that completes too much": (WHOLE, forced("1", "2"), "executor makes 1"),
    "a pair that is called another": (PAIR, called("pair_effect_key"), "which its executor"),
    "a look-up that nobody declares": (PAIR, asking(effects=1), "does not declare"),
    "a look-up that tells of too many": (WHOLE, asking(effects=2), "tells of 2 effects, but 1"),
    "a look-up that knows of the half": (HALF, asking(effects=1), "tells of 1 effects, but 2"),
    "a look-up that says nothing of flights": (
        WHOLE, asking(effects=1, in_flight=None), "tells of 1 effects"
    ),
    "a receiver that remembered": (REMEMBERED, forced("receiver"), "executor makes 0"),
    "a receiver that forgot": (FORGOTTEN, forced(), "executor makes 1"),
    "a duplicate of a receiver that remembers": (
        FORGOTTEN, called("receiver_key"), "which its executor prevents"
    ),
    "a receiver's fault without a receiver": (
        REMEMBERED, called("operation_key"), "cannot strike at 'after_action'"
    ),
    "a receiver's effect that is a marker": (REMEMBERED, of_kind("local-marker"), "which none is"),
    "a payload that the receiver took": (
        CHANGED, lambda data: data["forced"].update(error="none"), "not what its receiver answers"
    ),
    "a payload that the receiver refused": (
        REMEMBERED, lambda data: data["forced"].update(error="HTTP_422"), "its receiver answers"
    ),
    "an inner point of another executor": (
        PAIR, lambda data: data["cell"].update(dedupe="late_key"), "comes to"
    ),
    "a digest that covers the credential": (
        SCOPED, lambda data: data["cell"].update(variant="baseline"), "are equal"
    ),
    "a digest that leaves out the session": (
        Cell(point="before_action", fault="exception", digest="coarse", policy="resume"),
        lambda data: data["cell"].update(variant="meaning_digest"), "are equal",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", FORGED)
def test_what_no_executor_does_is_found(way: str, captures: Mapping[Cell, Capture]) -> None:
    """A forger changes what an executor did, in every place where it is told."""
    one, change, problem = FORGED[way]
    assert found(captures[one], lambda data: None) == []
    said = found(captures[one], change)
    assert any(problem in sentence for sentence in said), said
