"""Run the repository's notebooks with other parameters, to the same bytes on every run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import rcr_probes
from rcr_probes.errors import (
    NotEvidence,
    NotInstalled,
    PlanError,
    RcrError,
    UnknownName,
    installing,
)
from rcr_probes.evidence import meant, write
from rcr_probes.report.parameters import PATHS, Value, checked, defaults

NOTEBOOKS = Path(rcr_probes.__file__).parents[1] / "notebooks"
TAG = "parameters"


def run_notebooks(
    into: str | os.PathLike[str],
    parameters: Mapping[str, object] | None = None,
    only: Iterable[str] | None = None,
) -> list[Path]:
    """Execute the notebooks and write them, with their outputs, into a folder.

    Names and values are checked before the first kernel starts; whether they leave a cell, each
    notebook finds when it measures. A parameter goes to the notebooks that have it. Without
    parameters the notebooks' own folder can be written: that is how they are made.

    Args:
        into: the folder; it is made where there is none.
        parameters: name → value; a text is read as YAML, as in ``[none, operation_key]``, and may
            be a list of names with commas between them. A path is taken as it is, from the current
            directory.
        only: names of notebooks, such as ``03_p3_causal_chain``; all when None.

    Returns:
        The notebooks that were written, in order.

    Raises:
        UnknownName: a parameter, a value of one, or a notebook that nothing knows.
        PlanError: a value of the wrong type, or the notebooks' own folder with parameters.
        NotEvidence: a path at which there is nothing.
        RcrError: there are no notebooks here, what runs them is not installed, or a cell failed.
        OSError: the folder cannot be written.
    """
    _installed()
    sources = _sources(only)
    takes = {source: _takes(source) for source in sources}
    chosen = _chosen(parameters or {}, [name for names in takes.values() for name in names])
    folder = Path(into)
    if chosen and folder.resolve() == NOTEBOOKS.resolve():
        raise PlanError(
            f"{into} holds the notebooks themselves, which keep their own parameters.",
            "Name another folder with --into.",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _execute(source, folder / source.name, {n: v for n, v in chosen.items() if n in names})
        for source, names in takes.items()
    ]


def executed(name: str, parameters: Mapping[str, object] | None = None) -> Any:
    """Execute one notebook and return it with its outputs; nothing is written.

    Args:
        name: of the notebook, such as ``00_evidence_guide``.
        parameters: as for ``run_notebooks``.

    Raises:
        As ``run_notebooks``.
    """
    _installed()
    [source] = _sources([name])
    return _executed(source, _chosen(parameters or {}, _takes(source)))


def _chosen(parameters: Mapping[str, object], known: Iterable[str]) -> dict[str, Value]:
    """The parameters as a notebook takes them, checked."""
    given = {name: _read(name, value) for name, value in parameters.items()}
    names = dict.fromkeys(known)
    for name in given:
        if name not in names:
            raise UnknownName("parameter", name, names)
    return {name: _found(name, checked(name, value)) for name, value in given.items()}


def _installed() -> None:
    try:
        import ipykernel  # noqa: F401
        import papermill  # noqa: F401
    except ModuleNotFoundError as missing:
        raise NotInstalled(
            f"What runs notebooks is not installed ({missing.name}).", "notebooks"
        ) from None


def _sources(only: Iterable[str] | None) -> list[Path]:
    found = {path.stem: path for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
    if not found:
        raise RcrError(
            "The notebooks are not here: they come with the repository, not with the package.",
            "Clone the repository, and type make lab or rcr notebooks in it.",
        )
    if only is None:
        return list(found.values())
    names = set(only)
    for name in names:
        if name not in found:
            raise UnknownName("notebook", name, found)
    if not names:
        raise PlanError("No notebook is chosen.", f"Choose among {', '.join(found)}.")
    return [path for name, path in found.items() if name in names]


def _read(name: str, value: object) -> object:
    """A text as the YAML that it is, but for a path."""
    if not isinstance(value, str) or name in PATHS:
        return value
    import yaml  # papermill needs it, and reads its own parameters with it

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise PlanError(
            f"{name} = {value} is no YAML ({' '.join(str(error).split())}).",
            "Write one name, or names with commas between them.",
        ) from error


def _found(name: str, value: Value) -> Value:
    """The value; a path as it is seen from the folder in which notebooks run."""
    if name not in PATHS:
        return value
    place = os.path.abspath(str(value))
    if not os.path.lexists(place):
        remedy = meant.question(Path(str(value))) or "Name a folder that is there."
        raise NotEvidence(f"{name} = {value}: there is nothing.", remedy)
    return place


def _takes(source: Path) -> dict[str, Value]:
    """The parameters that a notebook has, and their defaults."""
    import nbformat

    cells = nbformat.read(source, as_version=4).cells  # type: ignore[no-untyped-call]
    tagged = [cell for cell in cells if TAG in cell.metadata.get("tags", ())]
    if len(tagged) != 1:
        raise RcrError(
            f"{source.name}: {len(tagged)} cells have the tag {TAG}.", "Tag the one that sets them."
        )
    return defaults(tagged[0].source, source.name)


def _execute(source: Path, target: Path, parameters: Mapping[str, Value]) -> Path:
    """Execute one notebook and write it; what fails writes nothing."""
    import nbformat

    made = _executed(source, parameters)
    written: str = nbformat.writes(made)  # type: ignore[no-untyped-call]
    write.put(target, [(written.rstrip("\n") + "\n").encode()])
    return target


def _executed(source: Path, parameters: Mapping[str, Value]) -> Any:
    """Execute one notebook in a kernel of its own."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    try:
        made = papermill.execute_notebook(
            str(source).replace("{", "{{").replace("}", "}}"),  # papermill formats its paths
            None,
            dict(parameters),
            cwd=str(source.parent),
            progress_bar=False,
            request_save_on_cell_execute=False,
            record_timing=False,
            coalesce_streams=True,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],  # it warns of its own sockets
        )
    except PapermillExecutionError as failed:
        raise RcrError(
            f"{source.name}, cell {failed.exec_count}: {failed.ename}: {failed.evalue}",
            "Nothing was written.",
        ) from None
    except (DeadKernelError, NoSuchKernel) as error:
        raise RcrError(
            f"{source.name}: its kernel failed ({error}).",
            f"Install the notebooks' extra: {installing('notebooks')}",
        ) from None
    _settle(made, parameters)
    return made


def _settle(notebook: Any, parameters: Mapping[str, Value]) -> None:
    """Take out what differs from run to run: timings, paths, random ids, the Python version."""
    notebook.metadata.pop("papermill", None)
    if parameters:
        notebook.metadata["papermill"] = {"parameters": dict(parameters)}
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        tags = cell.metadata.pop("tags", None)
        if tags:
            cell.metadata["tags"] = tags
            if "injected-parameters" in tags:
                cell["id"] = "injected-parameters"
