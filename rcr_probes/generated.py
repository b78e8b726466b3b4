"""Plans that nobody writes: their cells are what a recording of the operation has places for.

``syscalls``: every call of the operation that can change a file of its private folder, struck in
every way that a call can be. ``power``: every state that a power loss leaves at every point.
``power_local``: the same where an effect is there, which is on the same disk.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rcr_probes import following
from rcr_probes.errors import PlanError
from rcr_probes.model import Cell, Plan
from rcr_probes.runtime import load
from rcr_probes.vocabulary import (
    BASELINE,
    CALL_FAULTS,
    NONE,
    POWER_LOSS,
    POWER_LOSS_LOCAL,
    REFERENCE,
)

_RECORDER = "rcr_probes.recording"
_FSYNC = "fsync"  # the variant, and the call that it makes besides
_SYNCED = ("fsync", "fdatasync")
_OVER = ("after_action", "after_result", "completion_audit", "response")  # the effect is there


@dataclass(frozen=True, slots=True)
class Recording:
    """What the operation did when nothing struck.

    Attributes:
        calls: step, call, file and number of each; the step is the last point before it.
        states: kind of power loss → point → how many states it leaves there.
    """

    calls: tuple[tuple[str, str, str, int], ...]
    states: Mapping[str, Mapping[str, int]]


def generated(name: str) -> Plan:
    """The plan of this name, from a recording that is made now. Each recording gives the same.

    Raises:
        KeyError: there is none.
        PlanError: nothing can be recorded here.
    """
    return Plan(name, tuple(_PLANS[name]()))


def record(variant: str, runtime: str = REFERENCE) -> Recording:
    """Record the operation once, in processes of its own.

    Raises:
        PlanError: strace may follow nothing here, or the operation did not come to its end.
    """
    if why := following.without_strace():
        raise PlanError(f"This plan is made from a recording, which needs strace. {why[0]}", why[1])
    words = [sys.executable, "-P", "-m", _RECORDER, str(os.getpid()), runtime, variant]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["it does not say why."]
        raise PlanError(
            f"The operation of {runtime!r} ({variant}) could not be recorded: {said[-1]}",
            "See whether it runs without a fault: rcr run article",
        )
    found = json.loads(done.stdout)
    calls = tuple((str(s), str(c), str(f), int(n)) for s, c, f, n in found["calls"])
    return Recording(calls, dict(found["states"]))


def _syscalls() -> Iterator[Cell]:
    """Where the effect is there already, also with an executor that knows the key."""
    yield from _at_calls(BASELINE, record(BASELINE).calls)
    yield from _at_calls(_FSYNC, (call for call in record(_FSYNC).calls if call[1] in _SYNCED))


def _at_calls(variant: str, calls: Iterable[tuple[str, str, str, int]]) -> Iterator[Cell]:
    for step, call, file, number in calls:
        dedupes = (NONE, "operation_key") if step in _OVER else (NONE,)
        for fault, dedupe, policy in itertools.product(CALL_FAULTS, dedupes, _policies()):
            point = f"{call}@{file}#{number}"
            yield Cell(point=point, fault=fault, dedupe=dedupe, policy=policy, variant=variant)


def _power() -> Iterator[Cell]:
    for variant in (BASELINE, _FSYNC):
        states = record(variant).states[POWER_LOSS]
        yield from _at_states(POWER_LOSS, variant, states)


def _power_local() -> Iterator[Cell]:
    """Where the effect is there, and is at risk: just now, and with all of its record written."""
    for variant in (BASELINE, _FSYNC):
        states = record(variant).states[POWER_LOSS_LOCAL]
        at_risk = {point: states[point] for point in ("after_action", "response")}
        yield from _at_states(POWER_LOSS_LOCAL, variant, at_risk)


def _at_states(kind: str, variant: str, states: Mapping[str, int]) -> Iterator[Cell]:
    """Without a recovery nothing is seen that the first observation does not show."""
    ways = [way for way in _policies() if way != "never"]
    for point, count in states.items():
        for state, policy in itertools.product(range(count), ways):
            yield Cell(point=point, fault=f"{kind}#{state}", policy=policy, variant=variant)


def _policies() -> tuple[str, ...]:
    return ("again", *load(REFERENCE).recoveries, "never")


_PLANS: Mapping[str, Callable[[], Iterator[Cell]]] = {
    "power": _power,
    "power_local": _power_local,
    "syscalls": _syscalls,
}
NAMES = tuple(_PLANS)
