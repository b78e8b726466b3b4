"""The graph that LangGraph runs under probe: before the node that acts there is one, and one after.

It is imported by a phase alone. Where LangGraph writes in the background, a node waits for what is
on its way, so that a strike finds the same rows in every run.
"""

from __future__ import annotations

import gc
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypedDict

from rcr_probes.points import reach
from rcr_probes.runtime import Operation

os.environ["LANGSMITH_TRACING_V2"] = "false"  # langsmith reads it before any other such switch
gc.disable()  # a quarter of the time in which these are imported would go to collecting garbage

from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.config import get_config  # noqa: E402
from langgraph.func import task  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402
from langgraph.types import Command, interrupt  # noqa: E402

gc.enable()

_WAIT = 10.0  # seconds in which what is on its way must have been written
_LOOK = 0.002  # seconds between two looks
_ASKS_AFTER = ("interrupt_after_effect", "interrupt_after_task")


class NotWritten(Exception):
    """What LangGraph writes in the background did not come."""

    code = "NOT_WRITTEN"


class Order(TypedDict, total=False):
    """The state of the graph, which its checkpoints hold."""

    request: dict[str, Any]
    evidence: dict[str, Any]
    confirmed: bool


class Graph:
    """The graph over the operation's database, in one process."""

    def __init__(self, operation: Operation, saver: SqliteSaver, path: str) -> None:
        self._operation, self._saver, self._path = operation, saver, path
        self._variant = operation.variant
        mode = self._variant.partition("_")[0]
        self._durability = mode if mode in ("async", "exit") else "sync"
        self._busy: sqlite3.Connection | None = None
        self.thread = {"configurable": {"thread_id": operation.key}}
        self.compiled = self._compile()

    def submit(self) -> None:
        """What the caller does, and then the approver where the graph asks."""
        if "__interrupt__" in self.invoke({"request": dict(self._operation.request)}):
            self.approve()

    def approve(self) -> None:
        """What the approver does."""
        self.invoke(Command(resume=True))

    def invoke(self, given: object) -> Any:
        return self.compiled.invoke(given, self.thread, durability=self._durability)

    def _compile(self) -> Any:
        graph = StateGraph(Order)
        graph.add_node("prepare", self._prepare)
        graph.add_node("act", self._act)
        graph.add_node("confirm", self._confirm)
        graph.add_edge(START, "prepare")
        graph.add_edge("prepare", "act")
        graph.add_edge("act", "confirm")
        graph.add_edge("confirm", END)
        return graph.compile(checkpointer=self._saver)

    def _prepare(self, order: Order) -> Order:
        """Its checkpoint is the one before the action: LangGraph does not wait for the input's."""
        return {"confirmed": False}

    def _act(self, order: Order) -> Order:
        if self._durability == "async":
            _until(self._is_saved)
        if self._variant == "interrupt_before_effect":
            interrupt("May it act?")
            _until(self._is_answered)  # for which sync does not wait
        if self._variant == "interrupt_after_task":
            evidence = task(self._perform)(order["request"]).result()
        else:
            evidence = self._perform(order["request"])
        if self._variant in _ASKS_AFTER:
            interrupt("Was that right?")
        if self._variant == "async_store_busy":
            self._busy = sqlite3.connect(self._path, timeout=_WAIT, check_same_thread=False)
            self._busy.execute("BEGIN IMMEDIATE")
        return {"evidence": evidence}

    def _perform(self, request: dict[str, Any]) -> dict[str, Any]:
        reach("before_action")
        evidence = dict(self._operation.executor(self._operation.key, request))
        reach("after_action")
        return evidence

    def _confirm(self, order: Order) -> Order:
        if self._variant == "async":
            _until(lambda: self._is_saved() or self._refuses())
        reach("after_result")
        if self._busy is not None:
            self._busy.close()
        return {"confirmed": True}

    def _is_saved(self) -> bool:
        """Whether the checkpoint of the step before this one is there."""
        saved = self._saver.get_tuple(self.thread)
        step: int = get_config()["metadata"]["langgraph_step"]
        return saved is not None and saved.metadata["step"] >= step - 1

    def _is_answered(self) -> bool:
        """Whether the approver's answer is there."""
        saved = self._saver.get_tuple(self.thread)
        return any(channel == "__resume__" for _, channel, _ in saved.pending_writes)

    def _refuses(self) -> bool:
        """Whether the database takes no more rows, so that nothing will come."""
        with self._saver.cursor(transaction=False) as cursor:
            found = cursor.execute("SELECT 1 FROM sqlite_master WHERE type = 'trigger'")
            return found.fetchone() is not None


@contextmanager
def opened(operation: Operation, database: str) -> Iterator[Graph]:
    """The graph, over the database of this name in the operation's folder."""
    path = os.path.join(operation.folder, database)
    with SqliteSaver.from_conn_string(path) as saver:
        yield Graph(operation, saver, path)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _WAIT
    while not holds():
        if time.monotonic() > end:
            raise NotWritten(f"It was not there within {_WAIT:g} s.")
        time.sleep(_LOOK)
