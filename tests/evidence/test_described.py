"""docs/evidence-format.md describes a capture as it is: every object, field, type and null."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rcr_probes.evidence.store import read
from rcr_probes.model import Capture
from rcr_probes.vocabulary import Lane

ROOT = Path(__file__).parents[2]
FORMAT = ROOT / "docs" / "evidence-format.md"
JSON = {str: "string", int: "integer", bool: "boolean", float: "number", Any: "object"}


def split(hint: Any) -> tuple[Any, bool]:
    """A type without null, and whether null is one of its values."""
    if get_origin(hint) not in (Union, UnionType):
        return hint, False
    [kind] = [one for one in get_args(hint) if one is not NoneType]
    return kind, True


def said(kind: Any) -> str:
    """What the page calls a type."""
    if isinstance(kind, type) and is_dataclass(kind):
        return kind.__name__.lower()
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "string"
    if origin is tuple:
        return f"array of {said(inner[0])}"
    if origin is Mapping:
        return "object" if inner[1] is Any else f"object of {said(inner[1])}"
    return JSON[kind]


def within(kind: Any) -> Iterator[Any]:
    """The nouns that a type holds."""
    if is_dataclass(kind):
        yield kind
    for inner in get_args(kind):
        yield from within(inner)


def nouns() -> list[Any]:
    """A capture, and all that it is made of."""
    found: list[Any] = [Capture]
    for noun in found:
        for hint in get_type_hints(noun).values():
            found += [one for one in within(hint) if one not in found]
    return found


def cells(line: str) -> list[str]:
    """The cells of a line of a table, without their marks."""
    return [cell.strip(" *`") for cell in line.strip("|").split("|")]


def table(heading: str) -> list[list[str]]:
    """The lines of the table with this first cell."""
    _, _, below = FORMAT.read_text(encoding="utf-8").partition(f"\n| {heading} |")
    assert below
    return [cells(line) for line in below.split("\n\n")[0].splitlines()[2:]]


def test_every_field_of_a_capture_stands_in_the_page() -> None:
    """Each object with its fields in their order; what may be null says where it is."""
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for noun, name, kind, meaning, null in table("object"):
        assert meaning
        fields_of = found.setdefault(noun, []) if noun else [*found.values()][-1]
        fields_of.append((name, kind, bool(null)))
    wanted = {}
    for noun in nouns():
        hints = {name: split(hint) for name, hint in get_type_hints(noun).items()}
        wanted[noun.__name__.lower()] = [
            (field.name, said(hints[field.name][0]), hints[field.name][1]) for field in fields(noun)
        ]
    assert found == wanted


def test_what_an_event_holds_stands_in_the_page() -> None:
    """Each lane, in the order of the vocabulary, with every name that committed events have."""
    named = {line[0]: set(re.findall(r"\w+", line[1])) for line in table("lane")}
    assert list(named) == list(get_args(Lane))
    for folder in ("article", "faults", "power_local"):
        for capture in read(ROOT / "evidence" / folder).captures():
            for event in capture.measurement.events:
                assert event.value.keys() <= named[event.lane], event
