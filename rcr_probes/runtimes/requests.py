"""A request as a runtime's argument: one text, and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from rcr_probes.model import Json, canonical_json


def text(request: Mapping[str, Json]) -> str:
    """The request as canonical JSON: what an adapter hands to its runtime as the argument."""
    return canonical_json(dict(request)).decode()


def digest(request: Mapping[str, Json]) -> str:
    """``sha256:`` over the request's meaning: its canonical JSON without the session."""
    meaning = {name: value for name, value in request.items() if name != "session_id"}
    return f"sha256:{hashlib.sha256(canonical_json(meaning)).hexdigest()}"
