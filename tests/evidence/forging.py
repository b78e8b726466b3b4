"""Capture after capture, a careful forger: one kind of thing changed, and all digests made anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from rcr_probes.evidence import consistency, seal, store
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Measurement

ROOT = Path(__file__).parents[2]

Change = Callable[[Any], object]  # of a measurement as JSON


@cache
def committed() -> Mapping[str, Capture]:
    """The captures of the article and of the fault locations, by cell id."""
    folders = (store.read(ROOT / "evidence" / name) for name in ("article", "locations"))
    return {c.cell.id: c for folder in folders for c in folder.captures()}


def found(cell: str, change: Change) -> list[str]:
    """What the check says of a committed capture after a careful forger changed it."""
    capture = committed()[cell]
    data = json.loads(msgspec.json.encode(capture.measurement))
    change(data)
    measured = msgspec.convert(data, Measurement)
    forged = seal.seal(measured, derive(measured), capture.circumstances)
    return list(consistency.problems(seal.decode(seal.encode(forged), "here")))


def put(path: str, value: Any) -> Change:
    """Put one value in a measurement; the path has dots."""

    def change(data: Any) -> None:
        *parents, last = (int(name) if name.isdigit() else name for name in path.split("."))
        for name in parents:
            data = data[name]
        data[last] = value

    return change


def insert(data: Any, at: int, phase: str, *happened: tuple[str, Any]) -> None:
    """Insert events, and move every number and every cut behind them."""
    new = [{"seq": 0, "phase": phase, "lane": lane, "value": value} for lane, value in happened]
    data["events"][at:at] = new
    for number, event in enumerate(data["events"]):
        event["seq"] = number
    for observed in data["observations"]:
        own = phase == observed["after"] or observed["after"] == "recover"
        observed["events"] += len(new) if own else 0


def remove(data: Any, gone: Callable[[Any], bool]) -> None:
    """Remove events, and move every number and every cut behind them."""
    for observed in data["observations"]:
        observed["events"] = sum(not gone(e) for e in data["events"][: observed["events"]])
    data["events"] = [e for e in data["events"] if not gone(e)]
    for number, event in enumerate(data["events"]):
        event["seq"] = number


def lanes(*names: str) -> Change:
    """Remove every event of these lanes."""
    return lambda data: remove(data, lambda event: event["lane"] in names)


def every(lane: str, **value: Any) -> Change:
    """Change the value of every event of one lane."""

    def change(data: Any) -> None:
        for event in data["events"]:
            if event["lane"] == lane:
                event["value"].update(value)

    return change
