"""The receiver's memory: each method is one SQLite transaction, and none knows sockets.

The clock is a number in the database; nothing here reads the machine's.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from rcr_probes.receiver import course, keys, tables
from rcr_probes.receiver.course import Answer, Arrival
from rcr_probes.receiver.records import (
    DATABASE,
    FAULTS,
    KeyAnswer,
    Outcome,
    ReceiverError,
    Record,
    Request,
    Settings,
    TookEffect,
)

_LATEST = 2**53  # seconds; the largest number that every reader of JSON keeps whole


class Store:
    """One receiver's database, for all threads of its process."""

    def __init__(self, folder: str, settings: Settings | None = None) -> None:
        """Open the database of a folder that exists, or make it there.

        What an earlier process left open, or the original that this is a copy of, is settled: its
        sockets are not ours. A request that was not handled never will be; but a ``delayed_effect``
        that struck is on its way, and lands when it is due.

        Args:
            folder: where the database is, or shall be.
            settings: replace the stored ones; None keeps them (in a new database the defaults).

        Raises:
            ReceiverError: the answer's file cannot be read, or the database is not a receiver's.
        """
        path = os.path.join(folder, DATABASE)
        self._lock = threading.RLock()
        self._sql = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with ExitStack() as refused:
                refused.callback(self._sql.close)
                self._sql.execute("PRAGMA foreign_keys = ON")
                with self._transaction() as sql:
                    if not sql.execute("SELECT 1 FROM sqlite_master").fetchone():
                        tables.create(sql)
                    if settings is not None:
                        _replace_settings(sql, settings)
                    self.settings = tables.stored_settings(sql)
                    course.settle(sql, self.settings)
                refused.pop_all()
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise ReceiverError(
                f"{path} cannot be used as a receiver's database: {error}.",
                "Give a folder of its own, or one that a receiver left or was copied into.",
            ) from error

    # Requests.

    def arrive(
        self, method: str, path: str, key_fields: Sequence[str], body_sha256: str, size: int
    ) -> Arrival:
        """Record a whole request before it is handled: it draws its strike, and claims its key.

        Args:
            method: as sent.
            path: the target in origin form.
            key_fields: the text of each Idempotency-Key field.
            body_sha256: of the payload, in hex.
            size: bytes of the payload.
        """
        with self._transaction() as sql:
            request = course.insert(sql, method, path, key_fields, body_sha256, size)
            if self.settings.acts(method):
                return course.draw(sql, self.settings, request)
            return Arrival(request)

    def refuse(
        self, status: int | None, method: str | None, path: str | None, key_fields: Sequence[str]
    ) -> int:
        """Record what is no whole request; ``status`` None: its sender left in the middle of it."""
        with self._transaction() as sql:
            request = course.insert(sql, method, path, key_fields, None, 0)
            outcome: Outcome = "incomplete" if status is None else "refused"
            course.decided(sql, request, outcome, status)
            return request

    def handle(self, request: int) -> Answer:
        """Do what a recorded request asks for, once, and decide its answer.

        The effect, the idempotency record and the outcome are one transaction.

        Raises:
            ValueError: it was handled before.
        """
        with self._transaction() as sql:
            return course.handle(sql, self.settings, request)

    def end(self, request: int, answered: bool, outcome: Outcome | None = None) -> None:
        """Nothing more will be done for a request.

        Args:
            request: its id.
            answered: whether its answer was handed to the kernel whole.
            outcome: what became of it where it was never handled; its claim ends with it.
        """
        with self._transaction() as sql:
            if outcome is not None:
                course.decided(sql, request, outcome, None)
                course.give_up_claim(sql, request)
            course.close(sql, request, answered)

    def repeat(self, request: Request) -> Request:
        """Record a request as it was sent before, and handle it at once; it draws no strike.

        Args:
            request: its method, path, key and payload are repeated; nothing else of it counts.

        Returns:
            The new request: its outcome says what became of it, and nobody was answered.

        Raises:
            ReceiverError: it was not whole, or its method makes no effect.
        """
        method, path, body = request.method, request.path, request.body_sha256
        if method is None or path is None or body is None or not self.settings.acts(method):
            raise ReceiverError(
                f"Request {request.id} cannot be repeated.",
                "Repeat one that came whole and can make an effect.",
            )
        key_fields = [] if request.key is None else [keys.written(request.key)]
        with self._transaction() as sql:
            new = course.insert(sql, method, path, key_fields, body, request.size)
            course.count(sql, self.settings, new)
            course.handle(sql, self.settings, new)
            course.close(sql, new, answered=False)
            return tables.request(sql, new)

    # Strikes.

    def arm(self, fault: str, nth: int, delay: int = 0) -> None:
        """Arm a fault for the ``nth`` request of all that can make an effect.

        Raises:
            ReceiverError: no such fault, that request came already, or it has a strike.
        """
        if fault not in FAULTS:
            raise ReceiverError(f"Unknown strike: {fault!r}.", f"Known: {', '.join(FAULTS)}.")
        if not (1 <= nth <= _LATEST and 0 <= delay <= _LATEST) or (
            delay and fault != "delayed_effect"
        ):
            raise ReceiverError(
                f"A strike {fault} at {nth} with delay {delay} cannot be armed.",
                "nth counts from 1; only delayed_effect has a delay, in whole seconds from 0.",
            )
        with self._transaction() as sql:
            came = course.last_nth(sql)
            if nth <= came:
                raise ReceiverError(
                    f"Request {nth} came already ({came} so far): nothing would strike it.",
                    f"Arm a strike for request {came + 1} or a later one.",
                )
            if sql.execute("SELECT 1 FROM strike WHERE nth = ?", (nth,)).fetchone():
                raise ReceiverError(
                    f"Request {nth} has a strike already.", "Disarm first: one request, one strike."
                )
            sql.execute(
                "INSERT INTO strike (nth, fault, delay) VALUES (?, ?, ?)", (nth, fault, delay)
            )

    def disarm(self) -> int:
        """Lift every strike that no request drew yet; return how many."""
        with self._transaction() as sql:
            return sql.execute("DELETE FROM strike WHERE request IS NULL").rowcount

    def strike(self, request: int, status: int | None = None) -> None:
        """Write the proof that its fault strikes a request now; to be called before it does.

        ``status`` replaces the decided one where the fault answers something else.
        """
        with self._transaction() as sql:
            fault = sql.execute("SELECT fault FROM request WHERE id = ?", (request,)).fetchone()[0]
            proof = course.write(sql, request, "struck", fault)
            sql.execute("UPDATE strike SET proof = ? WHERE request = ?", (proof, request))
            if status is not None:
                sql.execute("UPDATE request SET status = ? WHERE id = ?", (status, request))

    def note(self, request: int, what: str, detail: str) -> None:
        """Write an event that changes nothing in here: released, gave_up."""
        with self._transaction() as sql:
            course.write(sql, request, what, detail)

    def let_fly(self, request: int, how: str) -> None:
        """The caller of a delayed effect gave up: the effect lands as soon as it is due."""
        with self._transaction() as sql:
            course.let_fly(sql, request, how)
            course.land(sql, self.settings)

    def advance(self, seconds: int) -> int:
        """Move the clock forward, and land what is due by then.

        Returns:
            The time in seconds.

        Raises:
            ReceiverError: the clock only moves forward, to 2⁵³ at most.
        """
        with self._transaction() as sql:
            now = course.now(sql) + seconds
            if seconds < 0 or now > _LATEST:
                raise ReceiverError(
                    f"The clock cannot move by {seconds} seconds.", "It only moves forward."
                )
            sql.execute("UPDATE receiver SET now = ?", (now,))
            course.write(sql, None, "advanced", str(now))
            course.land(sql, self.settings)
            return now

    # Questions.

    def ask(self, key: str) -> KeyAnswer:
        """What this receiver knows of a key. Bytes that are still in sockets it does not know."""
        with self._transaction() as sql:
            done = sql.execute("SELECT max(done_at) FROM claim WHERE key = ?", (key,)).fetchone()[0]
            took: TookEffect
            if self.settings.keys == "ignored":
                took = "unknown"
            elif done is None:
                took = "no"
            else:
                gone = keys.expired(done, course.now(sql), self.settings.retention)
                took = "expired" if gone else "yes"
            flying = sql.execute(
                "SELECT 1 FROM request WHERE key = ? AND outcome IS NULL", (key,)
            ).fetchone()
            return KeyAnswer(took, flying is not None)

    def open_requests(self) -> int:
        """How many requests are not done with: to be handled, to be answered, or still to land."""
        with self._transaction() as sql:
            count: int = sql.execute("SELECT count(*) FROM request WHERE closed = 0").fetchone()[0]
            return count

    def open_holds(self) -> int:
        """How many requests are held, will be at once, or were and are not done with."""
        with self._transaction() as sql:
            found = sql.execute(
                "SELECT count(*) FROM request WHERE NOT closed "
                "AND fault IN ('hold_before', 'hold_after')"
            )
            count: int = found.fetchone()[0]
            return count

    def record(self) -> Record:
        """All that was recorded, as one consistent view."""
        with self._transaction() as sql:
            return tables.read(sql)

    def snapshot(self, into: str) -> None:
        """Copy the database, as it stands between two transactions, into another folder.

        Raises:
            ReceiverError: the folder holds a database already, or cannot be written.
        """
        path = os.path.join(into, DATABASE)
        try:
            os.makedirs(into, exist_ok=True)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            copy = sqlite3.connect(path)
            try:
                with self._lock:
                    self._sql.backup(copy)
            finally:
                copy.close()
        except (OSError, sqlite3.Error) as error:
            raise ReceiverError(
                f"No copy can be made in {into}: {error}.", "Give a new folder, or an empty one."
            ) from error

    def close(self) -> None:
        """Close the database between two transactions; every later use fails."""
        self._lock.acquire()  # and never let go: who waits for it is ended with the process
        self._sql.close()

    # What transactions are made of.

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                yield self._sql
                self._sql.execute("COMMIT")
            except BaseException:
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")
                raise


def _replace_settings(sql: sqlite3.Connection, settings: Settings) -> None:
    canned = None
    if settings.answer is not None:
        try:
            with open(settings.answer, "rb") as file:
                canned = file.read()
        except OSError as error:
            raise ReceiverError(
                f"The answer in {settings.answer} cannot be read: {error.strerror}.",
                "Give the path of a file that can be.",
            ) from error
    text = tables.as_text(settings)
    sql.execute("UPDATE receiver SET settings = ?, canned = ?", (text, canned))
