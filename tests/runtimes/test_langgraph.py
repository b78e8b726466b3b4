"""LangGraph under probe: what its durability modes and its approvals were measured to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import executors
from rcr_probes import run as runs
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.phase import operation
from rcr_probes.runtime import load
from tests.runtimes.missing import skip_without

skip_without("langgraph")

LANGGRAPH = "rcr_probes.runtimes.langgraph:runtime"


def cell(variant: str, point: str, fault: str, policy: str, dedupe: str = "none") -> Cell:
    return Cell(
        point=point, fault=fault, dedupe=dedupe, policy=policy, variant=variant, runtime=LANGGRAPH
    )


CONTROL = cell("sync", "none", "none", "invoke")
RERUN = cell("sync", "after_action", "kill", "invoke")
DEDUPLICATED = cell("sync", "after_action", "kill", "invoke", "operation_key")
REFUSED = cell("sync", "after_action", "result_refused", "invoke")
HALF = cell("sync_checkpoints_refused", "after_action", "result_refused", "never")
SAVED = cell("sync", "after_result", "kill", "invoke")
BUSY = cell("async_store_busy", "after_result", "kill", "never")
LOST = cell("exit", "after_action", "kill", "invoke")
APPROVED = cell("interrupt_before_effect", "after_action", "kill", "invoke")
WAITS = cell("interrupt_before_effect", "after_action", "kill", "never")
TWICE = cell("interrupt_after_effect", "none", "none", "never")
TASK = cell("interrupt_after_task", "none", "none", "never")
CELLS = (
    CONTROL,
    RERUN,
    DEDUPLICATED,
    REFUSED,
    HALF,
    SAVED,
    BUSY,
    LOST,
    APPROVED,
    WAITS,
    TWICE,
    TASK,
)


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("langgraph") / "measured"


@pytest.fixture(scope="module")
def measured(into: Path) -> Mapping[Cell, Capture]:
    """The cells, measured; what they left is kept."""
    evidence = runs.run(Plan("langgraph", CELLS), into, keep=True, deadline=90)
    assert check(evidence.folder).findings == ()
    return dict(zip(CELLS, evidence.captures(), strict=True))


def row(measured: Mapping[Cell, Capture], one: Cell) -> Row:
    return rows([measured[one]])[0]


def shows(row: Row, **expected: Any) -> None:
    assert {name: row[name] for name in expected} == expected


def left(into: Path, one: Cell) -> Path:
    """The folder of a cell that was kept."""
    [found] = into.with_name(f"{into.name}.cells").glob(f"{CELLS.index(one):04}-*")
    return found


def test_every_fault_strikes_and_no_process_is_left(measured: Mapping[Cell, Capture]) -> None:
    """The threads in which LangGraph writes end with their phase."""
    for one, capture in measured.items():
        assert row(measured, one)["fired"] is (None if one.point == "none" else True)
        for observed in capture.measurement.observations:
            assert observed.damage == ()
            assert observed.settled


def test_without_a_fault_there_is_one_effect_and_its_evidence_is_stored(
    measured: Mapping[Cell, Capture],
) -> None:
    """The control; what is complete, ``invoke(None)`` does not run again."""
    shows(row(measured, CONTROL), caller_error="none", state_after_fault="complete")
    shows(row(measured, CONTROL), effects_after_recovery=1, calls_after_recovery=1)
    shows(row(measured, CONTROL), identity="valid", verdict="protected")
    first, _ = measured[CONTROL].measurement.observations
    assert first.recorded.evidence == ({"kind": "local-marker", "observed_count": 1},)


def test_a_node_that_was_killed_runs_again_from_its_beginning(
    measured: Mapping[Cell, Capture],
) -> None:
    """Even with ``sync``: nothing says that it had acted, and only the executor can tell."""
    shows(row(measured, RERUN), state_after_fault="next_act", effects_after_fault=1)
    shows(row(measured, RERUN), calls_after_recovery=2, verdict="duplicate_effect")
    shows(row(measured, DEDUPLICATED), calls_after_recovery=2, verdict="deduplicated")


def test_a_refused_result_is_an_error_of_the_caller_and_the_node_runs_again(
    measured: Mapping[Cell, Capture],
) -> None:
    """The database takes no more rows, and the graph fails over an effect that exists."""
    shows(row(measured, REFUSED), caller_error="IntegrityError", state_after_fault="next_act")
    shows(row(measured, REFUSED), effects_after_recovery=2, verdict="duplicate_effect")


def test_one_of_the_two_records_is_enough_to_keep_the_result(
    measured: Mapping[Cell, Capture],
) -> None:
    """The node's own writes stand where the step's checkpoint is refused."""
    shows(row(measured, HALF), caller_error="IntegrityError", state_after_fault="complete")
    first, _ = measured[HALF].measurement.observations
    assert first.recorded.evidence == ({"kind": "local-marker", "observed_count": 1},)


def test_a_checkpoint_that_was_written_keeps_the_node_from_running_again(
    measured: Mapping[Cell, Capture],
) -> None:
    """``sync`` writes it before the next node; ``async`` may not have, under a busy database."""
    shows(row(measured, SAVED), state_after_fault="next_confirm", state_after_recovery="complete")
    shows(row(measured, SAVED), calls_after_recovery=1, verdict="protected")
    shows(row(measured, BUSY), state_after_fault="next_act", effects_after_fault=1)


def test_durability_exit_leaves_no_thread_to_recover(measured: Mapping[Cell, Capture]) -> None:
    """Nothing is stored before the end, so ``invoke(None)`` finds nothing, over an effect."""
    shows(row(measured, LOST), state_after_fault="missing", effects_after_fault=1)
    shows(row(measured, LOST), recovery_error="EmptyInputError", calls_after_recovery=1)


def test_one_approval_lets_a_killed_node_act_twice(measured: Mapping[Cell, Capture]) -> None:
    """The thread still seems to wait for an answer, and ``invoke(None)`` uses the stored one."""
    shows(row(measured, APPROVED), state_after_fault="interrupted", effects_after_fault=1)
    shows(row(measured, APPROVED), effects_after_recovery=2, state_after_recovery="complete")


def test_an_action_before_its_interrupt_is_done_twice_without_any_fault(
    measured: Mapping[Cell, Capture],
) -> None:
    """The answer runs the node from its beginning; a task's result is not computed anew."""
    shows(row(measured, TWICE), caller_error="none", effects_after_fault=2, calls_after_fault=2)
    shows(row(measured, TASK), caller_error="none", effects_after_fault=1, calls_after_fault=1)


