"""Of a runtime that keeps its results in SQLite: its refusal to be written, and a copy to read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

_WAIT = 10.0  # seconds in which whoever writes there now must be done


class RefusedBySqlite:
    """A ``Refusal`` by triggers on tables: what is written there fails with an error of SQLite.

    The runtime's own code meets that error as it would meet a full disk; nothing of it is patched.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *tables: str,
        on: Sequence[str] = ("INSERT", "UPDATE"),
        when: str = "TRUE",
    ) -> None:
        """Name the database, its tables, and the statements that they are to refuse.

        ``when`` is a condition of SQL on the row that is written, such as ``NEW.id = 2``: where it
        does not hold, the row is taken.
        """
        self._path = os.fspath(path)
        self._triggers = {
            f"rcr_refuses_{statement.lower()}_{table}": f'{statement} ON "{table}" WHEN {when}'
            for table in tables
            for statement in on
        }

    def place(self) -> None:
        """Make the triggers, all or none.

        Raises:
            sqlite3.OperationalError: there is no such table, or it stays locked.
        """
        with self._open("rw") as database:
            database.execute("BEGIN IMMEDIATE")
            for name, refused in self._triggers.items():
                database.execute(
                    f'CREATE TRIGGER "{name}" BEFORE {refused} '
                    "BEGIN SELECT RAISE(ABORT, 'refused by the probe'); END"
                )

    def standing(self) -> bool:
        """Whether every trigger is there."""
        if not os.path.exists(self._path):
            return False
        with self._open("ro") as database:
            found = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            return self._triggers.keys() <= {name for (name,) in found}

    def lift(self) -> None:
        """Take the triggers away again."""
        with self._open("rw") as database:
            for name in self._triggers:
                database.execute(f'DROP TRIGGER IF EXISTS "{name}"')

    @contextmanager
    def _open(self, mode: str) -> Iterator[sqlite3.Connection]:
        address = f"file:{quote(self._path)}?mode={mode}"  # else a # in a folder's name ends it
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT)) as database, database:
            yield database


def address(driver: str, path: Path) -> str:
    """The URL of a database for SQLAlchemy, whatever its path holds.

    The path goes to SQLite as a URI: SQLAlchemy 2.0 has no way to write a ? in it, and before 2.1 a
    % stood for itself.
    """
    from sqlalchemy import URL

    named = URL.create(driver, database=f"file:{quote(os.fspath(path))}", query={"uri": "true"})
    return str(named.render_as_string(hide_password=False))


@contextmanager
def copied(*databases: Path) -> Iterator[Path]:
    """A folder with copies of these databases and of what SQLite keeps beside each, as its journal.

    Reading writes: what a killed writer left half done is rolled back in the copy alone. Of a
    database that is not there, there is no copy.
    """
    with tempfile.TemporaryDirectory() as place:
        for database in databases:
            for file in database.parent.glob(f"{database.name}*"):
                shutil.copy(file, place)
        yield Path(place)
