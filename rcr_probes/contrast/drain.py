"""A drain hold, started and stopped in one process, and how its audit failure is met.

While a hold stands, no new task is begun. Starting one, with a time limit or without, and stopping
one are changes of the same state; each stamps it with the next generation, and is audited by a row
for each of several tenants. What others learn of it, its activity, is a call of the executor. The
operation under probe starts a hold.

A variant is a way, or ``WAY_CIRCUMSTANCE``. Ways:

- ``generation``: change, then audit in one transaction; where that fails, the earlier state is
  restored, but only if the generation is still the one that this very change stamped; after the
  commit the activity is published, and a failure of that is logged, and never the caller's error.
- ``unguarded``: the same, and restores without asking for the generation.
- ``row_by_row``: the same as ``generation``, with a transaction for each row.
- ``audit_first``: the successor. Audit, then change; nothing is restored.

Circumstances:

- ``newer``: between this change and its audit another request replaces the hold, and is audited.
- ``one_row``: the refusal of the audit is of one tenant's row alone.
- ``overlap``: another request, which stops the hold, is served whole by a thread of its own, while
  this one is held at a named place: between its change and its audit, or its audit and its change.

The article's state is in memory; here it lies in the private folder (our choice), so that it can be
seen from outside, and a new process finds it. The other request has a log in place of an executor.

Points: ``start_audit`` where the audit comes first; ``before_action`` and ``after_action`` around
the change; ``after_result`` where the activity is about to be published; ``response``.
``result_refused``: a trigger on the audit's table. A recovery is ``again``: the start once more.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rcr_probes import points
from rcr_probes.contrast.store import (
    AUDIT,
    AUDIT_TABLE,
    AuditFailed,
    AuditRow,
    Refused,
    Store,
    copied,
    told,
)
from rcr_probes.model import Json, Recorded
from rcr_probes.runtime import Operation, Refusal, require_way
from rcr_probes.runtimes.requests import digest
from rcr_probes.runtimes.sqlite import RefusedBySqlite
from rcr_probes.vocabulary import Says

TENANTS = ("tenant-1", "tenant-2", "tenant-3")
LIMIT = 600  # seconds that the hold under probe is to last at most
_ONE = "NEW.tenant = 'tenant-2'"
_OTHER = "other"  # the key of the other request
_TABLE = """CREATE TABLE IF NOT EXISTS drain (
    stands INTEGER NOT NULL, limit_seconds INTEGER, changed_at REAL NOT NULL, by TEXT,
    digest TEXT, generation INTEGER NOT NULL)"""

WAYS = ("generation", "unguarded", "row_by_row", "audit_first")
NEWER, ONE_ROW, OVERLAP = "newer", "one_row", "overlap"


@dataclass(frozen=True, slots=True)
class Drain:
    """The state: whether a hold stands, and what made it so.

    Attributes:
        stands: whether there is a hold.
        limit_seconds: how long it lasts at most; None where it has no limit.
        changed_at: when it was made so, seconds since the epoch.
        by: the key of the request that made it so; None before the first.
        digest: of that request, where it has one.
        generation: the number of the change.
    """

    stands: bool = False
    limit_seconds: int | None = None
    changed_at: float = 0.0
    by: str | None = None
    digest: str | None = None
    generation: int = 0

    def lapsed(self, now: float) -> bool:
        """Whether the hold's time is over."""
        return self.limit_seconds is not None and now >= self.changed_at + self.limit_seconds

    @property
    def word(self) -> str:
        """As the audit tells it."""
        return "draining" if self.stands else "not_draining"


