"""A submission whose answer is lost is sent again: what the server remembers decides.

A client sends a request under a submission id, the server makes an object of it by a call of the
executor, and answers. A variant is what the server remembers, and ``_resent`` where the client, not
getting an answer, sends the submission once more in the same process:

- ``none``: nothing; every submission makes an object.
- ``memory``: ids and answers of its own process.
- ``durable``: the id, before it acts, and the answer, after it. A known id gets the stored answer,
  with nothing done; one that has none yet is refused, for what became of it is not known; one that
  comes with another request is refused, too.

Points: ``before_action`` and ``after_action`` around the executor's call; ``after_result`` once the
answer is remembered; ``response``, where it goes out. There ``response_lost`` is an answer that is
lost on its way, ``exception`` one in whose place this very client gets an error, and ``kill`` the
end of the server. A recovery is ``again``: the client sends it once more, to a new process.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from rcr_probes.contrast.store import Refused, Store, copied
from rcr_probes.model import Json, Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, require_way
from rcr_probes.runtimes.requests import digest, text
from rcr_probes.vocabulary import Says

_RESENT = "_resent"
_DURABLE = "durable"
_MEMORIES = ("none", "memory", _DURABLE)
_TABLE = (
    "CREATE TABLE IF NOT EXISTS submission (id TEXT PRIMARY KEY, digest TEXT NOT NULL, answer TEXT)"
)
_PROCESS_FAULTS = frozenset({"exception", "kill"})

Answer = Mapping[str, Json]


class Server:
    """The server, as one process of it has it in memory."""

    def __init__(self, operation: Operation, memory: str) -> None:
        self._operation = operation
        self._memory = memory
        self._answers: dict[str, Answer] = {}
        self._store = Store(operation.folder, _TABLE) if memory == _DURABLE else None

    def submit(self, submission_id: str, request: Mapping[str, Json]) -> Answer:
        """Answer a submission.

        Raises:
            Refused: SUBMISSION_UNRESOLVED, it came before and has no answer; SUBMISSION_CONFLICT,
                it came before with another request.
        """
        answer = self._known(submission_id, request)
        if answer is None:
            reach("before_action")
            answer = self._operation.executor(self._operation.key, request)
            reach("after_action")
            self._remember(submission_id, answer)
            reach("after_result")
        reach("response")
        return answer

    def _known(self, submission_id: str, request: Mapping[str, Json]) -> Answer | None:
        """The answer that the submission has; None where it is new, and is taken."""
        if self._store is None:
            return self._answers.get(submission_id)
        with self._store.transaction() as database:
            row = _row(database, submission_id)
            if row is None:
                database.execute(
                    "INSERT INTO submission VALUES (?, ?, NULL)", (submission_id, digest(request))
                )
                return None
        stored, answer = row
        if stored != digest(request):
            raise Refused("SUBMISSION_CONFLICT", "This id came before with another request.")
        if answer is None:
            raise Refused("SUBMISSION_UNRESOLVED", "This id came before, and has no answer yet.")
        found: Answer = json.loads(answer)
        return found

    def _remember(self, submission_id: str, answer: Answer) -> None:
        if self._memory == "memory":
            self._answers[submission_id] = answer
        if self._store is not None:
            with self._store.transaction() as database:
                database.execute(
                    "UPDATE submission SET answer = ? WHERE id = ?", (text(answer), submission_id)
                )


class Submissions:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for a client and its server."""

    points: Mapping[str, frozenset[str]] = {
        "before_action": _PROCESS_FAULTS,
        "after_action": _PROCESS_FAULTS,
        "after_result": frozenset({"kill"}),
        "response": _PROCESS_FAULTS | {"response_lost"},
    }
    recoveries: tuple[str, ...] = ()
    says: Mapping[str, Says] = {
        "not_stored": "open",  # this server stores nothing, whatever it did
        "unheard": "not_done",  # the id is stored before anything is done
        "received": "open",
        "answered": "done",
    }
    variants: tuple[str, ...] = (*_MEMORIES, *(f"{memory}{_RESENT}" for memory in _MEMORIES))
    state_at_points = False

    def start(self, operation: Operation) -> None:
        """Submit, and where the variant says so, once more where no answer came.

        Raises:
            Exception: what the client sees in place of an answer.
        """
        server = Server(operation, operation.variant.removesuffix(_RESENT))
        try:
            server.submit(operation.key, operation.request)
        except Exception:
            if not operation.variant.endswith(_RESENT):
                raise
            server.submit(operation.key, operation.request)

    def recover(self, operation: Operation, way: str) -> None:
        """``again``: submit once more.

        Raises:
            UnknownName: no such way.
            Exception: as ``start``.
        """
        require_way(way, self.recoveries)
        self.start(operation)

    def state(self, operation: Operation) -> Recorded:
        """What is stored of the submission; as evidence the stored answer."""
        current = digest(operation.request)
        if not operation.variant.startswith(_DURABLE):
            return Recorded("not_stored", current_digest=current)
        with copied(operation.folder) as database:
            row = None if database is None else _row(database, operation.key)
        if row is None:
            return Recorded("unheard", current_digest=current)
        stored, answer = row
        return Recorded(
            status="received" if answer is None else "answered",
            evidence=() if answer is None else (json.loads(answer),),
            approved_digest=stored,
            current_digest=current,
        )


def _row(database: sqlite3.Connection, submission_id: str) -> tuple[str, str | None] | None:
    """The digest of the request that came under an id, and the answer where there is one."""
    found: tuple[str, str | None] | None = database.execute(
        "SELECT digest, answer FROM submission WHERE id = ?", (submission_id,)
    ).fetchone()
    return found


def runtime() -> Submissions:
    """The runtime that a plan names ``rcr_probes.contrast.submission:runtime``."""
    return Submissions()
