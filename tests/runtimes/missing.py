"""Why the tests of an adapter are skipped: what it lacks here, and what to type."""

from __future__ import annotations

import pytest

from rcr_probes.runtimes import Need, need


def skip_without(name: str) -> Need:
    """The need of an adapter; the module that calls this is skipped where it is not met."""
    wanted = need(name)
    if wanted.missing():
        lacks, typed = ", ".join(wanted.missing()), " && ".join(wanted.remedies())
        pytest.skip(f"{name} lacks {lacks}: {typed}", allow_module_level=True)
    return wanted
