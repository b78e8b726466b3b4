"""RQ, driven for real: a work-horse or a worker is killed, or Redis takes no writes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import folder
from rcr_probes import run as runs
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan
from tests.runtimes.missing import skip_without

RQ = skip_without("rq")


def cell(point: str, fault: str, policy: str, variant: str = "baseline") -> Cell:
    return Cell(point=point, fault=fault, policy=policy, variant=variant, runtime=RQ.runtime)


CONTROL = cell("none", "none", "never")
HORSE = cell("after_action", "kill", "requeue")
ABANDONED = cell("before_action", "kill_host", "requeue")
CLEANED = cell("after_action", "kill_host", "cleanup")
REFUSED = cell("after_action", "result_refused", "maintenance")
RETRIED = cell("after_action", "kill", "never", "retry")
UNIQUE = cell("after_action", "kill", "again", "unique")
CELLS = (CONTROL, HORSE, ABANDONED, CLEANED, REFUSED, RETRIED, UNIQUE)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rq") / "rq"


@pytest.fixture(scope="module")
def captures(kept: Path) -> dict[str, Capture]:
    evidence = runs.run(Plan("rq", CELLS), kept, deadline=90, keep=True)
    return {capture.cell.id: capture for capture in evidence.captures()}


@pytest.fixture(scope="module")
def table(captures: dict[str, Capture]) -> dict[str, Row]:
    return {str(row["cell"]): row for row in rows(list(captures.values()))}


def after(row: Row, observation: str) -> tuple[Any, ...]:
    return tuple(row[f"{name}_after_{observation}"] for name in ("state", "effects", "calls"))


def test_without_a_fault_the_job_acts_once(table: dict[str, Row]) -> None:
    """The caller has its result; what was asked for stays stored with it."""
    row = table[CONTROL.id]
    assert (row["caller_error"], row["identity"]) == ("none", "valid")
    assert after(row, "fault") == ("finished", 1, 1)
    assert row["verdict"] == "protected"


def test_a_job_that_acted_fails_with_its_work_horse_and_acts_again_when_requeued(
    table: dict[str, Row],
) -> None:
    """The worker lives on, sees the work-horse gone, and calls the job failed."""
    row = table[HORSE.id]
    assert (row["fired"], row["caller_error"]) == (True, "JOB_FAILED")
    assert after(row, "fault") == ("failed", 1, 1)
    assert after(row, "recovery") == ("finished", 2, 2)
    assert row["verdict"] == "duplicate_effect"


def test_a_job_whose_worker_is_gone_is_started_and_cannot_be_requeued(
    table: dict[str, Row],
) -> None:
    """Nobody has told Redis that it failed."""
    row = table[ABANDONED.id]
    assert (row["fired"], row["caller_error"]) == (True, "NO_RESULT")
    assert row["recovery_error"] == "InvalidJobOperation"
    assert after(row, "fault") == after(row, "recovery") == ("started", 0, 0)
    assert row["verdict"] == "blocked"


def test_after_maintenance_it_can_be_and_acts_again(table: dict[str, Row]) -> None:
    """Once its heartbeat has lapsed, the job is in the FailedJobRegistry."""
    row = table[CLEANED.id]
    assert after(row, "fault") == ("started", 1, 1)
    assert after(row, "recovery") == ("finished", 2, 2)


def test_a_redis_that_takes_no_writes_leaves_the_job_started(
    table: dict[str, Row], captures: dict[str, Capture], kept: Path
) -> None:
    """That it refused is proven by its own count; later maintenance calls the job failed."""
    row = table[REFUSED.id]
    assert (row["fired"], row["caller_error"]) == (True, "NO_RESULT")
    assert captures[REFUSED.id].measurement.observations[0].standing is True
    assert after(row, "fault") == ("started", 1, 1)
    assert after(row, "recovery") == ("failed", 1, 1)
    (place,) = kept.with_name("rq.cells").glob("*result_refused*")
    assert '"count"' in (place / folder.RUNTIME / "redis-refused.json").read_text()


def test_a_retry_acts_again_while_the_caller_still_waits(table: dict[str, Row]) -> None:
    """And then the caller sees success."""
    row = table[RETRIED.id]
    assert row["caller_error"] == "none"
    assert after(row, "fault") == ("finished", 2, 2)
    assert "called_again_in_fault_phase" in str(row["reasons"]).split(",")


def test_a_unique_id_is_refused_while_its_job_is_known(table: dict[str, Row]) -> None:
    """Submitting again then does no harm."""
    row = table[UNIQUE.id]
    assert row["recovery_error"] == "DuplicateJobError"
    assert after(row, "recovery") == ("failed", 1, 1)
    assert row["verdict"] == "protected"


def test_no_process_outlives_a_phase(captures: dict[str, Capture]) -> None:
    """Servers, workers and work-horses are gone when a phase returns."""
    for capture in captures.values():
        assert all(observed.settled for observed in capture.measurement.observations)
        assert not any(observed.damage for observed in capture.measurement.observations)


def test_asking_for_the_state_writes_nothing(captures: dict[str, Capture], kept: Path) -> None:
    """A server is started on a copy, and what it writes goes with it."""
    for struck in (CLEANED, REFUSED):
        (place,) = kept.with_name("rq.cells").glob(
            f"*-{struck.point}-{struck.fault}-*-{struck.policy}-*"
        )
        before = _files(place / folder.RUNTIME)
        (place / folder.STATE).unlink()
        asked = ["-m", "rcr_probes.phase", str(place), "state/recover", str(os.getpid())]
        subprocess.run([sys.executable, "-P", *asked], check=True, timeout=60)
        assert (place / folder.STATE).exists()
        assert _files(place / folder.RUNTIME) == before


def _files(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
