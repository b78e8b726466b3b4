"""Huey, driven for real: a task that is lost with its consumer, and one whose result is refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import executors, folder
from rcr_probes import run as runs
from rcr_probes.errors import UnknownName
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.runtime import Operation
from rcr_probes.runtimes.huey import HueyRuntime
from tests.runtimes.missing import skip_without

HUEY = skip_without("huey")


def cell(point: str, fault: str, policy: str, variant: str = "baseline") -> Cell:
    return Cell(point=point, fault=fault, policy=policy, variant=variant, runtime=HUEY.runtime)


CONTROL = cell("none", "none", "never")
LOST = cell("before_action", "kill", "restart")
KILLED = cell("after_action", "kill", "again")
REFUSED = cell("after_action", "result_refused", "restart")
RETRIES = cell("after_action", "result_refused", "again", "retries")
DEDUPLICATED = cell("before_action", "kill", "again", "deduplicated")
CELLS = (CONTROL, LOST, KILLED, REFUSED, RETRIES, DEDUPLICATED)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("huey") / "huey"


@pytest.fixture(scope="module")
def captures(kept: Path) -> dict[str, Capture]:
    evidence = runs.run(Plan("huey", CELLS), kept, deadline=90, keep=True)
    return {capture.cell.id: capture for capture in evidence.captures()}


@pytest.fixture(scope="module")
def table(captures: dict[str, Capture]) -> dict[str, Row]:
    return {str(row["cell"]): row for row in rows(list(captures.values()))}


def after(row: Row, observation: str) -> tuple[Any, ...]:
    return tuple(row[f"{name}_after_{observation}"] for name in ("state", "effects", "calls"))


def test_without_a_fault_the_task_acts_once(table: dict[str, Row]) -> None:
    """The caller has its result, and it stays stored."""
    row = table[CONTROL.id]
    assert row["caller_error"] == "none"
    assert after(row, "fault") == ("complete", 1, 1)
    assert row["verdict"] == "protected"


def test_a_task_is_lost_with_the_consumer_that_took_it(table: dict[str, Row]) -> None:
    """It leaves the queue when it is taken: a consumer started again has nothing to do."""
    row = table[LOST.id]
    assert (row["fired"], row["caller_error"]) == (True, "ResultTimeout")
    assert after(row, "fault") == after(row, "recovery") == ("missing", 0, 0)
    assert row["verdict"] == "blocked"


def test_a_lost_task_and_one_that_acted_leave_the_same_record(table: dict[str, Row]) -> None:
    """None: so the caller that submits again, under the same id, acts twice."""
    row = table[KILLED.id]
    assert after(row, "fault") == ("missing", 1, 1)
    assert after(row, "recovery") == ("complete", 2, 2)
    assert row["verdict"] == "duplicate_effect"


def test_a_result_that_is_refused_is_gone(
    table: dict[str, Row], captures: dict[str, Capture]
) -> None:
    """The consumer logs the error and goes on; the trigger was seen from outside."""
    row = table[REFUSED.id]
    assert (row["fired"], row["caller_error"]) == (True, "ResultTimeout")
    assert captures[REFUSED.id].measurement.observations[0].standing is True
    assert after(row, "fault") == after(row, "recovery") == ("missing", 1, 1)


def test_retries_are_for_tasks_that_raise(table: dict[str, Row]) -> None:
    """A result that cannot be stored starts none; submitting again acts twice."""
    row = table[RETRIES.id]
    assert after(row, "fault") == ("missing", 1, 1)
    assert after(row, "recovery") == ("complete", 2, 2)


def test_the_recipe_against_duplicates_outlives_a_crash(table: dict[str, Row]) -> None:
    """Its key stays behind, so a task that never acted is skipped for ever."""
    row = table[DEDUPLICATED.id]
    assert (row["recovery_error"], row["verdict"]) == ("ResultTimeout", "blocked")
    assert after(row, "recovery") == ("missing", 0, 0)


def test_no_process_outlives_a_phase(captures: dict[str, Capture]) -> None:
    """Consumers are gone when a phase returns, and when it was killed."""
    for capture in captures.values():
        assert all(observed.settled for observed in capture.measurement.observations)
        assert not any(observed.damage for observed in capture.measurement.observations)


def test_asking_for_the_state_writes_nothing(captures: dict[str, Capture], kept: Path) -> None:
    """Huey reads a copy, also of what a killed consumer left."""
    for struck in (LOST, REFUSED):
        (place,) = kept.with_name("huey.cells").glob(
            f"*-{struck.point}-{struck.fault}-*-{struck.policy}-*"
        )
        before = _files(place / folder.RUNTIME)
        (place / folder.STATE).unlink()
        asked = ["-m", "rcr_probes.phase", str(place), "state/recover", str(os.getpid())]
        subprocess.run([sys.executable, "-P", *asked], check=True, timeout=60)
        assert (place / folder.STATE).exists()
        assert _files(place / folder.RUNTIME) == before


def test_before_anything_happened_nothing_is_stored(tmp_path: Path) -> None:
    """And an unknown way is refused by its name."""
    executor = executors.make(str(tmp_path), "none", lambda lane, value: None)
    operation = Operation("operation-0", {}, tmp_path, executor)
    assert HueyRuntime().state(operation).status == "missing"
    with pytest.raises(UnknownName, match="requeue"):
        HueyRuntime().recover(operation, "requeue")
    assert list(tmp_path.iterdir()) == []


def _files(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
