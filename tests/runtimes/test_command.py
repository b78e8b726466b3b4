"""A runtime in any language: what is said to it, and how its faults and its recovery strike."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.errors import PlanError
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import rows
from rcr_probes.vocabulary import ORIGINALS
from tests.runtimes import schema
from tests.runtimes.spoken import DESCRIBED, SPOKEN, ran, toml

ROOT = Path(__file__).parents[2]
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")


@pytest.mark.usefixtures("described")
def test_each_fault_strikes_a_process_in_another_language_and_is_proven() -> None:
    """Its own process is killed, or it raises its own error; effects and calls are ours."""
    after = {"point": "after_action", "policy": "again"}
    found, evidence = ran(
        {},
        {"point": "before_action", "fault": "kill"},
        {**after, "fault": "kill"},
        {**after, "fault": "kill", "dedupe": "operation_key"},
        {**after, "fault": "exception"},
        {"point": "completion_audit", "fault": "audit_is_directory"},
    )
    shown = ("fired", "caller_error", "effects_after_fault", "effects_after_recovery", "verdict")
    assert [tuple(row[name] for name in shown) for row in found] == [
        (None, "none", 1, 1, "protected"),
        (True, "SIGKILL", 0, 1, "consistent"),
        (True, "SIGKILL", 1, 2, "duplicate_effect"),
        (True, "SIGKILL", 1, 1, "deduplicated"),
        (True, "STRUCK", 1, 2, "duplicate_effect"),
        (True, "EISDIR", 1, 2, "duplicate_effect"),
    ]
    raised = list(evidence.captures())[4].measurement.events
    assert [e.value for e in raised if e.lane == "fault"] == [
        {"point": "after_action", "fault": "exception"},
        {"point": "after_action", "error": "INJECTED_FAULT"},
    ]


@pytest.mark.usefixtures("described")
def test_what_is_said_on_both_sides_keeps_the_schema() -> None:
    """The shipped schema describes what really goes to a command and comes from it."""
    ran({}, {"point": "after_action", "fault": "exception"}, keep=True)
    heard: dict[str, int] = {}
    for path in Path("evidence.cells").glob("*/runtime/heard"):
        for name, value in map(json.loads, path.read_text().splitlines()):
            heard[name] = heard.get(name, 0) + 1
            assert schema.broken(value, name) == []
            if name in ("start", "recover", "state"):
                assert schema.broken(value, "order") == []
    assert heard.keys() == {"start", "recover", "state", "answer", "recorded", "evidence"}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"error": "no word"}, "answer"),
        ({"error": None, "more": 1}, "answer"),
        ({}, "recorded"),
        ({"status": "done", "evidence": [{"count": 1.5}]}, "recorded"),
        ({"verb": "start"}, "order"),
    ],
)
def test_the_schema_refuses_what_the_harness_refuses(value: Any, name: str) -> None:
    """A validator of one's own finds the slips that a run would find."""
    assert schema.broken(value, name)


def test_an_answer_ends_with_its_line_and_with_nothing_else(described: Path) -> None:
    """JSON may hold what Python takes for the end of a line, and other languages write as it is."""
    note = "a\u2028b\u0085c\x7f"
    written = "sys.stdout.buffer.write(json.dumps(value, ensure_ascii=False).encode())"
    told = SPOKEN.replace('"evidence": []', f'"evidence": [{{"note": {note!r}}}]')
    (described / "spoken.py").write_text(told.replace("print(json.dumps(value))", written))
    _, evidence = ran({})
    (capture,) = evidence.captures()
    for seen in capture.measurement.observations:
        assert (seen.damage, seen.recorded.evidence) == ((), ({"note": note},))


@pytest.mark.usefixtures("described")
def test_a_runtime_may_also_tell_the_points_that_are_not_armed() -> None:
    """They stand in the events in their order, with what the audit held when it came there."""
    _, evidence = ran({"variant": "talkative"})
    events = next(evidence.captures()).measurement.events
    fault = [(e.lane, e.value.get("point")) for e in events if e.phase == "fault"]
    assert [one for one in fault if one[0] in ("point", "call", "effect")] == [
        ("point", "before_action"),
        ("call", None),
        ("effect", None),
        ("point", "after_action"),
        ("point", "completion_audit"),
    ]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize(
    ("strike", "effects", "seen"),
    [
        ("kill@before_action", 1, "SIGKILL"),
        ("kill@after_action", 2, "SIGKILL"),
        ("exception@before_action", 1, "INJECTED_FAULT"),
        ("exception@after_action", 2, "INJECTED_FAULT"),
    ],
)
@pytest.mark.usefixtures("described")
def test_its_recovery_is_struck_and_that_is_proven(
    start: str, strike: str, effects: int, seen: str
) -> None:
    """At a point that it tells, as its operation is: then it is run again."""
    cell = {"point": "before_action", "fault": "kill", "recovery_fault": strike}
    (found,), evidence = ran(cell, start=start)
    verdict = "consistent" if effects == 1 else "duplicate_effect"
    assert (found["verdict"], found["effects_after_recovery"]) == (verdict, effects)
    kind, _, point = strike.partition("@")
    events = next(evidence.captures()).measurement.events
    assert [e.value for e in events if e.phase == "recover" and e.lane == "fault"] == [
        {"point": point, "fault": kind},
        {"point": point, "error": seen},
    ]


@pytest.mark.usefixtures("described")
def test_its_recovery_is_struck_inside_the_executor_that_it_runs() -> None:
    """That process comes to the point, and the command is killed with it."""
    strike = {"dedupe": "late_key", "recovery_fault": "kill@before_key"}
    (found,), _ = ran({"point": "before_action", "fault": "kill", **strike})
    assert (found["verdict"], found["effects_after_recovery"]) == ("duplicate_effect", 2)


