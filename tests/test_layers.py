"""The arrows of docs/design.md §4: who may import whom, and what a phase must not pay for."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rcr_probes
from rcr_probes.publish.checker import embedded

PACKAGE = Path(rcr_probes.__file__).parent
# Module or folder of the package, and what it imports of the package, besides itself.
ARROWS = """
__init__: model points runtime
errors:
vocabulary:
model: vocabulary
points:
eligibility: vocabulary model
judge: vocabulary model
recoverable: vocabulary model
possible: vocabulary model recoverable power strace
witness: model
fence:
files:
held: room folder
room: errors
late: model held executors
locked: fence folder linux process
testimony: model witness fence folder request observe
recovery: vocabulary model held locked testimony ledger folder request runtime phase process
    observe
ledger: vocabulary model files
folder: vocabulary model files
linux: errors
faults: errors vocabulary linux tracer runtime strace
tracer: errors
request: vocabulary model
runtime: errors vocabulary model
executors: vocabulary model ledger folder request runtime
receiving: vocabulary model ledger folder request process receiver
audited: vocabulary model files
phase: errors vocabulary model points fence held late ledger folder linux faults request runtime
    executors audited strace
process: vocabulary room folder linux phase
traced: vocabulary model ledger folder process strace
contents:
power: vocabulary contents
recorder: folder contents power strace
outage: vocabulary model ledger folder contents power recorder
recording: errors vocabulary model folder linux runtime executors phase process power recorder
    outage scratch
following: tracer strace
generated: errors vocabulary model runtime following
foreign: errors model folder runtime phase
observe: errors vocabulary model files fence held ledger folder faults runtime receiving phase
    process
worker: errors vocabulary model files room recovery ledger folder linux request runtime executors
    receiving phase process traced outage observe evidence
plan: errors vocabulary model recoverable possible runtime following generated product
pairwise:
product: errors model possible pairwise
pool: errors vocabulary model folder linux worker evidence
versions: runtime evidence
cluster: errors model room worker pool versions scratch evidence
scratch: room folder
run: errors vocabulary model room folder linux worker plan pool versions cluster scratch evidence
strace:
evidence: errors vocabulary model eligibility judge recoverable possible witness request strace
receiver: errors
probe: errors vocabulary model files room linux request following scratch strace evidence receiver
reference: errors vocabulary model points eligibility witness fence files runtime
runtimes: errors vocabulary model points linux runtime
contrast: errors vocabulary model points runtime runtimes
report: errors vocabulary model eligibility witness plan run strace evidence runtimes
publish: errors model evidence report
conformance: vocabulary model folder linux runtime phase scratch run evidence
cli: errors grammar interruption stderr
grammar: errors vocabulary commands
interruption:
stderr: errors report
reading: errors evidence
commands: errors model eligibility plan run evidence receiver probe report publish conformance
    stderr reading
"""
_, *_PARTS = re.split(r"(\w+):", ARROWS)
MAY_IMPORT = {name: set(text.split()) for name, text in zip(_PARTS[::2], _PARTS[1::2], strict=True)}
# What stands in the program that a package carries, and what else its readers may be handed alone.
STANDARD_ALONE = (
    *(name for name, source in embedded().items() if source),
    "rcr_probes.witness",
    "rcr_probes.evidence.admissibility",
)
# Modules that a phase imports, and whose frozen values are dataclasses.
DATACLASSES = {"model", "witness", "strace", "runtime", "points"}
# What no process of a cell may import; and what the process that forks may not import either.
HEAVY = {"pandas", "numpy", "matplotlib", "rich", "typer", "papermill"}
SLOWS_FORKS = {"threading", "subprocess", "logging", "concurrent.futures", "multiprocessing"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def full(path: Path) -> str:
    """A module by its full name; a folder is the module that it makes."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


NAMES = {full(path): path for path in modules()}


def top(path: Path) -> str:
    """The name that the arrows use: a module of the package, or a folder in it."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported(path: Path, *, types: bool = True) -> set[str]:
    """Every module that this file imports anywhere, lazily or not, by its full name.

    Args:
        path: of the file.
        types: also what it imports for types alone.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not types:
        tree.body = [node for node in tree.body if not _for_types(node)]
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            module = node.module or ""
            inner = (f"{module}.{alias.name}" for alias in node.names)
            names |= {name if name in NAMES else module for name in inner}
    return names


def _for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def arrows(path: Path) -> set[str]:
    """Which other modules and folders of the package this file imports."""
    own = {name.split(".")[1] for name in imported(path) if name.startswith("rcr_probes.")}
    return own - {top(path)}


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downward_only(path: Path) -> None:
    """A module imports what its layer may know, and nothing above it."""
    assert arrows(path) <= MAY_IMPORT[top(path)]


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_every_arrow_is_used(name: str) -> None:
    """What nothing imports any more, nothing may import unseen."""
    used = [arrows(path) for path in modules() if top(path) == name]
    assert set().union(*used) == MAY_IMPORT[name]


def test_nothing_needs_what_needs_it() -> None:
    """No circle of imports, inside a folder either; those for types alone do not run."""
    needed = {name: imported(path, types=False) - {name} for name, path in NAMES.items()}
    TopologicalSorter(needed).prepare()  # raises CycleError


@pytest.mark.parametrize("name", STANDARD_ALONE)
def test_what_a_checker_embeds_needs_the_standard_library_alone(name: str) -> None:
    """Nouns, eligibility, judge, check, claims, admissibility import nothing from elsewhere."""
    outside = imported(NAMES[name]) - set(STANDARD_ALONE)
    assert {module.split(".")[0] for module in outside} <= sys.stdlib_module_names


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
