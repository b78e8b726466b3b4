"""Both tables of the article, from the approval service in interpreters of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rcr_probes.reference import audit
from rcr_probes.reference.records import Record, Records

ROOT = Path(__file__).parents[2]
FIRST = {"kind": "local-marker", "observed_count": 1}


def phase(folder: Path, step: str, point: str = "none", keyed: str = "plain") -> str:
    """What the caller saw in a new process."""
    program = str(Path(__file__).with_name("one_process.py"))
    done = subprocess.run(
        [sys.executable, program, str(folder), step, point, keyed],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    return str(json.loads(done.stdout))


def mend(folder: Path) -> None:
    (folder / "audit.jsonl").rmdir()
    (folder / "audit.saved").rename(folder / "audit.jsonl")


def persisted(folder: Path) -> Record:
    """The record as it is stored; reading changes nothing."""
    (record,) = Records(str(folder / "approvals")).all()
    return record


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize(
    ("probe", "point", "caller_sees", "state", "effects"),
    [
        ("P0", "none", "APPROVAL_ALREADY_CONSUMED", "succeeded", 1),
        ("P1", "approval_audit", "EISDIR", "approved", 0),
        ("P2", "start_audit", "EISDIR", "executing", 0),
        ("P3", "completion_audit", "EISDIR", "failed", 1),
    ],
)
def test_fault_locations(
    tmp_path: Path, probe: str, point: str, caller_sees: str, state: str, effects: int
) -> None:
    """Table 1: what the caller sees, what is persisted, and the effects already made."""
    saw = phase(tmp_path, "fault", point)
    if probe == "P0":
        assert saw == "none"
        saw = phase(tmp_path, "again")
    record = persisted(tmp_path)
    assert (saw, record.status, lines(tmp_path / "effects")) == (caller_sees, state, effects)
    assert record.execution.evidence == ((FIRST,) if effects else ())
    told = [
        line.event.removeprefix("operation.")
        for name in ("audit.saved", "audit.jsonl")
        if (tmp_path / name).is_file()
        for line in audit.read(str(tmp_path / name)).lines
    ]
    assert (
        told
        == {
            "P0": ["prepared", "approved", "started", "succeeded"],
            "P1": ["prepared"],
            "P2": ["prepared", "approved"],
            "P3": ["prepared", "approved", "started"],
        }[probe]
    )


@pytest.mark.parametrize(
    ("keyed", "step", "effects", "calls", "recovery"),
    [
        pytest.param("plain", "resume", 2, 2, "succeeded", id="no dedupe, same digest"),
        pytest.param("keyed", "resume", 1, 2, "succeeded", id="stable operation key, same digest"),
        pytest.param("plain", "resume-changed", 1, 1, "APPROVAL_STALE", id="changed digest"),
    ],
)
def test_restart(
    tmp_path: Path, keyed: str, step: str, effects: int, calls: int, recovery: str
) -> None:
    """Table 2: one effect after the fault, and what recovery in a new process adds to it."""
    assert phase(tmp_path, "fault", "completion_audit", keyed) == "EISDIR"
    assert (lines(tmp_path / "effects"), lines(tmp_path / "calls")) == (1, 1)
    assert persisted(tmp_path).execution.evidence == (FIRST,)
    mend(tmp_path)
    saw = phase(tmp_path, step, keyed=keyed)
    record = persisted(tmp_path)
    assert (record.status if saw == "none" else saw) == recovery
    assert (lines(tmp_path / "effects"), lines(tmp_path / "calls")) == (effects, calls)
    if recovery == "APPROVAL_STALE":
        assert (record.status, record.execution.status) == ("stale", "not_started")
        assert record.execution.evidence == ()
    else:
        assert record.execution.evidence == ({**FIRST, "observed_count": effects},)
