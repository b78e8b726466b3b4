"""A runtime in another process, as a command: what it is, how it is described, and cells of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rcr_probes import run as runs
from rcr_probes.evidence.check import check
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Cell, Plan

# A whole runtime in the language that is here for certain. It keeps what was said on both sides.
SPOKEN = """
import json, os, subprocess, sys
from pathlib import Path

order = json.load(sys.stdin)
folder = Path(order["folder"])
stored = folder / "state"

def heard(name, value):
    with open(folder / "heard", "a") as file:
        file.write(json.dumps([name, value]) + "\\n")

def answer(name, value):
    heard(name, value)
    print(json.dumps(value))
    raise SystemExit

def reach(point, *path):
    words = json.loads(os.environ["RCR_REACH"])
    if os.environ.get("RCR_ARMED") == point or order["variant"] == "talkative":
        if subprocess.run([*words, point, *path], stdout=2).returncode:
            answer("answer", {"error": "STRUCK"})

heard(order["verb"], order)
if order["verb"] == "state":
    status = stored.read_text() if stored.exists() else "missing"
    answer("recorded", {"status": status, "evidence": []})
if stored.exists():
    answer("answer", {"error": None})
reach("before_action")
done = subprocess.run(
    order["executor"], input=json.dumps(order["request"]), stdout=subprocess.PIPE, text=True
)
heard("evidence", json.loads(done.stdout))
reach("after_action")
audit = os.path.relpath(folder / "audit.jsonl")
reach("completion_audit", audit)
try:
    with open(audit, "a") as file:
        file.write(json.dumps({"event": "done"}) + "\\n")
except IsADirectoryError:
    answer("answer", {"error": "EISDIR"})
stored.write_text("done")
answer("answer", {"error": None})
"""
DESCRIBED: Mapping[str, Any] = {
    "command": [sys.executable, "spoken.py"],
    "points": {
        "before_action": ["exception", "kill"],
        "after_action": ["exception", "kill"],
        "completion_audit": ["audit_is_directory"],
    },
    "says": {"done": "done", "missing": "open"},
    "variants": ["baseline", "talkative"],
}


def toml(described: Mapping[str, Any]) -> str:
    """A flat description as TOML; a table is written inline."""

    def said(value: Any) -> str:
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{json.dumps(k)} = {said(v)}" for k, v in value.items()) + " }"
        return json.dumps(value)

    return "".join(f"{key} = {said(value)}\n" for key, value in described.items())


def ran(*cells: Mapping[str, Any], **options: Any) -> tuple[list[Row], Evidence]:
    """Run cells of the described runtime; the evidence is sound."""
    given = {"runtime": "mine/runtime.toml", "point": "none", "fault": "none"}
    plan = Plan("mine", tuple(Cell(**{**given, **cell}) for cell in cells))
    evidence = runs.run(plan, "evidence", **options)
    assert check(evidence.folder).findings == ()
    return rows(evidence.captures()), evidence
