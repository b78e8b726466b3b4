"""The tables of the receiver's database, and reading them back as nouns."""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
from typing import Any

from rcr_probes.receiver.records import (
    DATABASE,
    Effect,
    Event,
    ReceiverError,
    Record,
    Request,
    Settings,
    Strike,
)

# A claim is a request that took its key. `due` is when a delayed effect lands, `flying` that its
# caller gave up, so that only the clock keeps it; `key_problem` says why a key cannot be read.
_SCHEMA = """
CREATE TABLE receiver (
    settings TEXT NOT NULL, canned BLOB, now INTEGER NOT NULL CHECK (now >= 0)
);
CREATE TABLE request (
    id INTEGER PRIMARY KEY, nth INTEGER UNIQUE, method TEXT, path TEXT, key TEXT, key_problem TEXT,
    body_sha256 TEXT, size INTEGER NOT NULL, at INTEGER NOT NULL, fault TEXT, due INTEGER,
    flying INTEGER NOT NULL DEFAULT 0, outcome TEXT, status INTEGER,
    answered INTEGER NOT NULL DEFAULT 0, closed INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE effect (
    id INTEGER PRIMARY KEY, request INTEGER NOT NULL UNIQUE REFERENCES request, at INTEGER NOT NULL
);
CREATE TABLE claim (
    request INTEGER PRIMARY KEY REFERENCES request, key TEXT NOT NULL,
    done_at INTEGER, status INTEGER, body BLOB
);
CREATE INDEX claim_of_key ON claim (key);
CREATE TABLE strike (
    nth INTEGER PRIMARY KEY, fault TEXT NOT NULL, delay INTEGER NOT NULL,
    request INTEGER UNIQUE REFERENCES request, proof INTEGER REFERENCES event
);
CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, request INTEGER REFERENCES request, what TEXT NOT NULL,
    detail TEXT
)
"""

_REQUEST = (
    "SELECT id, nth, method, path, key, body_sha256, size, at, fault, outcome, status, "
    "answered, closed FROM request"
)


def create(sql: sqlite3.Connection) -> None:
    """Make the tables in an empty database, with the default settings and the clock at 0."""
    for statement in _SCHEMA.split(";\n"):
        sql.execute(statement)
    sql.execute("INSERT INTO receiver (settings, now) VALUES (?, 0)", (as_text(Settings()),))


def as_text(settings: Settings) -> str:
    """Settings as they are stored."""
    return json.dumps(dataclasses.asdict(settings), sort_keys=True)


def stored_settings(sql: sqlite3.Connection) -> Settings:
    """The settings that the database holds.

    Raises:
        ValueError, TypeError: they are not what ``as_text`` wrote.
    """
    fields = json.loads(sql.execute("SELECT settings FROM receiver").fetchone()[0])
    methods = fields.pop("effects_of")
    return Settings(effects_of=None if methods is None else tuple(methods), **fields)


def request(sql: sqlite3.Connection, number: int) -> Request:
    """The request with this id."""
    return _request(sql.execute(f"{_REQUEST} WHERE id = ?", (number,)).fetchone())


def read(sql: sqlite3.Connection) -> Record:
    """All that was recorded, each in its order."""
    requests = sql.execute(f"{_REQUEST} ORDER BY id")
    effects = sql.execute(
        "SELECT 'E' || effect.id, request, method, path, key, body_sha256, effect.at "
        "FROM effect JOIN request ON request.id = effect.request ORDER BY effect.id"
    )
    strikes = sql.execute("SELECT nth, fault, delay, request, proof FROM strike ORDER BY nth")
    events = sql.execute("SELECT seq, request, what, detail FROM event ORDER BY seq")
    return Record(
        tuple(map(_request, requests.fetchall())),
        tuple(Effect(*row) for row in effects.fetchall()),
        tuple(Strike(*row) for row in strikes.fetchall()),
        tuple(Event(*row) for row in events.fetchall()),
        sql.execute("SELECT now FROM receiver").fetchone()[0],
    )


def _request(row: tuple[Any, ...]) -> Request:
    return Request(*(*row[:11], bool(row[11]), bool(row[12])))  # SQLite has no booleans


def read_back(folder: str) -> Record:
    """What a receiver that no longer runs recorded in its folder. Nothing is settled by reading.

    Raises:
        ReceiverError: there is no such database, or it cannot be read.
    """
    path = os.path.join(folder, DATABASE)
    try:
        if not os.path.isfile(path):
            raise FileNotFoundError("it does not exist")
        # Writable, because a killed process may have left a transaction that must be rolled back.
        sql = sqlite3.connect(path, isolation_level=None)
        try:
            sql.execute("BEGIN")
            return read(sql)
        finally:
            sql.close()
    except (OSError, sqlite3.Error, TypeError) as error:
        raise ReceiverError(
            f"{path} cannot be read: {error}.", "Give the folder that the receiver was started in."
        ) from error
