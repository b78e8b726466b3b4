"""The marker executor: it counts each call, and dedupe says what another call does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from rcr_probes import folder as layout
from rcr_probes import ledger
from rcr_probes.executor import LedgerDamaged, MarkerExecutor
from rcr_probes.model import Json, Lane

REQUEST = {"executor": "local-marker", "target": "marker-0"}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / layout.WORLD).mkdir()
    return str(tmp_path)


def counted(folder: str) -> tuple[int, int]:
    effects = ledger.read(os.path.join(folder, layout.EFFECTS), ledger.EffectLine)
    calls = ledger.read(os.path.join(folder, layout.CALLS), ledger.CallLine)
    assert not effects.damage
    assert not calls.damage
    return len(effects.lines), len(calls.lines)


def mute(lane: Lane, value: Mapping[str, Json]) -> None:
    pass


@pytest.mark.parametrize(("dedupe", "effects"), [("none", 2), ("operation_key", 1)])
def test_dedupe_decides_what_a_second_call_does(folder: str, dedupe: str, effects: int) -> None:
    """Both calls are counted; the evidence counts the effects of the key."""
    executor = MarkerExecutor(folder, dedupe, mute)
    assert executor("operation-0", REQUEST) == {"kind": "local-marker", "observed_count": 1}
    assert executor("operation-0", REQUEST)["observed_count"] == effects
    assert counted(folder) == (effects, 2)


def test_another_key_is_another_effect(folder: str) -> None:
    """Dedupe by key does not swallow an operation of its own."""
    executor = MarkerExecutor(folder, "operation_key", mute)
    executor("operation-0", REQUEST)
    assert executor("operation-1", REQUEST)["observed_count"] == 1
    assert counted(folder) == (2, 2)


def test_each_call_and_each_effect_is_an_event_in_order(folder: str) -> None:
    """A call comes before its effect; a deduplicated one has none."""
    seen: list[str] = []
    executor = MarkerExecutor(folder, "operation_key", lambda lane, value: seen.append(lane))
    executor("operation-0", REQUEST)
    executor("operation-0", REQUEST)
    assert seen == ["call", "effect", "call"]


def test_two_that_come_at_once_leave_one_effect(folder: str) -> None:
    """Look and act stand under one kernel lock (here: eight processes)."""
    children = []
    for _ in range(8):
        pid = os.fork()
        if pid == 0:
            MarkerExecutor(folder, "operation_key", mute)("operation-0", REQUEST)
            os._exit(0)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
    assert counted(folder) == (1, 8)


def test_it_does_not_act_on_effects_that_it_cannot_read(folder: str) -> None:
    """A torn effect ledger stops the action, is named, and stays as it was."""
    torn = Path(folder, layout.EFFECTS)
    torn.write_bytes(b'{"operation_key":"operation-0","ki')
    with pytest.raises(LedgerDamaged, match=r"effects\.jsonl:1: torn"):
        MarkerExecutor(folder, "none", mute)("operation-0", REQUEST)
    assert torn.read_bytes() == b'{"operation_key":"operation-0","ki'
