"""The benchmarks still measure what they say, if only once here: their figures are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_forked_cell_is_timed_beside_its_floor() -> None:
    """The floor repeats the file operations of all three phases."""
    code = (
        "import json; from benchmarks import cost; from rcr_probes import linux\n"
        "linux.adopt_descendants(); print(json.dumps(cost.forked_cell(1)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["file_operations"] > 100
    assert made["ratio"] > 1
