"""DBOS: a durable workflow of one step, on a SQLite system database in the operation's folder.

Driven: dbos 3.4.0, with the defaults of its steps (no retries) and no connection to Conductor. The
application's version and executor id are set, so that one process recovers what another left, as
"Workflow Recovery" says: an executor that restarts recovers the PENDING workflows of its own id
and version. The workflow's id is the operation's key, its idempotency key ("Workflows", "Workflow
IDs and Idempotency"). Sources are titles of pages on docs.dbos.dev.

Points: ``before_action`` and ``after_action`` lie in the step ("Steps": tried at least once, never
again once completed); ``after_result`` in the workflow's body, the step's row being written;
``response`` before the caller has the workflow's result, which is written. The seam of a refused
result is the table ``operation_outputs`` ("DBOS System Tables").

Ways ("Workflow Management"), each of a process that has launched, and has waited for what that
recovers by itself:

- ``launch``: nothing more.
- ``resume``: ``resume_workflow``, from the last completed step, under the same id.
- ``fork``: ``fork_workflow`` from the step that failed: the first without a recorded result.
- ``fork_from_first``: ``fork_workflow`` from step 1.
- ``rewind``: ``rewind_workflow`` as it is by default, to the first step; of a finished workflow.

Variants ("Workflow Recovery"): ``baseline``, a single server: the executor that was killed comes
back. ``other_executor``, a distributed setting without Conductor: it does not, and another one of
the same version, which recovers none of its workflows by itself, is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rcr_probes.model import Json, Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, Runtime, require_way
from rcr_probes.runtimes import need
from rcr_probes.vocabulary import AGAIN, BASELINE, MISSING, Says

_DATABASE = "dbos.sqlite"
_EXECUTOR, _OTHER = "executor-1", "executor-2"
_STEP, _WORKFLOW = "act", "operate"
_LOOK = 0.02  # seconds between two looks at a status
_KILLED = frozenset({"kill"})


class StillPending(Exception):
    """The caller gives up: the workflow is PENDING on an executor that does not come back."""

    code = "STILL_PENDING"


class DatabaseFailed(Exception):
    """What SQLAlchemy raised, under its type's name: its own code is a page's address ("gkpj")."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.code = type(error).__name__


class Dbos:
    """One operation as one workflow, whose one step acts."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": _KILLED,
        "after_action": frozenset({"kill", "result_refused"}),
        "after_result": _KILLED,
        "response": _KILLED,
    }
    recoveries: tuple[str, ...] = ("launch", "resume", "fork", "fork_from_first", "rewind")
    variants: tuple[str, ...] = (BASELINE, "other_executor")
    state_at_points = False
    versions = staticmethod(need("dbos").versions)

    # "DBOS Methods & Variables" (Workflow Status) and "Workflow Recovery". SUCCESS: it returned.
    # ENQUEUED is what recovery and resume make of a workflow that has already run in part, so that
    # it does not say that nothing was started. ERROR: the workflow threw an error, before or after
    # its step acted. A missing row can be one that a retention policy removed.
    says: Mapping[str, Says] = {
        "SUCCESS": "done",
        "ENQUEUED": "due",
        "DELAYED": "due",
        "PENDING": "due",  # its executor recovers it as soon as it comes back
        "ERROR": "open",
        "CANCELLED": "open",
        "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "open",
        MISSING: "open",
    }

    def start(self, operation: Operation) -> None:
        """Launch, start the workflow under the operation's key, and wait for its result.

        Raises:
            Exception: what the workflow threw, or DBOS.
        """
        with _launched(operation, _EXECUTOR) as workflow:
            _started(operation, workflow).get_result()
            reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """Launch anew; then ``again`` (the same call under the same id), or by ``way``.

        Raises:
            UnknownName: no such way.
            StillPending: ``again`` would wait for ever.
            Exception: what the workflow threw, in this execution or as recorded, or DBOS.
        """
        require_way(way, self.recoveries)
        executor = _OTHER if operation.variant == "other_executor" else _EXECUTOR
        with _launched(operation, executor) as workflow:
            if way == AGAIN:
                handle = _started(operation, workflow)
                if _abandoned(handle.get_status()):
                    raise StillPending(operation.key)
            else:
                _settle(operation.key)
                handle = _managed(operation.key, way)
            if handle is not None:
                handle.get_result(polling_interval_sec=_LOOK)

    def state(self, operation: Operation) -> Recorded:
        """What is stored of the workflow; of the one forked from it, where there is one.

        Where one was forked, ``execution`` is the status of the original.
        """
        from rcr_probes.runtimes.dbos_tables import recorded

        return recorded(operation.folder / _DATABASE, operation.key, _STEP, operation.request)

    def refusal(self, operation: Operation) -> Refusal:
        """The step's row cannot be written."""
        from rcr_probes.runtimes.sqlite import RefusedBySqlite

        return RefusedBySqlite(operation.folder / _DATABASE, "operation_outputs")


def runtime() -> Runtime:
    """The adapter.

    Raises:
        RuntimeUnusable: dbos is not installed.
    """
    need("dbos").require()
    return Dbos()


@contextmanager
def _launched(operation: Operation, executor: str) -> Iterator[Callable[..., Any]]:
    """The application, launched in this process under an executor id; yields its workflow."""
    from dbos import DBOS
    from sqlalchemy.exc import SQLAlchemyError

    from rcr_probes.runtimes.sqlite import address

    def act(key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        reach("before_action")
        evidence = operation.executor(key, request)
        reach("after_action")
        return evidence

    def operate(key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        evidence: Mapping[str, Json] = step(key, request)
        reach("after_result")
        return evidence

    DBOS(
        config={
            "name": "rcr-probes",
            "application_version": "1",
            "executor_id": executor,
            "system_database_url": address("sqlite", operation.folder / _DATABASE),
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": _LOOK,  # it holds up the way out
        }
    )
    try:
        step = DBOS.step(name=_STEP)(act)
        workflow = DBOS.workflow(name=_WORKFLOW)(operate)
        DBOS.launch()
        yield workflow
    except SQLAlchemyError as error:
        raise DatabaseFailed(error) from error
    finally:
        DBOS.destroy(destroy_registry=True)


def _started(operation: Operation, workflow: Callable[..., Any]) -> Any:
    """Start the workflow under the operation's key; the handle of that, or of the one it was."""
    from dbos import DBOS, SetWorkflowID

    with SetWorkflowID(operation.key):
        return DBOS.start_workflow(workflow, operation.key, dict(operation.request))


def _settle(key: str) -> None:
    """Wait until nothing of the workflow runs here, or is to run: launch has recovered it."""
    from dbos import DBOS

    while (status := DBOS.get_workflow_status(key)) and not _abandoned(status):
        if status.status not in ("PENDING", "ENQUEUED"):
            return
        time.sleep(_LOOK)


def _managed(key: str, way: str) -> Any:
    """Do what an operator does; the handle of what then runs, None for ``launch``."""
    from dbos import DBOS, SetWorkflowID

    match way:
        case "launch":
            return None
        case "resume":
            return DBOS.resume_workflow(key)
        case "rewind":
            return DBOS.rewind_workflow(key)
        case _:
            steps = DBOS.list_workflow_steps(key) if way == "fork" else []
            done = [step["function_id"] for step in steps if step["error"] is None]
            with SetWorkflowID(f"{key}-fork"):
                return DBOS.fork_workflow(key, max(done, default=0) + 1)


def _abandoned(status: Any) -> bool:
    """Whether a workflow is PENDING on an executor that is not this one."""
    from dbos import DBOS

    return bool(status.status == "PENDING" and status.executor_id != DBOS.executor_id)
