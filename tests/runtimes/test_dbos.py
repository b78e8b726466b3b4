"""DBOS under real faults: what it does again, what it refuses, and what it has stored."""

from __future__ import annotations

import base64
import pickle
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from rcr_probes import run as runs
from rcr_probes.model import Capture, Cell, Json, Plan
from rcr_probes.runtime import Operation, load
from rcr_probes.runtimes.dbos_tables import recorded
from tests.runtimes.missing import skip_without

RUNTIME = skip_without("dbos").runtime

CELLS = {
    "control": Cell(point="none", fault="none", runtime=RUNTIME),
    "recovered": Cell(point="after_action", fault="kill", policy="launch", runtime=RUNTIME),
    "asked again": Cell(
        point="after_action", fault="kill", dedupe="operation_key", runtime=RUNTIME
    ),
    "recorded": Cell(point="after_result", fault="kill", policy="launch", runtime=RUNTIME),
    "refused": Cell(point="after_action", fault="result_refused", runtime=RUNTIME),
    "forked": Cell(point="after_action", fault="result_refused", policy="fork", runtime=RUNTIME),
    "rewound": Cell(point="response", fault="kill", policy="rewind", runtime=RUNTIME),
    "left alone": Cell(
        point="after_action", fault="kill", policy="launch", variant="other_executor",
        runtime=RUNTIME,
    ),
    "given up": Cell(
        point="before_action", fault="kill", variant="other_executor", runtime=RUNTIME
    ),
}  # fmt: skip
DATABASE = "dbos.sqlite"


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dbos") / "dbos"


@pytest.fixture(scope="module")
def measured(into: Path) -> Mapping[str, Capture]:
    """Every cell, measured once; the folders of the cells are kept."""
    evidence = runs.run(Plan("dbos", tuple(CELLS.values())), into, keep=True, deadline=90)
    return dict(zip(CELLS, evidence.captures(), strict=True))


def test_its_database_is_in_the_cell_whatever_the_folder_is_called(tmp_path: Path) -> None:
    """A name is no part of an address: DBOS keeps its tables there, and nothing beside it."""
    place = tmp_path / "a?b 50%25#c"
    place.mkdir()
    plan = Plan("odd", (CELLS["control"],))
    (capture,) = runs.run(plan, place / "odd", keep=True, deadline=90).captures()
    assert capture.judgement.verdict
    assert capture.judgement.verdict.verdict == "protected"
    assert len(list(place.glob(f"odd.cells/*/runtime/{DATABASE}"))) == 1
    assert list(tmp_path.iterdir()) == [place]


@pytest.fixture
def folder(measured: Mapping[str, Capture], into: Path) -> Path:
    """What DBOS left of the forked workflow."""
    number = list(CELLS).index("forked")
    [cell] = into.with_name(f"{into.name}.cells").glob(f"{number:04}-*")
    return cell / "runtime"


def seen(capture: Capture) -> tuple[object, ...]:
    """The state, effects and calls after the fault, and after recovery; the caller's error then."""
    first, last = capture.measurement.observations
    return (
        *((o.recorded.status, len(o.effects or ()), o.calls) for o in (first, last)),
        last.error,
    )


def test_a_control_has_one_effect(measured: Mapping[str, Capture]) -> None:
    """Starting the workflow once more under its id returns its result, and does nothing."""
    assert seen(measured["control"]) == (("SUCCESS", 1, 1), ("SUCCESS", 1, 1), "none")


def test_launch_does_a_step_again_whose_result_was_not_recorded(
    measured: Mapping[str, Capture],
) -> None:
    """The workflow is PENDING, and the executor that comes back runs its step once more."""
    assert seen(measured["recovered"]) == (("PENDING", 1, 1), ("SUCCESS", 2, 2), "none")
    assert seen(measured["asked again"]) == (("PENDING", 1, 1), ("SUCCESS", 1, 2), "none")


def test_launch_does_not_do_a_recorded_step_again(measured: Mapping[str, Capture]) -> None:
    """Killed in the workflow's body after the step: its row is what counts."""
    assert seen(measured["recorded"]) == (("PENDING", 1, 1), ("SUCCESS", 1, 1), "none")


def test_a_step_that_cannot_be_recorded_ends_the_workflow_in_error(
    measured: Mapping[str, Capture],
) -> None:
    """The same id gets the same error, and a fork from the step that failed acts again."""
    error = "IntegrityError"
    assert seen(measured["refused"]) == (("ERROR", 1, 1), ("ERROR", 1, 1), error)
    assert seen(measured["forked"]) == (("ERROR", 1, 1), ("SUCCESS", 2, 2), "none")


