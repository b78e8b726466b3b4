"""The flow under probe, as a user's module would hold it; it imports Prefect, unlike its adapter.

``prefect flow-run retry`` finds it by its entrypoint, so it must be known by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefect import flow, task

from rcr_probes.model import Json
from rcr_probes.points import reach
from rcr_probes.runtime import Operation
from rcr_probes.vocabulary import BASELINE

ENTRYPOINT = f"{__name__}:operate"
in_hand: list[Operation] = []  # the one of this process, put there before the flow is called


def _key(context: object, parameters: Mapping[str, Any]) -> str:
    """The operation's key, as the cache key that a function of one's own computes."""
    return str(parameters["key"])


# Variant → the options of its task ("How to cache workflow steps").
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    BASELINE: {},
    "persistence": {"persist_result": True},
    "cache_key": {"persist_result": True, "cache_key_fn": _key},
}


@task  # type: ignore[untyped-decorator]
def act(key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
    """The one task, which acts."""
    reach("before_action")
    evidence = in_hand[0].executor(key, request)
    reach("after_action")
    return evidence


@flow  # type: ignore[untyped-decorator]
def operate(key: str, request: dict[str, Any]) -> Mapping[str, Json]:
    """The flow: its parameters are what the server keeps of a run."""
    configured = act.with_options(**OPTIONS[in_hand[0].variant])
    evidence: Mapping[str, Json] = configured(key, request)
    reach("after_result")
    return evidence
