"""No capture tells what cannot have happened: forgeries of real ones are found, and runs are sound.

A forger here changes one kind of thing in committed evidence, and derives, digests and seals anew.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes import worker
from rcr_probes.errors import RuntimeUnusable
from rcr_probes.evidence.check import check
from rcr_probes.model import Cell, Plan
from rcr_probes.runtime import load
from rcr_probes.vocabulary import AUDIT_POINTS, POINTS
from tests import runtimes_beyond_bounds, runtimes_under_test
from tests.evidence import made
from tests.evidence.forging import ROOT, Change, every, found, insert, lanes, put, remove

CONTROL = "none/none/none/same/again"
P3 = "completion_audit/audit_is_directory/none/same/resume"
KEYED = "completion_audit/audit_is_directory/operation_key/same/resume"
CHANGED = "completion_audit/audit_is_directory/none/changed/resume"
RAISED = "after_action/exception/none/same/resume"
KILLED = "after_action/kill/none/same/resume"
LEFT = "after_action/exception/none/same/never"


def recover_where_nobody_did(data: Any) -> None:
    """Let a cell without recovery have called once more, with its effect."""
    first, last = data["observations"]
    effect = {**first["effects"][0], "effect_id": "E2"}
    told = {name: effect[name] for name in ("effect_id", "operation_key", "target")}
    call = ("call", {"operation_key": effect["operation_key"]})
    insert(data, last["events"], "recover", call, ("effect", told))
    last["calls"] += 1
    last["effects"].append(effect)


def return_after_the_kill(data: Any) -> None:
    first = data["observations"][0]
    insert(data, first["events"], "fault", ("return", {"error": "none"}))
    first["error"] = "none"


def strike_elsewhere(data: Any) -> None:
    data["cell"]["point"] = "before_action"
    every("fault", point="before_action")(data)


def strike_before_its_point(data: Any) -> None:
    events = data["events"]
    at = next(n for n, e in enumerate(events) if "fault" in e["value"])
    for names in ("lane", "value"):
        events[at - 1][names], events[at][names] = events[at][names], events[at - 1][names]


def equal_digests(data: Any) -> None:
    recorded = data["observations"][0]["recorded"]
    recorded["approved_digest"] = recorded["current_digest"]


def one_more(data: Any) -> None:
    effects = data["forced"]["effects"]
    effects.append({**effects[0], "effect_id": f"E{len(effects) + 1}"})


def two_effects_of_one_key(data: Any) -> None:
    """Let the executor that looks for the key have acted twice on it, in every place."""
    last = data["observations"][1]
    effect = {**last["effects"][0], "effect_id": "E2"}
    told = {name: effect[name] for name in ("effect_id", "operation_key", "target")}
    insert(data, last["events"] - 1, "recover", ("effect", told))
    last["effects"].append(effect)


def effect_without_a_call(data: Any) -> None:
    remove(data, lambda event: event["lane"] == "call")
    for observed in data["observations"]:
        observed["calls"] = 0


def renamed_effects(data: Any) -> None:
    for effects in [*(o["effects"] for o in data["observations"]), data["forced"]["effects"]]:
        for effect in effects:
            effect["effect_id"] = f"X{effect['effect_id']}"
    for event in data["events"]:
        if event["lane"] == "effect":
            event["value"]["effect_id"] = f"X{event['value']['effect_id']}"


WAYS: dict[str, tuple[str, Change, str]] = {
    # what was approved, and the cell
    "two effects approved": (P3, put("approved.effects", 2), "was approved, but its cell asks"),
    "no effect approved": (P3, put("approved.effects", 0), "was approved, but its cell asks"),
    "another target approved": (P3, put("approved.target", "x"), "was approved, but its cell asks"),
    "another seed": (P3, put("cell.seed", 5), "was approved, but its cell asks"),
    "negative seed": (P3, put("cell.seed", -3), "its seed is -3"),
    "seed too large": (P3, put("cell.seed", 2**53), "its seed is 9007199254740992"),
    "negative repeat": (P3, put("cell.repeat", -1), "its repeat is -1"),
    "seven recoverers": (P3, put("cell.recoverers", 7), "no plan allows it: recoverers = 7"),
    "fault in recovery": (P3, put("cell.recovery_fault", "kill"), "its recovery_fault is 'kill'"),
    "another variant": (P3, put("cell.variant", "a/b"), "its variant is 'a/b'"),
    "another witness": (P3, put("cell.witness", "blind"), "its witness is 'blind'"),
    "runtime that is none": (P3, put("cell.runtime", "any"), "'any', which names none"),
    "fault where it cannot be": (P3, strike_elsewhere, "no plan allows it: The fault"),
    # points and strikes
    "strike in the control": (
        CONTROL,
        lambda d: insert(d, 0, "fault", ("fault", {"point": "response", "fault": "kill"})),
        "a fault that the cell does not plan",
    ),
    "strike of another fault": (
        RAISED,
        every("fault", fault="kill"),
        "a fault that the cell does not plan",
    ),
    "strike in recovery": (
        P3,
        lambda d: insert(
            d,
            len(d["events"]) - 1,
            "recover",
            ("fault", {"point": "completion_audit", "fault": "audit_is_directory"}),
        ),
        "a fault that the cell does not plan",
    ),
    "unknown point": (RAISED, every("point", point="nowhere"), "'nowhere', which does not exist"),
    "strike at an unknown point": (
        RAISED,
        every("fault", point="nowhere"),
        "'nowhere', which does not exist",
    ),
    "points removed": (RAISED, lanes("point", "audit"), "the operation came to its point"),
    "strike before its point": (P3, strike_before_its_point, "the operation came to its point"),
    "error without its strike": (
        RAISED,
        lambda d: remove(d, lambda e: "fault" in e["value"]),
        "no event before it says that its fault struck",
    ),
    "kill that still stands": (KILLED, put("observations.0.standing", True), "that leaves nothing"),
    "fault that stands after it was lifted": (
        P3,
        put("observations.1.standing", True),
        "or was lifted",
    ),
    "fault that nobody looked for": (
        P3,
        put("observations.0.standing", None),
        "does not say whether the fault still stood",
    ),
    # how a phase ended
    "killed, and no error": (KILLED, put("observations.0.error", "none"), "ended by SIGKILL"),
    "killed, and error null": (KILLED, put("observations.0.error", None), "ended by SIGKILL"),
    "killed, and returned": (KILLED, return_after_the_kill, "though its fault had killed it"),
    "ended by no signal": (KILLED, put("observations.0.ended", "SIGNONE"), "which is no signal"),
    "crashed, and answered": (
        KILLED,
        put("observations.0.ended", "crash"),
        "but nothing was returned",
    ),
    "returned nothing": (RAISED, lanes("return"), "no event says what it returned"),
    "settled null": (P3, put("observations.0.settled", None), "whether the attempt was settled"),
    "last settled null": (P3, put("observations.1.settled", None), "the attempt was settled"),
    # what is stored
    "state after a kill": (
        KILLED,
        put("observations.0.recorded.status", "succeeded"),
        "its state after fault is 'succeeded'",
    ),
    "execution": (
        P3,
        put("observations.1.recorded.execution", "failed"),
        "its execution after recover is 'failed'",
    ),
    "evidence emptied": (
        P3,
        put("observations.0.recorded.evidence", []),
        "the evidence recorded after fault",
    ),
    "last evidence emptied": (
        P3,
        put("observations.1.recorded.evidence", []),
        "the evidence recorded after recover",
    ),
    "states of the events rewritten": (
        RAISED,
        every("state", execution="x", evidence=[{"x": 1}]),
        "its execution after fault",
    ),
    "states removed": (RAISED, lanes("state"), "no event says in which state"),
    "digests of one request differ": (
        P3,
        put("observations.0.recorded.approved_digest", "sha256:0"),
        "the two digests after fault are different",
    ),
    "digests of a changed request equal": (
        CHANGED,
        equal_digests,
        "the two digests after fault are equal",
    ),
    # a cell without recovery
    "recovery without a phase": (LEFT, recover_where_nobody_did, "it has events after those"),
    "error without a phase": (LEFT, put("observations.1.error", "EIO"), "its caller saw 'EIO'"),
    "state changed by nobody": (
        LEFT,
        put("observations.1.recorded.status", "succeeded"),
        "no recovery ran, but its state",
    ),
    # effects
    "effects renamed": (P3, renamed_effects, "are not named E1, E2"),
    "more effects than calls": (P3, effect_without_a_call, "more effects than calls"),
    "two effects of one key": (KEYED, two_effects_of_one_key, "which its executor prevents"),
    # the forced call
    "forced call with an error and an effect": (
        P3,
        put("forced.error", "HTTP_422"),
        "made 1 effects, where its executor makes 0",
    ),
    "forced call without its effect": (
        P3,
        lambda d: d["forced"]["effects"].pop(),
        "made 0 effects, where its executor makes 1",
    ),
    "forced call with two effects": (P3, one_more, "made 2 effects"),
    "forced call over its own effect": (KEYED, one_more, "where its executor makes 0"),
    "forced call elsewhere": (
        P3,
        lambda d: d["forced"]["effects"][-1].update(target="x"),
        "that it did not ask for",
    ),
    "forced call of another key": (
        P3,
        lambda d: d["forced"]["effects"][-1].update(operation_key="x"),
        "that it did not ask for",
    ),
    "forced call of an unchanged request": (
        CHANGED,
        lambda d: d["forced"]["effects"][-1].update(target="marker-0"),
        "which was on 'marker-0-changed'",
    ),
    "forced effect misnamed": (
        P3,
        lambda d: d["forced"]["effects"][-1].update(effect_id="E77"),
        "after its forced call are not named",
    ),
    # another cell's name on the same facts
    "called changed": (P3, put("cell.digest", "changed"), "the two digests after fault are equal"),
    "called deduplicated": (
        P3,
        put("cell.dedupe", "operation_key"),
        "which its executor prevents",
    ),
    "called the control": (
        RAISED,
        lambda d: d["cell"].update(point="none", fault="none"),
        "a fault that the cell does not plan",
    ),
    "called never": (P3, put("cell.policy", "never"), "no recovery ran, but it has events"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_cannot_have_happened_is_found(way: str) -> None:
    """Each edit contradicts the capture or its cell, and the finding says how."""
    cell, change, problem = WAYS[way]
    said = found(cell, change)
    assert any(problem in one for one in said), said


@pytest.mark.parametrize("cell", [CONTROL, P3, KEYED, CHANGED, RAISED, KILLED, LEFT])
def test_nothing_is_found_where_nothing_was_changed(cell: str) -> None:
    """What the forger's tools leave alone is sound."""
    assert found(cell, lambda data: None) == []
    assert found(cell, lambda data: insert(data, 0, "fault")) == []


