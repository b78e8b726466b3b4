"""A SQLite table that refuses to be written: the seam of a runtime that keeps its results there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

_WAIT = 10.0  # seconds in which whoever writes there now must be done


class RefusedBySqlite:
    """A ``Refusal`` by a trigger on a table: what is written there fails with an error of SQLite.

    The runtime's own code meets that error as it would meet a full disk; nothing of it is patched.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        table: str,
        on: Sequence[str] = ("INSERT", "UPDATE"),
    ) -> None:
        """Name the database, the table, and the statements that it is to refuse."""
        self._path, self._table, self._on = os.fspath(path), table, tuple(on)

    def place(self) -> None:
        """Make the triggers.

        Raises:
            sqlite3.OperationalError: there is no such table, or it stays locked.
        """
        with self._open("rw") as database:
            for statement in self._on:
                database.execute(
                    f'CREATE TRIGGER "{_trigger(statement)}" BEFORE {statement} ON "{self._table}" '
                    "BEGIN SELECT RAISE(ABORT, 'refused by the probe'); END"
                )

    def standing(self) -> bool:
        """Whether every trigger is there."""
        if not os.path.exists(self._path):
            return False
        with self._open("ro") as database:
            found = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            names = {name for (name,) in found}
        return all(_trigger(statement) in names for statement in self._on)

    def lift(self) -> None:
        """Take the triggers away again."""
        with self._open("rw") as database:
            for statement in self._on:
                database.execute(f'DROP TRIGGER IF EXISTS "{_trigger(statement)}"')

    @contextmanager
    def _open(self, mode: str) -> Iterator[sqlite3.Connection]:
        address = f"file:{self._path}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=_WAIT)) as database, database:
            yield database


def _trigger(statement: str) -> str:
    return f"rcr_refuses_{statement.lower()}"
