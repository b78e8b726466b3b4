"""The one table of everything that is said in English and Chinese, and its look-up."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from rcr_probes.errors import UnknownName

LANGS = ("en", "zh")
# Where the texts stand, in the folder of this module, and what their keys begin with.
SOURCES: Mapping[str, str] = {"texts.toml": "", "guide/texts.toml": "guide."}


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
    known = table()
    if key not in known:
        raise UnknownName("text", key, known)
    return known[key][lang]


@cache
def table() -> Mapping[str, Mapping[str, str]]:
    """Every key, and its text in each language."""
    folder = files("rcr_probes") / "report"
    read = {name: (folder / name).read_text(encoding="utf-8") for name in SOURCES}
    return {
        key: said
        for name, source in read.items()
        for key, said in _flat(tomllib.loads(source), SOURCES[name])
    }


def _flat(section: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, str]]]:
    """A table whose values are strings holds one text; any other holds sections."""
    for name, value in section.items():
        if all(isinstance(inner, str) for inner in value.values()):
            yield prefix + name, value
        else:
            yield from _flat(value, f"{prefix}{name}.")
