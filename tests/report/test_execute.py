"""The notebooks: committed with their outputs, the same bytes on every run, and guarded."""

from __future__ import annotations

import ast
import base64
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

from rcr_probes.errors import NotEvidence, PlanError, RcrError, UnknownName, installing
from rcr_probes.report import execute
from rcr_probes.report.execute import NOTEBOOKS, run_notebooks
from rcr_probes.report.parameters import PARAMETERS, defaults
from tests.pinned import written_by

NAMES = (
    "00_evidence_guide",
    "01_fault_locations",
    "02_restart_and_dedupe",
    "03_p3_causal_chain",
    "04_real_runtimes",
    "05_reviewing_published_evidence",
    "06_retry_eligibility",
    "07_audit_failure_policies",
    "08_every_syscall",
)
PAGE = NOTEBOOKS.parent / "docs" / "notebooks.md"
LOCATIONS, CHAIN, REVIEW = NAMES[1], NAMES[3], NAMES[5]
# Where machines keep their files, and what else belongs to one machine or one run.
OF_A_MACHINE = re.compile(r"/(tmp|root|home|work|dev|Users|usr|opt|var|private)\b|0x[0-9a-f]{6,}")
DOT = (  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def committed(name: str) -> Any:
    return nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]


def code_cells(name: str) -> list[Any]:
    return [cell for cell in committed(name).cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> Iterator[Any]:
    for cell in notebook.cells:
        yield from cell.get("outputs", ())


def test_the_notebooks_are_these() -> None:
    """One that is added is added to these tests."""
    assert tuple(sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_committed_as_it_ran(name: str) -> None:
    """Every cell was run, in order, and all but the parameters show something."""
    cells = code_cells(name)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert cells[0].metadata.tags == ["parameters"]
    assert not cells[0].outputs
    assert all(cell.outputs for cell in cells[1:])


@pytest.mark.parametrize("name", NAMES)
def test_no_output_is_an_error_or_a_warning(name: str) -> None:
    """What a notebook shows is data."""
    assert {output.output_type for output in outputs(committed(name))} == {"display_data"}


@pytest.mark.parametrize("name", NAMES)
def test_no_notebook_holds_anything_of_a_machine_or_a_run(name: str) -> None:
    """No path, no address, no time, no Python version."""
    notebook = committed(name)
    for output in outputs(notebook):
        output.data.pop("image/png", None)
    assert not OF_A_MACHINE.search(json.dumps(notebook))
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert "version" not in notebook.metadata.language_info
    assert notebook.metadata.kernelspec.display_name == "Python 3 (ipykernel)"
    assert notebook.metadata.kernelspec.name == "python3"
    assert all(set(cell.metadata) <= {"tags", "scrolled"} for cell in notebook.cells)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_long_scrolls_in_a_box_of_its_own(name: str) -> None:
    """In JupyterLab no output is a wall between its reader and the next cell."""
    for cell in committed(name).cells:
        shown = "".join(one.data.get("text/html", "") for one in cell.get("outputs", ()))
        assert cell.metadata.get("scrolled", False) == (len(shown) > 80_000), cell.source


@pytest.mark.parametrize("name", NAMES)
def test_the_parameters_are_plain_literals(name: str) -> None:
    """Their names and types are shared by all notebooks."""
    found = defaults(code_cells(name)[0].source, name)
    assert {"lang"} <= set(found) <= set(PARAMETERS)


def rows(heading: str) -> dict[str, list[str]]:
    """A table of docs/notebooks.md: its first cells → the codes in the last cells but one."""
    _, _, below = PAGE.read_text(encoding="utf-8").partition(f"\n| {heading} |")
    lines = [line.split("|")[1:-1] for line in below.split("\n\n")[0].splitlines()[2:]]
    return {line[0].strip(" `"): re.findall(r"`([^`]+)`", line[-2]) for line in lines}


def test_the_page_lists_each_notebook_with_its_parameters() -> None:
    """Each in the order of its cell, ``lang`` left out; a link leads to each."""
    takes = {
        name: [one for one in defaults(code_cells(name)[0].source, name) if one != "lang"]
        for name in NAMES
    }
    linked = {f"[{name}](../notebooks/{name}.ipynb)": given for name, given in takes.items()}
    assert rows("notebook") == linked


def test_the_page_lists_each_parameter_with_its_values() -> None:
    """All that a notebook takes, and nothing else."""
    assert {name: tuple(found) for name, found in rows("parameter").items()} == dict(PARAMETERS)


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_holds_logic(name: str) -> None:
    """A cell imports, names a result, or calls the library."""
    for cell in code_cells(name):
        for statement in ast.parse(cell.source).body:
            assert isinstance(statement, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr)
            for node in ast.walk(statement):
                assert not isinstance(node, ast.Lambda | ast.IfExp | ast.comprehension | ast.BinOp)


@written_by("matplotlib", "nbformat", "numpy", "pillow")
def test_executing_them_gives_the_committed_bytes(tmp_path: Path) -> None:
    """Where this fails after a change of what is shown: make notebooks.

    One that measures, and one that reads; nbval executes all of them, and compares their outputs.
    """
    some = [LOCATIONS, REVIEW]
    made = run_notebooks(tmp_path / "with a space", only=some)
    assert [path.stem for path in made] == some
    for path in made:
        assert path.read_bytes() == (NOTEBOOKS / path.name).read_bytes(), path.name


def test_they_run_with_other_parameters(tmp_path: Path) -> None:
    """In Chinese, under the other start method, with a part of the cells."""
    given = {"lang": "zh", "start": "spawn", "points": "start_audit, after_action"}
    made = run_notebooks(tmp_path, given, only=[LOCATIONS])
    [notebook] = [nbformat.read(path, as_version=4) for path in made]  # type: ignore[no-untyped-call]
    assert notebook.metadata.papermill.parameters == {
        "lang": "zh",
        "start": "spawn",
        "points": ["start_audit", "after_action"],
    }
    shown = "".join(output.data["text/plain"] for output in outputs(notebook))
    assert "故障落点" in shown
    assert "`spawn`" in shown
    assert "before_action" not in shown
    assert {output.output_type for output in outputs(notebook)} == {"display_data"}


def test_a_path_is_taken_from_where_it_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another package, in Chinese; a name that YAML would read as a number is a path too."""
    package = tmp_path / "2026"
    shutil.copytree(NOTEBOOKS.parent / "examples" / "synthetic-package", package)
    (package / "notes.txt").write_text("not listed")
    monkeypatch.chdir(tmp_path)
    [made] = run_notebooks("out", {"package": "2026", "lang": "zh"}, only=[REVIEW])
    notebook = nbformat.read(made, as_version=4)  # type: ignore[no-untyped-call]
    assert notebook.metadata.papermill.parameters["package"] == str(package)
    shown = "".join(output.data["text/plain"] for output in outputs(notebook))
    assert "证据包 `2026`" in shown
    assert "notes.txt" in shown
    assert "轻信的读者" in shown


def test_a_changed_package_ends_its_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file; a page that says nothing of it is not written."""
    package = tmp_path / "package"
    shutil.copytree(NOTEBOOKS.parent / "examples" / "synthetic-package", package)
    (package / "fixtures" / "timeline.json").write_text("{}")
    with pytest.raises(RcrError, match=r"EvidenceError: fixtures/timeline.json: was changed"):
        run_notebooks(tmp_path / "out", {"package": str(package)}, only=[REVIEW])
    assert list((tmp_path / "out").iterdir()) == []


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a kernel fails the test."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("a kernel was started")

    monkeypatch.setattr(papermill, "execute_notebook", started)


@pytest.mark.usefixtures("no_kernel")
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"pionts": "none"}, UnknownName),
        ({"points": "nowhere"}, UnknownName),
        ({"points": "[none, nowhere]"}, UnknownName),
        ({"points": "3"}, PlanError),
        ({"points": "{none: 1}"}, PlanError),
        ({"points": "[]"}, PlanError),
        ({"points": ""}, PlanError),
        ({"points": "[none"}, PlanError),
        ({"dedupe": "no"}, PlanError),
        ({"digests": ["same", 1]}, PlanError),
        ({"start": "[fork]"}, PlanError),
        ({"start": "007"}, PlanError),
        ({"lang": "de"}, UnknownName),
        ({"package": ""}, PlanError),
        ({"package": 3}, PlanError),
        ({"package": "nowhere/at/all"}, NotEvidence),
    ],
)
def test_wrong_parameters_are_refused_before_a_kernel_starts(
    given: Mapping[str, object], error: type[RcrError], tmp_path: Path
) -> None:
    """Nothing runs, and nothing is written."""
    with pytest.raises(error):
        run_notebooks(tmp_path / "out", given)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_kernel")
