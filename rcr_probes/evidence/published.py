"""Import the package RCR-20260831: its published probes become captures in our own form."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import write
from rcr_probes.evidence.package import REPORT, Count, Package, commit8, read_package, typed
from rcr_probes.evidence.restarts import restarts
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.transcribed import (
    FAULT_LOCATIONS,
    PLAN,
    RESEARCH,
    observed,
    published_capture,
    published_cell,
)
from rcr_probes.model import Capture, Json, Plan
from rcr_probes.vocabulary import AGAIN, NONE

PROBES = "fixtures/historical-probes.json"
POINTS = {
    "P0": NONE,
    "P1": "approval_audit",
    "P2": "start_audit",
    "P3": "completion_audit",
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a package.

    Attributes:
        package: the package, with what is absent in it.
        evidence: the sealed folder that was written.
        left_out: what was published and not imported, each with its reason.
    """

    package: Package
    evidence: Evidence
    left_out: tuple[str, ...]


def import_package(folder: str | os.PathLike[str], into: str | os.PathLike[str]) -> Imported:
    """Verify a package, and write its probes as an evidence folder.

    Raises:
        NotEvidence: the folder is no package.
        EvidenceError: a file was changed, is absent but needed, or contradicts another.
        PlanError: ``into`` holds something else already.
        OSError: ``into`` cannot be written.
    """
    package = read_package(folder)
    left_out: list[str] = []
    captures = [*_fault_locations(package, left_out), *restarts(package, left_out)]
    plan = Plan(PLAN, tuple(capture.cell for capture in captures))
    with write.Writer(into, plan) as writer:
        for capture in captures[writer.done :]:
            writer.append(capture)
        return Imported(package, writer.seal(), tuple(left_out))


# E-A0, the fault locations on two baselines


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    verdict: str


class _Unfaulted(_Row, frozen=True, kw_only=True):
    status: str
    effects: Count
    retry_code: str


class _Faulted(_Row, frozen=True, kw_only=True):
    status: str
    effects: Count
    error_code: str


class _Recovered(_Row, frozen=True, kw_only=True):
    status: str = msgspec.field(name="afterFaultStatus")
    evidence: tuple[Mapping[str, Json], ...] = msgspec.field(name="retainedFirstEvidence")
    effects: Count = msgspec.field(name="effectsBeforeRetry")
    error_code: str
    final_status: str = msgspec.field(name="finalStatus")
    final_effects: Count = msgspec.field(name="effectsAfterRetry")


class _Baseline(msgspec.Struct, frozen=True):
    commit: str
    rows: tuple[dict[str, Json], ...]


def _fault_locations(package: Package, left_out: list[str]) -> Iterator[Capture]:
    seen: set[tuple[str, str]] = set()
    for baseline in typed(package.json(PROBES), tuple[_Baseline, ...], PROBES):
        commit = commit8(baseline.commit, PROBES)
        for row in baseline.rows:
            name = typed(row, _Row, PROBES).id
            if (commit, name) in seen:
                raise EvidenceError(PROBES, f"holds {name} of {commit} twice.", REPORT)
            seen.add((commit, name))
            label = f"{FAULT_LOCATIONS} {name} of {commit}"
            if name not in POINTS:
                left_out.append(f"{label}: not one of the probes P0 to P3")
                continue
            left_out += [f"{label}: {key}, for which there is no column" for key in _unread(row)]
            yield _fault_location(commit, name, row)
    if not seen:
        raise EvidenceError(PROBES, "holds no probe.", REPORT)


_FORMS: Mapping[str, type[_Row]] = {
    "P0": _Unfaulted,
    "P1": _Faulted,
    "P2": _Faulted,
    "P3": _Recovered,
}


def _unread(row: Mapping[str, Json]) -> list[str]:
    """The keys of a row that its form does not have."""
    read = {field.encode_name for field in msgspec.structs.fields(_FORMS[row["id"]])}
    return sorted(row.keys() - read)


def _fault_location(commit: str, name: str, row: Mapping[str, Json]) -> Capture:
    source = f"{RESEARCH} {FAULT_LOCATIONS} {name}"
    if name == "P0":
        plain = typed(row, _Unfaulted, PROBES)
        cell = published_cell(commit, FAULT_LOCATIONS, POINTS[name], policy=AGAIN)
        last = observed("recover", plain.status, plain.effects, error=plain.retry_code)
        return published_capture(cell, source, (last,), verdict=plain.verdict)
    if name != "P3":
        faulted = typed(row, _Faulted, PROBES)
        cell = published_cell(commit, FAULT_LOCATIONS, POINTS[name], policy=None)
        first = observed("fault", faulted.status, faulted.effects, error=faulted.error_code)
        return published_capture(cell, source, (first,), verdict=faulted.verdict)
    both = typed(row, _Recovered, PROBES)
    cell = published_cell(commit, FAULT_LOCATIONS, POINTS[name], policy="resume")
    first = observed(
        "fault", both.status, both.effects, error=both.error_code, evidence=both.evidence
    )
    last = observed("recover", both.final_status, both.final_effects)
    return published_capture(cell, source, (first, last), verdict=both.verdict)
