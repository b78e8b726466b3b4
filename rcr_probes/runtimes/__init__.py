"""Adapters to real runtimes, one module each. Importing one imports nothing that it adapts.

``KNOWN`` is what ``rcr runtimes`` lists: every adapter, what it needs, and what to type for it.
"""

from __future__ import annotations

from rcr_probes.runtimes.needs import Need

KNOWN: tuple[Need, ...] = (
    Need("dbos", ("dbos",)),
    Need("langgraph", ("langgraph", "langgraph-checkpoint-sqlite")),
    Need("huey", ("huey",)),
    Need("rq", ("rq",), ("redis-server",)),
    Need("celery", ("celery", "kombu", "redis"), ("redis-server",)),
    Need("restate", ("restate-sdk", "hypercorn"), ("restate-server",)),
    Need("prefect", ("prefect",)),
)


def need(name: str) -> Need:
    """What the adapter of this name needs."""
    return next(one for one in KNOWN if one.name == name)


__all__ = ["KNOWN", "Need", "need"]
