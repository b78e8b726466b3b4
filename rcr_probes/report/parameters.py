"""The parameters of the notebooks: their names, what each takes, and the cell that sets them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from rcr_probes.errors import PlanError, RcrError, UnknownName
from rcr_probes.report.texts import LANGS
from rcr_probes.vocabulary import DEDUPES, DIGESTS, NONE, POINTS, STARTS

Value = str | list[str]

# Parameter → the values that it takes; a path is any. A notebook has those of them that it uses.
PARAMETERS: Mapping[str, Sequence[str]] = {
    "points": (NONE, *POINTS),
    "dedupe": DEDUPES,
    "digests": DIGESTS,
    "start": STARTS,
    "runtimes": ("committed", "installed"),
    "run": ("committed", "now"),
    "package": (),
    "evidence": (),
    "lang": LANGS,
}
PATHS = ("package", "evidence")
_LISTS = ("points", "dedupe", "digests")


def checked(name: str, value: object) -> Value:
    """The value, when the parameter takes it; a text for a list is names with commas between them.

    Raises:
        UnknownName: the parameter, or a value of it, is not known.
        PlanError: it is of the wrong type, or an empty list.
    """
    if name not in PARAMETERS:
        raise UnknownName("parameter", name, PARAMETERS)
    if name in PATHS:
        return _path(name, value)
    known = PARAMETERS[name]
    taken = _names(value) if name in _LISTS else value
    values = taken if name in _LISTS else [value]
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        example = f"{name} = [{', '.join(known[:2])}]" if name in _LISTS else f"{name} = {known[0]}"
        kind = "a list of names" if name in _LISTS else "one name"
        raise PlanError(f"{name} = {value!r} is of the wrong type.", f"It takes {kind}: {example}")
    if not values:
        raise PlanError(f"{name} = [] chooses nothing.", f"Known: {', '.join(known)}.")
    for one in values:
        if one not in known:
            raise UnknownName(f"value of {name}", one, known)
    return values if name in _LISTS else values[0]


def _path(name: str, value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise PlanError(
            f"{name} = {value!r} is of the wrong type.", f"It takes a path: {name} = ../a-folder"
        )
    return value


def _names(value: object) -> object:
    if isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    return list(value) if isinstance(value, tuple) else value


def defaults(source: str, place: str) -> dict[str, Value]:
    """What a parameters cell sets: name → value.

    Raises:
        RcrError: it holds anything but ``name = literal`` lines, or a value that is not taken;
            ``place`` says where it stands.
    """
    found: dict[str, Value] = {}
    try:
        for statement in ast.parse(source).body:
            if not isinstance(statement, ast.Assign):
                raise ValueError(f"line {statement.lineno} assigns nothing")
            [target] = statement.targets
            if not isinstance(target, ast.Name):
                raise ValueError(f"line {statement.lineno} assigns to no name")
            found[target.id] = checked(target.id, ast.literal_eval(statement.value))
    except (SyntaxError, ValueError) as error:
        raise RcrError(
            f"{place}: the parameters cell cannot be read ({error}).",
            "Keep it to lines of the form: name = literal",
        ) from error
    return found
