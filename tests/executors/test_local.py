"""The local executors: each call is counted, and dedupe says what another call does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rcr_probes import executors, ledger
from rcr_probes import folder as layout
from rcr_probes.errors import InjectedFault
from rcr_probes.executors.marker import LedgerDamaged
from rcr_probes.model import Json, Known
from rcr_probes.runtime import Executor, askable
from rcr_probes.vocabulary import CAPABILITIES, DEDUPES, INNER_POINTS, PAIRS, RECEIVED, TRULY, Lane

REQUEST = {"executor": "local-marker", "target": "marker-0", "session_id": "session-1"}
KEY = "operation-0"
LOCAL = [name for name in DEDUPES if name not in RECEIVED]
LOOKED = [name for name in LOCAL if "lookup" in CAPABILITIES[name]]
FORGETFUL = ("none", "pair")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / layout.WORLD).mkdir()
    return str(tmp_path)


def effects(folder: str) -> list[ledger.EffectLine]:
    read = ledger.read(os.path.join(folder, layout.EFFECTS), ledger.EffectLine)
    assert not read.damage
    return list(read.lines)


def calls(folder: str) -> int:
    read = ledger.read(os.path.join(folder, layout.CALLS), ledger.CallLine)
    assert not read.damage
    return len(read.lines)


def mute(lane: Lane, value: Mapping[str, Json]) -> None:
    pass


def each(dedupe: str) -> int:
    """How many effects one call is to make."""
    return 2 if dedupe in PAIRS else 1


def dies(point: str, path: str | None) -> None:
    """A fault inside the executor."""
    raise InjectedFault(point)


@pytest.mark.parametrize("dedupe", LOCAL)
def test_dedupe_decides_what_a_second_call_does(folder: str, dedupe: str) -> None:
    """Both calls are counted; the evidence counts the effects of the key."""
    executor = executors.make(folder, dedupe, mute)
    one = each(dedupe)
    assert (executor.effects, executor.declares) == (one, CAPABILITIES[dedupe])
    assert executor(KEY, REQUEST) == {"kind": "local-marker", "observed_count": one}
    second = 2 * one if dedupe in FORGETFUL else one
    assert executor(KEY, REQUEST)["observed_count"] == second
    assert (len(effects(folder)), calls(folder)) == (second, 2)


@pytest.mark.parametrize("dedupe", LOCAL)
def test_another_key_is_another_action(folder: str, dedupe: str) -> None:
    """Dedupe by key does not swallow an operation of its own."""
    executor = executors.make(folder, dedupe, mute)
    executor(KEY, REQUEST)
    assert executor("operation-1", REQUEST)["observed_count"] == each(dedupe)
    assert (len(effects(folder)), calls(folder)) == (2 * each(dedupe), 2)


@pytest.mark.parametrize("dedupe", LOCAL)
def test_calls_points_and_effects_are_told_in_order(folder: str, dedupe: str) -> None:
    """The point of each executor lies where its name says; one that leaves out has no effect."""
    seen: list[str] = []
    executor = executors.make(
        folder, dedupe, lambda lane, value: seen.append(lane), lambda name, path: seen.append(name)
    )
    executor(KEY, REQUEST)
    told = {
        "claim_first": ["call", "after_claim", "effect"],
        "late_key": ["call", "effect", "before_key"],
        **{pair: ["call", "effect", "between_effects", "effect"] for pair in PAIRS},
    }
    assert seen == told.get(dedupe, ["call", "effect"])
    assert [name for name in seen if "_" in name] == list(INNER_POINTS.get(dedupe, ()))
    del seen[:]
    executor(KEY, REQUEST)
    assert seen.count("call") == 1
    assert ("effect" in seen) is (dedupe in FORGETFUL)


@pytest.mark.parametrize("dedupe", ["operation_key", "claim_first", "pair_effect_key"])
def test_where_looking_and_taking_is_one_step_two_that_come_at_once_act_once(
    folder: str, dedupe: str
) -> None:
    """Look and act, or look and claim, stand under one kernel lock (here: eight processes)."""
    children = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            executors.make(folder, dedupe, mute)(KEY, REQUEST)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
    assert (len(effects(folder)), calls(folder)) == (each(dedupe), 8)


def test_a_late_key_does_not_stop_one_that_comes_before_it_is_kept(folder: str) -> None:
    """It acts, then keeps the key: who comes between sees none."""

    def meanwhile(point: str, path: str | None) -> None:
        executors.make(folder, "late_key", mute)(KEY, REQUEST)

    executors.make(folder, "late_key", mute, meanwhile)(KEY, REQUEST)
    assert len(effects(folder)) == 2


# What is there after a call that died at the inner point, and after one more that did not.
HALF = {
    "claim_first": (0, 0),  # the effect is lost
    "late_key": (1, 2),  # and here it comes twice
    "pair": (1, 3),
    "pair_operation_key": (1, 1),  # half done for ever
    "pair_effect_key": (1, 2),  # completed
}


@pytest.mark.parametrize("dedupe", HALF)
def test_a_death_inside_shows_what_the_name_hides(folder: str, dedupe: str) -> None:
    """What is declared holds where nothing dies inside: ``replay`` would leave exactly the action.

    It does so for those alone that truly have it.
    """
    with pytest.raises(InjectedFault):
        executors.make(folder, dedupe, mute, dies)(KEY, REQUEST)
    half = len(effects(folder))
    executors.make(folder, dedupe, mute)(KEY, REQUEST)
    assert (half, len(effects(folder))) == HALF[dedupe]
    whole = len(effects(folder)) == each(dedupe)
    assert whole is ("replay" in TRULY[dedupe])
    if dedupe in PAIRS:
        first, *rest = [effect.kind for effect in effects(folder)]
        assert (first, rest[-1:]) == ("1", [] if dedupe == "pair_operation_key" else ["2"])


@pytest.mark.parametrize("dedupe", LOOKED)
def test_a_look_up_tells_the_effects_of_the_key(folder: str, dedupe: str) -> None:
    """It is an event, and makes no effect and no call."""
    seen: list[tuple[str, Mapping[str, Json]]] = []
    executor = executors.make(folder, dedupe, lambda lane, value: seen.append((lane, value)))
    assert askable(executor)
    assert executor.look(KEY) == Known(0, in_flight=False)
    executor(KEY, REQUEST)
    assert executor.look(KEY) == Known(each(dedupe), in_flight=False)
    assert executor.look("operation-1").effects == 0
    asked = {"operation_key": KEY, "effects": each(dedupe), "in_flight": False}
    assert seen[-2] == ("ask", asked)
    assert (len(effects(folder)), calls(folder)) == (each(dedupe), 1)


@pytest.mark.parametrize(("dedupe", "told"), [("pair_operation_key", 2), ("pair_effect_key", 1)])
def test_a_look_up_over_a_half_action_is_true_where_each_effect_has_its_key(
    folder: str, dedupe: str, told: int
) -> None:
    """One key for the whole action knows no halves: it says that all was done, which is false."""
    with pytest.raises(InjectedFault):
        executors.make(folder, dedupe, mute, dies)(KEY, REQUEST)
    executor = executors.make(folder, dedupe, mute)
    assert askable(executor)
    assert executor.look(KEY) == Known(told, in_flight=False)
    assert (told == len(effects(folder))) is ("lookup" in TRULY[dedupe])


@pytest.mark.parametrize("dedupe", DEDUPES)
def test_who_declares_no_look_up_cannot_be_asked(folder: str, dedupe: str) -> None:
    """A policy finds the method where it is declared, and nowhere else."""
    executor = executors.make(folder, dedupe, mute)
    assert hasattr(executor, "look") is askable(executor)


def test_a_relative_target_is_one_of_the_session_that_asks(folder: str) -> None:
    """What the action does depends on a field that a digest may leave out."""
    executor = executors.make(folder, "none", mute)
    for session in ("session-1", "session-2"):
        executor(KEY, {**REQUEST, "relative": True, "session_id": session})
    assert [one.target for one in effects(folder)] == ["marker-0@session-1", "marker-0@session-2"]


TORN = b'{"operation_key":"operation-0","ki'
DAMAGED = [
    *((dedupe, layout.EFFECTS) for dedupe in LOCAL),
    *((dedupe, layout.KEYS) for dedupe in ("claim_first", "late_key")),
]


@pytest.mark.parametrize(("dedupe", "name"), DAMAGED)
def test_it_does_not_act_on_what_it_cannot_read(folder: str, dedupe: str, name: str) -> None:
    """A torn ledger stops the action, is named, and stays as it was."""
    torn = Path(folder, name)
    torn.write_bytes(TORN)
    with pytest.raises(LedgerDamaged, match=rf"{torn.name}:1: torn"):
        executors.make(folder, dedupe, mute)(KEY, REQUEST)
    assert torn.read_bytes() == TORN
    assert name == layout.EFFECTS or not effects(folder)


def fenced(folder: str, dedupe: str, token: int | None) -> Executor:
    return executors.make(folder, dedupe, mute, token=token)


@pytest.mark.parametrize("dedupe", LOCAL)
def test_an_older_fencing_token_is_refused(folder: str, dedupe: str) -> None:
    """Once a later attempt was here, or raised the fence, an earlier one does nothing any more."""
    fenced(folder, dedupe, 2).raise_fence()
    with pytest.raises(Exception, match="attempt 1 came after attempt 2") as caught:
        fenced(folder, dedupe, 1)(KEY, REQUEST)
    assert getattr(caught.value, "code", None) == "FENCED"
    assert (effects(folder), calls(folder)) == ([], 1)
    fenced(folder, dedupe, 2)(KEY, REQUEST)
    fenced(folder, dedupe, 3)("operation-1", REQUEST)
    with pytest.raises(Exception, match="attempt 2 came after attempt 3"):
        fenced(folder, dedupe, 2)("operation-2", REQUEST)
    assert len(effects(folder)) == 2 * each(dedupe)


@pytest.mark.parametrize("dedupe", LOCAL)
def test_without_a_token_nobody_is_refused(folder: str, dedupe: str) -> None:
    """The fence is a part of the call: who leaves it out is not held back by it."""
    fenced(folder, dedupe, None).raise_fence()
    fenced(folder, dedupe, None)(KEY, REQUEST)
    assert len(effects(folder)) == each(dedupe)
    assert not Path(folder, layout.TOKENS).exists()


def test_a_token_is_looked_at_again_before_each_effect(folder: str) -> None:
    """Who is overtaken between two effects does not make the second."""

    def overtaken(point: str, path: str | None) -> None:
        fenced(folder, "pair", 2).raise_fence()

    with pytest.raises(Exception, match="attempt 1 came after attempt 2"):
        executors.make(folder, "pair", mute, overtaken, token=1)(KEY, REQUEST)
    assert [effect.kind for effect in effects(folder)] == ["1"]
