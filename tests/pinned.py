"""Bytes that a dependency writes are compared under the version that wrote the committed ones."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PINS = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)


def written_by(*names: str) -> pytest.MarkDecorator:
    """Leave a test out where one of these packages is not at its version of constraints.txt."""
    others = [
        f"{name} {version(name)} for {PINS[name]}" for name in names if version(name) != PINS[name]
    ]
    return pytest.mark.skipif(bool(others), reason=f"other bytes: {', '.join(others)}")
