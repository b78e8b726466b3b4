"""The identity of a request: what an approval is bound to."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import rfc8785

from rcr_probes.model import Json

SESSION = "session_id"


def request_digest(request: Mapping[str, Json]) -> str:
    """``sha256:`` and 64 hexadecimal digits, over canonical JSON without the session id.

    The order of keys does not matter. The session does not either: an approval outlives the
    session that asked for it.

    Raises:
        ValueError: the request is not JSON (RFC 8785 has no form for it).
    """
    return "sha256:" + hashlib.sha256(rfc8785.dumps(without_session(request))).hexdigest()


def without_session(request: Mapping[str, Json]) -> dict[str, Json]:
    """The request as it is digested and stored."""
    return {name: value for name, value in request.items() if name != SESSION}
