"""One operation under each audit-failure policy, with an effect of either kind.

A variant is ``POLICY_KIND``. What is done is a setting of the system's own, which is switched on:

- ``reversible``: the setting is all of it. It lies in the system's database, where it can be rolled
  back; what is outside learns of it by a call of the executor once the policy lets it stand.
- ``irreversible``: the executor's call comes first, and its effect cannot be taken back; the
  setting records it.

Policies, each of them what to do when the audit row cannot be written:

- ``shared_catch``: the article's own. One ``catch`` serves action and audit: the operation becomes
  ``failed``, and a failed one is run again when asked for.
- ``side_path``: the business write commits, its audit row with before and after follows; where that
  fails it is logged, and the response stays a success.
- ``rollback``: the change is made, then audited; where that fails the earlier state is restored, if
  the generation is still the one that this change stamped.
- ``audit_first``: what will be done is audited, then done; nothing is rolled back.
- ``fail_closed``: the change and its audit row are one transaction, and without a row there is no
  change. What cannot be rolled back is preceded by a mark that it was started (our choice); nobody
  starts it again before that mark is resolved.

Points: ``start_audit`` where the audit comes first; ``before_action`` and ``after_action`` around
the change or the call; ``after_result`` once both are stored; ``response``. ``result_refused``: a
trigger on the audit's table. A recovery is ``again``: the caller submits the operation once more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rcr_probes.contrast.store import (
    AUDIT,
    AUDIT_TABLE,
    AuditFailed,
    AuditRow,
    Refused,
    Store,
    append,
    copied,
    told,
)
from rcr_probes.model import Json, Recorded
from rcr_probes.points import reach
from rcr_probes.runtime import Operation, Refusal, require_way
from rcr_probes.runtimes.requests import digest
from rcr_probes.runtimes.sqlite import RefusedBySqlite
from rcr_probes.vocabulary import MISSING, Says

KINDS = ("reversible", "irreversible")
_OFF, _ON = "off", "on"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS operation (key TEXT PRIMARY KEY, status TEXT, digest TEXT)",
    "CREATE TABLE IF NOT EXISTS setting (value TEXT NOT NULL, generation INTEGER NOT NULL)",
)
_PROCESS_FAULTS = frozenset({"exception", "kill"})


@dataclass(frozen=True, slots=True)
class Setting:
    """What the operation changes: its value, and the number of the change that made it so."""

    value: str = _OFF
    generation: int = 0


class Service:
    """One operation, and the store of the system that runs it."""

    def __init__(self, operation: Operation, kind: str) -> None:
        self._operation = operation
        self.reversible = kind == KINDS[0]
        self.store = Store(operation.folder, *_TABLES)

    def admit(self) -> None:
        """Take the operation, unless it is done, or was started and nobody knows how far it came.

        Raises:
            Refused: ALREADY_DONE or UNRESOLVED.
        """
        with self.store.transaction() as database:
            status = _status(database, self._operation.key)
        if status == "done":
            raise Refused("ALREADY_DONE", "The operation was done before.")
        if status == "started":
            raise Refused("UNRESOLVED", "The operation was started; how far it came is not known.")

    def note(self, status: str, database: sqlite3.Connection | None = None) -> None:
        """Store the operation's state."""
        if database is None:
            with self.store.transaction() as database:
                self.note(status, database)
            return
        database.execute(
            "INSERT OR REPLACE INTO operation VALUES (?, ?, ?)",
            (self._operation.key, status, digest(self._operation.request)),
        )

    def change(self, database: sqlite3.Connection) -> AuditRow:
        """Switch the setting on and note the operation done; return what the audit is to say."""
        before = _setting(database)
        after = Setting(_ON, before.generation + 1)
        _set(database, after)
        self.note("done", database)
        return AuditRow("changed", before.value, after.value, generation=after.generation)

    def act(self) -> AuditRow:
        """Make the effect, and store that it is done; return what the audit is to say."""
        reach("before_action")
        if not self.reversible:
            self.call()
            reach("after_action")
        with self.store.transaction() as database:
            row = self.change(database)
        if self.reversible:
            reach("after_action")
        reach("after_result")
        return row

    def call(self) -> None:
        """Have the executor act, outside."""
        self._operation.executor(self._operation.key, self._operation.request)

    def announce(self) -> None:
        """Let the outside learn of what stands now, where it does not know it yet."""
        if self.reversible:
            self.call()

    def seen(self) -> Setting:
        """The setting as it stands."""
        with self.store.transaction() as database:
            return _setting(database)

    def restore(self, earlier: Setting, stamped: int | None) -> None:
        """Put the earlier value back, unless something has changed it since ``stamped``.

        That is a change, too, with a number of its own (our choice): one that came back could not
        be told from the earlier one.
        """
        with self.store.transaction() as database:
            now = _setting(database)
            if now.generation == stamped:
                _set(database, Setting(earlier.value, now.generation + 1))
                self.note("rolled_back", database)


