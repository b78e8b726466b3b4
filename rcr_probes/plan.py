"""Read a plan, and refuse what cannot be run before anything runs."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import attrgetter
from pathlib import Path

from rcr_probes import following, generated, possible, recoverable
from rcr_probes.errors import PlanError, RuntimeMissing, UnknownName
from rcr_probes.model import PLAN_NAME, Cell, Plan
from rcr_probes.product import AXES, COUNTED, Cells, product, typed
from rcr_probes.runtime import DESCRIPTION, Runtime, load, offered
from rcr_probes.vocabulary import (
    EXECUTOR_POINTS,
    FAULT_POINTS,
    NONE,
    ORIGINALS,
    POLICIES,
    POWER_LOSSES,
    RECEIVED,
    TRACED_FAULTS,
    by_receiver,
)

_AROUND = ("before_action", "after_action")  # the points on both sides of the executor
# What tells cells apart that are not the same but for a number that changes nothing of the kind.
_COMBINATION = attrgetter(*(axis for axis in AXES if axis not in COUNTED))


def shipped() -> tuple[str, ...]:
    """The names of the plans that come with the package, written or generated."""
    folder = files("rcr_probes") / "plans"
    written = [Path(p.name).stem for p in folder.iterdir() if p.name.endswith(".toml")]
    return tuple(sorted([*written, *generated.NAMES]))


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
    if name in generated.NAMES:
        return generated.generated(str(name))
    if name in shipped():
        text = (files("rcr_probes") / "plans" / f"{name}.toml").read_text(encoding="utf-8")
        return _parsed(text, str(name))
    path = Path(name)
    if not path.is_file():
        if path.suffix == ".toml":
            raise _no_file(path)
        own = Path(f"{name}.toml")
        if own.is_file():
            raise PlanError(f"No plan is named {str(name)!r}.", f"Did you mean {own}?")
        beside = "A plan of your own is a file, and named with .toml: mine.toml"
        raise UnknownName("plan", str(name), shipped(), beside)
    try:
        return _parsed(path.read_text(encoding="utf-8-sig"), path.stem)
    except UnicodeDecodeError as error:
        raise PlanError(f"{path} is not UTF-8 text ({error}).", "Save it as UTF-8.") from error


def _no_file(path: Path) -> PlanError:
    """There is none; a plan that is spelt nearly so is a file beside it, or a shipped one."""
    import difflib  # only where something is already wrong

    # Compared without what all of them share, and a shipped one before a file of its name.
    known = {file.stem: str(file) for file in sorted(path.parent.glob("*.toml"))}
    known |= {name: name for name in shipped()}
    near = difflib.get_close_matches(path.stem, known, n=1)
    listed = f"The plans that come with rcr are named without .toml: {', '.join(shipped())}"
    return PlanError(
        f"There is no plan file {path}.", f"Did you mean {known[near[0]]}?" if near else listed
    )


def validated(plan: Plan) -> Plan:
    """The same plan, when every cell of it can be run.

    Raises:
        UnknownName: an axis holds a name that nothing knows.
        PlanError: it is empty, holds a cell twice, or a combination that cannot be.
        RuntimeUnusable: a runtime cannot be loaded.
    """
    if not re.fullmatch(PLAN_NAME, plan.name):
        raise PlanError(
            f"The plan's name is {plan.name!r}.",
            "Begin with a letter or digit; then letters, digits, '.', '_', '-' and spaces.",
        )
    if not plan.cells:
        raise PlanError(f"The plan {plan.name!r} has no cells.", "Give it one cell or more.")
    _loaded.cache_clear()  # what describes a runtime may have been mended since
    valid: set[tuple[object, ...]] = set()
    distinct = isinstance(plan.cells, Cells) and plan.cells.distinct
    seen: set[Cell] = set()
    for cell in plan.cells:
        for axis in AXES:
            typed(axis, getattr(cell, axis))
        if (combination := _COMBINATION(cell)) not in valid:
            _validate(cell)
            valid.add(combination)
        if distinct:
            continue
        if cell in seen:
            raise PlanError(
                f"The plan {plan.name!r} holds {cell.id} twice.",
                "Where two of its tables make it, leave it out of one: without = { … }. To repeat "
                "a cell, vary repeat.",
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
            runtime = "It describes a runtime, which a plan names: docs/own-runtime.md."
            beside = runtime if "command" in data else ""
            raise UnknownName("key of a plan", key, ("name", "cells"), beside)
    name, tables = data.get("name", origin), data.get("cells")
    if not isinstance(name, str):
        raise PlanError(f"The plan's name is {name!r}.", "Give it a name, in quotes.")
    if not isinstance(tables, list) or not tables:
        raise PlanError(
            f"The plan {origin!r} has no cells.", "Add a [[cells]] table with point and fault."
        )
    if not all(isinstance(table, Mapping) for table in tables):
        raise PlanError(f"In the plan {origin!r}, cells is no table.", "Write [[cells]].")
    return Plan(name, sum((product(**table) for table in tables), Cells()))


def _validate(cell: Cell) -> None:
    runtime = _loaded(cell.runtime)
    for kind, name, known in possible.unknown(cell):
        raise UnknownName(kind, name, known)
    _known("policy", cell.policy, (*POLICIES, *runtime.recoveries))
    _known("variant", cell.variant, offered(runtime, "variants"))
    for cause, remedy in recoverable.problems(cell, _offers(runtime)):
        raise PlanError(cause, remedy)
    for cause, remedy in possible.problems(cell):
        raise PlanError(cause, remedy)
    if cell.recovery_fault in ORIGINALS and cell.runtime.endswith(DESCRIPTION):
        raise PlanError(
            f"recovery_fault = {cell.recovery_fault!r} cannot be with a runtime that is a command.",
            "What it calls is a process of its own, and nobody can hold that for it. Choose "
            "held@POINT, or a runtime in Python.",
        )
    if cell.point != NONE:
        _struck(cell, runtime)


def _struck(cell: Cell, runtime: Runtime) -> None:
    """Refuse a fault that this runtime cannot have, or that cannot be placed on this machine."""
    if cell.fault in TRACED_FAULTS and (why := following.without_tracer()):
        raise PlanError(f"The fault {cell.fault!r} cannot be placed here. {why[0]}", why[1])
    if "@" in cell.point:  # any runtime makes calls
        if cell.fault not in TRACED_FAULTS:
            _strace(cell)
        return
    if by_receiver(cell.point, cell.fault) and cell.dedupe in RECEIVED:
        return  # it is the receiver that strikes, whatever the runtime is
    if cell.point in EXECUTOR_POINTS:
        _inside(cell, runtime)
    elif cell.kind not in runtime.points.get(cell.point, ()):
        there = sorted(runtime.points.get(cell.point, ())) or ["nothing"]
        raise PlanError(
            f"The runtime {cell.runtime!r} does not support {cell.fault!r} at {cell.point!r}.",
            f"There it supports {', '.join(there)}.",
        )
    if cell.kind in POWER_LOSSES:
        _strace(cell)


def _inside(cell: Cell, runtime: Runtime) -> None:
    """Refuse a fault inside the executor that the runtime cannot have.

    The executor runs where the runtime calls it: what can strike around the action can inside it.
    """
    around = {kind for point in _AROUND for kind in runtime.points.get(point, ())}
    if cell.kind not in around:
        there = [kind for kind in sorted(around) if cell.point in FAULT_POINTS[kind]]
        raise PlanError(
            f"The runtime {cell.runtime!r} does not support {cell.fault!r} around its action, and "
            f"so not at {cell.point!r}.",
            f"There it supports {', '.join(there) or 'nothing'}.",
        )


def _strace(cell: Cell) -> None:
    """Refuse what strace places, where it cannot follow a process."""
    if why := following.without_strace():
        raise PlanError(f"{cell.fault!r} at {cell.point!r} needs strace. {why[0]}", why[1])


def _offers(runtime: Runtime) -> set[str]:
    """What of the parts of its contract that recovery may need the runtime has."""
    return {part for part in recoverable.NEEDS.values() if offered(runtime, part)}


def _known(kind: str, name: str | None, known: Sequence[str]) -> None:
    if name not in known:
        raise UnknownName(kind, name, known)


@cache
def _loaded(name: str) -> Runtime:
    with contextlib.redirect_stdout(sys.stderr):  # what a runtime prints is no result of ours
        return load(name)
