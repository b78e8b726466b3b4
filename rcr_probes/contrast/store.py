"""What these systems keep: a database of their own, their audit in another one, and a log.

One transaction may span both databases; SQLite then commits both or neither. The audit is a file of
its own so that it can be refused by itself.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rcr_probes.errors import code_of
from rcr_probes.model import Json
from rcr_probes.runtimes import sqlite

STORE = "store.db"
AUDIT = "audit.db"
AUDIT_TABLE = "audit"
LOG = "service.log"

_AUDIT = """CREATE TABLE IF NOT EXISTS audit.audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT NOT NULL, before TEXT NOT NULL,
    after TEXT NOT NULL, tenant TEXT, generation INTEGER)"""
_READ = "SELECT event, before, after, tenant, generation FROM audit.audit ORDER BY number"


class AuditFailed(Exception):
    """A row of the audit could not be written."""

    code = "AUDIT_FAILED"


class Refused(Exception):
    """The system takes no such request now; ``code`` says why."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One row of the audit.

    Attributes:
        event: what happened, or, where the audit comes first, what is about to.
        before: what stood there.
        after: what stands there then.
        tenant: whose row it is, where there are several.
        generation: the number of the change that it tells of, where that is known.
    """

    event: str
    before: str
    after: str
    tenant: str | None = None
    generation: int | None = None

    def shown(self) -> Mapping[str, Json]:
        """As evidence: without what it does not say."""
        found = {"audit": self.event, "before": self.before, "after": self.after}
        more = {"tenant": self.tenant, "generation": self.generation}
        return {**found, **{name: value for name, value in more.items() if value is not None}}


class Store:
    """The databases and the log of one system, in a folder that is there."""

    def __init__(self, folder: Path, *tables: str) -> None:
        """Make what is missing.

        Args:
            folder: private to the system.
            tables: statements that make its own tables where they are not there.
        """
        self._folder = folder
        with _opened(folder) as database:
            for statement in (*tables, _AUDIT):
                database.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of what is done inside, in both databases, or nothing of it."""
        with _opened(self._folder) as database:
            database.execute("BEGIN")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def audit(self, *rows: AuditRow) -> None:
        """Append rows to the audit, all or none.

        Raises:
            AuditFailed: none of them was.
        """
        with self.transaction() as database:
            for row in rows:
                append(database, row)

    def log(self, error: Exception) -> None:
        """Note a failure that the caller is not told of."""
        line = f"{code_of(error)}\n".encode()
        fd = os.open(self._folder / LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)


def append(database: sqlite3.Connection, row: AuditRow) -> None:
    """Append one row to the audit, inside a transaction.

    Raises:
        AuditFailed: SQLite does not take it.
    """
    values = (row.event, row.before, row.after, row.tenant, row.generation)
    try:
        database.execute(
            "INSERT INTO audit.audit (event, before, after, tenant, generation) "
            "VALUES (?, ?, ?, ?, ?)",
            values,
        )
    except sqlite3.Error as error:
        raise AuditFailed(f"{row.event}: {error}") from error


@contextmanager
def copied(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """A copy of both databases, to be read; None where nothing was ever stored."""
    if not (folder / STORE).exists():
        yield None
        return
    with sqlite.copied(folder / STORE, folder / AUDIT) as place, _opened(place) as database:
        yield database


def told(folder: Path, database: sqlite3.Connection) -> tuple[Mapping[str, Json], ...]:
    """What audit and log hold, in their order, as evidence."""
    rows = [AuditRow(*row).shown() for row in database.execute(_READ)]
    log = folder / LOG
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return (*rows, *({"log": line} for line in lines))


@contextmanager
def _opened(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / STORE, isolation_level=None)) as database:
        database.execute("ATTACH ? AS audit", (os.fspath(folder / AUDIT),))
        yield database
