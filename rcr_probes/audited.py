"""What a runtime's audit file tells, line by line, as far as the harness reads any audit."""

from __future__ import annotations

import errno

import msgspec

from rcr_probes import files
from rcr_probes.model import Json
from rcr_probes.vocabulary import UNREADABLE


def lines(path: str) -> list[dict[str, Json]]:
    """What each whole line of an audit file tells; nothing where a fault stands."""
    try:
        whole = files.read(path).split(b"\n")[:-1]
    except OSError as error:
        return [{"event": UNREADABLE}] if error.errno == errno.EFBIG else []
    return [_event(line) for line in whole]


def _event(line: bytes) -> dict[str, Json]:
    """What it calls its event, and the codes of its ``reasons``, where it gives any."""
    try:
        told = msgspec.json.decode(line, type=dict[str, Json])
        event = {"event": str(told["event"])}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return {"event": UNREADABLE}
    reasons = told.get("reasons")
    coded = isinstance(reasons, list) and all(isinstance(r, str) for r in reasons)
    return {**event, "reasons": reasons} if coded and reasons else event
