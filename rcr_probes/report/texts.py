"""The one table of everything that is said in English and Chinese, and its look-up."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rcr_probes.errors import UnknownName

LANGS = ("en", "zh")
# Where the texts stand, in the folder of this module, and what their keys begin with.
SOURCES: Mapping[str, str] = {"texts.toml": "", "guide/texts.toml": "guide."}
_HEADER = re.compile(r"^(?=\[([a-z_]+))", re.MULTILINE)


def text(key: str, lang: str, **values: object) -> str:
    """The text with this key in this language, its placeholders filled.

    Args:
        key: section and name, joined by dots, as in ``verdict.protected``.
        lang: ``en`` or ``zh``.
        values: what the placeholders stand for; numbers come from captures. More may be given than
            the text uses.

    Raises:
        UnknownName: no text has this key, the language is not there, or a placeholder has no value.
    """
    try:
        return template(key, lang).format_map(values)
    except KeyError as missing:
        raise UnknownName(f"value in the text {key}", missing.args[0], values) from None


def template(key: str, lang: str) -> str:
    """The same with its placeholders as they are written.

    Raises:
        UnknownName: no text has this key, or the language is not there.
    """
    if lang not in LANGS:
        raise UnknownName("language", lang, LANGS)
    known = section(key.partition(".")[0])
    if key not in known:
        raise UnknownName("text", key, table())
    return known[key][lang]


@cache
def section(name: str) -> Mapping[str, Mapping[str, str]]:
    """The keys that begin with this name, and their texts; no other text is parsed for them.

    A command says little, and most of the time that it would take is in reading all the others.
    """
    found: dict[str, Mapping[str, str]] = {}
    for source, prefix in SOURCES.items():
        if prefix in ("", f"{name}."):
            parts = _parts(source)
            own = "".join(parts.values()) if prefix else parts.get(name, "")
            found |= _flat(tomllib.loads(own), prefix)
    return found


@cache
def table() -> Mapping[str, Mapping[str, str]]:
    """Every key, and its text in each language."""
    return {
        key: said
        for source, prefix in SOURCES.items()
        for key, said in _flat(tomllib.loads("".join(_parts(source).values())), prefix)
    }


@cache
def _parts(source: str) -> Mapping[str, str]:
    """The lines of a source by the section that they are in; what comes first is a comment."""
    place = Path(__file__).parent / source
    _, *pieces = _HEADER.split(place.read_text(encoding="utf-8"))
    parts: dict[str, str] = {}
    for name, piece in zip(pieces[::2], pieces[1::2], strict=True):
        parts[name] = parts.get(name, "") + piece
    return parts


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, str]]]:
    """A table whose values are strings holds one text; any other holds sections."""
    for name, value in section.items():
        if all(isinstance(inner, str) for inner in value.values()):
            yield prefix + name, value
        else:
            yield from _flat(value, f"{prefix}{name}.")
