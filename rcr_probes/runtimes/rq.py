"""RQ under probe: a queue on a private Redis, and its default worker; driven with rq 3.0.0.

The caller enqueues a job under an id of its own, and asks for its result once the worker is gone.
The worker is RQ's default: it forks a work-horse for the job ("RQ: Workers", The Worker Lifecycle),
here in burst mode, in a process of its own. Redis is started for each phase on a Unix socket in the
cell's folder, keeps what it was told in its append-only file, and is stopped by its pid.

Points: ``before_action``, ``after_action`` and ``after_result`` lie in the work-horse, the last one
behind the transaction that stores the result; ``response`` is where the caller has the result in
hand. ``kill`` ends the work-horse, ``kill_host`` the worker and its work-horse. ``result_refused``:
Redis takes no writes any more, as one that has lost its replicas (``min-replicas-to-write``).

Recoveries, each followed by a worker: ``requeue`` puts the job back from the FailedJobRegistry
("RQ: Jobs", Requeuing Failed Jobs). ``maintenance`` is what any worker does by itself when the
heartbeat of a job has lapsed ("RQ: Results", Dealing with Interruptions): the registry is cleaned
as of a later time, which stands in for the wait. ``cleanup`` is maintenance, and then requeue of a
job that it moved to the FailedJobRegistry. ``again``: the caller enqueues under the same id.

Variants: ``retry`` enqueues with ``Retry(max=3)`` ("RQ: Exceptions & Retries"). ``unique`` enqueues
with ``unique=True``: an id that is known is refused (``Queue.enqueue_call``).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rcr_probes.model import Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, require_way
from rcr_probes.runtimes import need
from rcr_probes.runtimes.forked import forked
from rcr_probes.runtimes.redis import PrivateRedis, RefusedByRedis, copied
from rcr_probes.runtimes.requests import digest, text
from rcr_probes.vocabulary import AGAIN, BASELINE, MISSING, Says

_REQUEUE = "requeue"
_MAINTENANCE = "maintenance"
_CLEANUP = "cleanup"
_RETRY = "retry"
_UNIQUE = "unique"
_LATER = 3600  # seconds: by then the heartbeat of a job that nobody works on has lapsed
_HORSE_KINDS = frozenset({"kill", "kill_host"})

_in_hand: Operation | None = None  # what the job acts for; a job is called by its name alone


class JobFailed(Exception):
    """RQ says that the job failed."""

    code = "JOB_FAILED"


class NoResult(Exception):
    """There is no result of the job, and no worker that would still bring one."""

    code = "NO_RESULT"


class RQRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for RQ."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": _HORSE_KINDS,
        "after_action": _HORSE_KINDS | {"result_refused"},
        "after_result": _HORSE_KINDS,
        "response": frozenset({"kill"}),
    }
    recoveries: tuple[str, ...] = (_REQUEUE, _MAINTENANCE, _CLEANUP)
    # "RQ: Jobs", Retrieving Jobs, names them. None says that the job has not been started: a job
    # that is retried or requeued is queued again, or scheduled.
    says: Mapping[str, Says] = {
        "finished": "done",
        "failed": "open",  # "executed, but didn't finish successfully" ("RQ: Job Registries")
        "started": "due",  # abandoned, it is put back by a worker's maintenance if retries are left
        "queued": "due",
        "scheduled": "due",
        "deferred": "open",
        "stopped": "open",  # while it was executing
        "canceled": "open",  # also a job that has failed can be canceled
        MISSING: "open",  # a finished job expires
    }
    variants: tuple[str, ...] = (BASELINE, _RETRY, _UNIQUE)
    state_at_points = False
    versions = staticmethod(need("rq").versions)

    def start(self, operation: Operation) -> None:
        """Enqueue the job, let a worker run, and ask for the result.

        Raises:
            JobFailed: RQ gave it up.
            NoResult: the worker is gone, and left no result.
        """
        with PrivateRedis(operation.folder) as redis:
            _enqueue(operation, redis)
            _work(operation, redis)
            redis.note_refusals()
            _answer(operation, redis)
        reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """One of the ways of the module's docstring, then a worker.

        Raises:
            UnknownName: no such way.
            rq.exceptions.InvalidJobOperation: requeue of a job that RQ does not hold for failed.
            rq.exceptions.DuplicateJobError: in the variant unique, the id is known.
            Exception: as ``start``.
        """
        require_way(way, self.recoveries)
        with PrivateRedis(operation.folder) as redis:
            queue = redis.queue()
            if way == AGAIN:
                _enqueue(operation, redis)
            if way in (_MAINTENANCE, _CLEANUP):
                queue.started_job_registry.cleanup(timestamp=time.time() + _LATER)
            failed = queue.failed_job_registry
            if way == _REQUEUE or (way == _CLEANUP and operation.key in failed):
                failed.requeue(operation.key)
            _work(operation, redis)
            if way != _MAINTENANCE:  # nobody asked for it, and nobody waits
                _answer(operation, redis)

    def state(self, operation: Operation) -> Recorded:
        """What RQ has stored of the job, read by RQ from a copy of the files of its Redis."""
        current = digest(operation.request)
        with copied(operation.folder) as folder:
            if folder is None:
                return Recorded(MISSING, current_digest=current)
            with PrivateRedis(folder) as redis:
                job = redis.queue().fetch_job(operation.key)
                if job is None:
                    return Recorded(MISSING, current_digest=current)
                result = job.latest_result()
                value = None if result is None else result.return_value
                return Recorded(
                    status=job.get_status().value,
                    execution=None if result is None else result.type.name.lower(),
                    evidence=(value,) if isinstance(value, Mapping) else (),
                    approved_digest=digest(json.loads(job.args[0])),
                    current_digest=current,
                )

    def refusal(self, operation: Operation) -> Refusal:
        """Redis takes no writes."""
        return RefusedByRedis(operation.folder)

    def hosts(self, operation: Operation) -> Sequence[int]:
        """The worker, and its work-horse: the process that asks."""
        return os.getppid(), os.getpid()


def act(asked: str) -> dict[str, Any]:
    """The job: what a user's function would be."""
    assert _in_hand is not None
    reach("before_action")
    evidence = _in_hand.executor(_in_hand.key, json.loads(asked))
    reach("after_action")
    return dict(evidence)


