"""Huey under probe: ``SqliteHuey`` with its consumer; driven with huey 3.5.4.

The caller enqueues a task under an id of its own, waits until the consumer has nothing more to do,
and asks for the result. The consumer is as its documentation ("Consuming Tasks") has it by default,
one worker thread, in a process of its own; so a kill inside a task is a real crash of the consumer.
It is stopped gracefully once its worker found the queue empty, so that a phase comes to an end.

Points: ``before_action`` and ``after_action`` lie in the task. ``after_result`` is a
``post_execute`` hook, which runs once the result is stored (huey.api.Huey._execute). At
``response`` the caller has the result in hand. ``result_refused``: a trigger on the table ``kv``
refuses the result's row.

Recoveries: ``restart`` starts the consumer again, and nothing else: what a supervisor does
("Deploying to Production"). ``resubmit`` enqueues the task again under the same id ("Recipes",
Idempotent Tasks Using Deterministic IDs); ``again`` is the same, for Huey has no other way.

Variants: ``retries`` is ``@huey.task(retries=2)`` ("Guide"). ``deduplicated`` is a recipe of the
documentation ("Recipes", Task Deduplication), keyed by the task's id.

The caller reads its result with ``preserve=True``: by default reading deletes it, and then a task
that is done and one that was lost leave the same store.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rcr_probes.model import Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, require_way
from rcr_probes.runtimes import need
from rcr_probes.runtimes.forked import forked
from rcr_probes.runtimes.requests import digest, text
from rcr_probes.runtimes.sqlite import RefusedBySqlite, copied
from rcr_probes.vocabulary import BASELINE, MISSING, Says

_DATABASE = "huey.db"
_RESULTS = "kv"  # the table of results, and of whatever else is kept by key
_RESTART = "restart"
_RETRIES = "retries"
_DEDUPLICATED = "deduplicated"


class HueyRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for Huey."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": frozenset({"kill"}),
        "after_action": frozenset({"kill", "result_refused"}),
        "after_result": frozenset({"kill"}),
        "response": frozenset({"kill"}),
    }
    recoveries: tuple[str, ...] = (_RESTART, "resubmit")
    # Huey keeps a message in its queue until a worker takes it, and then its result; in between,
    # and where there was no result, nothing ("Consuming Tasks", Consumer Internals).
    says: Mapping[str, Says] = {
        "complete": "done",  # a return value is stored
        "error": "open",  # the task raised: it may have acted before ("Guide", error handling)
        "enqueued": "due",  # also a task that is retried ("Signals")
        "scheduled": "due",  # and one that is retried with a delay
        MISSING: "open",  # "a task interrupted by SIGKILL is lost" ("Deploying to Production")
    }
    variants: tuple[str, ...] = (BASELINE, _RETRIES, _DEDUPLICATED)
    state_at_points = False
    versions = staticmethod(need("huey").versions)

    def start(self, operation: Operation) -> None:
        """Enqueue the task, and wait for its result.

        Raises:
            huey.exceptions.TaskException: the task failed.
            huey.exceptions.ResultTimeout: there is no result, and none will come any more.
        """
        app = _App(operation)
        app.submit()
        forked(app.consume)
        app.answer()
        reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """``restart``: the consumer. ``resubmit`` and ``again``: the task, by its caller.

        Raises:
            UnknownName: no such way.
            Exception: as ``start``; after a mere restart nobody waits for the result.
        """
        require_way(way, self.recoveries)
        app = _App(operation)
        if way != _RESTART:
            app.submit()
        forked(app.consume)
        if way != _RESTART:
            app.answer()

    def state(self, operation: Operation) -> Recorded:
        """What Huey has stored of the task, read by Huey from a copy of its database."""
        database = operation.folder / _DATABASE
        if not database.exists():
            return Recorded(MISSING, current_digest=digest(operation.request))
        with copied(database) as copy:
            return _App(operation, copy).stored()

    def refusal(self, operation: Operation) -> Refusal:
        """The row of the result is refused by its table."""
        return RefusedBySqlite(operation.folder / _DATABASE, _RESULTS)


class _App:
    """What a user's module would hold: the Huey instance, the task, and its hooks."""

    def __init__(self, operation: Operation, folder: Path | None = None) -> None:
        from huey import SqliteHuey

        self._operation = operation
        self._huey: Any = SqliteHuey(filename=os.fspath((folder or operation.folder) / _DATABASE))

        def act(asked: str) -> dict[str, Any]:
            reach("before_action")
            evidence = operation.executor(operation.key, json.loads(asked))
            reach("after_action")
            return dict(evidence)

        retries = 2 if operation.variant == _RETRIES else 0
        self._act = self._huey.task(retries=retries, name="act")(act)

        def persisted(task: Any, value: object, error: Exception | None) -> None:
            if error is None:
                reach("after_result")

        self._huey.post_execute()(persisted)
        if operation.variant == _DEDUPLICATED:  # its hooks run after ours
            self._deduplicate()

    def submit(self) -> None:
        """Enqueue the task under the operation's key, as its caller would."""
        self._act(text(self._operation.request), id=self._operation.key)
        self._huey.storage.close()  # a connection to SQLite must not be carried into a fork

    def consume(self) -> None:
        """Be the consumer until its worker finds the queue empty; then stop gracefully."""
        import logging

        from huey.consumer import Consumer, Worker

        logging.basicConfig(level=logging.INFO)  # as the program huey_consumer does
        idle = threading.Event()

        class Telling(Worker):  # type: ignore[misc]
            def sleep(self) -> None:
                if not self.huey.pending_count():
                    idle.set()
                super().sleep()

        class Ending(Consumer):  # type: ignore[misc]
            worker_class = Telling

        consumer = Ending(self._huey)
        consumer.start()
        idle.wait()
        consumer.stop(graceful=True)

    def answer(self) -> None:
        """What the caller gets who waits for the result, now that none can come any more."""
        self._huey.result(self._operation.key, blocking=True, timeout=0, preserve=True)

    def stored(self) -> Recorded:
        """What is stored of the task."""
        from huey.utils import Error

        current = digest(self._operation.request)
        key = self._operation.key
        result = self._huey.get(key, peek=True)
        if isinstance(result, Error):
            return Recorded("error", current_digest=current)
        if result is not None:
            return Recorded("complete", evidence=(result,), current_digest=current)
        for status, tasks in (
            ("enqueued", self._huey.pending()),
            ("scheduled", self._huey.scheduled()),
        ):
            for task in tasks:
                if task.id == key:
                    return Recorded(
                        status,
                        approved_digest=digest(json.loads(task.args[0])),
                        current_digest=current,
                    )
        return Recorded(MISSING, current_digest=current)

    def _deduplicate(self) -> None:
        """The recipe, as it stands: skip a task while one of the same key is running."""
        from huey import CancelExecution

        def deduplicate(task: Any) -> None:
            if not self._huey.put_if_empty(f"dedup:{task.id}", "1"):
                raise CancelExecution("Duplicate task, skipping")

        def clear_dedup(task: Any, value: object, error: Exception | None) -> None:
            self._huey.delete(f"dedup:{task.id}")

        self._huey.pre_execute()(deduplicate)
        self._huey.post_execute()(clear_dedup)


def runtime() -> HueyRuntime:
    """The adapter, where Huey is installed.

    Raises:
        RuntimeUnusable: it is not.
    """
    need("huey").require()
    return HueyRuntime()
