"""Prefect under probe: a flow of one task, with a private self-hosted server; driven with 3.9.1.

The caller calls the flow in a process of its own, which a kill ends; the server lives on, and keeps
what it was told ("States"). The server is the API of ``prefect server start --no-services``, on a
SQLite database in the operation's folder: the services that are left out schedule deployments, mark
late runs and keep events, and none of them touches a flow run that its caller runs. Sources are
titles of pages on docs.prefect.io, version 3.

Points: ``before_action`` and ``after_action`` lie in the task; ``after_result`` in the flow's body,
once the task has returned, and its result is persisted ("How to write transactional workflows");
``response`` where the caller has the flow's return value, and the server the run's last state.
``result_refused``: a file stands where the results' folder was, so that no result can be written.

Ways: ``again``, the caller calls the flow once more, which is a new run (a flow that is called has
no idempotency key: a deployment's run has). ``retry`` is ``prefect flow-run retry`` ("How to
manually retry a flow run"), the command itself: the same run, with the parameters that the server
has; it refuses a run that the server takes to be running. ``crash_retry`` therefore first sets the
run to Crashed, by force, as the automation of "How to detect and respond to zombie flows" does.

Variants: ``baseline``, Prefect's default, persists no result. ``persistence``: the task has
``persist_result=True`` ("How to cache workflow steps"), and its result is found again within the
same run. ``cache_key``: its cache key is the operation's key besides, and any run finds it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from rcr_probes import linux
from rcr_probes.errors import code_of
from rcr_probes.model import Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, Runtime, require_way
from rcr_probes.runtimes import need
from rcr_probes.runtimes.forked import forked
from rcr_probes.runtimes.prefect_server import DATABASE, RESULTS, serving
from rcr_probes.runtimes.requests import digest
from rcr_probes.runtimes.sqlite import copied
from rcr_probes.vocabulary import AGAIN, BASELINE, MISSING, Says

_KILLED = frozenset({"kill"})
_RETRY, _CRASH_RETRY = "retry", "crash_retry"
_RUNS = "SELECT id, state_type, parameters FROM flow_run ORDER BY created, id"


class CallerFailed(Exception):
    """What the process of the caller had, which called the flow or gave a command."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Prefect:
    """One operation as one flow run, whose one task acts."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": _KILLED,
        "after_action": frozenset({"kill", "result_refused"}),
        "after_result": _KILLED,
        "response": _KILLED,
    }
    recoveries: tuple[str, ...] = (_RETRY, _CRASH_RETRY)
    variants: tuple[str, ...] = (BASELINE, "persistence", "cache_key")
    state_at_points = False
    versions = staticmethod(need("prefect").versions)

    # "States", the types. COMPLETED: the run "completed successfully". A run that is retried is
    # SCHEDULED and PENDING once more, so these do not say that nothing was started; the types for
    # a run that ended otherwise do not say how far it had come.
    says: Mapping[str, Says] = {
        "COMPLETED": "done",
        "SCHEDULED": "open",
        "PENDING": "open",
        "RUNNING": "open",
        "PAUSED": "open",
        "CANCELLING": "open",
        "CANCELLED": "open",
        "FAILED": "open",
        "CRASHED": "open",
        MISSING: "open",  # a flow run can be deleted
    }

    def start(self, operation: Operation) -> None:
        """Start the server, and call the flow.

        Raises:
            CallerFailed: what the caller had; its code is that of the flow's error, or the signal.
        """
        with serving(operation.folder):
            _caller(lambda: _call(operation))

    def recover(self, operation: Operation, way: str) -> None:
        """Start the server anew, and call the flow again or retry its run.

        Raises:
            UnknownName: no such way.
            CallerFailed: as ``start``; EXIT_1 where the command said no, or the retried run failed.
        """
        require_way(way, self.recoveries)
        with serving(operation.folder):
            if way == AGAIN:
                _caller(lambda: _call(operation))
            else:
                _caller(lambda: _retry(operation, crashed=way == _CRASH_RETRY))

    def state(self, operation: Operation) -> Recorded:
        """The state of the last flow run; where there are more, ``execution`` is the first's.

        Evidence is what stands in the results' folder, of whichever run.
        """
        current = digest(operation.request)
        runs = _runs(operation.folder)
        if not runs:
            return Recorded(MISSING, current_digest=current)
        _, status, parameters = runs[-1]
        return Recorded(
            status,
            execution=runs[0][1] if len(runs) > 1 else None,
            evidence=_results(operation.folder / RESULTS),
            approved_digest=digest(json.loads(parameters)["request"]),
            current_digest=current,
        )

    def refusal(self, operation: Operation) -> Refusal:
        """The results' folder is no folder."""
        return _NoFolder(operation.folder / RESULTS)