def test_damage_excuses_the_state_and_makes_the_verdict_unknown() -> None:
    """A state that changed after the last look is told as damage, and is no contradiction."""

    def change(data: Any) -> None:
        data["observations"][1]["recorded"]["status"] = "failed"
        data["observations"][1]["damage"] = ["record: is not what the phase saw last"]

    assert found(P3, change) == []


def test_what_follows_the_return_belongs_to_its_phase() -> None:
    """Threads and exit handlers may still act, be seen, and even be killed, before it ends."""

    def later(data: Any) -> None:
        first = data["observations"][0]
        state = {"status": "failed", "execution": "not_started", "evidence": []}
        insert(data, first["events"], "fault", ("state", state))
        first["recorded"].update(execution="not_started", evidence=[])

    assert found(P3, later) == []

    def killed(data: Any) -> None:
        data["observations"][0]["ended"] = "SIGTERM"

    assert found(P3, killed) == []


def test_a_state_that_the_phase_could_not_read_says_nothing() -> None:
    """The parent may read what the phase could not."""

    def change(data: Any) -> None:
        at = max(n for n, e in enumerate(data["events"]) if e["lane"] == "state")
        data["events"][at]["value"] = {"status": "unreadable", "error": "EAGAIN"}

    assert found(P3, change) == []


