"""Read a plan, and refuse what cannot be run before anything runs."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from rcr_probes import faults, strace
from rcr_probes.errors import PlanError, RuntimeMissing, UnknownName
from rcr_probes.model import (
    CALL_FAULTS,
    DEDUPES,
    DIGESTS,
    NONE,
    POINTS,
    POLICIES,
    WITNESSES,
    Cell,
    Plan,
)
from rcr_probes.runtime import Runtime, load, offered

AXES = tuple(f.name for f in fields(Cell))
_NUMBERS = ("recoverers", "seed", "repeat")
_NAME = re.compile(r"\w[\w. -]*")  # it names the evidence folder, so no path hides in it
_MOST = 1_000_000  # cells in one table: more is a slip of the pen, and would fill the memory
_LARGEST = 2**53 - 1  # a larger number does not come back the same from every JSON reader
_CALL = "CALL@FILE#N, such as write@state#1"
_REQUIRED = tuple(f.name for f in fields(Cell) if f.default is MISSING)


def shipped() -> tuple[str, ...]:
    """The names of the plans that come with the package."""
    folder = files("rcr_probes") / "plans"
    return tuple(sorted(Path(p.name).stem for p in folder.iterdir() if p.name.endswith(".toml")))


def read(name: str | os.PathLike[str]) -> Plan:
    """The plan with this name: a shipped one, or a TOML file.

    Raises:
        UnknownName: there is no such plan, or it holds a name that nothing knows.
        PlanError: it cannot be read, or cannot be run as it is written.
        RuntimeUnusable: a runtime of it cannot be loaded.
    """
    return validated(_written(name))


def read_installed(name: str | os.PathLike[str]) -> tuple[Plan, tuple[RuntimeMissing, ...]]:
    """The plan with this name, without the cells of runtimes that lack something on this machine.

    Returns:
        The plan, and for each runtime that was left out what it lacks.

    Raises:
        RuntimeMissing: nothing of the plan is left.
        UnknownName, PlanError, RuntimeUnusable: as ``read``.
    """
    whole = _written(name)
    missing: dict[str, RuntimeMissing] = {}
    for runtime in dict.fromkeys(str(cell.runtime) for cell in whole.cells):
        try:
            _loaded(runtime)
        except RuntimeMissing as error:
            missing[runtime] = error
    cells = tuple(cell for cell in whole.cells if cell.runtime not in missing)
    if missing and not cells:
        raise next(iter(missing.values()))
    return validated(Plan(whole.name, cells)), tuple(missing.values())


def _written(name: str | os.PathLike[str]) -> Plan:
    """The plan as it is written, not validated yet."""
    if name in shipped():
        text = (files("rcr_probes") / "plans" / f"{name}.toml").read_text(encoding="utf-8")
        return _parsed(text, str(name))
    path = Path(name)
    if not path.is_file():
        if path.suffix == ".toml":
            raise PlanError(f"There is no plan file {path}.", "Check the path.")
        raise UnknownName("plan", str(name), shipped())
    try:
        return _parsed(path.read_text(encoding="utf-8-sig"), path.stem)
    except UnicodeDecodeError as error:
        raise PlanError(f"{path} is not UTF-8 text ({error}).", "Save it as UTF-8.") from error


def product(**axes: Any) -> tuple[Cell, ...]:
    """Every combination of the values given for the axes, the last axis varying fastest.

    Args:
        axes: axis of ``Cell`` → one value, or a list of values.

    Raises:
        UnknownName: there is no such axis.
        PlanError: ``point`` or ``fault`` is missing, or an axis has no values.
    """
    for name in axes:
        if name not in AXES:
            raise UnknownName("axis of a cell", name, AXES)
    missing = [name for name in _REQUIRED if name not in axes]
    if missing:
        raise PlanError(
            f"A table of cells lacks {' and '.join(missing)}.",
            'The control without a fault is point = "none", fault = "none".',
        )
    values = [v if isinstance(v, list | tuple) else [v] for v in axes.values()]
    if not all(values):
        raise PlanError("An axis has no values.", "Give it one value or more, or leave it out.")
    if math.prod(map(len, values)) > _MOST:
        raise PlanError(
            f"A table makes {math.prod(map(len, values))} cells.", f"Make {_MOST} at most."
        )
    chosen = (dict(zip(axes, row, strict=True)) for row in itertools.product(*values))
    return tuple(Cell(**row) for row in chosen)


def validated(plan: Plan) -> Plan:
    """The same plan, when every cell of it can be run.

    Raises:
        UnknownName: an axis holds a name that nothing knows.
        PlanError: it is empty, holds a cell twice, or a combination that cannot be.
        RuntimeUnusable: a runtime cannot be loaded.
    """
    if not _NAME.fullmatch(plan.name):
        raise PlanError(
            f"The plan's name is {plan.name!r}.",
            "Begin with a letter or digit; then letters, digits, '.', '_', '-' and spaces.",
        )
    if not plan.cells:
        raise PlanError(f"The plan {plan.name!r} has no cells.", "Give it one cell or more.")
    _loaded.cache_clear()  # what describes a runtime may have been mended since
    for cell in plan.cells:
        _validate(cell)
    seen: set[Cell] = set()
    for cell in plan.cells:
        if cell in seen:
            raise PlanError(
                f"The plan {plan.name!r} holds {cell.id} twice.", "To repeat a cell, vary repeat."
            )
        seen.add(cell)
    return plan


def only(plan: Plan, cells: Iterable[str]) -> Plan:
    """The plan with just the cells of these ids.

    Raises:
        UnknownName: the plan has no such cell.
    """
    known = {cell.id: cell for cell in plan.cells}
    wanted = set(cells)
    for cell in wanted:
        if cell not in known:
            raise UnknownName("cell", cell, known)
    return Plan(plan.name, tuple(cell for cell in plan.cells if cell.id in wanted))


def _parsed(text: str, origin: str) -> Plan:
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PlanError(f"The plan {origin!r} is not TOML: {error}.", "Mend that line.") from error
    for key in data:
        if key not in ("name", "cells"):
            raise UnknownName("key of a plan", key, ("name", "cells"))
    name, tables = data.get("name", origin), data.get("cells")
    if not isinstance(name, str):
        raise PlanError(f"The plan's name is {name!r}.", "Give it a name, in quotes.")
    if not isinstance(tables, list) or not tables:
        raise PlanError(
            f"The plan {origin!r} has no cells.", "Add a [[cells]] table with point and fault."
        )
    if not all(isinstance(table, Mapping) for table in tables):
        raise PlanError(f"In the plan {origin!r}, cells is no table.", "Write [[cells]].")
    return Plan(name, tuple(c for table in tables for c in product(**table)))


def _validate(cell: Cell) -> None:
    for axis in AXES:
        value, kind = getattr(cell, axis), int if axis in _NUMBERS else str
        if type(value) is not kind:
            raise PlanError(
                f"{axis} = {value!r} is of the wrong type.",
                f"It takes {'a whole number' if kind is int else 'a name in quotes'}.",
            )
    runtime = _loaded(cell.runtime)
    if "@" not in cell.point:  # a system call is looked at together with its fault
        _known("point", cell.point, (NONE, *POINTS))
    _known("fault", cell.fault, (NONE, *faults.KINDS))
    _known("dedupe", cell.dedupe, DEDUPES)
    _known("digest", cell.digest, DIGESTS)
    _known("policy", cell.policy, (*POLICIES, *runtime.recoveries))
    _known("witness", cell.witness, WITNESSES)
    _known("variant", cell.variant, offered(runtime, "variants"))
    _known("recovery_fault", cell.recovery_fault, (NONE,))
    if cell.recoverers != 1:
        raise PlanError(f"recoverers = {cell.recoverers} cannot be run.", "One can: recoverers = 1")
    for axis in ("seed", "repeat"):
        if not 0 <= getattr(cell, axis) <= _LARGEST:
            raise PlanError(
                f"{axis} = {getattr(cell, axis)} is out of range.", f"Count from 0 to {_LARGEST}."
            )
    _combination(cell, runtime)


def _combination(cell: Cell, runtime: Runtime) -> None:
    """Refuse a fault at a point where it cannot strike."""
    if (cell.point == NONE) != (cell.fault == NONE):
        raise PlanError(
            f"point = {cell.point!r} with fault = {cell.fault!r} cannot be.",
            "A fault needs a point and a point needs a fault; the control has neither.",
        )
    if cell.point == NONE:
        return
    if "@" in cell.point:
        _call(cell)
        return
    if cell.point not in faults.KINDS[cell.fault].points:
        raise PlanError(
            f"The fault {cell.fault!r} cannot strike at {cell.point!r}.",
            f"It can at {', '.join(faults.KINDS[cell.fault].points) or _CALL}.",
        )
    if cell.fault not in runtime.points.get(cell.point, ()):
        there = sorted(runtime.points.get(cell.point, ())) or ["nothing"]
        raise PlanError(
            f"The runtime {cell.runtime!r} does not support {cell.fault!r} at {cell.point!r}.",
            f"There it supports {', '.join(there)}.",
        )


def _call(cell: Cell) -> None:
    """Refuse a system call at which nothing can strike; any runtime makes some."""
    _known("system call", cell.point.partition("@")[0], strace.KNOWN)
    if strace.parse(cell.point) is None:
        raise PlanError(
            f"The point {cell.point!r} is no {_CALL}.",
            "FILE is a path in the runtime's private folder, without '..', and a file where the "
            "call takes no folder; N counts from 1.",
        )
    _known("fault at a system call", cell.fault, CALL_FAULTS)
    if shutil.which(strace.PROGRAM) is None:
        raise PlanError(
            f"The point {cell.point!r} needs strace, which is not installed here.",
            "Type: sudo apt install strace",
        )


def _known(kind: str, name: str | None, known: Sequence[str]) -> None:
    if name not in known:
        raise UnknownName(kind, name, known)


@cache
def _loaded(name: str) -> Runtime:
    with contextlib.redirect_stdout(sys.stderr):  # what a runtime prints is no result of ours
        return load(name)
