"""Runtimes that break the contract where that can be seen without running them.

Plans name them ``tests.runtimes_refused:factory``, and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.runtimes_under_test import PROCESS_FAULTS, Plain


class Wordless(Plain):
    """Says of a state what is no word for it."""

    says: Mapping[str, Any] = {"done": "finished"}


class Pointless(Plain):
    """Declares a point that does not exist."""

    points: Mapping[str, frozenset[str]] = {"before_acton": PROCESS_FAULTS}


class Faultless(Plain):
    """Declares a kind of fault that does not exist."""

    points: Mapping[str, frozenset[str]] = {"response": frozenset({"kil"})}


class Listless(Plain):
    """Declares its points as a list."""

    points: Any = ("response",)


class Commaless(Plain):
    """Declares its one way to recover as a text."""

    recoveries: Any = "resume"