def usable() -> Iterator[str]:
    """The runtimes under test that a plan may name, but for one whose cells take half a minute."""
    for module in (runtimes_under_test, runtimes_beyond_bounds):
        for name, factory in vars(module).items():
            if getattr(factory, "__module__", None) != module.__name__ or name == "Sleepless":
                continue
            with contextlib.suppress(RuntimeUnusable):
                load(f"{module.__name__}:{name}")
                yield f"{module.__name__}:{name}"


def cells(runtime: str) -> Iterator[Cell]:
    """Some of everything: no fault, each kind of it, each policy, and other executors."""
    yield from (
        Cell(point="none", fault="none", policy=p, runtime=runtime) for p in ("again", "never")
    )
    for point, fault, axes in (
        ("before_action", "exception", {"dedupe": "operation_key"}),
        ("after_action", "kill", {"digest": "reordered"}),
        ("after_action", "exception", {"digest": "changed", "policy": "never"}),
        ("response", "kill", {"seed": 3}),
        ("completion_audit", "audit_is_directory", {}),
    ):
        if fault in load(runtime).points.get(point, ()):
            yield Cell(point=point, fault=fault, runtime=runtime, **axes)


@pytest.fixture
def heard() -> Iterator[None]:
    """A runtime that is loaded here may do as it likes with our signals; they are ours again."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("heard")
def test_what_runtimes_do_wrong_makes_no_evidence_unsound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They err, hang, vanish and kill; what is measured of them agrees with itself."""
    monkeypatch.chdir(ROOT)
    names = sorted(usable())
    seen = {name.rpartition(":")[2] for name in names}
    assert {"twice", "Plain", "Hanging", "Misspelt", "Vanishing", "Fills"} <= seen
    plan = Plan("wrong", tuple(cell for name in names for cell in cells(name)))
    evidence = runs.run(plan, tmp_path / "wrong", deadline=1.0)
    assert check(evidence.folder).findings == ()


def test_what_the_reference_does_is_sound(tmp_path: Path) -> None:
    """Every fault at every point, every digest, executor and way to recover."""
    plan = Plan(
        "all",
        tuple(
            Cell(point=point, fault=fault, dedupe=dedupe, digest=digest, policy=policy)
            for point in POINTS
            for fault in ("exception", "kill", "audit_is_directory")
            if fault != "audit_is_directory" or point in AUDIT_POINTS
            for dedupe in ("none", "operation_key")
            for digest in ("same", "changed", "reordered")
            for policy in ("again", "resume", "never")
        ),
    )
    assert check(runs.run(plan, tmp_path / "all").folder).findings == ()


def test_a_cell_that_was_not_measured_is_sound_under_every_policy(tmp_path: Path) -> None:
    """It has no phase, no effect and no state, and says so."""
    lost = [
        worker.broken(worker.Job(Cell(point=p, fault=f, policy=policy), "gone", "fork", 1.0), "x")
        for p, f in (
            ("none", "none"),
            ("completion_audit", "audit_is_directory"),
            ("write@state#1", "kill"),
        )
        for policy in ("again", "resume", "never")
    ]
    assert check(made.write(tmp_path / "e", lost).folder).findings == ()
