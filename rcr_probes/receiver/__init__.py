"""A remote receiver of effects over HTTP, with idempotency keys and faults of its own.

It stands in for somebody's API: any method and path is an action that makes one effect. It is a
process of its own on 127.0.0.1, and what it records is the harness's word on what was done.
"""

from __future__ import annotations

from rcr_probes.receiver.client import Receiver
from rcr_probes.receiver.records import (
    FAULTS,
    HOLDS,
    Effect,
    Event,
    Fault,
    Held,
    KeyAnswer,
    NotReached,
    ReceiverError,
    Record,
    Request,
    Settings,
    Strike,
)
from rcr_probes.receiver.tables import read_back

__all__ = [
    "FAULTS",
    "HOLDS",
    "Effect",
    "Event",
    "Fault",
    "Held",
    "KeyAnswer",
    "NotReached",
    "Receiver",
    "ReceiverError",
    "Record",
    "Request",
    "Settings",
    "Strike",
    "read_back",
]
