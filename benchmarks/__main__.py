"""Take the benchmarks, print each ratio beside its bound, and fail where one misses it.

``--keep`` puts what was taken into results.json, and fills docs/performance.md from it; ``--page``
fills that page alone; ``--check`` exits 1 where page and results do not agree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks import page
from benchmarks.frame import RESULTS, Figure, Ratio, load, misses, names, word


def taken(name: str) -> dict[str, Any]:
    """The results of one benchmark, taken in a process of its own.

    Each interpreter leaves its compiled code to the next, as wherever nobody forbids it.
    """
    command = [sys.executable, "-m", "benchmarks.take", name]
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as bytecode:
        around = {**kept, "PYTHONPYCACHEPREFIX": bytecode}
        done = subprocess.run(command, env=around, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def line(name: str, ratio: Ratio, found: Figure) -> str:
    """One ratio, its spread, its bound, and whether it keeps it."""
    spread = f"{found.ratio:6.2f}  [{found.lower:.2f}, {found.upper:.2f}]"
    return f"{name + '.' + ratio.name:28} {spread:24} {page.bound(ratio):28} {word(ratio, found)}"


def main() -> int:
    """Run what is asked for; 1 where a ratio misses its bound, or the page is not up to date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="NAME", help=f"of {', '.join(names())}")
    parser.add_argument("--keep", action="store_true", help="put what was taken into results.json")
    parser.add_argument("--page", action="store_true", help="fill docs/performance.md, no more")
    parser.add_argument("--check", action="store_true", help="look whether it is filled, no more")
    asked = parser.parse_args()
    for name in asked.only:
        if name not in names():
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(names())}")
    if asked.check:
        return page.check()
    if asked.page:
        page.fill()
        return 0
    missed = False
    for name in asked.only or names():
        found = taken(name)
        for ratio in load(name).RATIOS:
            one = Figure(**found["figures"][ratio.name])
            missed |= misses(ratio, one)
            print(line(name, ratio, one), flush=True)
        if asked.keep:
            kept = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
            kept = dict(sorted({**kept, name: found}.items()))
            RESULTS.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")
    if asked.keep:
        page.fill()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
