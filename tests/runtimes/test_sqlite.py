"""A copy of a SQLite database holds what SQLite keeps beside it, and is read in its place."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from rcr_probes.runtimes.sqlite import copied


def test_what_the_log_of_writes_alone_holds_is_in_the_copy(tmp_path: Path) -> None:
    """Each database is there under its name, and one that is not there makes none."""
    path, none = tmp_path / "one.db", tmp_path / "none.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE own (value)")
        database.execute("INSERT INTO own VALUES (7)")
        database.commit()
        before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        with copied(path, none) as place, closing(sqlite3.connect(place / path.name)) as copy:
            assert not (place / none.name).exists()
            assert copy.execute("SELECT value FROM own").fetchall() == [(7,)]
            copy.execute("DELETE FROM own")
            copy.commit()
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert not place.exists()
