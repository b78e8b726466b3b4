"""Write a small package in the form of RCR-20260831: the article's figures, made-up identifiers."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from rcr_probes.evidence.admissibility import APPROVAL
from rcr_probes.evidence.package import MANIFEST
from rcr_probes.evidence.published import PROBES
from rcr_probes.evidence.restarts import REPEATED, RESTART
from rcr_probes.evidence.timeline import TIMELINE
from rcr_probes.model import Json
from rcr_probes.vocabulary import NONE
from rcr_probes.witness import EFFECTS, Envelope, digest
from scripts.transcribe_article import TABLE_1, TABLE_2

INTO = Path(__file__).resolve().parents[1] / "examples" / "synthetic-package"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
VARIANTS = ("non-idempotent", "idempotent", "changed-digest")  # in the order of TABLE_2
STAGES = ("00-approved", "01-effect-observed", "02-failed-return", "03-resume-return")
README = """\
# A synthetic package

Made by `scripts/make_synthetic_package.py` in the form of the evidence package RCR-20260831, for
`notebooks/05_reviewing_published_evidence.ipynb` and for trying `rcr import` and `rcr timeline`.
Its figures are those of the article's two tables; its commit, owners, keys and ids are made up.
It shows the form, and is evidence of nothing.
"""


def files() -> dict[str, bytes]:
    """Every file of the package, its manifest last."""
    made = {"README.md": README.encode()}
    restart = {"commit": COMMIT, "variants": [_variant(n) for n in range(len(TABLE_2))]}
    values = {
        PROBES: [{"commit": COMMIT, "rows": [*_probes()]}],
        RESTART: restart,
        REPEATED: [{"commit": COMMIT, "variants": [_repeated(v) for v in restart["variants"]]}],
        TIMELINE: _timeline(restart["variants"][0]),
    }
    made |= {path: _encoded(value) for path, value in values.items()}
    listed = [{"path": p, "sha256": hashlib.sha256(data).hexdigest()} for p, data in made.items()]
    return {**made, MANIFEST: _encoded({"schema_version": 1, "files": listed})}


def write(into: Path) -> Path:
    """Write the package into a folder, which is emptied first."""
    shutil.rmtree(into, ignore_errors=True)
    for path, data in files().items():
        (into / path).parent.mkdir(parents=True, exist_ok=True)
        (into / path).write_bytes(data)
    return into


def _encoded(value: Json) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"


def _probes() -> Iterator[Json]:
    """Table 1; what the article does not say of P3's end is that of table 2's first row."""
    _, _, _, after, _, final, _ = TABLE_2[0]
    for probe, _, error, status, effects in TABLE_1:
        row: dict[str, Json] = {"id": probe, "verdict": "synthetic"}
        match probe:
            case "P0":
                row |= {"effects": effects, "status": status, "retry_code": error}
            case "P3":
                row |= {
                    "afterFaultStatus": status,
                    "retainedFirstEvidence": _evidence(effects),
                    "effectsBeforeRetry": effects,
                    "effectsAfterRetry": after,
                    "finalStatus": final,
                    "error_code": error,
                }
            case _:
                row |= {"status": status, "effects": effects, "error_code": error}
        yield row


def _variant(number: int) -> dict[str, Json]:
    """One row of table 2, and the stages that lead to it."""
    _, _, before, after, calls, final, error = TABLE_2[number]
    name = VARIANTS[number]
    *_, (_, _, seen, failed, _) = TABLE_1
    states = (
        ("approved", "not_started", 0, 0, 0),
        ("executing", "executing", before, 0, 1),
        (failed, failed, before, before, 1),
        (final, final if error == NONE else "not_started", after, after, calls),
    )
    return {
        "variant": name,
        "separate_processes": True,
        "before_retry": {"status": failed, "effects": before, "calls": 1, "error": seen},
        "after_retry": {
            "status": final,
            "effects": after,
            "calls": calls,
            "error": None if error == NONE else error,
        },
        "observations": [
            {
                "stage": stage,
                "seq": seq,
                "owner": f"synthetic-run-{name}",
                "approval": {
                    "approval_id": "SYNTHETIC-APPROVAL",
                    "status": status,
                    "execution_status": execution,
                    "evidence": _evidence(told) if execution != "not_started" else [],
                },
                "effects": _effects(effects),
                "executor_calls": called,
            }
            for seq, (stage, (status, execution, effects, told, called)) in enumerate(
                zip(STAGES, states, strict=True)
            )
        ],
    }


def _repeated(variant: Json) -> Json:
    return {
        "variant": variant["variant"],
        "separate_processes": True,
        "effects_before": variant["before_retry"]["effects"],
        "effects_after": variant["after_retry"]["effects"],
        "calls_after": variant["after_retry"]["calls"],
        "error": variant["after_retry"]["error"],
    }


def _timeline(variant: Json) -> Json:
    """The stages of a variant as envelopes; of a time without effects nobody took a snapshot."""
    envelopes = [e for stage in variant["observations"] for e in _envelopes(stage)]
    return {
        "owner": envelopes[0]["owner"],
        "clock": "number of the observation; not a clock of a product",
        "envelopes": envelopes,
        "manifest": {envelope["id"]: digest(envelope) for envelope in envelopes},
    }


def _envelopes(stage: Json) -> Iterator[Envelope]:
    snapshots = [("approval", APPROVAL, stage["approval"])]
    if stage["effects"]:
        snapshots.append(("effects", EFFECTS, {"effects": stage["effects"]}))
    for name, kind, body in snapshots:
        yield {
            "id": f"{name}-{stage['seq']}",
            "owner": stage["owner"],
            "available_at": stage["seq"],
            "kind": kind,
            "body": body,
        }


def _effects(count: int) -> list[Json]:
    names = (f"E{number}" for number in range(1, count + 1))
    return [
        {"effect_id": n, "operation_key": "synthetic-key", "kind": "local-marker"} for n in names
    ]


def _evidence(count: int) -> list[Json]:
    return [{"kind": "local-marker", "observed_count": count}] if count else []


if __name__ == "__main__":
    print(write(INTO))
