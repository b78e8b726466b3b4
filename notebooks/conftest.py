"""Let ``pytest --nbval`` compare PNGs too: a figure that changed is a failure."""

from __future__ import annotations

import pytest


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Take PNG out of what nbval leaves uncompared."""
    skipped = vars(collector).get("skip_compare", ())
    if "image/png" in skipped:
        vars(collector)["skip_compare"] = tuple(kind for kind in skipped if kind != "image/png")
