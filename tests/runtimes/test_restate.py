"""Restate, driven for real: its service is killed, or its server, on either side of the journal."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import folder
from rcr_probes import run as runs
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture, Cell, Plan
from tests.runtimes.missing import skip_without

RESTATE = skip_without("restate")


def cell(point: str, fault: str, policy: str) -> Cell:
    return Cell(point=point, fault=fault, policy=policy, runtime=RESTATE.runtime)


CONTROL = cell("none", "none", "again")
SERVICE = cell("after_action", "kill", "redelivery")
SERVER = cell("before_action", "kill_host", "again")
STORED = cell("after_result", "kill_host", "redelivery")
RESTARTED = cell("after_result", "kill", "restart_as_new")
LEFT = cell("before_action", "kill", "never")
CELLS = (CONTROL, SERVICE, SERVER, STORED, RESTARTED, LEFT)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("restate") / "restate"


@pytest.fixture(scope="module")
def captures(kept: Path) -> dict[str, Capture]:
    evidence = runs.run(Plan("restate", CELLS), kept, workers=2, deadline=90, keep=True)
    return {capture.cell.id: capture for capture in evidence.captures()}


@pytest.fixture(scope="module")
def table(captures: dict[str, Capture]) -> dict[str, Row]:
    return {str(row["cell"]): row for row in rows(list(captures.values()))}


def after(row: Row, observation: str) -> tuple[Any, ...]:
    return tuple(row[f"{name}_after_{observation}"] for name in ("state", "effects", "calls"))


def test_a_request_sent_again_under_its_key_gets_the_stored_answer(table: dict[str, Row]) -> None:
    """One effect, one call; what was asked for stays stored in the journal."""
    row = table[CONTROL.id]
    assert (row["caller_error"], row["recovery_error"]) == ("none", "none")
    assert after(row, "fault") == after(row, "recovery") == ("completed/success", 1, 1)
    assert (row["identity"], row["verdict"]) == ("valid", "protected")


def test_a_step_whose_service_dies_before_its_result_is_stored_runs_again(
    table: dict[str, Row],
) -> None:
    """Restate retries by itself; nobody asks it to."""
    row = table[SERVICE.id]
    assert (row["fired"], row["caller_error"]) == (True, "NO_ANSWER")
    assert after(row, "fault") == ("backing-off", 1, 1)
    assert after(row, "recovery") == ("completed/success", 2, 2)
    assert row["verdict"] == "duplicate_effect"


def test_a_service_whose_server_is_gone_still_acts_and_acts_again_later(
    table: dict[str, Row],
) -> None:
    """The step had begun; its result had nowhere to go."""
    row = table[SERVER.id]
    assert (row["fired"], row["caller_error"]) == (True, "CONNECTION_LOST")
    assert after(row, "fault") == ("backing-off", 1, 1)
    assert after(row, "recovery") == ("completed/success", 2, 2)
    assert row["verdict"] == "duplicate_effect"


def test_a_stored_result_is_not_made_again(
    table: dict[str, Row], captures: dict[str, Capture]
) -> None:
    """The journal outlives its server, and is replayed."""
    row = table[STORED.id]
    assert (row["fired"], row["caller_error"]) == (True, "CONNECTION_LOST")
    assert after(row, "fault") == ("backing-off", 1, 1)
    assert after(row, "recovery") == ("completed/success", 1, 1)
    first = captures[STORED.id].measurement.observations[0]
    assert first.recorded.execution == "Notification: Run"
    assert first.recorded.evidence == ({"kind": "local-marker", "observed_count": 1},)


def test_an_invocation_that_is_restarted_as_new_keeps_no_progress(table: dict[str, Row]) -> None:
    """Its stored result goes with the killed one."""
    row = table[RESTARTED.id]
    assert (row["caller_error"], row["recovery_error"]) == ("NO_ANSWER", "none")
    assert after(row, "fault") == ("backing-off", 1, 1)
    assert after(row, "recovery") == ("completed/success", 2, 2)
    assert row["verdict"] == "duplicate_effect"


def test_no_process_outlives_a_phase(captures: dict[str, Capture]) -> None:
    """Servers and services are gone when a phase returns."""
    for capture in captures.values():
        assert all(observed.settled for observed in capture.measurement.observations)
        assert not any(observed.damage for observed in capture.measurement.observations)


def test_asking_for_the_state_writes_nothing_and_invokes_nobody(
    captures: dict[str, Capture], kept: Path
) -> None:
    """A server is started on a copy of an open invocation, whose service's port is watched."""
    (place,) = kept.with_name("restate.cells").glob("*before_action*kill*never*")
    before = _files(place / folder.RUNTIME), _files(place / folder.WORLD)
    (place / folder.STATE).unlink()
    _phase(place, "state/recover")
    assert json.loads((place / folder.STATE).read_text())["status"] == "backing-off"
    assert (_files(place / folder.RUNTIME), _files(place / folder.WORLD)) == before


def test_a_service_whose_port_is_taken_is_found_elsewhere(
    captures: dict[str, Capture], kept: Path
) -> None:
    """The deployment gets its new address, and the invocation that began at the old one goes on."""
    (place,) = kept.with_name("restate.cells").glob("*before_action*kill*never*")
    address = place / folder.RUNTIME / "service.uri"
    before = address.read_text()
    planned = place / folder.CELL
    planned.write_text(json.dumps({**json.loads(planned.read_text()), "policy": "redelivery"}))
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", int(before.rpartition("/")[0].rpartition(":")[2])))
        taken.listen()
        turning_away = threading.Thread(target=_turn_away, args=(taken,))
        turning_away.start()
        try:
            _phase(place, "recover")
        finally:
            taken.shutdown(socket.SHUT_RDWR)
            turning_away.join()
    assert address.read_text() != before
    assert len((place / folder.EFFECTS).read_text().splitlines()) == 1


def _turn_away(taken: socket.socket) -> None:
    """Close every connection, until the socket is shut down."""
    while True:
        try:
            connection, _ = taken.accept()
        except OSError:
            return
        connection.close()


def _phase(place: Path, verb: str) -> None:
    asked = ["-m", "rcr_probes.phase", str(place), verb, str(os.getpid())]
    subprocess.run([sys.executable, "-P", *asked], check=True, timeout=120)


def _files(place: Path) -> dict[str, str]:
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file()
    }
