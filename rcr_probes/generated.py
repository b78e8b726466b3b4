"""Plans that nobody writes: their cells are what a recording of the operation has places for.

``syscalls``: every call of the operation that can change a file of its private folder, struck in
every way that a call can be. ``power``: every state that a power loss leaves at every point.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from rcr_probes import strace
from rcr_probes.errors import PlanError
from rcr_probes.model import BASELINE, CALL_FAULTS, NONE, POWER_LOSS, REFERENCE, Cell, Plan
from rcr_probes.runtime import load

_RECORDER = "rcr_probes.recording"
_FSYNC = "fsync"  # the variant, and the call that it makes besides
_SYNCED = ("fsync", "fdatasync")
_OVER = ("after_action", "after_result", "completion_audit", "response")  # the effect is there


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the operation did when nothing struck.

    Attributes:
        calls: step, call, file and number of each; the step is the last point before it.
        states: point → how many states a power loss leaves there.
    """

    calls: tuple[tuple[str, str, str, int], ...]
    states: Mapping[str, int]


def generated(name: str) -> Plan:
    """The plan of this name, from a recording that is made now. Each recording gives the same.

    Raises:
        KeyError: there is none.
        PlanError: nothing can be recorded here.
    """
    return Plan(name, tuple(_PLANS[name]()))


def recorded(variant: str, runtime: str = REFERENCE) -> Recorded:
    """Record the operation once, in processes of its own.

    Raises:
        PlanError: strace is not installed, or the operation did not come to its end.
    """
    if shutil.which(strace.PROGRAM) is None:
        raise PlanError(
            "This plan is made from a recording, which needs strace, and it is not installed here.",
            "Type: sudo apt install strace",
        )
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
    return Recorded(calls, dict(found["states"]))


def _syscalls() -> Iterator[Cell]:
    """Where the effect is there already, also with an executor that knows the key."""
    yield from _at_calls(BASELINE, recorded(BASELINE).calls)
    yield from _at_calls(_FSYNC, (call for call in recorded(_FSYNC).calls if call[1] in _SYNCED))


def _at_calls(variant: str, calls: Iterable[tuple[str, str, str, int]]) -> Iterator[Cell]:
    for step, call, file, number in calls:
        dedupes = (NONE, "operation_key") if step in _OVER else (NONE,)
        for fault, dedupe, policy in itertools.product(CALL_FAULTS, dedupes, _policies()):
            point = f"{call}@{file}#{number}"
            yield Cell(point=point, fault=fault, dedupe=dedupe, policy=policy, variant=variant)


def _power() -> Iterator[Cell]:
    """Without a recovery nothing is seen that the first observation does not show."""
    ways = [way for way in _policies() if way != "never"]
    for variant in (BASELINE, _FSYNC):
        for point, states in recorded(variant).states.items():
            for state, policy in itertools.product(range(states), ways):
                fault = f"{POWER_LOSS}#{state}"
                yield Cell(point=point, fault=fault, policy=policy, variant=variant)


def _policies() -> tuple[str, ...]:
    return ("again", *load(REFERENCE).recoveries, "never")


_PLANS: Mapping[str, Callable[[], Iterator[Cell]]] = {"power": _power, "syscalls": _syscalls}
NAMES = tuple(_PLANS)
