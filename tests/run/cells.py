"""Cells that tests run, and what they look at afterwards."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from rcr_probes import run as runs
from rcr_probes.evidence import store
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.scratch import PREFIX

ROOT = Path(__file__).parents[2]
MINE = "tests.runtimes_under_test"
P3: dict[str, Any] = {
    "point": "completion_audit",
    "fault": "audit_is_directory",
    "policy": "resume",
}
CONTROL: dict[str, Any] = {"point": "none", "fault": "none"}


def one(into: Path, *, start: str = "fork", deadline: float = 30.0, **axes: Any) -> Capture:
    """Run one cell to its capture."""
    if "runtime" in axes:
        axes["runtime"] = f"{MINE}:{axes['runtime']}"
    plan = Plan("one", (Cell(**axes),))
    return next(runs.run(plan, into / "one", start=start, deadline=deadline).captures())


def verdict(capture: Capture) -> tuple[str, tuple[str, ...]]:
    judged = capture.judgement.verdict
    assert judged is not None
    return judged.verdict, judged.reasons


def alive(pid: int) -> bool:
    """Whether it can still act; one that nobody has waited for yet cannot."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def ends(pid: int) -> bool:
    """Whether it ends before long."""
    until = time.monotonic() + 10
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


def scratch(pid: int | None = None) -> list[Path]:
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [found for p in places for found in p.glob(f"{PREFIX}{pid or os.getpid()}-*")]


def facts(evidence: store.Evidence) -> dict[str, str]:
    return {c.cell.id: c.facts_sha256 for c in evidence.captures()}
