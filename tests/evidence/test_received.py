"""No probe of a worker is forged unseen: what its receiver tells agrees with itself, or is found.

A forger here changes one thing in the evidence of real probes, and derives, digests and seals anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rcr_probes.evidence import received, seal, store
from rcr_probes.evidence.check import check
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture
from rcr_probes.vocabulary import WORKER
from tests.evidence import made
from tests.evidence.forging import Change, every, put

ROOT = Path(__file__).parents[2]
WORKERS = ROOT / "examples" / "unmodified-worker"
JOB = f"{sys.executable} runner.py {{folder}}/jobs.db"
# One job with a key of its own; two jobs without a key, of which the second call is struck.
PROBES: Mapping[str, list[str]] = {
    "stable_key": ["--setup", JOB],
    "no_key": ["--setup", f"{JOB}; {JOB}", "--request", "2"],
}
ONE, TWO = PROBES
CONTROL, AGAIN = "none/none/", "repeat=1"
BEFORE, AFTER = "before_action/kill", "after_action/kill"
LOST, LATE = "after_action/response_lost", "after_action/timeout"

Probed = Mapping[str, list[Capture]]


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Probed:
    """The captures of real probes of the example, side by side."""
    place = tmp_path_factory.mktemp("probed")
    begun = []
    for version, options in PROBES.items():
        words = [sys.executable, "-m", "rcr_probes.cli", "probe", "--into", str(place / version)]
        worker = ["--", sys.executable, f"{version}.py", "{folder}/jobs.db", "{receiver}"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        begun.append(
            subprocess.Popen(
                [*words, *options, *worker],
                cwd=WORKERS,
                env=environment,
                stdout=subprocess.DEVNULL,
            )
        )
    assert [one.wait(300) for one in begun] == [0, 1]
    return {version: list(store.read(place / version).captures()) for version in PROBES}


def said(folder: Path, captures: list[Capture]) -> list[str]:
    """What the check says of these captures, sealed as one probe."""
    made.write(folder, captures, "probe")
    return [finding.problem for finding in check(folder).findings]


def forged(capture: Capture, change: Change) -> Capture:
    """The capture after a careful forger changed it."""
    data = json.loads(msgspec.json.encode(capture))
    change(data["measurement"])
    if "start" in data["measurement"]:
        data["circumstances"]["start"] = data["measurement"].pop("start")
    changed = msgspec.convert(data, Capture)
    return seal.seal(changed.measurement, derive(changed.measurement), changed.circumstances)


def events(data: Any, lane: str, phase: str = "fault") -> list[Any]:
    return [e for e in data["events"] if (e["lane"], e["phase"]) == (lane, phase)]


def numbered(data: Any) -> None:
    for number, event in enumerate(data["events"]):
        event["seq"] = number


def moved(lane: str, by: int) -> Change:
    """Move the last event of a lane in the fault phase, among its neighbours."""

    def change(data: Any) -> None:
        one = events(data, lane)[-1]
        at = data["events"].index(one)
        data["events"].insert(at + by, data["events"].pop(at))
        numbered(data)

    return change


def call(number: int, **value: Any) -> Change:
    """Change one call, from 1."""
    return lambda data: [e for e in data["events"] if e["lane"] == "call"][number - 1][
        "value"
    ].update(value)


def without_its_effect(data: Any) -> None:
    """Take the effect of the fault phase out of everything that counts it."""
    (gone,) = events(data, "effect")
    data["events"].remove(gone)
    numbered(data)
    for observed in data["observations"]:
        observed["events"] -= 1
        observed["effects"] = observed["effects"][1:]
    data["forced"]["effects"] = data["forced"]["effects"][1:]


def of_another_call(data: Any) -> None:
    events(data, "effect")[-1]["value"]["call"] = 1


def strike_first(data: Any) -> None:
    """The strike stands before the effect of the call that it strikes."""
    effect = events(data, "effect")[-1]
    data["events"].remove(effect)
    data["events"].insert(data["events"].index(events(data, "fault")[-1]) + 1, effect)
    numbered(data)


def strike_taken_out(data: Any) -> None:
    for lane in ("point", "fault"):
        data["events"].remove(events(data, lane)[0])
    numbered(data)
    for observed in data["observations"]:
        observed["events"] -= 2


def relabelled(point: str, fault: str) -> Change:
    def change(data: Any) -> None:
        data["cell"].update(point=point, fault=fault)
        every("point", point=point)(data)
        every("fault", point=point, fault=fault)(data)

    return change


def ended_well(data: Any) -> None:
    """A killed worker that is said to have ended with exit_0, in its state and what it says."""
    data["observations"][0]["recorded"]["status"] = "exit_0"
    events(data, "state")[0]["value"]["status"] = "exit_0"
    data["says"] = {"exit_0": "done"}


def nothing_says_so(data: Any) -> None:
    data["says"] = dict.fromkeys(data["says"], "not_done")


def approved(effects: int) -> Change:
    return put("approved.effects", effects)


def another(data: Any) -> None:
    """The surplus effect was another one, which no control makes."""
    for effect in (
        events(data, "effect", "recover")[-1]["value"],
        data["observations"][1]["effects"][-1],
    ):
        effect.update(kind="other", target="other")


def killed_another(data: Any) -> None:
    data["observations"][0].update(ended="exit", standing=True, error="exit_1")
    data["observations"][0]["recorded"]["status"] = "exit_1"
    events(data, "state")[0]["value"]["status"] = "exit_1"
    data["says"] = {"exit_1": "open", "exit_0": "done"}


WAYS: dict[str, tuple[str, str, Change, str]] = {
    # calls
    "an outcome that is none": (ONE, AFTER, call(1, outcome="charged"), "which nothing knows"),
    "no outcome": (ONE, AFTER, call(1, outcome=None), "which nothing knows"),
    "an effect that no call made": (ONE, AFTER, call(1, outcome="replayed"), "came to 'replayed'"),
    "a call whose effect is not there": (ONE, AFTER, without_its_effect, "no effect is its"),
    "an effect of a call that has one": (TWO, AFTER, of_another_call, "no call before it"),
    "an effect under another key": (ONE, AFTER, call(1, key="K2"), "is of the call 1"),
    "a replay without a key": (ONE, AFTER, call(2, key=None), "had no effect before"),
    "a replay of another key": (ONE, AFTER, call(2, key="K2"), "had no effect before"),
    "a replay of another payload": (
        ONE, AFTER, call(2, payload="payload-2"), "had no effect before"
    ),
    "a refused payload under a new key": (
        ONE, AFTER, call(2, outcome="mismatch", key="K2"), "nothing had carried its key"
    ),
    "a conflict without a key": (
        ONE, AFTER, call(2, outcome="conflict", key=None), "nothing had carried its key"
    ),
    "a key refused that was not there": (
        TWO, AFTER, call(3, outcome="refused"), "no key that could not be read"
    ),
    "a drop that nobody made": (ONE, AFTER, call(2, outcome="dropped"), "no fault struck before"),
    "a key in clear": (ONE, AFTER, call(1, key="job-1"), "no key's label"),
    "a payload in clear": (ONE, AFTER, call(1, payload="1250"), "no label of a payload"),
    "an answer withheld by nothing": (ONE, AFTER, call(1, gave_up="bound"), "gave up on no answer"),
    "an answer withheld from nobody": (ONE, LATE, call(1, gave_up="me"), "gave up on no answer"),
    # strikes
    "killed before, after the effect": (
        ONE, AFTER, relabelled("before_action", "kill"), "that call came to effect"
    ),
    "killed after, without a call that was handled": (
        ONE, BEFORE, relabelled("after_action", "kill"), "that came to dropped"
    ),
    "a strike before its effect": (TWO, AFTER, strike_first, "no effect of that call"),
    "a strike before its call": (ONE, BEFORE, moved("call", 2), "before request 1 came"),
    "no strike where one was due": (ONE, LOST, strike_taken_out, "no fault struck it"),
    "a killed process that is another": (ONE, AFTER, killed_another, "another process than"),
    # how the commands ended
    "killed, and exit_0": (ONE, AFTER, ended_well, "ended by 'SIGKILL', but its status"),
    "an exit that is none": (
        ONE, LOST, put("observations.0.recorded.status", "exit_256"), "but its status is 'exit_256'"
    ),
    "an error that it did not see": (
        ONE, LOST, put("observations.0.error", "none"), "its caller saw 'none'"
    ),
    "states that say something else": (ONE, AFTER, nothing_says_so, "its states say"),
    "something stored": (
        ONE, AFTER, put("observations.0.recorded.approved_digest", "a"), "more than how its command"
    ),
    "not settled, and undamaged": (
        ONE, AFTER, put("observations.0.settled", False), "though nothing is damaged"
    ),
    # what was approved, and the truth
    "fewer effects approved": (TWO, AFTER, approved(1), "which none is"),
    "more effects approved": (ONE, AFTER, approved(2), "but its control made 1"),
    "more effects approved in the control": (ONE, CONTROL, approved(2), "but its control made 1"),
    "more effects approved in the second": (ONE, AGAIN, approved(2), "but its control made 1"),
    "an effect called another": (TWO, AFTER, another, "unlike its control's"),
    "a forced call refused": (ONE, AFTER, put("forced.error", "refused"), "its forced call made 0"),
    "a forced call over nothing": (
        ONE, BEFORE, lambda d: d["forced"]["effects"].clear(), "its forced call made 0"
    ),
    # the cell
    "a request that never came": (
        ONE, AFTER, put("cell.variant", "request_999"), "the worker sent no request 999"
    ),
    "a request of the control": (ONE, CONTROL, put("cell.variant", "request_2"), "no request"),
    "a variant that is none": (ONE, AFTER, put("cell.variant", "request_1"), "names no request"),
    "another executor": (ONE, AFTER, put("cell.dedupe", "none"), "its dedupe is 'none'"),
    "another digest": (ONE, AFTER, put("cell.digest", "reordered"), "its digest is 'reordered'"),
    "no recovery": (ONE, AFTER, put("cell.policy", "never"), "its policy is 'never'"),
    "recovered otherwise": (ONE, AFTER, put("cell.policy", "recover"), "in another way"),
    "a strike run twice": (ONE, AFTER, put("cell.repeat", 1), "only the control is run twice"),
    "a fault of points": (ONE, LOST, relabelled("after_action", "exception"), "'exception', which"),
    "a point of runtimes": (ONE, AFTER, relabelled("after_result", "kill"), "no receiver sees"),
    "an error at a call": (
        ONE, AFTER, relabelled("write@jobs.db#1", "io_error"), "'io_error', which the runtime"
    ),
    "a start that it cannot have": (ONE, AFTER, put("start", "fork"), "is spawned"),
    "a runtime that is none": (
        ONE, LOST, put("cell.runtime", "mine:Runtime"), "which none is"
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_what_no_receiver_tells_is_found(way: str, probed: Probed, tmp_path: Path) -> None:
    """Each edit contradicts its capture, its cell or its control, and the finding says how."""
    version, name, change, problem = WAYS[way]
    chosen = next(c for c in probed[version] if name in c.cell.id)
    new = forged(chosen, change)
    captures = [
        new if c is chosen else c for c in probed[version] if c is chosen or c.cell != new.cell
    ]
    found = said(tmp_path / "forged", captures)
    assert any(problem in one for one in found), found


@pytest.mark.parametrize("version", PROBES)
def test_what_was_measured_is_sound(version: str, probed: Probed, tmp_path: Path) -> None:
    """What the forger's tools leave alone is a probe like any other."""
    captures = [forged(capture, lambda data: None) for capture in probed[version]]
    assert {capture.cell.runtime for capture in captures} == {WORKER}
    assert said(tmp_path / "same", captures) == []


@pytest.mark.parametrize("gone", [0, 1])
def test_a_probe_without_a_control_is_none(gone: int, probed: Probed, tmp_path: Path) -> None:
    """Nobody could say how many effects are one too many."""
    captures = [c for n, c in enumerate(probed[ONE]) if n != gone]
    assert "a probe begins with its two controls" in said(tmp_path / "less", captures)[0]


def test_what_was_looked_at_is_not_kept_but_for_the_controls(probed: Probed) -> None:
    """A folder from elsewhere may hold more captures than memory does."""
    probe = received.Probe()
    control, *others = (one.measurement for one in probed[ONE])
    counts = [sys.getrefcount(one) for one in others]
    found = [list(probe.problems(one)) for one in (control, *others)]
    assert found == [[]] * len(probed[ONE])
    assert list(probe.end()) == []
    now = [sys.getrefcount(one) for one in others]
    assert [new - old for old, new in zip(counts, now, strict=True)] == [1] + [0] * len(others[1:])