def test_a_parameter_that_the_chosen_notebooks_do_not_have_is_refused(tmp_path: Path) -> None:
    """It would change nothing there."""
    with pytest.raises(UnknownName, match="points"):
        run_notebooks(tmp_path, {"points": "none"}, only=["03_p3_causal_chain"])


@pytest.mark.usefixtures("no_kernel")
def test_an_unknown_notebook_or_none_is_refused(tmp_path: Path) -> None:
    """The names that there are are shown."""
    with pytest.raises(UnknownName, match="03_p3_causal_chain"):
        run_notebooks(tmp_path, only=["03_p3_causal_chian"])
    with pytest.raises(PlanError):
        run_notebooks(tmp_path, only=[])


@pytest.mark.usefixtures("no_kernel")
def test_the_notebooks_themselves_are_not_overwritten_with_other_parameters() -> None:
    """What is committed ran with its own parameters."""
    with pytest.raises(PlanError, match="holds the notebooks themselves"):
        run_notebooks(NOTEBOOKS, {"lang": "zh"})


@pytest.mark.usefixtures("no_kernel")
def test_where_there_are_no_notebooks_the_error_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installed package comes without them."""
    monkeypatch.setattr(execute, "NOTEBOOKS", tmp_path / "nowhere")
    with pytest.raises(RcrError, match="come with the repository"):
        run_notebooks(tmp_path)


@pytest.mark.usefixtures("no_kernel")
def test_what_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain installation runs plans, and no notebooks."""
    monkeypatch.setitem(sys.modules, "papermill", None)
    with pytest.raises(RcrError, match=re.escape(installing("notebooks"))):
        run_notebooks(tmp_path)