def _shared_catch(service: Service) -> None:
    service.note("started")
    try:
        service.store.audit(service.act())
        service.announce()
    except Exception:
        service.note("failed")
        value = service.seen().value
        service.store.audit(AuditRow("failed", value, value))
        raise


def _side_path(service: Service) -> None:
    row = service.act()
    try:
        service.store.audit(row)
    except AuditFailed as error:
        service.store.log(error)
    service.announce()


def _rollback(service: Service) -> None:
    earlier = service.seen()
    row = service.act()
    try:
        service.store.audit(row)
    except AuditFailed:
        service.restore(earlier, row.generation)
        raise
    service.announce()


def _audit_first(service: Service) -> None:
    reach("start_audit")
    service.store.audit(AuditRow("changed", service.seen().value, _ON))
    service.act()
    service.announce()


def _fail_closed(service: Service) -> None:
    if not service.reversible:
        service.note("started")
    reach("before_action")
    if not service.reversible:
        service.call()
        reach("after_action")
    with service.store.transaction() as database:
        row = service.change(database)
        if service.reversible:
            reach("after_action")
        append(database, row)
    reach("after_result")
    service.announce()


POLICIES: Mapping[str, Callable[[Service], None]] = {
    "shared_catch": _shared_catch,
    "side_path": _side_path,
    "rollback": _rollback,
    "audit_first": _audit_first,
    "fail_closed": _fail_closed,
}


class AuditPolicies:
    """Keeps the contract of ``rcr_probes.runtime.Runtime`` for one operation under each policy."""

    points: Mapping[str, frozenset[str]] = {
        "start_audit": _PROCESS_FAULTS | {"result_refused"},
        "before_action": _PROCESS_FAULTS,
        "after_action": _PROCESS_FAULTS | {"result_refused"},
        "after_result": frozenset({"kill"}),
        "response": frozenset({"kill"}),
    }
    recoveries: tuple[str, ...] = ()
    # Where a policy writes no state before it acts, having none is read as not done.
    says: Mapping[str, Says] = {
        MISSING: "not_done",
        "rolled_back": "not_done",
        "started": "open",
        "failed": "open",
        "done": "done",
    }
    variants: tuple[str, ...] = tuple(f"{policy}_{kind}" for policy in POLICIES for kind in KINDS)
    state_at_points = False  # a transaction may be open there

    def start(self, operation: Operation) -> None:
        """Run the operation under the policy of its variant.

        Raises:
            Refused: it is done, or was started.
            AuditFailed: what a caller sees where the policy lets it be seen.
        """
        policy, _, kind = operation.variant.rpartition("_")
        service = Service(operation, kind)
        service.admit()
        POLICIES[policy](service)
        reach("response")

    def recover(self, operation: Operation, way: str) -> None:
        """``again``: the caller submits it once more.

        Raises:
            UnknownName: no such way.
            Exception: as ``start``.
        """
        require_way(way, self.recoveries)
        self.start(operation)

    def state(self, operation: Operation) -> Recorded:
        """The operation's state; as evidence the setting, then what audit and log hold."""
        current = digest(operation.request)
        with copied(operation.folder) as database:
            if database is None:
                return Recorded(MISSING, current_digest=current)
            status = _status(database, operation.key)
            stands = status not in (MISSING, "rolled_back")
            seen = _setting(database)
            shown: Mapping[str, Json] = {"setting": seen.value, "generation": seen.generation}
            return Recorded(
                status=status,
                evidence=(shown, *told(operation.folder, database)),
                approved_digest=_digest(database, operation.key) if stands else None,
                current_digest=current,
            )

    def refusal(self, operation: Operation) -> Refusal:
        """Rows of the audit are refused by its table."""
        return RefusedBySqlite(operation.folder / AUDIT, AUDIT_TABLE)


def _status(database: sqlite3.Connection, key: str) -> str:
    row = database.execute("SELECT status FROM operation WHERE key = ?", (key,)).fetchone()
    return str(row[0]) if row else MISSING


def _digest(database: sqlite3.Connection, key: str) -> str:
    row = database.execute("SELECT digest FROM operation WHERE key = ?", (key,)).fetchone()
    return str(row[0])


def _setting(database: sqlite3.Connection) -> Setting:
    row = database.execute("SELECT value, generation FROM setting").fetchone()
    return Setting(*row) if row else Setting()


def _set(database: sqlite3.Connection, setting: Setting) -> None:
    database.execute("DELETE FROM setting")
    database.execute("INSERT INTO setting VALUES (?, ?)", (setting.value, setting.generation))


def runtime() -> AuditPolicies:
    """The runtime that a plan names ``rcr_probes.contrast.policies:runtime``."""
    return AuditPolicies()
