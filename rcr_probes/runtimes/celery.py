"""Celery under probe: one task over a private Redis; driven with celery 5.7.0 and kombu 5.7.0.

The caller sends the task under an id of its own, and asks for its result once nothing is under way
any more. The worker has the default pool, prefork, with one child to perform the task. The broker
is one private Redis (7.0), the result backend another: a refused result stops no message.

Variants ("Tasks"; "Configuration and defaults"): ``early_ack`` is the default, a message is
acknowledged just before its task is executed; ``late_ack`` sets ``task_acks_late``;
``late_ack_reject`` sets ``task_reject_on_worker_lost``, too, and ``late_ack_deduplicate`` sets
``worker_deduplicate_successful_tasks`` with ``task_acks_late``.

Points: ``before_action`` and ``after_action`` lie in the task; ``after_result`` in the signal
``task_success``, which the pool child sends after it has stored the result (``celery.app.trace``);
``response`` is where the caller has the result and all is shut down. ``kill`` ends the pool child,
``kill_host`` the worker's main process with its child. ``result_refused``: the result backend takes
no writes any more, as a Redis that has lost its replicas. Such a write is tried once, for it is no
error of the connection, and ``result_backend_always_retry`` is off by default.

Recoveries: ``redelivery`` is a worker started again, which ends when broker and worker are idle;
where the message had been acknowledged that is at once. ``again``: then the caller sends the task
under the same id once more. What would come back after an hour comes back here after seconds: a
sweep goes by the ``visibility_timeout`` of the worker that sweeps ("Redis Transport", Visibility
timeout and unacked message restore). In the fault phase that is the default, which no phase
outlives, however slow the machine is; in recovery it is short, and sweeps come each second. No two
workers are there at once.

An early acknowledgement and the task run side by side in two processes. Here the task waits until
the broker has the former: a host that is killed between the two would otherwise toss a coin.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rcr_probes.model import Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, require_way
from rcr_probes.runtimes import need
from rcr_probes.runtimes.celery_worker import UNACKED, ForkedWorker, WorkerFailed, queued
from rcr_probes.runtimes.redis import PrivateRedis, RefusedByRedis, copied
from rcr_probes.runtimes.requests import digest, text
from rcr_probes.vocabulary import AGAIN, MISSING, Says

_REDELIVERY = "redelivery"
_EARLY_ACK = "early_ack"
_SETTINGS: Mapping[str, Mapping[str, bool]] = {
    _EARLY_ACK: {},
    "late_ack": {"task_acks_late": True},
    "late_ack_reject": {"task_acks_late": True, "task_reject_on_worker_lost": True},
    "late_ack_deduplicate": {"task_acks_late": True, "worker_deduplicate_successful_tasks": True},
}
_CHILD_KINDS = frozenset({"kill", "kill_host"})
_BROKER, _RESULTS = "broker", "results"
_TASK = "rcr_probes.act"
_ASKS = 0.1  # seconds that the caller waits for a result; by then it is there, or never will be
_ACKED = 10.0  # seconds in which an early acknowledgement must have come to the broker
# Seconds; a worker that recovers holds no message unacknowledged for so long, and none is swept
# twice. By default it would be an hour, and some 100 s between two sweeps.
_SOON = {"visibility_timeout": 5, "unacked_restore_interval": 1, "unacked_restore_throttle": 1}


class CeleryRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for Celery."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": _CHILD_KINDS,
        "after_action": _CHILD_KINDS | {"result_refused"},
        "after_result": _CHILD_KINDS,
        "response": frozenset({"kill"}),
    }
    recoveries: tuple[str, ...] = (_REDELIVERY,)
    # "Tasks", Built-in States. To Celery the last three are one state, PENDING: "waiting for
    # execution or unknown". They tell where the message is, and none of them that it was never
    # delivered: what comes back is queued again.
    says: Mapping[str, Says] = {
        "SUCCESS": "done",  # "has been successfully executed"
        "FAILURE": "open",  # "execution resulted in failure": also of a child that was killed
        "STARTED": "open",
        "RETRY": "open",
        "REVOKED": "open",
        "queued": "due",
        "unacked": "due",  # it is delivered again once its visibility timeout is over
        MISSING: "open",
    }
    variants: tuple[str, ...] = tuple(_SETTINGS)
    state_at_points = False
    versions = staticmethod(need("celery").versions)

    def start(self, operation: Operation) -> None:
        """Send the task to a worker, and ask for its result when nothing is under way any more.

        Raises:
            billiard.exceptions.WorkerLostError: the child is gone that performed it.
            celery.exceptions.TimeoutError: there is no result, and nobody who would bring one.
            Exception: what else the result says.
        """
        with _redises(operation) as (broker, results):
            app = _app(operation, broker, results)
            with ForkedWorker(app, broker) as worker:
                _ask(app, operation, worker)
        reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """A worker started again; for ``again``, the task is sent to it once more.

        Raises:
            UnknownName: no such way.
            Exception: as ``start``, for ``again``.
        """
        require_way(way, self.recoveries)
        with _redises(operation) as (broker, results):
            app = _app(operation, broker, results, broker_transport_options=_SOON)
            with ForkedWorker(app, broker) as worker:
                worker.settle()
                if way == AGAIN:
                    _ask(app, operation, worker)

    def state(self, operation: Operation) -> Recorded:
        """The result, and where the message is, read from copies of what both servers keep."""
        with (
            copied(operation.folder / _BROKER) as broker_files,
            copied(operation.folder / _RESULTS) as results_files,
        ):
            if broker_files is None or results_files is None:
                return Recorded(MISSING, current_digest=digest(operation.request))
            with PrivateRedis(broker_files) as broker, PrivateRedis(results_files) as results:
                return _recorded(operation, broker, results)

    def refusal(self, operation: Operation) -> Refusal:
        """The result backend takes no writes."""
        return RefusedByRedis(operation.folder / _RESULTS)

    def hosts(self, operation: Operation) -> Sequence[int]:
        """The worker's main process, and its pool child: the one that asks.

        The child would die with the main process, by a setting that Celery makes in it
        (celery.concurrency.prefork), and must live on to tell that the strike came through.
        """
        from billiard.util import set_pdeathsig

        set_pdeathsig(0)
        return os.getppid(), os.getpid()


@contextlib.contextmanager
def _redises(operation: Operation) -> Iterator[tuple[PrivateRedis, PrivateRedis]]:
    """The broker and the result backend; how often the latter refused is noted at the end."""
    for name in (_BROKER, _RESULTS):
        (operation.folder / name).mkdir(exist_ok=True)
    with (
        PrivateRedis(operation.folder / _BROKER) as broker,
        PrivateRedis(operation.folder / _RESULTS) as results,
    ):
        try:
            yield broker, results
        finally:
            results.note_refusals()


def _app(operation: Operation, broker: PrivateRedis, results: PrivateRedis, **more: Any) -> Any:
    """The Celery application, as a user would write it, with the points in it."""
    from celery import Celery, signals

    app = Celery(
        "rcr_probes",
        broker=f"redis+socket://{broker.socket}",
        backend=f"redis+socket://{results.socket}",
    )
    app.conf.update(_SETTINGS[operation.variant], **more)

    @app.task(name=_TASK, bind=True)  # type: ignore[untyped-decorator]
    def act(task: Any, asked: str) -> dict[str, Any]:
        if operation.variant == _EARLY_ACK:
            _wait_until_acknowledged(broker, task.request.properties["delivery_tag"])
        reach("before_action")
        evidence = operation.executor(operation.key, json.loads(asked))
        reach("after_action")
        return dict(evidence)

    @signals.task_success.connect(weak=False)  # type: ignore[untyped-decorator]
    def stored(**_: Any) -> None:
        reach("after_result")

    return app


def _wait_until_acknowledged(broker: PrivateRedis, tag: str) -> None:
    until = time.monotonic() + _ACKED
    with broker.client() as client:
        while client.hexists(UNACKED, tag):
            if time.monotonic() > until:
                raise WorkerFailed("the early acknowledgement did not come to the broker")
            time.sleep(0.002)


def _ask(app: Any, operation: Operation, worker: ForkedWorker) -> None:
    """Send the task, and get its result once nothing is under way, or the worker is gone."""
    asked = (text(operation.request),)
    result = app.tasks[_TASK].apply_async(asked, task_id=operation.key)
    worker.settle()
    try:
        result.get(timeout=_ASKS)
    except Exception as error:
        # Its frames hold the result, and that one unsubscribes where it ends: not from a server
        # that is gone.
        del result
        error.__context__ = None
        raise error.with_traceback(None)  # noqa: B904


def _recorded(operation: Operation, broker: PrivateRedis, results: PrivateRedis) -> Recorded:
    with results.client() as client:
        found = client.get(f"celery-task-meta-{operation.key}")  # as its backend names it
    meta = json.loads(found) if found else {}
    with broker.client() as client:
        unacked = [json.loads(message)[0] for message in client.hvals(UNACKED)]
        waiting = [json.loads(message) for message in queued(client)]
    place = "unacked" if unacked else "queued" if waiting else None
    value = meta.get("result") if meta.get("status") == "SUCCESS" else None
    return Recorded(
        status=meta.get("status") or place or MISSING,
        execution=place,
        evidence=(value,) if isinstance(value, Mapping) else (),
        approved_digest=next((digest(_asked(m)) for m in (*unacked, *waiting)), None),
        current_digest=digest(operation.request),
    )


def _asked(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request in a message ("Message Protocol", version 2)."""
    (asked,), _, _ = json.loads(base64.b64decode(message["body"]))
    request: Mapping[str, Any] = json.loads(asked)
    return request


def runtime() -> CeleryRuntime:
    """The adapter, where Celery and a redis-server are installed.

    Raises:
        RuntimeUnusable: they are not.
    """
    need("celery").require()
    return CeleryRuntime()
