"""Where a path holds no evidence: which folder was meant, by its name or by what lies below it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rcr_probes.errors import NotEvidence
from rcr_probes.evidence.form import PLAN, holds_evidence

_SHOWN = 4  # folders that are named where there are more
_ALIKE = 0.75  # of 1: how much of two names must be the same for a slip; difflib's own 0.6 guesses
_NAME = "Name a folder that rcr run or rcr import made, such as runs/article."


def none(place: Path) -> NotEvidence:
    """What to say of a place that holds no evidence, and what to name instead."""
    if os.path.isfile(place):
        inside = holds_evidence(place.parent)
        remedy = f"Name the folder that it lies in: {place.parent}" if inside else _NAME
        return NotEvidence(f"{place} is a file, and no folder of evidence.", remedy)
    if not os.path.isdir(place):
        return NotEvidence(
            f"There is no folder {place}.", question(place) or "Make evidence with: rcr run article"
        )
    if lower := below(place):
        return NotEvidence(
            f"{place} is no evidence itself, but folders in it are.",
            f"Name one of them: {_listed(lower)}",
        )
    return NotEvidence(f"{place} holds no evidence: it has no {PLAN}.", _NAME)


def question(place: Path) -> str | None:
    """A question for the folder with evidence whose path is most like this one; None without one.

    It has evidence, or folders of evidence; and it lies beside the place, or one level below.
    """
    found = _near(place)
    return None if found is None else f"Did you mean {found}?"


def below(folder: Path) -> list[Path]:
    """The folders of evidence in a folder; where there are none, those one level further down."""
    return _evidence(folder) or [path for one in _folders(folder) for path in _evidence(one)]


def _near(place: Path) -> Path | None:
    import difflib  # only where something is already wrong

    parent = place.parent if os.path.isdir(place.parent) else _near(place.parent)
    if parent is None:
        return None
    inner = {path: _evidence(path) for path in _folders(parent)}
    beside = [path for path, lower in inner.items() if lower or holds_evidence(path)]
    inside = [path for lower in inner.values() for path in lower]
    named = {path.name: path for path in reversed([*beside, *inside])}
    alike = difflib.get_close_matches(place.name, named, n=1, cutoff=_ALIKE)
    return named[alike[0]] if alike else None


def _evidence(folder: Path) -> list[Path]:
    return [path for path in _folders(folder) if holds_evidence(path)]


def _folders(folder: Path) -> list[Path]:
    """The folders in a folder, by name; none where it may not be looked into."""
    try:
        return sorted(path for path in folder.iterdir() if os.path.isdir(path))
    except OSError:
        return []


def _listed(paths: Sequence[Path]) -> str:
    listed = ", ".join(map(str, paths[:_SHOWN]))
    return f"{listed} and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else listed