class _NoFolder:
    """A file stands where a folder was: whatever is written into it fails, for root, too."""

    def __init__(self, path: Path) -> None:
        self._path, self._aside = path, path.with_suffix(".aside")

    def place(self) -> None:
        with suppress(FileNotFoundError):
            self._path.rename(self._aside)
        self._path.touch()

    def standing(self) -> bool:
        return self._path.is_file()

    def lift(self) -> None:
        self._path.unlink()
        with suppress(FileNotFoundError):
            self._aside.rename(self._path)


def runtime() -> Runtime:
    """The adapter.

    Raises:
        RuntimeUnusable: prefect is not installed.
    """
    need("prefect").require()
    return Prefect()


def _caller(work: Callable[[], object]) -> None:
    """Be the caller in a child of this process, and raise what it had, were it its death."""
    here, there = os.pipe()

    def told() -> None:
        try:
            work()
        except BaseException as error:
            os.write(there, _code(error).encode())
            raise

    try:
        status = forked(told)
        os.set_blocking(here, False)
        with suppress(BlockingIOError):
            raise CallerFailed(os.read(here, 100).decode())
    finally:
        os.close(here)
        os.close(there)
    if status < 0:
        raise CallerFailed(linux.signal_name(-status))


def _code(error: BaseException) -> str:
    return f"EXIT_{error.code}" if isinstance(error, SystemExit) else code_of(error)


def _flow(operation: Operation) -> Any:
    """The module of the flow, with the operation in its hand; it imports Prefect."""
    from rcr_probes.runtimes import prefect_flow

    prefect_flow.in_hand[:] = [operation]
    return prefect_flow


def _call(operation: Operation) -> None:
    _flow(operation).operate(operation.key, dict(operation.request))
    reach("response")


def _retry(operation: Operation, *, crashed: bool) -> None:
    """What an operator does to the one run that there is.

    Raises:
        SystemExit: the command ended so, with another status than 0.
    """
    import asyncio

    from prefect.cli.flow_run import retry
    from prefect.client.orchestration import get_client
    from prefect.states import Crashed

    module = _flow(operation)
    with get_client(sync_client=True) as client:
        (run,) = client.read_flow_runs()
        if crashed:
            client.set_flow_run_state(run.id, Crashed(message="no heartbeat"), force=True)
    try:
        asyncio.run(retry(str(run.id), entrypoint=module.ENTRYPOINT))
    except SystemExit as ended:  # with 0, too
        if ended.code:
            raise


def _runs(folder: Path) -> list[tuple[str, str, str]]:
    """The flow runs, as the server's database has them; none where it has none."""
    if not (folder / DATABASE).exists():
        return []
    with copied(folder / DATABASE) as copy, closing(sqlite3.connect(copy / DATABASE)) as database:
        return database.execute(_RUNS).fetchall()


def _results(folder: Path) -> tuple[Mapping[str, Any], ...]:
    """What the persisted results say, in an order that does not hang on their random names."""
    if not folder.is_dir():
        return ()
    stored = (json.loads(file.read_bytes()) for file in folder.iterdir())
    results = (json.loads(record["result"]) for record in stored)
    return tuple(sorted(results, key=lambda result: json.dumps(result, sort_keys=True)))
