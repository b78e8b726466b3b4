"""The arrows of docs/design.md §4: who may import whom, and what a phase must not pay for."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rcr_probes

PACKAGE = Path(rcr_probes.__file__).parent
PURE = {"errors", "model", "vocabulary"}
PHASE = PURE | {
    "points", "faults", "files", "ledger", "folder", "runtime", "request", "executors", "linux",
    "strace", "tracer",
}  # fmt: skip
# Module or folder of the package → what it may import of the package, besides itself.
MAY_IMPORT = {
    "__init__": {"model", "vocabulary", "points", "runtime"},
    "errors": set(),
    "vocabulary": set(),
    "model": {"vocabulary"},
    "points": set(),
    "eligibility": {"model", "vocabulary"},
    "judge": {"model", "vocabulary", "recoverable"},
    "recoverable": {"model", "vocabulary"},
    "witness": {"model", "vocabulary"},
    "fence": set(),
    "files": set(),
    "held": {"folder", "room"},
    "room": {"errors"},
    "late": {"model", "vocabulary", "held", "executors"},
    "locked": {"fence", "folder", "linux", "process"},
    "recovery": PHASE
    | {"fence", "held", "locked", "observe", "phase", "process", "recoverable", "witness"},
    "ledger": {"files", "model", "vocabulary"},
    "folder": {"files", "model", "vocabulary"},
    "linux": {"errors"},
    "faults": PURE | {"runtime", "strace", "tracer"},
    "tracer": {"errors"},
    "request": {"model", "vocabulary"},
    "runtime": PURE,
    "executors": {"ledger", "folder", "model", "vocabulary", "request"},
    "receiving": {"folder", "ledger", "model", "vocabulary", "process", "receiver", "request"},
    "phase": PHASE | {"fence", "held", "late"},
    "process": {"phase", "fence", "folder", "linux", "model", "vocabulary", "room"},
    "traced": {"model", "vocabulary", "folder", "ledger", "process", "strace"},
    "power": {"model", "vocabulary"},
    "recorder": {"folder", "power", "strace"},
    "outage": {"model", "vocabulary", "folder", "ledger", "power", "recorder"},
    "recording": PHASE | {"phase", "process", "outage", "power", "recorder", "scratch"},
    "following": {"strace", "tracer"},
    "generated": PURE | {"following", "runtime"},
    "foreign": PHASE | {"phase"},
    "observe": PHASE | {"held", "phase", "process", "receiving"},
    "worker": PHASE
    | {"phase", "process", "observe", "outage", "receiving", "recovery", "room", "traced"}
    | {"evidence"},
    "plan": PURE
    | {"faults", "following", "generated", "power", "product", "recoverable", "runtime"}
    | {"strace"},
    "pairwise": set(),
    "product": PURE | {"pairwise"},
    "pool": PURE | {"folder", "linux", "worker", "evidence"},
    "versions": {"runtime", "evidence"},
    "cluster": PURE | {"pool", "room", "scratch", "versions", "worker", "evidence"},
    "scratch": {"folder", "room"},
    "run": PURE
    | {
        "cluster",
        "folder",
        "linux",
        "plan",
        "pool",
        "room",
        "scratch",
        "versions",
        "worker",
        "evidence",
    },
    "strace": PURE,
    "evidence": PURE
    | {"eligibility", "judge", "power", "recoverable", "request", "strace", "witness"},
    "receiver": {"errors"},
    "probe": PURE | {"receiver", "evidence", "request", "linux", "room", "scratch", "strace"},
    "reference": PURE | {"files", "points", "ledger", "runtime", "eligibility", "fence", "witness"},
    "runtimes": PURE | {"points", "ledger", "linux", "runtime"},
    "contrast": PURE | {"points", "runtime", "runtimes"},
    "report": PURE | {"evidence", "eligibility", "plan", "run", "runtimes", "strace"},
    "publish": PURE | {"evidence", "report"},
    "conformance": PURE | {"run", "phase", "folder", "runtime", "scratch", "evidence"},
    "cli": PURE | {"grammar", "interruption", "told"},
    "grammar": PURE | {"commands"},
    "interruption": set(),
    "told": {"errors", "report"},
    "commands": PURE
    | {"plan", "run", "evidence", "report", "eligibility", "conformance", "probe", "receiver"}
    | {"publish", "told"},
}
STANDARD_ALONE = (
    "eligibility", "errors", "judge", "model", "power", "recoverable", "request", "strace",
    "vocabulary", "witness",
    "evidence/admissibility", "evidence/alike", "evidence/check", "evidence/claims",
    "evidence/consistency", "evidence/course", "evidence/derive", "evidence/executed",
    "evidence/form", "evidence/names", "evidence/of_reference", "evidence/order",
    "evidence/outages", "evidence/promised", "evidence/received", "evidence/recovered",
    "evidence/rows", "evidence/strict", "evidence/whereabouts",
    "publish/crate", "publish/drawn",
    "publish/layout", "publish/listed", "publish/page", "publish/provenance", "publish/said",
    "publish/standalone", "publish/statement", "publish/verify",
)  # fmt: skip
# Modules that a phase imports, and whose frozen values are dataclasses.
DATACLASSES = {"model", "witness", "strace", "runtime", "points"}
# What no process of a cell may import; and what the process that forks may not import either.
HEAVY = {"pandas", "numpy", "matplotlib", "rich", "typer", "papermill"}
SLOWS_FORKS = {"threading", "subprocess", "logging", "concurrent.futures", "multiprocessing"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def top(path: Path) -> str:
    """The name that the arrows use: a module of the package, or a folder in it."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Every module that this file imports anywhere, lazily or not, by its full name."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            module = node.module or ""
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downward_only(path: Path) -> None:
    """A module imports what its layer may know, and nothing above it."""
    own = {name.split(".")[1] for name in imported(path) if name.startswith("rcr_probes.")}
    known = {part for part in own if part in MAY_IMPORT}
    assert known <= MAY_IMPORT[top(path)] | {top(path)}, path


