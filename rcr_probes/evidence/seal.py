"""Seal a capture: its digest, and its one line of JSON."""

from __future__ import annotations

import msgspec

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import lanes
from rcr_probes.evidence.form import facts_sha256
from rcr_probes.model import Capture, Circumstances, Judgement, Measurement


def seal(measured: Measurement, judged: Judgement, circumstances: Circumstances) -> Capture:
    """Put the parts of a capture together under their digest."""
    return Capture(measured, judged, circumstances, facts_sha256(measured, judged))


def encode(capture: Capture) -> bytes:
    """The capture as one line of JSON, newline included."""
    return msgspec.json.encode(capture) + b"\n"


def decode(line: bytes, place: str) -> Capture:
    """The capture that a line holds; its shape is validated, also of its events, its digest is not.

    Raises:
        EvidenceError: the line is no capture; ``place`` says where it stands.
    """
    remedy = "Restore the file, or run the plan again."
    try:
        capture = msgspec.json.decode(line, type=Capture)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EvidenceError(place, f"no capture ({error}).", remedy) from error
    odd = lanes.problem(capture.measurement)
    if odd:
        raise EvidenceError(place, f"no capture ({odd.removesuffix('.')}).", remedy)
    return capture