ASK = """
import sys
from pathlib import Path
from rcr_probes.runtime import Operation
from rcr_probes.runtimes.langgraph_graph import opened

for line in sys.stdin:
    variant, folder = line.split()
    operation = Operation("operation-0", {}, Path(folder), print, variant)
    with opened(operation, "checkpoints.sqlite") as graph:
        seen = graph.compiled.get_state(graph.thread)
        print("interrupted" if seen.interrupts else "next_" + "".join(seen.next), end=" ")
        print(seen.values.get("evidence"))
"""


def test_its_state_is_what_get_state_says(
    measured: Mapping[Cell, Capture], into: Path, tmp_path: Path
) -> None:
    """The tables are read without LangGraph, and mean what it says of them."""
    asked = [one for one in CELLS if one is not LOST]
    for one in asked:
        shutil.copytree(left(into, one) / "runtime", tmp_path / str(CELLS.index(one)))
    lines = [f"{one.variant} {tmp_path / str(CELLS.index(one))}\n" for one in asked]
    told = subprocess.run(
        [sys.executable, "-c", ASK], input="".join(lines), capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    for one, answer in zip(asked, told.stdout.splitlines(), strict=True):
        stored = measured[one].measurement.observations[1].recorded
        (evidence,) = stored.evidence or (None,)
        word = "next_" if stored.status == "complete" else stored.status
        assert answer == f"{word} {evidence}", one


def test_asking_for_the_state_writes_nothing(
    measured: Mapping[Cell, Capture], into: Path, tmp_path: Path
) -> None:
    """A killed phase leaves the database's log beside it; reading merges none of it."""
    kept = left(into, WAITS)
    before = {path.name: path.read_bytes() for path in (kept / "runtime").iterdir()}
    stamps = {path.name: os.stat(path).st_mtime_ns for path in (kept / "runtime").iterdir()}
    executor = executors.make(str(tmp_path), "none", lambda lane, value: None)
    seen = load(LANGGRAPH).state(operation(WAITS, str(kept), "recover", executor))
    assert seen.status == "interrupted"
    assert "checkpoints.sqlite-wal" in before
    assert {path.name: path.read_bytes() for path in (kept / "runtime").iterdir()} == before
    after = {path.name: os.stat(path).st_mtime_ns for path in (kept / "runtime").iterdir()}
    assert after == stamps
