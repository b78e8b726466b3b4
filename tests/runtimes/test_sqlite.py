"""What stands in a SQLite database: refused by triggers, and read from a copy in its place."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rcr_probes.errors import installing
from rcr_probes.runtimes.sqlite import RefusedBySqlite, address, copied


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


NAMES = ("plain", "a#b", "a?b", "50%25", "a b", "50%", "Ω")


@pytest.mark.parametrize("name", NAMES)
def test_an_address_leads_to_its_database_whatever_the_folder_is_called(
    tmp_path: Path, name: str
) -> None:
    """SQLAlchemy makes the file where it was asked to, and nothing beside it."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason=installing("dbos"))
    path = tmp_path / name / "own.db"
    path.parent.mkdir()
    engine = sqlalchemy.create_engine(address("sqlite", path))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE own (value)"))
    engine.dispose()
    assert [file.name for file in path.parent.iterdir()] == ["own.db"]
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_is_placed_whatever_the_folder_is_called(tmp_path: Path, name: str) -> None:
    """A cell that is kept lies where its user says, and a name is no part of an address there."""
    path = tmp_path / name / "own.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE own (value)")
    refusal = RefusedBySqlite(path, "own")
    refusal.place()
    assert refusal.standing()
    with (
        closing(sqlite3.connect(path)) as database,
        pytest.raises(sqlite3.IntegrityError, match="refused by the probe"),
    ):
        database.execute("INSERT INTO own VALUES (7)")
    refusal.lift()
    assert not refusal.standing()
    assert [file.name for file in path.parent.iterdir()] == ["own.db"]
