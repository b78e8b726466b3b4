"""A runtime in any language: what is said to it, what it may answer, and what it is blamed for."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.errors import RuntimeUnusable
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Cell, Plan
from rcr_probes.runtime import load
from tests.runtimes import schema

ROOT = Path(__file__).parents[2]
NODE = "examples/node-runtime/runtime.toml"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

# A whole runtime in the language that is here for certain. It keeps what was said on both sides.
SPOKEN = """
import json, os, subprocess, sys
from pathlib import Path

order = json.load(sys.stdin)
folder = Path(order["folder"])
stored = folder / "state"

def heard(name, value):
    with open(folder / "heard", "a") as file:
        file.write(json.dumps([name, value]) + "\\n")

def answer(name, value):
    heard(name, value)
    print(json.dumps(value))
    raise SystemExit

def reach(point, *path):
    words = json.loads(os.environ["RCR_REACH"])
    if os.environ.get("RCR_ARMED") == point or order["variant"] == "talkative":
        if subprocess.run([*words, point, *path], stdout=2).returncode:
            answer("answer", {"error": "STRUCK"})

heard(order["verb"], order)
if order["verb"] == "state":
    status = stored.read_text() if stored.exists() else "missing"
    answer("recorded", {"status": status, "evidence": []})
if stored.exists():
    answer("answer", {"error": None})
reach("before_action")
done = subprocess.run(
    order["executor"], input=json.dumps(order["request"]), stdout=subprocess.PIPE, text=True
)
heard("evidence", json.loads(done.stdout))
reach("after_action")
audit = os.path.relpath(folder / "audit.jsonl")
reach("completion_audit", audit)
try:
    with open(audit, "a") as file:
        file.write(json.dumps({"event": "done"}) + "\\n")
except IsADirectoryError:
    answer("answer", {"error": "EISDIR"})
stored.write_text("done")
answer("answer", {"error": None})
"""
DESCRIBED: Mapping[str, Any] = {
    "command": [sys.executable, "spoken.py"],
    "points": {
        "before_action": ["exception", "kill"],
        "after_action": ["exception", "kill"],
        "completion_audit": ["audit_is_directory"],
    },
    "says": {"done": "done", "missing": "open"},
    "variants": ["baseline", "talkative"],
}


def toml(described: Mapping[str, Any]) -> str:
    """A flat description as TOML; a table is written inline."""

    def said(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{json.dumps(k)} = {said(v)}" for k, v in value.items()) + " }"
        return json.dumps(value)

    return "".join(f"{key} = {said(value)}\n" for key, value in described.items())


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A described runtime in a folder below the current directory."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "spoken.py").write_text(SPOKEN)
    (folder / "runtime.toml").write_text(toml(DESCRIBED))
    monkeypatch.chdir(tmp_path)
    return folder


def ran(*cells: Mapping[str, Any], **options: Any) -> tuple[list[Row], Evidence]:
    """Run cells of the described runtime; the evidence is sound."""
    given = {"runtime": "mine/runtime.toml", "point": "none", "fault": "none"}
    plan = Plan("mine", tuple(Cell(**{**given, **cell}) for cell in cells))
    evidence = runs.run(plan, "evidence", **options)
    assert check(evidence.folder).findings == ()
    return rows(evidence.captures()), evidence


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


HOSTILE = {
    "garbage": ("print('not JSON')", "BAD_ANSWER"),
    "a number": ("print(7)", "BAD_ANSWER"),
    "two lines": ('print(\'{"error": null}\\n{"error": null}\')', "BAD_ANSWER"),
    "nothing": ("pass", "BAD_ANSWER"),
    "no code": ('print(\'{"error": "/home/me"}\')', "BAD_ANSWER"),
    "another answer": ('print(\'{"status": "done"}\')', "BAD_ANSWER"),
    "too much": ("print('x' * (1 << 22))", "BAD_ANSWER"),
    "exit 7": ("raise SystemExit(7)", "EXIT_7"),
    "said none, exit 7": ("print('{\"error\": null}'); sys.exit(7)", "EXIT_7"),
    "said why, exit 7": ('print(\'{"error": "FULL"}\'); sys.exit(7)', "FULL"),
    "a signal": ("os.kill(os.getpid(), 15)", "SIGTERM"),
}


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_command_that_does_not_keep_to_the_protocol_is_blamed_and_the_run_goes_on(
    described: Path, start: str
) -> None:
    """What it did instead is the error that its caller sees; why, is in the cell's output."""
    names = list(HOSTILE) if start == "fork" else ["garbage"]
    lines = "".join(
        f"    if order['variant'] == 'v{n}':\n        {HOSTILE[name][0]}\n        sys.exit()\n"
        for n, name in enumerate(names)
    )
    hostile = SPOKEN.replace("heard(order", f"if order['verb'] == 'start':\n{lines}heard(order")
    (described / "spoken.py").write_text(hostile)
    variants = [f"v{n}" for n in range(len(names))]
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    found, _ = ran(*({"variant": variant} for variant in variants), keep=True, start=start)
    seen = {name: row["caller_error"] for name, row in zip(names, found, strict=True)}
    assert seen == {name: HOSTILE[name][1] for name in names}
    said = [p.read_text() for p in sorted(Path("evidence.cells").glob("*/harness/output.txt"))]
    assert "the command wrote 'not JSON', no JSON object" in said[0]


