"""Restate under probe: one handler around ``ctx.run``; driven with restate-sdk 1.3 and server 1.7.

The caller sends its request through the ingress under an idempotency key, and waits for the answer
("HTTP", Using an idempotency key). Server and service are started for each phase: the server keeps
its files in the cell's folder, the service is a forked child. The executor runs inside ``ctx.run``,
whose result Restate stores in the invocation's journal ("Durable Steps").

Points: ``before_action`` and ``after_action`` lie inside ``ctx.run``; ``after_result`` in the
handler behind it, once the server has acknowledged the result; ``response`` where the caller has
the answer in hand. ``kill`` ends the service (at ``response``: the caller), ``kill_host`` the
server. There is no ``result_refused``: the journal is the server's own log, and it has no setting
that makes it refuse an entry and go on.

After a kill a caller might wait for long: it gives up once the server has seen the attempt fail
(``backing-off``). Where the server is gone, so is its connection.

Recoveries, once server and service are there again. ``redelivery``: nobody does anything, Restate
retries by itself ("Error Handling"; "Key Concepts", What it covers). ``restart_as_new``: a person
kills the invocation, unless it is completed, while its service is away, and restarts it as new
("Managing Invocations"; what it did "will be executed again"). ``again``: the caller sends its
request once more under the same idempotency key.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
from collections.abc import Mapping, Sequence
from typing import Any

from rcr_probes.model import Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, require_way
from rcr_probes.runtimes import need
from rcr_probes.runtimes.requests import digest, text
from rcr_probes.runtimes.restate_server import (
    HANDLER,
    PATIENCE,
    PENDING,
    SERVICE,
    PrivateRestate,
    Refused,
    binary,
    copied,
    server_pid,
)
from rcr_probes.runtimes.restate_service import App, ServiceProcess
from rcr_probes.vocabulary import AGAIN, MISSING, Says

_REDELIVERY = "redelivery"
_RESTART = "restart_as_new"
_COMPLETED = "completed"
_OPEN = PENDING | {"backing-off", "suspended"}  # Restate will go on with it by itself
_KINDS = frozenset({"kill", "kill_host"})
# Journal entries: their type, and the way to their value.
_INPUT = ("Command: Input", "Command", "Input", "payload")
_RESULT = ("Notification: Run", "Notification", "Completion", "Run", "result", "Success")


class NoAnswer(Exception):
    """The service is gone, and the caller has given up waiting."""

    code = "NO_ANSWER"


class ConnectionLost(Exception):
    """The server is gone, and the caller's connection with it."""

    code = "CONNECTION_LOST"


class RestateRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for Restate."""

    points: Mapping[str, frozenset[str]] = {
        **dict.fromkeys(("before_action", "after_action", "after_result"), _KINDS),
        "response": frozenset({"kill"}),
    }
    recoveries: tuple[str, ...] = (_REDELIVERY, _RESTART)
    # "SQL Introspection API" (sys_invocation) names them, "Introspection" and "Managing
    # Invocations" say what each means. completed is told apart by its completion_result.
    says: Mapping[str, Says] = {
        "completed/success": "done",
        "completed/failure": "open",  # also where it was killed in the middle
        "scheduled": "due",  # "waiting delay timer"
        "pending": "due",  # "enqueued waiting for its turn"
        "ready": "due",  # "not yet running": nor is one that will be retried
        "running": "due",
        "backing-off": "due",  # "retrying due to a failure"
        "suspended": "due",
        "paused": "open",  # after too many retries
        MISSING: "open",  # a completed one is forgotten after its retention
    }
    state_at_points = False
    versions = staticmethod(need("restate").versions)

    def start(self, operation: Operation) -> None:
        """Register the service, send the request, and wait for the answer.

        Raises:
            NoAnswer: the service is gone.
            ConnectionLost: the server is gone.
            Refused: the answer is an error.
        """
        with _service(operation) as service, _server(operation) as restate:
            restate.ask("admin", "POST", "/deployments", {"uri": service.uri})
            _call(operation, restate, service)
        reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """One of the ways of the module's docstring.

        Raises:
            UnknownName: no such way.
            Unsettled: Restate does not come to an end with the invocation.
            Exception: as ``start``.
        """
        require_way(way, self.recoveries)
        if way == _RESTART:
            _kill_invocation(operation)
        with _service(operation) as service, _server(operation) as restate:
            if service.moved:  # "Versioning", Reassigning a deployment endpoint
                (deployment,) = restate.ask("admin", "GET", "/deployments")["deployments"]
                path = f"/deployments/{deployment['id']}"
                restate.ask("admin", "PATCH", path, {"uri": service.uri})
            if way == AGAIN:
                _call(operation, restate, service)
            before = None
            if way == _RESTART:
                before = restate.invocation(passing=_OPEN)
                assert before is not None
                restate.ask("admin", "PATCH", f"/invocations/{before['id']}/restart-as-new")
            restate.invocation(passing=_OPEN, after=before)

    def state(self, operation: Operation) -> Recorded:
        """What Restate has stored of the invocation, asked of a server on a copy of its files.

        That server retries the invocation, as any would; no service is there to be invoked.
        """
        missing = Recorded(MISSING, current_digest=digest(operation.request))
        with copied(operation.folder) as folder:
            if folder is None:
                return missing
            with PrivateRestate(folder, operation.key) as restate:
                found = restate.invocation(passing=PENDING)
                if found is None:
                    return missing
                asked = _stored(restate, found["id"], *_INPUT)
                result = _stored(restate, found["id"], *_RESULT)
        status = found["status"]
        if status == _COMPLETED:
            status = f"{status}/{found['completion_result']}"
        return Recorded(
            status=status,
            execution=None if result is None else _RESULT[0],
            evidence=() if result is None else (result,),
            approved_digest=digest(asked),
            current_digest=missing.current_digest,
        )

    def hosts(self, operation: Operation) -> Sequence[int]:
        """The server."""
        return (server_pid(operation.folder),)


def _server(operation: Operation) -> PrivateRestate:
    return PrivateRestate(operation.folder, operation.key)


def _service(operation: Operation) -> ServiceProcess:
    return ServiceProcess(operation.folder, lambda: _app(operation))


def _app(operation: Operation) -> App:
    """The service: what a user's would be."""
    import restate

    service = restate.Service(SERVICE)

    async def act(ctx: Any, asked: dict[str, Any]) -> dict[str, Any]:
        def once() -> dict[str, Any]:
            reach("before_action")
            evidence = operation.executor(operation.key, asked)
            reach("after_action")
            return dict(evidence)

        evidence: dict[str, Any] = await ctx.run_typed("act", once)
        reach("after_result")
        return evidence

    service.handler(HANDLER)(act)
    app: App = restate.app([service])
    return app


def _call(operation: Operation, restate: PrivateRestate, service: ServiceProcess) -> None:
    """What the caller does and sees."""
    with contextlib.closing(restate.connect("ingress")) as connection:
        headers = {"content-type": "application/json", "idempotency-key": operation.key}
        connection.request("POST", f"/{SERVICE}/{HANDLER}", text(operation.request), headers)
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        poll.register(service, select.POLLIN)
        seen = {fd for fd, _ in poll.poll(PATIENCE * 1000)}
        if connection.sock.fileno() not in seen:
            restate.invocation(passing=PENDING)  # the server sees the attempt fail, too
            raise NoAnswer("the service is gone" if seen else "nothing happens any more")
        try:
            answer = connection.getresponse()
            said = answer.read().decode(errors="replace")
        except (ConnectionError, http.client.HTTPException) as error:
            raise ConnectionLost(str(error)) from error
        if answer.status != 200:
            raise Refused(answer.status, said)


def _kill_invocation(operation: Operation) -> None:
    """Kill the invocation, unless it is completed; its service is not there."""
    with _server(operation) as restate:
        found = restate.invocation(passing=PENDING)
        if found is not None and found["status"] != _COMPLETED:
            restate.ask("admin", "PATCH", f"/invocations/{found['id']}/kill")
            restate.invocation(passing=_OPEN)


def _stored(restate: PrivateRestate, invocation: str, entry: str, *path: str) -> Any:
    """The value in the journal's one entry of this type; None where there is none."""
    rows = restate.rows(
        f"SELECT entry_json FROM sys_journal WHERE id = '{invocation}' AND entry_type = '{entry}'"
    )
    if not rows:
        return None
    value = json.loads(rows[0]["entry_json"])
    for name in path:
        value = value[name]
    return json.loads(bytes(value))  # as the SDK serialized it; it is given byte by byte


def runtime() -> RestateRuntime:
    """The adapter, where the SDK, an ASGI server and a restate-server are installed.

    Raises:
        RuntimeMissing: they are not.
    """
    need("restate").require()
    binary()
    return RestateRuntime()