def _enqueue(operation: Operation, redis: PrivateRedis) -> None:
    from rq import Retry

    redis.queue().enqueue(
        f"{__name__}.{act.__name__}",
        text(operation.request),
        job_id=operation.key,
        retry=Retry(max=3) if operation.variant == _RETRY else None,
        unique=operation.variant == _UNIQUE,
    )


def _work(operation: Operation, redis: PrivateRedis) -> None:
    """A worker until the queue is empty, or until it ends otherwise."""
    from rq import Worker

    global _in_hand
    _in_hand = operation

    def stored(worker: Any, *given: Any, **named: Any) -> None:
        Worker.handle_job_success(worker, *given, **named)
        reach("after_result")

    telling = type("Telling", (Worker,), {"handle_job_success": stored})
    forked(lambda: telling([redis.queue()]).work(burst=True))


def _answer(operation: Operation, redis: PrivateRedis) -> None:
    """What the caller gets who asks for the result ("RQ: Results")."""
    job = redis.queue().fetch_job(operation.key)
    result = None if job is None else job.latest_result()
    if result is None:
        raise NoResult("no worker is left, and there is no result")
    if result.type is not result.Type.SUCCESSFUL:
        raise JobFailed(result.type.name)


def runtime() -> RQRuntime:
    """The adapter, where RQ and a redis-server are installed.

    Raises:
        RuntimeUnusable: they are not.
    """
    need("rq").require()
    return RQRuntime()
