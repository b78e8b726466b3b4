"""JSON read into the nouns, and written as their writer writes it, by the standard library alone.

Who doubts evidence reads it with other code than wrote it: a run writes with msgspec. Both ways
agree on what is a capture, and on its bytes: tests hold them against each other over altered
captures, and nothing proves it. A reader's checker embeds this module as it is.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from json.encoder import encode_basestring
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from rcr_probes.model import Json, as_map

T = TypeVar("T")
_Reader = Callable[[Json], Any]
_PLAIN: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    NoneType: "null",
    float: "a number",
    list: "a list",
    dict: "a map",
}


class Unreadable(Exception):
    """Bytes that are not what they should be; the message says where and why."""


class _Misfit(Exception):
    """A value of another kind than is wanted, and the way to it, innermost first."""

    def __init__(self, cause: str) -> None:
        self.cause = cause
        self.way: list[str] = []


def decoded(data: bytes, kind: type[T]) -> T:
    """The value of this kind that JSON holds; what it says beyond that is left out.

    Raises:
        Unreadable: it is no JSON in UTF-8, or not of this kind.
    """
    value, wanted = parsed(data), cast(Any, kind)
    try:
        found: T = _reader(wanted)(value)
    except _Misfit as misfit:
        raise Unreadable(f"${''.join(reversed(misfit.way))}: {misfit.cause}") from None
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    return found


def parsed(data: bytes) -> Json:
    """The value of JSON, of whatever shape; of a key that a map repeats, the last value.

    Who must see every byte writes the value again with ``encoded``, and compares.

    Raises:
        Unreadable: it is no JSON in UTF-8, is nested too deeply, or holds what is no number (NaN,
            one that is too large) or no letter (half of a surrogate pair).
    """
    try:
        text = data.decode()
        value = _READER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half a character is none
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    return value


def encoded(value: Json, *, indented: bool = False) -> bytes:
    """The one byte form of a value or a noun: compact, or as the small files of a folder.

    Keys keep the order that they have.

    Raises:
        Unreadable: it cannot be written.
    """
    try:
        if indented:
            return (_text(value, "\n") + "\n").encode()
        text = _WRITER.encode(value)
        # json writes an exponent as Python does, and that form alone has a sign after a letter
        exponent = ("e-" in text or "e+" in text) and _EXPONENT.search(text)
        return (_text(value, "") if exponent else text).encode()
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(str(error)) from None


def number(value: float) -> str:
    """A float as msgspec writes it: as Python does, but for its exponents."""
    digits, _, exponent = repr(value).partition("e")
    if not exponent:
        return digits
    power = int(exponent)
    if power == -5:
        sign = "-" if digits.startswith("-") else ""
        return f"{sign}0.0000{digits.lstrip('-').replace('.', '')}"
    return f"{digits}e{power}"


def _text(value: Json, gap: str) -> str:
    """A value as JSON; ``gap`` is a line's end and its indentation, or nothing."""
    match value:
        case str():
            return str(encode_basestring(value))
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return number(value)
        case list() | tuple():
            return _block("[]", [_text(one, gap and gap + "  ") for one in value], gap)
    held = value if isinstance(value, dict) else as_map(value)
    colon = ": " if gap else ":"
    parts = [
        f"{encode_basestring(key)}{colon}{_text(one, gap and gap + '  ')}"
        for key, one in held.items()
    ]
    return _block("{}", parts, gap)


def _block(brackets: str, parts: list[str], gap: str) -> str:
    if not parts:
        return brackets
    within = gap and gap + "  "
    return f"{brackets[0]}{within}{(',' + within).join(parts)}{gap}{brackets[1]}"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_READER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=as_map)
_EXPONENT = re.compile(r"\de[-+]\d")


def _as_it_is(value: Json) -> Any:
    return value


@cache
def _reader(kind: Any) -> _Reader:
    """What reads a value as this kind, or raises _Misfit."""
    if kind is Any:
        return _as_it_is
    if kind is None:
        kind = NoneType
    if kind is float:
        return _float
    if kind in _PLAIN and kind not in (list, dict):
        return lambda value: value if type(value) is kind else _misfit(_PLAIN[kind], value)
    if is_dataclass(kind):
        return _noun(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        words = ", ".join(map(repr, inner))
        return lambda value: value if value in inner else _misfit(f"one of {words}", value)
    if origin in (Union, UnionType):
        return _union([_reader(one) for one in inner])
    if origin is tuple and len(inner) == 2 and inner[1] is Ellipsis:
        return _sequence(_reader(inner[0]))
    if origin is Sequence:
        return _sequence(_reader(inner[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping) and inner[0] is str:
        return _map(_reader(inner[1]))
    raise TypeError(f"no reader for {kind}")


def _misfit(wanted: str, value: Json) -> NoReturn:
    raise _Misfit(f"{wanted} is expected, not {_PLAIN[type(value)]}")


def _float(value: Json) -> float:
    if type(value) not in (int, float):
        _misfit(_PLAIN[float], value)
    try:
        return float(value)
    except OverflowError:
        raise _Misfit("the number is too large") from None


def _union(readers: list[_Reader]) -> _Reader:
    null = _reader(cast(Any, NoneType))
    others = [reader for reader in readers if reader is not null]
    nullable = len(others) < len(readers)

    def read(value: Json) -> Any:
        if value is None and nullable:
            return None
        for reader in others[:-1]:
            try:
                return reader(value)
            except _Misfit as misfit:
                if misfit.way:  # it is of the right kind, and wrong inside
                    raise
        return others[-1](value)

    return read


def _sequence(item: _Reader) -> _Reader:
    def read(value: Json) -> tuple[Any, ...]:
        if type(value) is not list:
            _misfit(_PLAIN[list], value)
        made: list[Any] = []
        try:
            made.extend(map(item, value))  # what was read before a misfit stays
        except _Misfit as misfit:
            misfit.way.append(f"[{len(made)}]")
            raise
        return tuple(made)

    return read


def _map(item: _Reader) -> _Reader:
    def read(value: Json) -> dict[str, Any]:
        if type(value) is not dict:
            _misfit(_PLAIN[dict], value)
        if item is _as_it_is:
            return value
        try:
            return {key: item(one) for key, one in value.items()}
        except _Misfit as misfit:
            misfit.way.append("[…]")
            raise

    return read


def _noun(kind: Any) -> _Reader:
    hints = get_type_hints(kind)
    wanted = [(f.name, _reader(hints[f.name]), f) for f in fields(kind)]
    readers = {name: reader for name, reader, _ in wanted}

    def read(value: Json) -> Any:
        if type(value) is not dict:
            _misfit(_PLAIN[dict], value)
        try:
            return kind(**{name: reader(value[name]) for name, reader in readers.items()})
        except (_Misfit, KeyError):
            return told(value)

    def told(value: dict[str, Json]) -> Any:
        """The same, where a field is missing or one does not fit: it says which."""
        made: dict[str, Any] = {}
        name = ""
        try:
            for name, reader, field in wanted:
                if name in value:
                    made[name] = reader(value[name])
                elif field.default is MISSING and field.default_factory is MISSING:
                    raise _Misfit("it is missing")
        except _Misfit as misfit:
            misfit.way.append(f".{name}")
            raise
        return kind(**made)

    return read
