"""What docs/own-runtime.md shows as code runs as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def block(language: str) -> str:
    """The first code block of that language."""
    text = (ROOT / "docs" / "own-runtime.md").read_text(encoding="utf-8")
    found, *_ = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return str(found)


def test_the_runtime_of_ones_own_does_what_the_text_says(tmp_path: Path) -> None:
    """Killed after the action it acts twice, unless the executor knows the key."""
    (tmp_path / "my_runtime.py").write_text(block("python"), encoding="utf-8")
    (tmp_path / "my_plan.toml").write_text(block("toml"), encoding="utf-8")
    rcr = [sys.executable, "-P", "-m", "rcr_probes.cli"]
    subprocess.run([*rcr, "run", "my_plan.toml"], cwd=tmp_path, check=True, timeout=60)
    shown = subprocess.run(
        [*rcr, "show", "runs/mine", "--json"],
        cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    verdicts = {(r["point"], r["dedupe"]): r["verdict"] for r in json.loads(shown.stdout)}
    assert verdicts == {
        ("before_action", "none"): "consistent",
        ("before_action", "operation_key"): "consistent",
        ("after_action", "none"): "duplicate_effect",
        ("after_action", "operation_key"): "deduplicated",
    }
    subprocess.run([*rcr, "check", "runs/mine"], cwd=tmp_path, check=True, timeout=60)
    kept = [*rcr, "conformance", "my_runtime:Runtime"]
    subprocess.run(kept, cwd=tmp_path, check=True, timeout=120)
