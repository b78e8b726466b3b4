"""Run the tests under each Python that is there, with the oldest and the newest dependencies.

The oldest are the lower bounds of pyproject.toml, or the next release with a wheel for that Python,
as uv resolves them; the newest are what the package index has today. constraints.txt, which make
and CI install, lies between them. Each pair of a Python and a set has an environment of its own in
.matrix/, and a log beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = Path(".matrix")
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
SETS = {"oldest": "lowest-direct", "newest": "highest"}
# What a browser shows depends on none of this, and kills at random moments take minutes.
PART = ("tests", "--ignore=tests/browser", "--ignore=tests/test_killed.py")
ASK = "import json, platform, sys; print(json.dumps([sys.executable, platform.python_version()]))"


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter: its path, and its version, such as 3.12.1."""

    program: str
    version: str


def found(name: str) -> Python | None:
    """Start an interpreter, named by its path or as PATH has it; None where none starts."""
    program = shutil.which(name)
    if program is None:
        return None
    said = subprocess.run([program, "-c", ASK], capture_output=True, text=True, check=False)
    # A version manager's stand-in for one that is not chosen is there, and does not start.
    return None if said.returncode else Python(*json.loads(said.stdout))


def tool() -> str:
    """Install uv beside the environments: pip can resolve no lower bounds."""
    place = PLACE / "uv"
    if not (place / "bin" / "uv").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([place / "bin" / "python", "-m", "pip", "install", "-q", "uv"], check=True)
    return str(place / "bin" / "uv")


def tried(uv: str, python: Python, which: str, part: Sequence[str]) -> tuple[bool, str]:
    """Install one set under one Python and run the tests: whether they pass, and what is said."""
    place = str(PLACE / f"{python.version}-{which}")
    inside, pins, log = f"{place}/bin/python", f"{place}.txt", Path(f"{place}.log")
    # Wheels alone: what is built from source is another matter than what is declared.
    compiled = [uv, "pip", "compile", "--quiet", "--upgrade", "--only-binary=:all:"]
    compiled += ["--extra", "dev", "--resolution", SETS[which], "--python", inside]
    made = [uv, "venv", "--quiet", "--allow-existing", "--python", python.program, place]
    tests = [inside, "-m", "pytest", "-p", "no:cacheprovider", "--numprocesses", "auto"]
    steps = {
        "no environment": made,
        "not resolved": [*compiled, "--output-file", pins, "pyproject.toml"],
        "not installed": [uv, "pip", "sync", "--quiet", "--python", inside, pins],
        "not built": [uv, "pip", "install", "--quiet", "--no-deps", "--python", inside, "-e", "."],
        "tests": [*tests, "--dist", "loadfile", "--no-loadscope-reorder", *part],
    }
    with open(log, "w", encoding="utf-8") as output:
        for name, step in steps.items():
            said = name
            print("$", *step, file=output, flush=True)
            done = subprocess.run(step, stdout=output, stderr=subprocess.STDOUT, check=False)
            if done.returncode:
                break
    if said == "tests":
        said = log.read_text("utf-8").splitlines()[-1].strip("= ")
    return done.returncode == 0, f"{said} ({log})"


def main(pythons: Iterable[str], sets: Sequence[str], part: Sequence[str]) -> int:
    """Try every pair; the exit code is 1 where one fails, or where there is no Python at all."""
    PLACE.mkdir(exist_ok=True)
    uv = tool()
    results: list[tuple[str, str, bool | None, str]] = []
    for name in pythons:
        python = found(name)
        if python is None:
            results.append((name, "-", None, "is not here"))
            continue
        for which in sets:
            print(f"{python.version}, {which} …", file=sys.stderr, flush=True)
            results.append((python.version, which, *tried(uv, python, which, part)))
    for version, which, passed, said in results:
        mark = {None: "skipped", True: "passed", False: "FAILED"}[passed]
        print(f"{version:<12}{which:<8}{mark:<9}{said}")
    return 0 if {passed for *_, passed, _ in results} - {None} == {True} else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pythons", default="", help="on PATH or paths, separated by blanks")
    parser.add_argument("--sets", nargs="+", default=tuple(SETS), choices=tuple(SETS))
    parser.add_argument("--part", default="", help="what pytest is told instead")
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.exit(main(asked.pythons.split() or PYTHONS, asked.sets, asked.part.split() or PART))
