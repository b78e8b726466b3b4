"""The real runtimes that can be probed: which run here, and what to type for the others."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rcr_probes.report.terminal import Drawn
from rcr_probes.report.texts import text
from rcr_probes.runtimes import KNOWN, Need

_COLUMNS = ("name", "version", "lacks", "plan")


def drawn(lang: str) -> Drawn:
    """Every adapter: its version, what it lacks on this machine, and its name in a plan."""
    columns = {text(f"adapters.column.{name}", lang): False for name in _COLUMNS}
    return Drawn(text("adapters.title", lang), columns, [_row(need, lang) for need in KNOWN])


def remedies(lang: str) -> Iterator[str]:
    """What to type for each adapter that lacks something; elsewhere than on Linux, none can run."""
    if sys.platform != "linux":
        yield text("adapters.elsewhere", lang, platform=sys.platform)
        return
    for need in KNOWN:
        if need.missing():
            yield text("adapters.remedy", lang, name=need.name, typed=" && ".join(need.remedies()))


def _row(need: Need, lang: str) -> list[str]:
    missing = (*([] if sys.platform == "linux" else ["Linux"]), *need.missing())
    lacks = ", ".join(missing) or text("adapters.ready", lang)
    return [need.name, need.version() or "-", lacks, need.runtime]
