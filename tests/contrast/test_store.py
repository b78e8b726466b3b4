"""What the contrast systems keep: both databases or neither, an audit that can be refused alone."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from rcr_probes.contrast.store import (
    AUDIT,
    AUDIT_TABLE,
    LOG,
    AuditFailed,
    AuditRow,
    Store,
    append,
    copied,
    told,
)
from rcr_probes.runtimes.sqlite import RefusedBySqlite

TABLE = "CREATE TABLE IF NOT EXISTS own (value TEXT)"
ROWS = [AuditRow("changed", "off", "on", tenant=f"tenant-{n}", generation=n) for n in (1, 2, 3)]


def kept(folder: Path) -> tuple[list[str], list[object]]:
    """What the own table holds, and what audit and log do."""
    with copied(folder) as database:
        assert database is not None
        own = [str(value) for (value,) in database.execute("SELECT value FROM own")]
        return own, list(told(folder, database))


def change(store: Store, row: AuditRow) -> None:
    with store.transaction() as database:
        database.execute("INSERT INTO own VALUES ('changed')")
        append(database, row)


@pytest.mark.parametrize("when", ["TRUE", "NEW.tenant = 'tenant-2'"])
def test_a_refused_row_takes_every_row_and_the_change_with_it(tmp_path: Path, when: str) -> None:
    """One transaction spans both databases; the refusal is SQLite's own, and can be lifted."""
    store = Store(tmp_path, TABLE)
    refusal = RefusedBySqlite(tmp_path / AUDIT, AUDIT_TABLE, when=when)
    refusal.place()
    assert refusal.standing()
    with pytest.raises(AuditFailed) as caught:
        store.audit(*ROWS)
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)
    with pytest.raises(AuditFailed):
        change(store, ROWS[1])
    assert kept(tmp_path) == ([], [])
    refusal.lift()
    assert not refusal.standing()
    store.audit(*ROWS)
    change(store, ROWS[1])
    own, audit = kept(tmp_path)
    assert own == ["changed"]
    assert len(audit) == len(ROWS) + 1


def test_a_condition_refuses_the_rows_that_it_means_alone(tmp_path: Path) -> None:
    """The others are taken."""
    store = Store(tmp_path, TABLE)
    RefusedBySqlite(tmp_path / AUDIT, AUDIT_TABLE, when="NEW.tenant = 'tenant-2'").place()
    for row in (ROWS[0], ROWS[2]):
        store.audit(row)
    with pytest.raises(AuditFailed):
        store.audit(ROWS[1])
    assert kept(tmp_path)[1] == [ROWS[0].shown(), ROWS[2].shown()]


def test_a_row_shows_what_it_says_and_nothing_else(tmp_path: Path) -> None:
    """What is not known is not there; a row that is read back says what was written."""
    row = AuditRow("started", "not_draining", "draining")
    assert row.shown() == {"audit": "started", "before": "not_draining", "after": "draining"}
    Store(tmp_path, TABLE).audit(row)
    assert kept(tmp_path)[1] == [row.shown()]


def test_what_the_caller_is_not_told_stands_in_the_log(tmp_path: Path) -> None:
    """A line for each failure: its code alone."""
    store = Store(tmp_path, TABLE)
    store.log(AuditFailed("why"))
    store.log(OSError(28, "full"))
    assert (tmp_path / LOG).read_text().splitlines() == ["AUDIT_FAILED", "ENOSPC"]
    assert kept(tmp_path)[1] == [{"log": "AUDIT_FAILED"}, {"log": "ENOSPC"}]


def test_where_nothing_was_stored_there_is_nothing_to_copy(tmp_path: Path) -> None:
    """And asking makes nothing."""
    with copied(tmp_path) as database:
        assert database is None
    assert list(tmp_path.iterdir()) == []


def test_a_transaction_that_died_half_done_is_rolled_back_in_the_copy_alone(tmp_path: Path) -> None:
    """What stands in the folder stays as its process left it, its journal with it."""
    store = Store(tmp_path, TABLE)
    child = os.fork()
    if not child:
        try:
            with store.transaction() as database:
                database.execute("PRAGMA cache_size = 1")  # so that pages reach the file
                database.executemany("INSERT INTO own VALUES (?)", [("x" * 4000,)] * 50)
                os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert "store.db-journal" in before
    assert kept(tmp_path) == ([], [])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
