"""Prefect, driven for real: its caller is killed, or the result of its task cannot be kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import executors
from rcr_probes import run as runs
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.phase import operation
from rcr_probes.runtimes.prefect import Prefect
from tests.runtimes.missing import skip_without

PREFECT = skip_without("prefect")


def cell(point: str, fault: str, policy: str, variant: str) -> Cell:
    return Cell(point=point, fault=fault, policy=policy, variant=variant, runtime=PREFECT.runtime)


CONTROL = cell("none", "none", "never", "persistence")
KILLED = cell("after_action", "kill", "crash_retry", "baseline")
REFUSED = cell("after_action", "result_refused", "again", "cache_key")
FOUND = cell("after_result", "kill", "crash_retry", "persistence")
CELLS = (CONTROL, KILLED, REFUSED, FOUND)


@pytest.fixture(scope="module")
def into(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prefect") / "prefect"


@pytest.fixture(scope="module")
def measured(into: Path) -> Mapping[Cell, Capture]:
    """The cells, measured; their folders are kept. Each phase starts a server of its own."""
    evidence = runs.run(Plan("prefect", CELLS), into, keep=True, deadline=240)
    return dict(zip(CELLS, evidence.captures(), strict=True))


def row(measured: Mapping[Cell, Capture], one: Cell) -> Row:
    return rows([measured[one]])[0]


def after(row: Row, observation: str) -> tuple[Any, ...]:
    return tuple(row[f"{name}_after_{observation}"] for name in ("state", "effects", "calls"))


def test_every_fault_strikes_and_no_process_is_left(
    measured: Mapping[Cell, Capture], into: Path
) -> None:
    """Server and caller, who both work in the cell's folder, are gone when a phase is over."""
    for one, capture in measured.items():
        assert row(measured, one)["fired"] is (None if one is CONTROL else True)
        for observed in capture.measurement.observations:
            assert (observed.damage, observed.settled) == ((), True)
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            assert not os.readlink(process / "cwd").startswith(str(into))


def test_without_a_fault_the_flow_acts_once(measured: Mapping[Cell, Capture]) -> None:
    """The run is completed, and the task's result stands where results are persisted."""
    shown = row(measured, CONTROL)
    assert (shown["caller_error"], shown["identity"]) == ("none", "valid")
    assert after(shown, "fault") == ("COMPLETED", 1, 1)
    [evidence] = measured[CONTROL].measurement.observations[0].recorded.evidence or ()
    assert evidence == {"kind": "local-marker", "observed_count": 1}


def test_a_task_without_a_persisted_result_acts_again_when_its_run_is_retried(
    measured: Mapping[Cell, Capture],
) -> None:
    """Its caller is gone, and the server takes the run to be running."""
    shown = row(measured, KILLED)
    assert shown["caller_error"] == "SIGKILL"
    assert after(shown, "fault") == ("RUNNING", 1, 1)
    assert after(shown, "recovery") == ("COMPLETED", 2, 2)
    assert (shown["recovery_error"], shown["verdict"]) == ("none", "duplicate_effect")


def test_a_result_that_cannot_be_persisted_is_no_error_and_is_found_by_nobody(
    measured: Mapping[Cell, Capture],
) -> None:
    """The run is completed; the caller that calls again, by the same cache key, acts twice."""
    shown = row(measured, REFUSED)
    assert shown["caller_error"] == "none"
    assert after(shown, "fault") == ("COMPLETED", 1, 1)
    assert measured[REFUSED].measurement.observations[0].recorded.evidence == ()
    assert after(shown, "recovery") == ("COMPLETED", 2, 2)
    assert shown["verdict"] == "duplicate_effect"


def test_a_persisted_result_is_found_when_its_run_is_retried(
    measured: Mapping[Cell, Capture],
) -> None:
    """The task had returned: the retried run completes without acting again."""
    shown = row(measured, FOUND)
    assert after(shown, "fault") == ("RUNNING", 1, 1)
    assert after(shown, "recovery") == ("COMPLETED", 1, 1)
    assert shown["verdict"] == "protected"


def test_asking_for_the_state_writes_nothing(measured: Mapping[Cell, Capture], into: Path) -> None:
    """Not even the files that SQLite makes beside a database that is only read."""
    assert measured
    for place in into.with_name("prefect.cells").iterdir():
        before = contents(place / "runtime")
        one = next(cell for number, cell in enumerate(CELLS) if place.name[:4] == f"{number:04}")
        silent = executors.make(str(place), one.dedupe, lambda lane, value: None)
        seen = Prefect().state(operation(one, str(place), "recover", silent))
        assert seen == measured[one].measurement.observations[1].recorded
        assert contents(place / "runtime") == before


def contents(folder: Path) -> Mapping[str, str]:
    """Every file of a folder, and the digest of what is in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_adapter_imports_nothing_of_prefect() -> None:
    """A worker is lean: what Prefect needs is imported in the phases that need it."""
    script = (
        "import sys; from rcr_probes.runtime import load; "
        f"load({PREFECT.runtime!r}); print('prefect' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert told.stdout == b"False\n"
