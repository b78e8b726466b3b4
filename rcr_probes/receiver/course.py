"""The course of one request in the database: arrival, claim, decision, effect, end.

Functions over an open transaction. What they read and write is the database alone.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from rcr_probes.receiver import keys
from rcr_probes.receiver.records import Fault, Outcome, Settings


@dataclass(frozen=True, slots=True)
class Arrival:
    """A recorded request.

    Attributes:
        request: its id.
        nth: order among the requests that can make an effect; None: it is none.
        fault: of the strike that it drew.
    """

    request: int
    nth: int | None = None
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request is answered with."""

    status: int
    body: bytes
    kind: str = "application/json"


def problem(status: int, title: str, detail: str) -> Answer:
    """An error as RFC 9457 has it: what the draft shows, and what this receiver always sends."""
    body = json.dumps({"title": title, "status": status, "detail": detail}).encode() + b"\n"
    return Answer(status, body, "application/problem+json")


MISMATCH = problem(
    422,
    "Idempotency-Key is already used",
    "This key came with another method, path or body. Send the same request, or another key.",
)
CONFLICT = problem(
    409,
    "A request is outstanding for this Idempotency-Key",
    "The first request with this key is still being handled. Send the same request again later.",
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a stored request asks for."""

    id: int
    nth: int | None
    payload: keys.Payload
    key: str | None
    key_problem: str | None
    outcome: Outcome | None


def now(sql: sqlite3.Connection) -> int:
    """The receiver's clock, in seconds."""
    value: int = sql.execute("SELECT now FROM receiver").fetchone()[0]
    return value


def last_nth(sql: sqlite3.Connection) -> int:
    """How many requests came that could make an effect."""
    value: int = sql.execute("SELECT coalesce(max(nth), 0) FROM request").fetchone()[0]
    return value


def write(
    sql: sqlite3.Connection, request: int | None, what: str, detail: str | None = None
) -> int:
    """Append an event; return its ``seq``."""
    seq: int = sql.execute(
        "INSERT INTO event (request, what, detail) VALUES (?, ?, ?) RETURNING seq",
        (request, what, detail),
    ).fetchone()[0]
    return seq


def insert(
    sql: sqlite3.Connection,
    method: str | None,
    path: str | None,
    key_fields: Sequence[str],
    body_sha256: str | None,
    size: int,
) -> int:
    """Record a request as it arrived; return its id."""
    key, key_problem = None, None
    try:
        key = keys.read_key(key_fields)
    except keys.BadKey as error:
        key, key_problem = ", ".join(key_fields), str(error)
    request: int = sql.execute(
        "INSERT INTO request (method, path, key, key_problem, body_sha256, size, at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (method, path, key, key_problem, body_sha256, size, now(sql)),
    ).fetchone()[0]
    write(sql, request, "arrived")
    return request


def draw(sql: sqlite3.Connection, settings: Settings, request: int) -> Arrival:
    """Count a request that can make an effect; it draws the strike that is armed for it."""
    nth = count(sql, settings, request)
    drawn = sql.execute(
        "UPDATE strike SET request = ? WHERE nth = ? RETURNING fault, delay", (request, nth)
    ).fetchone()
    fault, delay = drawn or (None, None)
    sql.execute("UPDATE request SET fault = ?, due = at + ? WHERE id = ?", (fault, delay, request))
    return Arrival(request, nth, fault)


def count(sql: sqlite3.Connection, settings: Settings, request: int) -> int:
    """Count a request that can make an effect, and return its place; it claims a free key.

    The key is claimed here and not when the request is handled: whoever comes while the first is
    held or delayed is told that it is in flight.
    """
    nth = last_nth(sql) + 1
    sql.execute("UPDATE request SET nth = ? WHERE id = ?", (nth, request))
    asked = _asked(sql, request)
    if _honoured(settings, asked) and _decide(sql, settings, asked) == "act":
        sql.execute("INSERT INTO claim (request, key) VALUES (?, ?)", (request, asked.key))
    return nth


def handle(sql: sqlite3.Connection, settings: Settings, request: int) -> Answer:
    """Do what a request asks for, once, and decide its answer.

    Raises:
        ValueError: it was handled before.
    """
    asked = _asked(sql, request)
    if asked.outcome is not None:
        raise ValueError(f"request {request} was handled before: {asked.outcome}")
    if asked.nth is None:
        answer = _canned(sql, settings, None)
        return _answered(sql, request, "no_effect", answer)
    if settings.keys == "honoured" and asked.key_problem:
        bad = problem(400, "Idempotency-Key cannot be read", f"There is {asked.key_problem}.")
        return _answered(sql, request, "refused", bad)
    if not _honoured(settings, asked):
        return _act(sql, settings, request)
    decision = _decide(sql, settings, asked)
    if decision == "mismatch":
        return _answered(sql, request, "mismatch", MISMATCH)
    if decision == "conflict":
        return _answered(sql, request, "conflict", CONFLICT)
    if decision == "replay":
        return _answered(sql, request, "replayed", _first_result(sql, asked.key))
    answer = _act(sql, settings, request)
    sql.execute(
        "INSERT OR REPLACE INTO claim (request, key, done_at, status, body) VALUES (?, ?, ?, ?, ?)",
        (request, asked.key, now(sql), answer.status, answer.body),
    )
    return answer


def decided(sql: sqlite3.Connection, request: int, outcome: Outcome, status: int | None) -> None:
    """Write what became of a request.

    Raises:
        ValueError: that was written before.
    """
    done = sql.execute(
        "UPDATE request SET outcome = ?, status = ? WHERE id = ? AND outcome IS NULL",
        (outcome, status, request),
    )
    if done.rowcount != 1:
        raise ValueError(f"request {request} is unknown, or was handled before")
    write(sql, request, "handled", outcome)


def give_up_claim(sql: sqlite3.Connection, request: int) -> None:
    """A request that never acted leaves its key to others."""
    sql.execute("DELETE FROM claim WHERE request = ? AND done_at IS NULL", (request,))


def close(sql: sqlite3.Connection, request: int, answered: bool) -> None:
    """Nothing more will be done for a request.

    That it was answered is no event: it would be written after the caller went on, and what the
    caller does next may come first. What was decided for it is one, and comes before the answer.
    """
    sql.execute("UPDATE request SET closed = 1, answered = ? WHERE id = ?", (answered, request))
    if not answered:
        write(sql, request, "unanswered")


def let_fly(sql: sqlite3.Connection, request: int, how: str) -> None:
    """The caller of a delayed effect is gone; from here the clock alone keeps the effect."""
    sql.execute("UPDATE request SET flying = 1 WHERE id = ?", (request,))
    write(sql, request, "gave_up", how)


def land(sql: sqlite3.Connection, settings: Settings) -> None:
    """Handle every delayed request whose caller is gone and whose time has come, earliest first."""
    due = sql.execute(
        "SELECT id FROM request WHERE flying AND outcome IS NULL AND due <= ? ORDER BY due, id",
        (now(sql),),
    ).fetchall()
    for (request,) in due:
        handle(sql, settings, request)
        close(sql, request, False)


def settle(sql: sqlite3.Connection, settings: Settings) -> None:
    """End what an earlier process left open; a delayed effect that struck is on its way."""
    left = sql.execute(
        "SELECT request.id, outcome, proof IS NOT NULL AND strike.fault = 'delayed_effect', flying "
        "FROM request LEFT JOIN strike ON strike.request = request.id WHERE NOT closed "
        "ORDER BY request.id"
    ).fetchall()
    for request, outcome, delayed, flying in left:
        if outcome is None and delayed:
            if not flying:
                let_fly(sql, request, "ended")
            continue
        if outcome is None:
            decided(sql, request, "abandoned", None)
            give_up_claim(sql, request)
        close(sql, request, False)
    land(sql, settings)


def _asked(sql: sqlite3.Connection, request: int) -> _Asked:
    nth, method, path, body_sha256, *rest = sql.execute(
        "SELECT nth, method, path, body_sha256, key, key_problem, outcome "
        "FROM request WHERE id = ?",
        (request,),
    ).fetchone()
    return _Asked(request, nth, keys.Payload(method, path, body_sha256), *rest)


def _honoured(settings: Settings, asked: _Asked) -> bool:
    readable = asked.key is not None and asked.key_problem is None
    return readable and settings.keys == "honoured"


def _decide(sql: sqlite3.Connection, settings: Settings, asked: _Asked) -> keys.Decision:
    row = sql.execute(
        "SELECT request, done_at FROM claim WHERE key = ? "
        "ORDER BY done_at IS NULL DESC, done_at DESC, request DESC LIMIT 1",
        (asked.key,),
    ).fetchone()
    claim = row and keys.Claim(row[0], _asked(sql, row[0]).payload, row[1])
    return keys.decide(claim, asked.id, asked.payload, now(sql), settings.retention)


def _first_result(sql: sqlite3.Connection, key: str | None) -> Answer:
    status, body = sql.execute(
        "SELECT status, body FROM claim WHERE key = ? AND done_at IS NOT NULL "
        "ORDER BY done_at DESC, request DESC LIMIT 1",
        (key,),
    ).fetchone()
    return Answer(status, body)


def _act(sql: sqlite3.Connection, settings: Settings, request: int) -> Answer:
    effect = sql.execute(
        "INSERT INTO effect (request, at) VALUES (?, ?) RETURNING id", (request, now(sql))
    ).fetchone()[0]
    write(sql, request, "effect", f"E{effect}")
    return _answered(sql, request, "effect", _canned(sql, settings, effect))


def _canned(sql: sqlite3.Connection, settings: Settings, effect: int | None) -> Answer:
    body: bytes | None = sql.execute("SELECT canned FROM receiver").fetchone()[0]
    if body is None:
        said = {"status": "ok"} if effect is None else {"id": f"E{effect}", "status": "accepted"}
        body = json.dumps(said).encode() + b"\n"
    return Answer(settings.status, body)


def _answered(sql: sqlite3.Connection, request: int, outcome: Outcome, answer: Answer) -> Answer:
    decided(sql, request, outcome, answer.status)
    return answer
