"""Celery under probe: what its three ways to acknowledge were measured to do."""

from __future__ import annotations

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
from rcr_probes.runtime import Executor, load
from tests.runtimes.missing import skip_without

skip_without("celery")

CELERY = "rcr_probes.runtimes.celery:runtime"


def cell(variant: str, point: str, fault: str, policy: str, dedupe: str = "none") -> Cell:
    return Cell(
        point=point, fault=fault, dedupe=dedupe, policy=policy, variant=variant, runtime=CELERY
    )


CONTROL = cell("early_ack", "none", "none", "never")
LOST = cell("early_ack", "before_action", "kill_host", "redelivery")
ACKNOWLEDGED = cell("late_ack", "after_action", "kill", "redelivery")
REFUSED = cell("late_ack", "after_action", "result_refused", "again")
REDELIVERED = cell("late_ack", "after_action", "kill_host", "redelivery")
DEDUPLICATED = cell("late_ack", "after_action", "kill_host", "redelivery", "operation_key")
STORED = cell("late_ack", "after_result", "kill_host", "redelivery")
CHECKED = cell("late_ack_deduplicate", "after_result", "kill_host", "redelivery")
REJECTED = cell("late_ack_reject", "after_action", "kill", "never")
ANSWERED = cell("early_ack", "response", "kill", "again")
CELLS = (
    CONTROL,
    LOST,
    ACKNOWLEDGED,
    REFUSED,
    REDELIVERED,
    DEDUPLICATED,
    STORED,
    CHECKED,
    REJECTED,
    ANSWERED,
)


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("celery") / "measured"


@pytest.fixture(scope="module")
def measured(into: Path) -> Mapping[Cell, Capture]:
    """The cells, measured side by side, for they mostly wait; what they left is kept."""
    evidence = runs.run(Plan("celery", CELLS), into, workers=6, keep=True, deadline=90)
    assert check(evidence.folder).findings == ()
    return dict(zip(CELLS, evidence.captures(), strict=True))


def row(measured: Mapping[Cell, Capture], one: Cell) -> Row:
    return rows([measured[one]])[0]


def shows(row: Row, **expected: Any) -> None:
    assert {name: row[name] for name in expected} == expected


def test_every_fault_strikes_and_no_process_is_left(measured: Mapping[Cell, Capture]) -> None:
    """Workers, their children and both servers are gone when a phase is over."""
    for one, capture in measured.items():
        assert row(measured, one)["fired"] is (None if one is CONTROL else True)
        for observed in capture.measurement.observations:
            assert observed.damage == ()
            assert observed.settled


def test_without_a_fault_there_is_one_effect_and_its_evidence_is_stored(
    measured: Mapping[Cell, Capture],
) -> None:
    """The control."""
    shows(row(measured, CONTROL), caller_error="none", state_after_fault="SUCCESS")
    shows(row(measured, CONTROL), effects_after_fault=1, calls_after_fault=1)
    (evidence,) = measured[CONTROL].measurement.observations[0].recorded.evidence or ()
    assert evidence["kind"] == "local-marker"


def test_an_early_acknowledgement_loses_what_had_not_begun(
    measured: Mapping[Cell, Capture],
) -> None:
    """Neither server knows anything of the task any more, so no worker ever gets it."""
    shows(row(measured, LOST), caller_error="TimeoutError", effects_after_fault=0)
    shows(row(measured, LOST), state_after_fault="missing", identity="unknown")
    shows(row(measured, LOST), calls_after_recovery=0, verdict="blocked")


def test_a_late_acknowledgement_comes_all_the_same_when_the_child_is_killed(
    measured: Mapping[Cell, Capture],
) -> None:
    """FAILURE over an effect that exists; the message is gone, and nothing is redelivered."""
    shows(row(measured, ACKNOWLEDGED), caller_error="WorkerLostError", effects_after_fault=1)
    shows(row(measured, ACKNOWLEDGED), state_after_fault="FAILURE", calls_after_recovery=1)


def test_a_refused_result_leaves_the_caller_without_any_answer(
    measured: Mapping[Cell, Capture],
) -> None:
    """The failure cannot be stored either; what was acknowledged late is acknowledged."""
    shows(row(measured, REFUSED), caller_error="TimeoutError", state_after_fault="missing")
    shows(row(measured, REFUSED), effects_after_fault=1, effects_after_recovery=2)
    shows(row(measured, REFUSED), state_after_recovery="SUCCESS", verdict="duplicate_effect")


def test_what_a_killed_host_had_in_hand_is_redelivered(
    measured: Mapping[Cell, Capture],
) -> None:
    """The message holds the request as it was approved; only the executor's key saves from two."""
    for one, effects in ((REDELIVERED, 2), (DEDUPLICATED, 1)):
        shows(row(measured, one), state_after_fault="unacked", identity="valid")
        shows(row(measured, one), effects_after_fault=1, calls_after_fault=1)
        shows(row(measured, one), effects_after_recovery=effects, calls_after_recovery=2)
    shows(row(measured, DEDUPLICATED), verdict="deduplicated")


def test_a_stored_success_stops_a_redelivery_only_where_that_is_set(
    measured: Mapping[Cell, Capture],
) -> None:
    """The caller has its answer already; by default the task is performed once more."""
    for one, effects in ((STORED, 2), (CHECKED, 1)):
        shows(row(measured, one), caller_error="none", state_after_fault="SUCCESS")
        shows(row(measured, one), effects_after_fault=1, effects_after_recovery=effects)


def test_a_rejected_message_is_performed_again_at_once(
    measured: Mapping[Cell, Capture],
) -> None:
    """There are two effects before anybody could have looked, and the caller sees a success."""
    shows(row(measured, REJECTED), caller_error="none", state_after_fault="SUCCESS")
    shows(row(measured, REJECTED), calls_after_fault=2, effects_after_fault=2)


def test_the_same_id_protects_from_nothing(measured: Mapping[Cell, Capture]) -> None:
    """A caller that lost the answer, and sends the task again, has it performed again."""
    shows(row(measured, ANSWERED), caller_error="SIGKILL", state_after_fault="SUCCESS")
    shows(row(measured, ANSWERED), effects_after_recovery=2, recovery_error="none")


def test_asking_for_the_state_writes_nothing(measured: Mapping[Cell, Capture], into: Path) -> None:
    """Both servers are started on copies."""
    (place,) = into.with_name("measured.cells").glob(f"{CELLS.index(REDELIVERED):04}-*")
    asked = operation(REDELIVERED, str(place), "recover", _unused(place))
    before = _tree(asked.folder)
    assert load(CELERY).state(asked) == measured[REDELIVERED].measurement.observations[1].recorded
    assert _tree(asked.folder) == before


def _unused(place: Path) -> Executor:
    return executors.make(str(place), "none", lambda *_: None)


def _tree(place: Path) -> Mapping[str, tuple[int, bytes]]:
    files = (path for path in place.rglob("*") if path.is_file())
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in files}