@pytest.mark.parametrize("name", STANDARD_ALONE)
def test_what_a_checker_embeds_needs_the_standard_library_alone(name: str) -> None:
    """Nouns, eligibility, judge, check, claims, admissibility import nothing from elsewhere."""
    outside = {m.split(".")[0] for m in imported(PACKAGE / f"{name}.py")} - {"rcr_probes"}
    assert outside <= sys.stdlib_module_names


def test_judge_and_eligibility_do_not_know_each_other() -> None:
    """What was true is measured: the judge never asks the eligibility table."""
    assert "rcr_probes.eligibility" not in imported(PACKAGE / "judge.py")
    assert "rcr_probes.judge" not in imported(PACKAGE / "eligibility.py")


def test_no_module_is_a_drawer_for_everything() -> None:
    """A module is named after its one job."""
    names = {path.stem for path in modules()}
    assert not names & {
        "utils", "common", "base", "helpers", "types", "config", "compat", "registry"
    }  # fmt: skip


def loaded(program: str) -> set[str]:
    """The modules that a new interpreter holds after a program."""
    text = f"{program}\nimport sys; print('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("program", "banned"),
    [
        ("import rcr_probes.phase, rcr_probes.reference", HEAVY | SLOWS_FORKS),
        ("import rcr_probes.worker, rcr_probes.reference", HEAVY | SLOWS_FORKS),
    ],
    ids=["phase", "worker"],
)
def test_a_cells_processes_import_nothing_heavy(program: str, banned: set[str]) -> None:
    """Neither the phase nor the process that forks it pays for tables, figures or threads."""
    assert not {name for name in loaded(program) if name in banned}


def test_a_phase_compiles_no_dataclass_that_could_be_a_struct() -> None:
    """Only what check.py embeds, and what is handed to a runtime, pays in each spawned phase."""
    program = (
        "import sys, rcr_probes.phase, rcr_probes.reference\n"
        "from dataclasses import is_dataclass\n"
        "own = [m for name, m in sys.modules.items() if name.startswith('rcr_probes')]\n"
        "kinds = [k for m in own for k in vars(m).values() if isinstance(k, type)]\n"
        "found = {k.__module__ for k in kinds if is_dataclass(k)}\n"
        "assert found == {f'rcr_probes.{name}' for name in DATACLASSES}, found"
    )
    loaded(f"DATACLASSES = {sorted(DATACLASSES)!r}\n{program}")


def test_the_whole_course_of_a_cell_imports_nothing_heavy(tmp_path: Path) -> None:
    """Also what is imported lazily on the way stays out of the process that forks."""
    program = (
        "from rcr_probes import worker; from rcr_probes.model import Cell\n"
        "cell = Cell(point='completion_audit', fault='audit_is_directory', policy='resume')\n"
        f"c = worker.run_cell(worker.Job(cell, {str(tmp_path / 'cell')!r}, 'fork', 30.0))\n"
        "assert c.judgement.verdict.verdict == 'duplicate_effect', c"
    )
    assert not loaded(program) & (HEAVY | SLOWS_FORKS)


@pytest.mark.parametrize(("dedupe", "speaks"), [("none", False), ("receiver_key", True)])
def test_only_a_cell_with_a_receiver_pays_for_one(
    tmp_path: Path, dedupe: str, speaks: bool
) -> None:
    """Neither its phases nor the process that forks them import sockets or a database else."""
    program = (
        "from rcr_probes import executors, worker; from rcr_probes.model import Cell\n"
        f"cell = Cell(point='after_action', fault='exception', dedupe={dedupe!r})\n"
        f"c = worker.run_cell(worker.Job(cell, {str(tmp_path / 'cell')!r}, 'fork', 30.0))\n"
        "assert c.judgement.fired, c"
    )
    held = loaded(program)
    assert ({"socket", "sqlite3", "rcr_probes.receiver"} <= held) is speaks
    assert not ({"http.client", "urllib.request"} | HEAVY | SLOWS_FORKS) & held


def test_the_layout_of_the_design_is_the_layout_of_the_package() -> None:
    """docs/design.md §4 lists what there is, and nothing else."""
    text = (PACKAGE.parent / "docs" / "design.md").read_text(encoding="utf-8")
    block = text.split("    rcr_probes/\n")[1].split("    notebooks/")[0]
    named = {line.split()[0] for line in block.splitlines()}
    there = {p.name + ("/" if p.is_dir() else "") for p in PACKAGE.iterdir()}
    there -= {"__pycache__/", "py.typed"}
    assert there == named
