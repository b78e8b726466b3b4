"""Small evidence and a small package, made by hand, for tests to read, tamper with and compare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rcr_probes.evidence import seal, store
from rcr_probes.evidence import write as writing
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import (
    Approved,
    Capture,
    Cell,
    Circumstances,
    Effect,
    Event,
    Forced,
    Json,
    Measurement,
    Observation,
    Plan,
    Recorded,
)
from rcr_probes.reference.adapter import ApprovalRuntime
from rcr_probes.vocabulary import Lane

Step = tuple[str, Lane, dict[str, Json]]

CONTROL = Cell(point="none", fault="none", policy="again")
P3 = Cell(point="completion_audit", fault="audit_is_directory", policy="resume")
LEFT = Cell(point="completion_audit", fault="audit_is_directory", policy="never")


EXECUTION = {"approved": "not_started"}  # the others have one word for both


def _state(phase: str, status: str) -> Step:
    execution = EXECUTION.get(status, status)
    return (phase, "state", {"status": status, "execution": execution, "evidence": []})


def _came(*points: str) -> list[Step]:
    return [("fault", "point", {"point": point}) for point in points]


ACTED: list[Step] = [
    _state("fault", "approved"),
    *_came("approval_audit"),
    _state("fault", "executing"),
    *_came("start_audit", "before_action"),
    ("fault", "call", {"operation_key": "operation-0"}),
    ("fault", "effect", {"effect_id": "E1", "operation_key": "operation-0", "target": "marker-0"}),
    *_came("after_action", "after_result"),
    _state("fault", "succeeded"),
]
STRUCK: list[Step] = [
    *_came("completion_audit"),
    ("fault", "fault", {"point": "completion_audit", "fault": "audit_is_directory"}),
    _state("fault", "failed"),
    ("fault", "return", {"error": "EISDIR"}),
]
RESUMED: list[Step] = [
    ("recover", "call", {"operation_key": "operation-0"}),
    (
        "recover",
        "effect",
        {"effect_id": "E2", "operation_key": "operation-0", "target": "marker-0"},
    ),
    _state("recover", "succeeded"),
    ("recover", "return", {"error": "none"}),
]
STEPS: Mapping[Cell, list[Step]] = {
    CONTROL: [
        *ACTED,
        ("fault", "return", {"error": "none"}),
        ("recover", "return", {"error": "APPROVAL_ALREADY_CONSUMED"}),
    ],
    P3: [*ACTED, *STRUCK, *RESUMED],
    LEFT: [*ACTED, *STRUCK],
}


def capture(cell: Cell, pid: int = 100) -> Capture:
    """A measured capture of one of the three cells, as a run would have sealed it."""
    steps = STEPS[cell]
    measured = Measurement(
        cell=cell,
        source="measured",
        approved=Approved("operation-0", "marker-0"),
        says=dict(ApprovalRuntime.says),
        events=tuple(Event(seq, *step) for seq, step in enumerate(steps)),
        observations=(_observed(cell, "fault"), _observed(cell, "recover")),
        forced=Forced(_effects(2), "none"),
    )
    verbs = ["fault", "force", *(["recover"] if cell.policy != "never" else [])]
    circumstances = Circumstances(
        start="fork",
        parent=pid,
        pids={verb: pid + n for n, verb in enumerate(verbs, 1)},
        seconds=dict.fromkeys(verbs, 0.002),
    )
    return seal.seal(measured, derive(measured), circumstances)


def _observed(cell: Cell, verb: str) -> Observation:
    steps = [s for s in STEPS[cell] if verb == "recover" or s[0] == "fault"]
    status = [value["status"] for _, lane, value in steps if lane == "state"][-1]
    errors = [value["error"] for phase, lane, value in steps if (phase, lane) == (verb, "return")]
    return Observation(
        after="fault" if verb == "fault" else "recover",
        events=len(steps),
        recorded=Recorded(
            status,
            EXECUTION.get(status, status),
            approved_digest="sha256:a",
            current_digest="sha256:a",
        ),
        effects=_effects(sum(lane == "effect" for _, lane, _ in steps)),
        calls=sum(lane == "call" for _, lane, _ in steps),
        error=errors[0] if errors else None,
        ended="exit" if errors else None,
        settled=True,
        standing=True if verb == "fault" and cell.point != "none" else None,
    )


def _effects(count: int) -> tuple[Effect, ...]:
    return tuple(
        Effect(f"E{n}", "operation-0", "local-marker", "marker-0") for n in range(1, count + 1)
    )


def write(folder: Path, captures: Iterable[Capture], name: str = "small") -> Evidence:
    """Seal captures in a new folder, under a plan that promises exactly them."""
    given = tuple(captures)
    with writing.Writer(folder, Plan(name, tuple(c.cell for c in given))) as writer:
        for one in given:
            writer.append(one)
        return writer.seal()


def small(folder: Path) -> Path:
    """Sound evidence of the three cells."""
    return write(folder, map(capture, (CONTROL, P3, LEFT), (100, 200, 300))).folder


def lines(folder: Path) -> list[bytes]:
    """The lines of the captures, each with its end."""
    return (folder / CAPTURES).read_bytes().splitlines(keepends=True)


def reseal(folder: Path, changed: Iterable[bytes] | None = None) -> None:
    """Write the captures, and then a manifest that fits whatever the folder holds now."""
    if changed is not None:
        (folder / CAPTURES).write_bytes(b"".join(changed))
    writing.write_manifest(folder, store.read_plan(folder))


def edit(folder: Path, number: int, change: Callable[[Any], object]) -> list[bytes]:
    """The lines, one of them with its JSON changed and nothing else made to fit."""
    found = lines(folder)
    data = json.loads(found[number])
    change(data)
    found[number] = msgspec.json.encode(data) + b"\n"
    return found


def remake(folder: Path, number: int, change: Callable[[Any], object]) -> None:
    """Change a capture, then derive, digest and seal it anew, as a careful forger would."""
    found = edit(folder, number, change)
    one = msgspec.json.decode(found[number], type=Capture)
    measured = one.measurement
    found[number] = seal.encode(seal.seal(measured, derive(measured), one.circumstances))
    reseal(folder, found)


# A package in the published form, with figures of its own.

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROBES: list[dict[str, Any]] = [
    {
        "commit": COMMIT,
        "rows": [
            {"id": "P0", "verdict": "v0", "effects": 1, "status": "done", "retry_code": "CONSUMED"},
            {"id": "P1", "verdict": "v1", "effects": 0, "status": "ok", "error_code": "EISDIR"},
            {"id": "P2", "verdict": "v2", "effects": 0, "status": "busy", "error_code": "EISDIR"},
            {
                "id": "P3",
                "verdict": "v3",
                "afterFaultStatus": "failed",
                "retainedFirstEvidence": [{"marker": "kept"}],
                "effectsBeforeRetry": 1,
                "effectsAfterRetry": 2,
                "finalStatus": "done",
                "error_code": "EISDIR",
            },
            {"id": "P9", "verdict": "v9", "anything": [1, None]},
        ],
    }
]


def variant(name: str, *, effects: int, calls: int, status: str, error: str | None) -> Json:
    """One variant of the restart file, its stages and figures in agreement."""
    owner = f"run-{name}"
    found = [{"effect_id": f"E{n}", "operation_key": "key", "kind": "mark"} for n in (1, 2)]

    def stage(seq: int, label: str, state: str, effects: int, calls: int) -> Json:
        approval = {"status": state, "execution_status": state, "evidence": []}
        return {
            "stage": label,
            "seq": seq,
            "owner": owner,
            "approval": approval,
            "effects": found[:effects],
            "executor_calls": calls,
        }

    return {
        "variant": name,
        "separate_processes": True,
        "before_retry": {"status": "failed", "effects": 1, "calls": 1, "error": "EISDIR"},
        "after_retry": {"status": status, "effects": effects, "calls": calls, "error": error},
        "observations": [
            stage(0, "00-approved", "approved", 0, 0),
            stage(1, "01-effect-observed", "executing", 1, 1),
            stage(2, "02-failed-return", "failed", 1, 1),
            stage(3, "03-resume-return", status, effects, calls),
        ],
    }


def restart() -> Any:
    """The restart file: the three controls."""
    return {
        "commit": COMMIT,
        "variants": [
            variant("non-idempotent", effects=2, calls=2, status="done", error=None),
            variant("idempotent", effects=1, calls=2, status="done", error=None),
            variant("changed-digest", effects=1, calls=1, status="stale", error="STALE"),
        ],
    }


def repetition(restart: Any) -> Any:
    """The repeatability file that fits a restart file."""
    return [
        {
            "commit": restart["commit"],
            "variants": [
                {
                    "variant": v["variant"],
                    "separate_processes": v["separate_processes"],
                    "effects_before": v["before_retry"]["effects"],
                    "effects_after": v["after_retry"]["effects"],
                    "calls_after": v["after_retry"]["calls"],
                    "error": v["after_retry"]["error"],
                }
                for v in restart["variants"]
            ],
        }
    ]


def package(folder: Path, **files: Any) -> Path:
    """A package of ``probes``, ``restart`` and ``repeated``; None is an absent file.

    What is not given is as above.
    """
    given = {
        "probes": PROBES,
        "restart": restart(),
        "repeated": repetition(restart()),
        **files,
    }
    paths = {
        "probes": "fixtures/historical-probes.json",
        "restart": "fixtures/restart.json",
        "repeated": "fixtures/repeatability.json",
    }
    (folder / "fixtures").mkdir(parents=True)
    listed = [{"path": "README.md", "sha256": "0" * 64}]
    for name, path in paths.items():
        data = json.dumps(given[name], indent=2).encode()
        if given[name] is not None:
            (folder / path).write_bytes(data)
        listed.append({"path": path, "sha256": hashlib.sha256(data).hexdigest()})
    write_manifest(folder, listed)
    return folder


def write_manifest(folder: Path, files: Json, **other: Json) -> None:
    """Write a package's manifest."""
    manifest = {"schema_version": 1, "files": files, "meaning": "package-relative", **other}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2), encoding="utf-8")