def test_a_command_that_never_ends_or_leaves_a_daemon_makes_its_cell_unknown(
    described: Path,
) -> None:
    """Both are ended, nothing is left behind, and the next cell is measured."""
    daemon = "if os.fork() == 0: os.setsid(); time.sleep(600)"
    lines = (
        "    import time\n"
        "    if order['variant'] == 'endless': time.sleep(600)\n"
        f"    if order['variant'] == 'daemon':\n        {daemon}\n"
    )
    hostile = SPOKEN.replace("heard(order", f"if order['verb'] == 'start':\n{lines}heard(order")
    (described / "spoken.py").write_text(hostile)
    variants = ["endless", "daemon", "baseline"]
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    found, _ = ran(*({"variant": variant} for variant in variants), deadline=8)
    assert [row["verdict"] for row in found] == ["unknown", "unknown", "protected"]
    assert found[0]["reasons"] == "deadline_passed"
    assert "observation_damaged" in str(found[1]["reasons"])


NO_STATES = (
    "{}",
    '{"status": 1}',
    '{"status": "done", "evidence": {}}',
    '{"status": "done", "evidence": [{"count": 1.5}]}',
    '{"status": "done", "more": 1}',
)


def test_a_state_that_is_none_makes_the_cell_unknown(described: Path) -> None:
    """It is damage; what the runtime did is counted all the same."""
    variants = [f"v{n}" for n in range(len(NO_STATES))]
    answers = dict(zip(variants, NO_STATES, strict=True))
    said = (
        "if order['verb'] == 'state':\n"
        f"    print({answers!r}[order['variant']])\n    raise SystemExit\nheard(order"
    )
    (described / "spoken.py").write_text(SPOKEN.replace("heard(order", said))
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    found, evidence = ran(*({"policy": "never", "variant": variant} for variant in variants))
    assert [(row["verdict"], row["effects_after_fault"]) for row in found] == [
        ("unknown", 1)
    ] * len(NO_STATES)
    damage = {c.measurement.observations[0].damage for c in evidence.captures()}
    assert damage == {("record: cannot be read (BAD_ANSWER)",)}


def test_what_the_question_for_the_state_leaves_behind_makes_the_cell_unknown(
    described: Path,
) -> None:
    """A process that it started, or one that had to be ended, could still change the state."""
    daemon = "if os.fork() == 0: os.setsid(); os.closerange(0, 3); time.sleep(600)"
    lines = (
        "    import time\n"
        "    if order['variant'] == 'endless': time.sleep(600)\n"
        f"    if order['variant'] == 'daemon':\n        {daemon}\n"
    )
    asked = SPOKEN.replace("heard(order", f"if order['verb'] == 'state':\n{lines}heard(order")
    (described / "spoken.py").write_text(asked)
    variants = ["endless", "daemon", "baseline"]
    (described / "runtime.toml").write_text(toml({**DESCRIBED, "variants": variants}))
    cells = ({"policy": "never", "variant": variant} for variant in variants)
    found, evidence = ran(*cells, deadline=8)
    assert [row["verdict"] for row in found] == ["unknown", "unknown", "protected"]
    damage = [c.measurement.observations[0].damage for c in evidence.captures()]
    assert damage == [
        (
            "record: cannot be read (deadline)",
            "record: the process that asked for it ended by deadline",
        ),
        ("record: the process that asked for it left others running, which were ended",),
        (),
    ]


WRONG: Mapping[str, tuple[Mapping[str, Any] | str, str]] = {
    "no command": ({"command": None}, "lacks command"),
    "no says": ({"says": None}, "lacks says"),
    "an empty command": ({"command": []}, "has no program"),
    "a command in words": ({"command": "node runtime.mjs"}, "not a list of texts"),
    "a key": ({"recovery": ["again"]}, "Did you mean 'recoveries'"),
    "a program": ({"command": ["no-such-program"]}, "'no-such-program' was not found"),
    "a script": ({"command": ["./nowhere.sh"]}, "'./nowhere.sh' was not found"),
    "a script that is none": ({"command": ["./spoken.py"]}, "cannot be run"),
    "points": ({"points": ["after_action"]}, "points is .*, not a table"),
    "a point": ({"points": {"aftr_action": ["kill"]}}, "'aftr_action' is no point"),
    "a kind": ({"points": {"after_action": ["kil"]}}, "Did you mean 'kill'"),
    "kinds": ({"points": {"after_action": "kill"}}, "points.after_action is 'kill'"),
    "a word of says": ({"says": {"done": "finished"}}, "word for the state 'done'"),
    "recoveries": ({"recoveries": [1]}, "recoveries is"),
    "a variant": ({"variants": ["Not a word"]}, "variants is"),
    "no variant": ({"variants": []}, "variants is empty; leave it out"),
    "a variant twice": ({"variants": ["one", "one"]}, "variants names one twice"),
    "no state": ({"says": {}}, "says explains no state"),
    "a way that all have": ({"recoveries": ["again"]}, "'again' is a way that every runtime has"),
    "no way": ({"recoveries": ["resume", "never"]}, "'never' is a way that every runtime has"),
    "TOML": ("command = [", "is not TOML"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_description_is_refused_with_what_to_do(described: Path, wrong: str) -> None:
    """Before anything runs, and with the file and the key."""
    given, why = WRONG[wrong]
    if isinstance(given, str):
        text = given
    else:
        text = toml({k: v for k, v in {**DESCRIBED, **given}.items() if v is not None})
    (described / "runtime.toml").write_text(text)
    with pytest.raises(RuntimeUnusable, match=why) as refused:
        load("mine/runtime.toml")
    assert "runtime.toml" in str(refused.value)


def test_a_description_that_is_not_there_is_refused() -> None:
    """The path is what the plan says, from the current directory."""
    with pytest.raises(RuntimeUnusable, match="no description of a runtime at nowhere"):
        load("nowhere/runtime.toml")


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
