"""Hold a value against the JSON Schema that the package ships: the part of 2020-12 that it uses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

SCHEMA = json.loads(
    (files("rcr_probes.runtimes") / "command.schema.json").read_text(encoding="utf-8")
)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "null": type(None),
}
_SAYS_NOTHING = {"description", "title"}


def broken(value: Any, name: str) -> list[str]:
    """How a value breaks the definition of this name; empty where it keeps it."""
    return list(_broken(value, SCHEMA["$defs"][name], name))


def _broken(value: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    for word, given in schema.items():
        if word not in _SAYS_NOTHING:
            yield from _RULES[word](value, given, schema, at)


def _is(value: Any, name: str) -> bool:
    return isinstance(value, _TYPES[name]) and (name != "integer" or not isinstance(value, bool))


def _type(value: Any, names: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if not any(_is(value, name) for name in ([names] if isinstance(names, str) else names)):
        yield f"{at} is {value!r}, no {names}"


def _one_of(value: Any, given: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if sum(not list(_broken(value, one, at)) for one in given) != 1:
        yield f"{at} is {value!r}, not one of the {len(given)} things that it may be"


def _properties(value: Any, given: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    for name in given.keys() & value.keys() if isinstance(value, dict) else ():
        yield from _broken(value[name], given[name], f"{at}.{name}")


def _additional(value: Any, given: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    for name in value.keys() - schema.get("properties", {}).keys() if _is(value, "object") else ():
        if given is False:
            yield f"{at} has no {name}"
        else:
            yield from _broken(value[name], given, f"{at}.{name}")


def _ref(value: Any, given: str, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    yield from _broken(value, SCHEMA["$defs"][given.removeprefix("#/$defs/")], at)


def _pattern(value: Any, given: str, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    if isinstance(value, str) and not re.search(given, value, re.ASCII):
        yield f"{at} is {value!r}, which is not {given}"


def _items(value: Any, given: Any, schema: Mapping[str, Any], at: str) -> Iterator[str]:
    for number, item in enumerate(value if isinstance(value, list) else ()):
        yield from _broken(item, given, f"{at}[{number}]")


def _says(holds: bool, at: str, what: str) -> Iterator[str]:
    if not holds:
        yield f"{at}: {what}"


_RULES: Mapping[str, Any] = {
    "type": _type,
    "const": lambda v, g, s, at: _says(v == g, at, f"not {g!r}"),
    "oneOf": _one_of,
    "properties": _properties,
    "required": lambda v, g, s, at: _says(
        not isinstance(v, dict) or set(g) <= v.keys(), at, f"not all of {g}"
    ),
    "additionalProperties": _additional,
    "propertyNames": lambda v, g, s, at: (
        wrong
        for name in (v if isinstance(v, dict) else ())
        for wrong in _broken(name, g, f"{at}.{name}")
    ),
    "$ref": _ref,
    "pattern": _pattern,
    "items": _items,
    "minItems": lambda v, g, s, at: _says(
        not isinstance(v, list) or len(v) >= g, at, "too few items"
    ),
    "maxItems": lambda v, g, s, at: _says(
        not isinstance(v, list) or len(v) <= g, at, "too many items"
    ),
}