class Drains:
    """Serves requests to start and to stop, in one way; a request is held where ``meanwhile`` is.

    Args:
        store: what is kept.
        way: of ``WAYS``.
        publish: tells others of a change.
        meanwhile: what happens between the first step of a request and its second.
        reach: says at which point the request is.
        now: the clock, seconds since the epoch.
    """

    def __init__(
        self,
        store: Store,
        way: str,
        publish: Callable[[], object],
        meanwhile: Callable[[], object] = lambda: None,
        reach: Callable[[str], None] = lambda name: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._way = way
        self._publish = publish
        self._meanwhile = meanwhile
        self._reach = reach
        self._now = now

    def start(self, by: str, limit_seconds: int | None, digest: str | None = None) -> None:
        """Put a hold in place, for so many seconds at most.

        Raises:
            Refused: ALREADY_DRAINING, this request's own hold stands (our choice).
            AuditFailed: the change was not audited.
        """
        seen = self._seen()
        if seen.stands and seen.by == by and not seen.lapsed(self._now()):
            raise Refused("ALREADY_DRAINING", "The hold of this request stands.")
        self._serve("started", Drain(True, limit_seconds, by=by, digest=digest))

    def stop(self, by: str) -> None:
        """Take the hold away.

        Raises:
            AuditFailed: the change was not audited.
        """
        self._serve("stopped", Drain(False, by=by))

    def _serve(self, event: str, wanted: Drain) -> None:
        if self._way == "audit_first":
            self._reach("start_audit")
            self._audit(event, self._seen(), wanted)
            self._meanwhile()
            self._reach("before_action")
            self._change(wanted)
            self._reach("after_action")
        else:
            self._reach("before_action")
            earlier, changed = self._change(wanted)
            self._meanwhile()
            self._reach("after_action")
            try:
                self._audit(event, earlier, changed)
            except AuditFailed:
                self._restore(earlier, changed.generation)
                raise
        try:
            self._reach("after_result")
            self._publish()
        except Exception as error:  # what is committed is no error to the caller any more
            self._store.log(error)

    def _seen(self) -> Drain:
        with self._store.transaction() as database:
            return _read(database)

    def _change(self, wanted: Drain) -> tuple[Drain, Drain]:
        """Change the state, and return it as it was and as it is."""
        with self._store.transaction() as database:
            earlier = _read(database)
            generation = earlier.generation + 1
            changed = replace(wanted, changed_at=self._now(), generation=generation)
            _write(database, changed)
        return earlier, changed

    def _restore(self, earlier: Drain, stamped: int) -> None:
        """Put the earlier state back, unless a newer change stands, and somebody asks.

        That is a change, too, with a number of its own (our choice).
        """
        with self._store.transaction() as database:
            now = _read(database)
            if now.generation == stamped or self._way == "unguarded":
                _write(database, replace(earlier, generation=now.generation + 1))

    def _audit(self, event: str, before: Drain, after: Drain) -> None:
        """One row for each tenant; where the audit comes first, the generation is not known yet."""
        generation = after.generation or None
        rows = [AuditRow(event, before.word, after.word, one, generation) for one in TENANTS]
        if self._way == "row_by_row":
            for row in rows:
                self._store.audit(row)
        else:
            self._store.audit(*rows)


class DrainRuntime:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for a request that starts a hold."""

    points: Mapping[str, frozenset[str]] = {
        "start_audit": frozenset({"exception", "kill", "result_refused"}),
        "before_action": frozenset({"exception", "kill"}),
        "after_action": frozenset({"exception", "kill", "result_refused"}),
        "after_result": frozenset({"exception", "kill"}),
        "response": frozenset({"kill"}),
    }
    recoveries: tuple[str, ...] = ()
    says: Mapping[str, Says] = {
        "not_draining": "not_done",
        "draining": "done",
        "lapsed": "done",
        "superseded": "open",  # another request's change stands; ours may have, before it
    }
    variants: tuple[str, ...] = (
        *WAYS,
        f"generation_{NEWER}",
        f"unguarded_{NEWER}",
        f"generation_{ONE_ROW}",
        f"row_by_row_{ONE_ROW}",
        f"generation_{OVERLAP}",
        f"audit_first_{OVERLAP}",
    )
    state_at_points = False

    def start(self, operation: Operation) -> None:
        """Start the hold, in the circumstance of the variant.

        Raises:
            Refused: the hold stands already.
            AuditFailed: the change was not audited.
        """
        self._start(operation, _circumstance(operation.variant))

    def recover(self, operation: Operation, way: str) -> None:
        """``again``: start it once more; nothing else is going on then.

        Raises:
            UnknownName: no such way.
            Exception: as ``start``.
        """
        require_way(way, self.recoveries)
        self._start(operation, "")

    def state(self, operation: Operation) -> Recorded:
        """Whose change stands, and what it is; as evidence that, then audit and log."""
        current = digest(operation.request)
        with copied(operation.folder) as database:
            seen = Drain() if database is None else _read(database)
            ours = seen.by == operation.key
            by = None if seen.by is None else "this" if ours else _OTHER
            shown: Mapping[str, Json] = {
                "drain": seen.word,
                "limit_seconds": seen.limit_seconds,
                "by": by,
                "generation": seen.generation,
            }
            return Recorded(
                status=_status(seen, ours),
                evidence=(shown, *(told(operation.folder, database) if database else ())),
                approved_digest=seen.digest if ours else None,
                current_digest=current,
            )

    def refusal(self, operation: Operation) -> Refusal:
        """Rows of the audit are refused by its table: all, or those of one tenant."""
        one = _circumstance(operation.variant) == ONE_ROW
        return RefusedBySqlite(operation.folder / AUDIT, AUDIT_TABLE, when=_ONE if one else "TRUE")

    def _start(self, operation: Operation, circumstance: str) -> None:
        store = Store(operation.folder, _TABLE)
        way = operation.variant.removesuffix(f"_{_circumstance(operation.variant)}")

        def publish() -> None:
            operation.executor(operation.key, operation.request)

        def other() -> None:
            served = Drains(store, way, publish=lambda: None)
            if circumstance == NEWER:
                served.start(_OTHER, None)
            else:
                served.stop(_OTHER)

        def meanwhile() -> None:
            if circumstance in (NEWER, OVERLAP):
                _in_a_thread(other)

        ours = Drains(store, way, publish, meanwhile, points.reach)
        ours.start(operation.key, LIMIT, digest(operation.request))
        points.reach("response")


def _circumstance(variant: str) -> str:
    """The circumstance that a variant names; empty where it names none."""
    return next((c for c in (NEWER, ONE_ROW, OVERLAP) if variant.endswith(f"_{c}")), "")


def _in_a_thread(work: Callable[[], None]) -> None:
    """Do it in a thread of its own, and hold this one until it is done, or has failed."""
    from concurrent.futures import ThreadPoolExecutor  # only where two requests overlap

    with ThreadPoolExecutor(1) as threads:
        threads.submit(work).result()


def _status(seen: Drain, ours: bool) -> str:
    if seen.by is not None and not ours:
        return "superseded"
    if not seen.stands:
        return "not_draining"
    return "lapsed" if seen.lapsed(time.time()) else "draining"


def _read(database: sqlite3.Connection) -> Drain:
    row = database.execute(
        "SELECT stands, limit_seconds, changed_at, by, digest, generation FROM drain"
    ).fetchone()
    return Drain(bool(row[0]), *row[1:]) if row else Drain()


def _write(database: sqlite3.Connection, drain: Drain) -> None:
    database.execute("DELETE FROM drain")
    database.execute(
        "INSERT INTO drain VALUES (?, ?, ?, ?, ?, ?)",
        (drain.stands, drain.limit_seconds, drain.changed_at, drain.by, drain.digest,
         drain.generation),
    )  # fmt: skip


def runtime() -> DrainRuntime:
    """The runtime that a plan names ``rcr_probes.contrast.drain:runtime``."""
    return DrainRuntime()