@pytest.mark.parametrize(("variant", "effects"), [("baseline", 2), ("fenced", 1)])
def test_its_recovery_is_held_until_another_has_finished(
    described: Path, variant: str, effects: int
) -> None:
    """The command waits; what it calls then carries its own attempt, where that is fenced off."""
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": ["baseline", "fenced"]}))
    held = {"recovery_fault": "held@before_action", "recoverers": 2, "variant": variant}
    (found,), _ = ran({"point": "before_action", "fault": "kill", **held}, keep=True)
    assert (found["calls_after_recovery"], found["effects_after_recovery"]) == (2, effects)
    (output,) = Path("evidence.cells").glob("*/harness/output.txt")
    fenced_off = "FENCED: attempt 2 came after attempt 3" in output.read_text()
    assert fenced_off is (variant == "fenced")


@pytest.mark.usefixtures("described")
@pytest.mark.parametrize("kind", ORIGINALS)
def test_a_command_whose_call_is_to_act_late_is_refused(kind: str) -> None:
    """Before it runs: each was waited for until its deadline, and then the cell was unknown."""
    with pytest.raises(PlanError, match="a runtime that is a command") as refused:
        ran({"policy": "again", "recovery_fault": kind})
    assert "held@POINT" in refused.value.remedy


TOLD = "[*words, point, *path]"
IN_A_SHELL = """["sh", "-c", '"$@"; exit $?', "sh", *words, point, *path]"""
BY_A_DAEMON = """["setsid", "--fork", *words, point, *path], stdout=subprocess.PIPE"""


@pytest.mark.parametrize("fault", ["kill", "exception"])
def test_a_point_that_is_told_through_a_shell_is_the_runtimes(described: Path, fault: str) -> None:
    """It is the runtime that is killed, not the shell; nobody is left to go on."""
    (described / "spoken.py").write_text(SPOKEN.replace(TOLD, IN_A_SHELL))
    (found,), _ = ran({"point": "after_action", "fault": fault, "policy": "never"})
    seen = "SIGKILL" if fault == "kill" else "STRUCK"
    assert (found["fired"], found["caller_error"]) == (True, seen)
    assert (found["effects_after_fault"], found["state_after_fault"]) == (1, "missing")


@pytest.mark.parametrize(
    ("dedupe", "point", "effects"),
    [
        ("claim_first", "after_claim", 0),
        ("late_key", "before_key", 2),
        ("pair", "between_effects", 3),
    ],
)
def test_it_is_killed_inside_the_executor_that_it_runs(
    described: Path, dedupe: str, point: str, effects: int
) -> None:
    """The executor is a process of its own, below the runtime: it ends with it, acts no more."""
    (found,), _ = ran({"point": point, "fault": "kill", "dedupe": dedupe, "policy": "again"})
    assert (found["fired"], found["caller_error"]) == (True, "SIGKILL")
    assert (found["effects_after_fault"], found["state_after_fault"]) == (
        int(effects > 0),
        "missing",
    )
    assert found["effects_after_recovery"] == effects


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is not installed")
def test_an_executor_that_a_daemon_runs_is_not_struck(described: Path) -> None:
    """Whom its strike would end is not the runtime: nothing fires, and the call fails."""
    by_a_daemon = '["setsid", "--fork", *order["executor"]]'
    text = SPOKEN.replace('order["executor"], input', f"{by_a_daemon}, input")
    (described / "spoken.py").write_text(text)
    (found,), _ = ran(
        {"point": "before_key", "fault": "kill", "dedupe": "late_key", "policy": "never"}
    )
    assert (found["fired"], found["verdict"]) == (False, "unknown")


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is not installed")
def test_a_point_that_a_daemon_tells_is_not_struck(described: Path) -> None:
    """Its end would not be the end of the runtime: nothing fires, and the output says why."""
    (described / "spoken.py").write_text(SPOKEN.replace(f"{TOLD}, stdout=2", BY_A_DAEMON))
    (found,), _ = ran({"point": "after_action", "fault": "kill", "policy": "never"}, keep=True)
    assert (found["fired"], found["verdict"]) == (False, "unknown")
    (output,) = Path("evidence.cells").glob("*/harness/output.txt")
    assert "Run RCR_REACH from the command" in output.read_text()


@needs_node
def test_the_example_in_node_shows_what_its_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its plan, from the root of the repository, as the docs have it typed."""
    monkeypatch.chdir(ROOT)
    plan = plans.read("examples/node-runtime/plan.toml")
    evidence = runs.run(plan, tmp_path / "evidence")
    assert check(evidence.folder).findings == ()
    found = {row["cell"]: row["verdict"] for row in rows(evidence.captures())}
    assert {str(cell).rpartition("/runtime=")[0]: word for cell, word in found.items()} == {
        "none/none/none/same/again": "protected",
        "before_action/kill/none/same/resume": "consistent",
        "before_action/kill/none/same/careful": "held",
        "after_action/kill/none/same/resume": "duplicate_effect",
        "after_action/kill/none/same/careful": "held",
        "after_result/kill/none/same/resume": "protected",
        "after_result/kill/none/same/careful": "protected",
        "completion_audit/audit_is_directory/none/same/resume": "duplicate_effect",
        "completion_audit/audit_is_directory/none/same/careful": "protected",
        "completion_audit/audit_is_directory/operation_key/same/resume": "deduplicated",
        "completion_audit/audit_is_directory/operation_key/same/careful": "consistent",
        "after_action/kill/none/changed/resume": "protected",
    }