def cut(source: Path, target: Path, *, last: str, replaced: Mapping[str, str]) -> None:
    """A copy of a notebook up to one cell, with the sources of some cells replaced."""
    notebook = nbformat.read(source, as_version=4)  # type: ignore[no-untyped-call]
    ids = [cell.id for cell in notebook.cells]
    notebook.cells = notebook.cells[: ids.index(last) + 1]
    for cell in notebook.cells:
        cell.source = replaced.get(cell.id, cell.source)
    nbformat.write(notebook, target)  # type: ignore[no-untyped-call]


def test_a_failing_cell_is_an_error_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names notebook, cell and cause, and writes nothing."""
    source = tmp_path / "source"
    source.mkdir()
    broken = {"measure": "from rcr_probes.plan import read\nread('artcle')"}
    cut(NOTEBOOKS / f"{CHAIN}.ipynb", source / "one.ipynb", last="measure", replaced=broken)
    monkeypatch.setattr(execute, "NOTEBOOKS", source)
    with pytest.raises(RcrError) as caught:
        run_notebooks(tmp_path / "out")
    assert "one.ipynb, cell 2: UnknownName: Unknown plan: 'artcle'" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_replaced_figure_fails_under_nbval(tmp_path: Path) -> None:
    """A PNG is compared like every other output."""
    copy = tmp_path / "copy.ipynb"
    cut(NOTEBOOKS / f"{CHAIN}.ipynb", copy, last="figure", replaced={})
    shutil.copy(NOTEBOOKS / "conftest.py", tmp_path)
    notebook = json.loads(copy.read_text(encoding="utf-8"))
    [figure] = [
        output["data"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        if "image/png" in output["data"]
    ]
    assert base64.b64decode(figure["image/png"]) != base64.b64decode(DOT)
    figure["image/png"] = DOT
    copy.write_text(json.dumps(notebook), encoding="utf-8")
    command = ["-m", "pytest", "--nbval", "--nbval-current-env", "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *command, "-c", "/dev/null", "-p", "no:cacheprovider", str(copy)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout
    assert "image/png" in done.stdout
