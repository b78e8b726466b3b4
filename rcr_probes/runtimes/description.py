"""Read the TOML file that describes a command, and say what is wrong with it."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rcr_probes.errors import RuntimeMissing, RuntimeUnusable, UnknownName
from rcr_probes.vocabulary import BASELINE, SAYS, Says

_REQUIRED = ("command", "says")
_KEYS = (*_REQUIRED, "points", "recoveries", "variants")
# What can strike a process that is not ours, without a seam of its runtime.
_KINDS = ("exception", "kill", "audit_is_directory")


@dataclass(frozen=True, slots=True)
class Described:
    """What a description says.

    Attributes:
        command: the program and its arguments; the program as a path.
        folder: the description's own: the command runs there.
        points: point → kinds of fault that it supports there.
        recoveries: its own documented ways to recover.
        says: state → done, not_done, due or open.
        variants: its configurations.
    """

    command: tuple[str, ...]
    folder: Path
    points: Mapping[str, frozenset[str]]
    recoveries: tuple[str, ...]
    says: Mapping[str, Says]
    variants: tuple[str, ...]


def read(path: Path) -> Described:
    """The description in a file.

    Raises:
        RuntimeUnusable: there is none, or it is wrong; the error says where.
        RuntimeMissing: its program is not on this machine.
    """
    data = _data(path)
    for key in data:
        if key not in _KEYS:
            beside = f"It is a plan: rcr run {path}" if "cells" in data else ""
            wrong = UnknownName("key", key, _KEYS, beside)
            raise RuntimeUnusable(f"{path}: {wrong.cause}", wrong.remedy)
    for key in _REQUIRED:
        if key not in data:
            raise RuntimeUnusable(f"{path} lacks {key}.", _EXAMPLES[key])
    folder = path.parent.absolute()
    command = _words(path, data, "command")
    if not command or not command[0]:
        raise RuntimeUnusable(f"{path}: command has no program.", _EXAMPLES["command"])
    return Described(
        command=(_program(path, command[0], folder), *command[1:]),
        folder=folder,
        points={
            point: frozenset(_words(path, {f"points.{point}": kinds}, f"points.{point}", _KINDS))
            for point, kinds in _table(path, data, "points").items()
        },
        recoveries=_words(path, data, "recoveries"),
        says={state: _says(path, state, w) for state, w in _table(path, data, "says").items()},
        variants=_words(path, {"variants": [BASELINE], **data}, "variants"),
    )


_EXAMPLES: Mapping[str, str] = {
    "command": 'Name the program and its arguments: command = ["node", "runtime.mjs"]',
    "says": 'Say what each state means: says = { done = "done", missing = "open" }',
    "points": 'Write it as point = [kinds]: points = { after_action = ["exception", "kill"] }',
    "recoveries": 'Write a list of names: recoveries = ["resume"]',
    "variants": 'Write a list of words: variants = ["baseline", "careful"]',
}


def _data(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise RuntimeUnusable(
            f"There is no description of a runtime at {path} ({error.strerror}).",
            "Its path is relative to the current directory.",
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise RuntimeUnusable(f"{path} is not TOML: {error}.", "Mend that line.") from error


def _words(
    path: Path, data: Mapping[str, Any], key: str, known: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """A list of texts; empty where there is none."""
    value = data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        example = _EXAMPLES[key.partition(".")[0]]
        raise RuntimeUnusable(f"{path}: {key} is {value!r:.60}, not a list of texts.", example)
    for word in value:
        if "\0" in word:
            raise RuntimeUnusable(f"{path}: a word of {key} holds a zero byte.", "Leave it out.")
        if known and word not in known:
            wrong = UnknownName(f"kind of fault in {key}", word, known)
            raise RuntimeUnusable(f"{path}: {wrong.cause}", wrong.remedy)
    return tuple(value)


def _table(path: Path, data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise RuntimeUnusable(f"{path}: {key} is {value!r:.60}, not a table.", _EXAMPLES[key])
    return value


def _says(path: Path, state: str, word: Any) -> Says:
    if word not in SAYS:
        wrong = UnknownName(f"word for the state {state!r}", word, SAYS)
        raise RuntimeUnusable(f"{path}: {wrong.cause}", wrong.remedy)
    return cast(Says, word)


def _program(path: Path, name: str, folder: Path) -> str:
    """Where the program is: on the PATH; where its name holds a slash, from the folder."""
    place = os.path.join(folder, name) if "/" in name else name
    found = shutil.which(place)
    if found is None:
        if "/" not in name:
            raise RuntimeMissing(
                f"{path}: the program {name!r} was not found.",
                "Install it, or name it by a path from the folder of this file.",
            )
        what = "cannot be run" if os.path.exists(place) else "was not found"
        raise RuntimeUnusable(
            f"{path}: the program {name!r} {what}.",
            f"It must lie in the folder of {path.name}, and be executable: chmod +x {name}.",
        )
    return found
