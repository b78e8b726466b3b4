"""A Celery worker in a child of the phase's process: seen to be idle, and shut down warm.

It is forked and not started as a program, so that the points in its pool child are watched. Idle is
what the broker and the worker say ("Workers Guide", Inspecting workers); no time is waited for.

It is ended by SIGTERM, the warm shutdown ("Workers Guide", Stopping the worker), and only when it
is idle: it has nothing to finish then. A cold shutdown (SIGQUIT) would put back what a late
acknowledgement has left open, and so change the outcome. A worker that does not come to its end is
killed, which writes nothing, and that is an error.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
import traceback
from types import TracebackType
from typing import Any

from rcr_probes import linux
from rcr_probes.runtimes.redis import PrivateRedis

UNACKED = "unacked"  # kombu.transport.redis: what was delivered, and not acknowledged
_QUEUE = "celery"  # task_default_queue
_HOST = "rcr@localhost"
_READY = 30.0  # seconds in which it must be ready
_SETTLES = 60.0  # seconds in which it must be idle
_ENDS = 20.0  # seconds in which a warm shutdown must be over
_LOOKS = 0.05  # seconds between two looks


class WorkerFailed(Exception):
    """The worker did not become ready or idle, or did not end; no answer of Celery's."""

    code = "WORKER_FAILED"


class ForkedWorker:
    """The worker, ready for the length of a ``with`` block, and gone with its child after it."""

    def __init__(self, app: Any, broker: PrivateRedis) -> None:
        """Name the application, and the broker that it is configured for."""
        self._app, self._broker = app, broker
        self._others: frozenset[int] = frozenset()
        self._pid = 0

    def settle(self) -> None:
        """Come back when no message waits and no task is under way, or when the worker is gone.

        Raises:
            WorkerFailed: that did not come about.
        """
        until = time.monotonic() + _SETTLES
        while self._alive() and not self._idle():
            if time.monotonic() > until:
                raise WorkerFailed("the worker did not come to rest")
            time.sleep(_LOOKS)

    def __enter__(self) -> ForkedWorker:
        linux.adopt_descendants()  # a child that outlives a killed worker is ours to wait for
        self._others = frozenset(linux.children(os.getpid()))
        parent = os.getpid()
        here, theirs = os.pipe()
        self._pid = os.fork()
        if not self._pid:
            os.close(here)
            _serve(self._app, parent, theirs)
        os.close(theirs)
        try:
            readable, _, _ = select.select([here], [], [], _READY)
            if not (readable and os.read(here, 1)):  # empty: it is gone
                raise WorkerFailed("the worker did not become ready")
        except BaseException:
            self._stop()
            raise
        finally:
            os.close(here)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._app.close()
        self._stop()

    def _idle(self) -> bool:
        """Twice: a message that is on its way from the queue to the worker is in neither."""
        return self._rests() and self._rests()

    def _rests(self) -> bool:
        with self._broker.client() as client:
            if queued(client) or client.hlen(UNACKED):
                return False
        active = self._app.control.inspect([_HOST], timeout=1.0, limit=1).active()
        return bool(active) and not any(active.values())

    def _alive(self) -> bool:
        if self._pid:
            ended, _ = os.waitpid(self._pid, os.WNOHANG)
            self._pid = 0 if ended else self._pid
        return bool(self._pid)

    def _stop(self) -> None:
        """End the worker, and wait for what it leaves: a child that dies with it.

        Raises:
            WorkerFailed: it had to be killed.
        """
        overran = False
        if self._alive():
            overran = not linux.ends_within(self._pid, _ENDS, signal.SIGTERM)
            if overran:
                linux.ends_within(self._pid, _ENDS, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
        for orphan in set(linux.children(os.getpid())) - self._others:
            os.waitpid(orphan, 0)
        if overran:
            raise WorkerFailed("the worker did not shut down")


def queued(client: Any) -> list[bytes]:
    """The messages that wait in the queue."""
    found: list[bytes] = client.lrange(_QUEUE, 0, -1)
    return found


def _serve(app: Any, parent: int, told: int) -> None:
    """Be the worker's main process, until it is shut down; never returns."""
    from celery import signals

    def ready(**_: Any) -> None:
        os.write(told, b".")

    status = 1
    try:
        linux.die_with(parent)
        signals.worker_ready.connect(ready, weak=False)
        # Mingle and gossip are between workers: there is one.
        worker = app.Worker(
            hostname=_HOST,
            pool="prefork",
            concurrency=1,
            loglevel="INFO",
            without_mingle=True,
            without_gossip=True,
        )
        worker.start()
        status = worker.exitcode or 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
