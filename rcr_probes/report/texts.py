"""The one table of everything that is said in English and Chinese, and its look-up."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from rcr_probes.errors import UnknownName

LANGS = ("en", "zh")


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
    if lang not in LANGS:
        raise UnknownName("language", lang, LANGS)
    known = table()
    if key not in known:
        raise UnknownName("text", key, known)
    try:
        return known[key][lang].format_map(values)
    except KeyError as missing:
        raise UnknownName(f"value in the text {key}", missing.args[0], values) from None


@cache
def table() -> Mapping[str, Mapping[str, str]]:
    """Every key, and its text in each language."""
    source = (files("rcr_probes") / "report" / "texts.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(source)))


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, str]]]:
    """A table whose values are strings holds one text; any other holds sections."""
    for name, value in section.items():
        if all(isinstance(inner, str) for inner in value.values()):
            yield prefix + name, value
        else:
            yield from _flat(value, f"{prefix}{name}.")
