"""The identity of a request: what an approval is bound to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import rfc8785

from rcr_probes.model import Json

SESSION = "session_id"
RELATIVE = "relative"  # whether the target is one of the session that asks

Digest = Callable[[Mapping[str, Json]], str]


def request_digest(request: Mapping[str, Json]) -> str:
    """``sha256:`` and 64 hexadecimal digits, over canonical JSON without the session id.

    The order of keys does not matter. The session does not either: an approval outlives the
    session that asked for it. Every other field counts, whether or not the action depends on it.

    Raises:
        ValueError: the request is not JSON (RFC 8785 has no form for it).
    """
    return _sha256(without_session(request))


def meaning_digest(request: Mapping[str, Json]) -> str:
    """The same over what the action depends on, and nothing else: executor, action, real target.

    A target that is relative to the session is another one in another session. A credential is
    none of it: who holds a new one asks for the same.

    Raises:
        ValueError: the request is not JSON.
    """
    rfc8785.dumps(dict(request))  # what is no JSON is refused, also where the meaning is
    return _sha256(
        {
            "executor": request.get("executor"),
            "action": request.get("action"),
            "target": real_target(request),
        }
    )


def real_target(request: Mapping[str, Json]) -> Json:
    """Where the action acts: a relative target is another one in another session."""
    target = request.get("target")
    return f"{target}@{request.get(SESSION)}" if request.get(RELATIVE) else target


def stored(request: Mapping[str, Json]) -> dict[str, Json]:
    """The request as its record keeps it: with the session where the target depends on it."""
    return dict(request) if request.get(RELATIVE) else without_session(request)


def without_session(request: Mapping[str, Json]) -> dict[str, Json]:
    """The request as it is digested."""
    return {name: value for name, value in request.items() if name != SESSION}


def _sha256(value: Json) -> str:
    return "sha256:" + hashlib.sha256(rfc8785.dumps(value)).hexdigest()
