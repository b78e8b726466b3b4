"""Idempotency keys as the IETF draft has them: reading the header, and what a request may do.

Source: draft-ietf-httpapi-idempotency-key-header-07 (October 2025), §2. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

LONGEST = 255  # characters; the draft leaves it to the server, and Stripe documents this number

# An sf-string of RFC 8941 §3.3.3, and the parameters that an item may have: they mean nothing here.
_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"(?:;[ ]*[a-z*][a-z0-9_\-.*]*(?:=[!-:<-~]+)?)*')
# What real clients send without quotes: printable ASCII.
_BARE = re.compile(r"[!#-~](?:[ !#-~]*[!#-~])?")


class BadKey(Exception):
    """An Idempotency-Key that cannot be read; the message says why."""


def read_key(fields: Sequence[str]) -> str | None:
    """The key that the header fields carry, without quotes; None where there is no such field.

    ``"abc"`` and ``abc`` are the same key: the draft asks for the first, many clients send the
    second.

    Raises:
        BadKey: several fields, an empty or long key, or characters that a key cannot hold.
    """
    if not fields:
        return None
    if len(fields) > 1:
        raise BadKey("more than one Idempotency-Key field")
    text = fields[0].strip(" \t")
    if text.startswith('"'):
        found = _QUOTED.fullmatch(text)
        key = re.sub(r"\\(.)", r"\1", found[1]) if found else None
    else:
        key = text if text == "" or _BARE.fullmatch(text) else None
    if key is None:
        raise BadKey("the Idempotency-Key is no structured-field string")
    if not 1 <= len(key) <= LONGEST:
        raise BadKey(f"the Idempotency-Key has {len(key)} characters, not 1 to {LONGEST}")
    return key


def written(key: str) -> str:
    """A field's text from which ``read_key`` reads this key, or refuses it as it did before."""
    plain = all(" " <= char <= "~" for char in key)
    return '"{}"'.format(re.sub(r'(["\\])', r"\\\1", key)) if plain else key


@dataclass(frozen=True, slots=True)
class Payload:
    """What must be equal for two requests to be the same: the draft's fingerprint."""

    method: str
    path: str
    body_sha256: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The latest request that claimed a key.

    Attributes:
        request: its id.
        payload: what it asked for.
        done_at: the receiver's clock when it was handled; None while it is in flight.
    """

    request: int
    payload: Payload
    done_at: int | None


Decision = Literal["act", "replay", "mismatch", "conflict"]


def expired(done_at: int, now: int, retention: int) -> bool:
    """Whether a key is forgotten: ``retention`` seconds after its request was handled."""
    return now - done_at >= retention


def decide(
    claim: Claim | None, request: int, payload: Payload, now: int, retention: int
) -> Decision:
    """What a request with a key may do, given the key's latest claim.

    A claim in flight does not expire. Another payload is told so (422) also while the first is in
    flight: it must be corrected, and waiting does not help it.
    """
    if claim is None or claim.request == request:
        return "act"
    if claim.done_at is not None and expired(claim.done_at, now, retention):
        return "act"
    if claim.payload != payload:
        return "mismatch"
    return "conflict" if claim.done_at is None else "replay"