def test_a_rewound_workflow_acts_again(measured: Mapping[str, Capture]) -> None:
    """Rewinding discards what was recorded, from the first step where none is named."""
    assert seen(measured["rewound"]) == (("SUCCESS", 1, 1), ("SUCCESS", 2, 2), "none")


def test_another_executor_recovers_nothing_by_itself(measured: Mapping[str, Capture]) -> None:
    """It recovers the workflows of its own id; who asks for another's waits for ever."""
    assert seen(measured["left alone"]) == (("PENDING", 1, 1), ("PENDING", 1, 1), "none")
    pending = (("PENDING", 0, 0), ("PENDING", 0, 0), "STILL_PENDING")
    assert seen(measured["given up"]) == pending


def test_every_fault_fired_and_nothing_is_left(measured: Mapping[str, Capture]) -> None:
    """No cell is unknown, nothing is damaged, and no process outlived its phase."""
    for name, capture in measured.items():
        assert capture.judgement.fired is (None if name == "control" else True), name
        for observed in capture.measurement.observations:
            assert observed.settled, name
            assert observed.damage == (), name


def test_stored_arguments_are_the_request_that_was_approved(
    measured: Mapping[str, Capture],
) -> None:
    """Their digest, and that of the request in hand, are equal where the request is the same."""
    stored = measured["recovered"].measurement.observations[0].recorded
    assert stored.approved_digest is not None
    assert stored.approved_digest == stored.current_digest


class Never:
    """An executor that must not be called."""

    name = "local-marker"
    declares: tuple[str, ...] = ()
    effects = 1

    def raise_fence(self) -> None:
        raise AssertionError

    def __call__(self, key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        raise AssertionError


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}


def test_state_writes_nothing_and_needs_no_dbos(folder: Path) -> None:
    """It says what holds of the fork, and keeps the status of what was forked."""
    before = files(folder)
    stored = load(RUNTIME).state(Operation("operation-0", REQUEST, folder, Never()))
    assert (stored.status, stored.execution) == ("SUCCESS", "ERROR")
    assert stored.evidence == ({"kind": "local-marker", "observed_count": 2},)
    assert stored.approved_digest == stored.current_digest
    assert files(folder) == before
    assert "dbos" not in sys.modules


def test_without_a_workflow_the_state_is_missing(folder: Path, tmp_path: Path) -> None:
    """No database, and a database without the workflow, say the same."""
    for path, key in ((tmp_path / DATABASE, "operation-0"), (folder / DATABASE, "operation-9")):
        assert recorded(path, key, "act", REQUEST).status == "missing"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of the database, open for writing."""
    path = shutil.copy(folder / DATABASE, tmp_path)
    with closing(sqlite3.connect(path)) as database:
        yield database


def test_a_transaction_that_a_kill_cut_off_is_not_read(
    copy: sqlite3.Connection, tmp_path: Path
) -> None:
    """Its pages have reached the file; the journal beside it takes them back, in a copy."""
    copy.execute("PRAGMA cache_size = 1")  # pages reach the file before the commit
    copy.execute("UPDATE workflow_status SET status = 'CANCELLED'")
    for number in range(200):
        row = (f"filler-{number}", "x" * 4096)
        copy.execute("INSERT INTO workflow_input (workflow_uuid, inputs) VALUES (?, ?)", row)
    killed = tmp_path / "killed"
    killed.mkdir()
    for file in tmp_path.glob(f"{DATABASE}*"):
        shutil.copy(file, killed)
    before = files(killed)
    assert b"CANCELLED" in before[DATABASE][0]
    assert recorded(killed / DATABASE, "operation-0", "act", REQUEST).status == "SUCCESS"
    assert files(killed) == before


def test_a_stored_value_that_would_call_something_is_refused(
    copy: sqlite3.Connection, tmp_path: Path
) -> None:
    """What DBOS stores are pickles, and reading one must run nothing."""
    hostile = base64.b64encode(pickle.dumps(Path("elsewhere"))).decode()
    with copy:
        copy.execute("UPDATE workflow_input SET inputs = ?", (hostile,))
    with pytest.raises(pickle.UnpicklingError, match="no plain value"):
        recorded(tmp_path / DATABASE, "operation-0", "act", REQUEST)
