"""What LangGraph's SQLite checkpointer has stored, read by SQLite alone; and its refusal.

The tables are those of langgraph-checkpoint-sqlite 3.1: a row of ``checkpoints`` is the state after
a step, in MessagePack; a row of ``writes`` is what a task of the step after it gave, which holds
until that step's own checkpoint is there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from rcr_probes.model import Json, Recorded
from rcr_probes.runtimes.requests import digest
from rcr_probes.runtimes.sqlite import copied
from rcr_probes.vocabulary import MISSING

_NODE = "~__pregel_pull, "  # how the path of a node's task begins; the node's name follows
_NEXT = "branch:to:"  # how the channel is named that makes a node the next one
# Writes that say what happened to a task. Any other is output, and the task has finished
# (langgraph.pregel._task_status).
_CONTROL = ("__interrupt__", "__resume__", "__error__", "__error_source_node__")


class Write(NamedTuple):
    """What a task gave: to which channel, and from which node (or which other path)."""

    node: str
    channel: str
    value: Json


def recorded(path: Path, thread: str, request: Mapping[str, Json]) -> Recorded:
    """What is stored of the thread, the request being the one in hand."""
    current = digest(request)
    stored = _latest(path, thread)
    if stored is None:
        return Recorded(MISSING, current_digest=current)
    channels, writes = stored
    values = {**channels.get("__start__", {}), **channels}
    results = [write.value for write in writes if write.channel in ("evidence", "__return__")]
    if not results and "evidence" in values:
        results = [values["evidence"]]
    return Recorded(
        status(channels, writes),
        evidence=tuple(results[-1:]),
        approved_digest=digest(values["request"]),
        current_digest=current,
    )


def status(channels: Mapping[str, Json], writes: Sequence[Write]) -> str:
    """What ``get_state`` says, in a word: of the node that is next, or that none is.

    As there, a node that gave its output is not next any more, though its step has no checkpoint.
    """
    nodes = [channel.removeprefix(_NEXT) for channel in channels if channel.startswith(_NEXT)]
    nodes += ["start"] * ("__start__" in channels)
    finished = {write.node for write in writes if write.channel not in _CONTROL}
    for node in (node for node in nodes if node not in finished):
        said = {write.channel for write in writes if write.node == node}
        if "__error__" in said:
            return "error"
        return "interrupted" if "__interrupt__" in said else f"next_{node}"
    return "complete"


def _latest(path: Path, thread: str) -> tuple[dict[str, Json], list[Write]] | None:
    """The channels of the latest checkpoint, and what was written to it since."""
    with copied(path) as copy, closing(sqlite3.connect(copy / path.name)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        if ("checkpoints",) not in tables:
            return None
        latest = database.execute(
            "SELECT checkpoint_id, checkpoint FROM checkpoints WHERE thread_id = ? "
            "AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1",
            (thread,),
        ).fetchone()
        if latest is None:
            return None
        rows = database.execute(
            "SELECT task_path, channel, type, value FROM writes WHERE thread_id = ? "
            "AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY rowid",
            (thread, latest[0]),
        ).fetchall()
    decode = msgspec.msgpack.decode
    writes = [
        Write(at.removeprefix(_NODE), channel, decode(value) if kind == "msgpack" else None)
        for at, channel, kind, value in rows
    ]
    return decode(latest[1])["channel_values"], writes
