"""Write the article's two tables as sealed evidence in our own form: evidence/rcr-20260831."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from rcr_probes.evidence import write
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.transcribed import (
    FAULT_LOCATIONS,
    PLAN,
    RESEARCH,
    RESTARTS,
    observed,
    published_capture,
    published_cell,
)
from rcr_probes.model import Capture, Plan
from rcr_probes.vocabulary import NONE

INTO = Path(__file__).resolve().parents[1] / "evidence" / PLAN
ARTICLE = f"The Action Succeeded. Why Did It Run Again?, {RESEARCH}"

# Table 1, the same on both baselines: probe, fault location, what the caller sees, persisted state,
# effects. For P1 to P3 the table says "error"; which one, the published captures say.
BASELINES = ("919c3b48", "f0f42f01")
TABLE_1 = (
    ("P0", NONE, "APPROVAL_ALREADY_CONSUMED", "succeeded", 1),
    ("P1", "approval_audit", "EISDIR", "approved", 0),
    ("P2", "start_audit", "EISDIR", "executing", 0),
    ("P3", "completion_audit", "EISDIR", "failed", 1),
)
NAMED_IN_PROBES = "the error as named in fixtures/historical-probes.json"

# Table 2, on the second baseline: dedupe, digest, effects after the fault, effects after recovery,
# calls, and the recovery result as state and error. The table gives one word for the result: the
# other one is as the published captures say.
BASELINE_2 = "f0f42f01"
TABLE_2 = (
    (NONE, "same", 1, 2, 2, "succeeded", NONE),
    ("operation_key", "same", 1, 1, 2, "succeeded", NONE),
    (NONE, "changed", 1, 1, 1, "stale", "APPROVAL_STALE"),
)
NAMED_IN_RESTART = "the recovery result as state and error from fixtures/restart.json"


def captures() -> Iterator[Capture]:
    """Every row of both tables; what a table does not say is null."""
    for baseline in BASELINES:
        for probe, point, seen, state, effects in TABLE_1:
            source = f"{ARTICLE}, table 1, {probe}"
            if probe == "P0":  # seen when the caller submits the operation again
                cell = published_cell(baseline, FAULT_LOCATIONS, point, policy="again")
                at = observed("recover", state, effects, error=seen)
            else:
                cell = published_cell(baseline, FAULT_LOCATIONS, point, policy=None)
                at = observed("fault", state, effects, error=seen)
                source = f"{source}; {NAMED_IN_PROBES}"
            yield published_capture(cell, source, (at,))
    for number, row in enumerate(TABLE_2, 1):
        dedupe, digest, before, after, calls, state, error = row
        yield published_capture(
            published_cell(
                BASELINE_2,
                RESTARTS,
                "completion_audit",
                dedupe=dedupe,
                digest=digest,
                policy="resume",
            ),
            f"{ARTICLE}, table 2, row {number}; {NAMED_IN_RESTART}",
            (
                observed("fault", "failed", before),  # the state of P3, which these rows vary
                observed("recover", state, after, calls=calls, error=error),
            ),
        )


def transcribe(into: Path) -> Evidence:
    """Write the folder anew; nothing of what it held stays."""
    if into.exists():
        shutil.rmtree(into)
    rows = tuple(captures())
    with write.Writer(into, Plan(PLAN, tuple(row.cell for row in rows))) as writer:
        for row in rows:
            writer.append(row)
        return writer.seal()


if __name__ == "__main__":
    print(transcribe(INTO).folder)
