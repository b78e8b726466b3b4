"""What docs/own-runtime.md shows as code runs as it stands there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from rcr_probes.runtime import _LEFT_OUT as LEFT_OUT
from rcr_probes.vocabulary import DAMAGE, STALE_LOCKS

PAGE = (Path(__file__).parents[1] / "docs" / "own-runtime.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """The first code block of that language."""
    found, *_ = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_each_member_that_may_be_left_out_is_listed_with_what_it_enables() -> None:
    """All of them, and of the two that are about damage and locks every kind."""
    _, _, below = PAGE.partition("\n| member |")
    lines = [line.split("|")[1:-1] for line in below.split("\n\n")[0].splitlines()[2:]]
    enables = {re.findall(r"\w+", line[0])[0]: line[2] for line in lines}
    assert enables.keys() == LEFT_OUT.keys()
    assert tuple(re.findall(r"`(\w+)`", enables["damage"])) == DAMAGE
    assert tuple(re.findall(r"`(\w+)`", enables["lock"])) == STALE_LOCKS


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
