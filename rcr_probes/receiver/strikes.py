"""How each fault strikes a request: on its connection, before or after it is handled.

The proof is written before the strike. A request without a fault is handled and answered.
"""

from __future__ import annotations

import threading
import time
from typing import Literal

from rcr_probes.receiver.course import Arrival, problem
from rcr_probes.receiver.records import Held, Outcome, ReceiverError, Release
from rcr_probes.receiver.store import Store
from rcr_probes.receiver.wire import Connection

_UNAVAILABLE = problem(503, "Service Unavailable", "A strike: nothing was done.")
_FAILED = problem(500, "Internal Server Error", "A strike: this answer is no word on the effect.")


class Holds:
    """The requests that are held, for the thread of each and for whoever releases them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[int, Held] = {}
        self._released: dict[int, Release] = {}
        self._stopped = False

    def hold(self, held: Held, bound: float) -> Release | Literal["bound", "stopped"]:
        """Wait until this request is released, ``bound`` seconds passed, or all is to end."""
        with self._changed:
            self._held[held.request] = held
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._stopped or held.request in self._released, timeout=bound
            )
            self._held.pop(held.request, None)
            if held.request in self._released:
                return self._released.pop(held.request)
            return "stopped" if self._stopped else "bound"

    def wait(self, timeout: float) -> Held | None:
        """The earliest request that is held, as soon as there is one; None: not in time."""
        until = time.monotonic() + timeout
        with self._changed:
            while not self._held and not self._stopped:
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._changed.wait(left)
            return self._held[min(self._held)] if self._held else None

    def release(self, request: int, how: Release) -> None:
        """Let a held request go on.

        Raises:
            ReceiverError: it is not held.
        """
        with self._changed:
            if request not in self._held:
                raise ReceiverError(
                    f"Request {request} is not held.", "Wait until it is; it is released once."
                )
            del self._held[request]
            self._released[request] = how
            self._changed.notify_all()

    def stop(self) -> None:
        """Let every thread that waits in here go."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class Strikes:
    """Answers recorded requests, each as its fault has it.

    All is written before a caller can notice it, so that no event of its next request comes first.
    """

    def __init__(self, store: Store, holds: Holds, bound: float) -> None:
        self._store = store
        self._holds = holds
        self._bound = bound

    def answer(self, connection: Connection, arrival: Arrival, keep: bool) -> bool:
        """Handle a recorded request and answer it, unless its fault says otherwise.

        Returns:
            Whether the connection can carry another request.
        """
        request, fault = arrival.request, arrival.fault
        if fault == "reset_before":
            return self._reset(connection, request)
        if fault == "error_before_effect":
            return self._turn_away(connection, request, keep)
        if fault == "delayed_effect":
            return self._delay(connection, request)
        if fault == "hold_before" and not self._held(connection, arrival, "dropped"):
            return False
        answer = self._store.handle(request)
        if fault == "response_lost":
            self._store.strike(request)
            return self._unanswered(connection, request)
        if fault == "timeout":
            return self._withhold(connection, request)
        if fault == "hold_after" and not self._held(connection, arrival, None):
            return False
        if fault == "error_after_effect":
            answer = _FAILED
            self._store.strike(request, answer.status)
        sent = connection.send(answer, keep)
        self._store.end(request, answered=sent)
        return keep and sent

    def _reset(self, connection: Connection, request: int) -> bool:
        self._store.strike(request)
        self._store.end(request, answered=False, outcome="reset")
        connection.reset()
        return False

    def _turn_away(self, connection: Connection, request: int, keep: bool) -> bool:
        self._store.strike(request)
        self._store.end(request, answered=True, outcome="dropped")  # its key is free for a retry
        return connection.send(_UNAVAILABLE, keep) and keep

    def _delay(self, connection: Connection, request: int) -> bool:
        self._store.strike(request)
        gone = connection.wait_until_gone(self._bound)
        connection.close()
        if gone != "stopped":  # else it stays on its way, for the process that comes after this
            self._store.let_fly(request, gone)
        return False

    def _withhold(self, connection: Connection, request: int) -> bool:
        self._store.strike(request)
        gone = connection.wait_until_gone(self._bound)
        self._store.note(request, "gave_up", gone)
        return self._unanswered(connection, request)

    def _held(self, connection: Connection, arrival: Arrival, dropped: Outcome | None) -> bool:
        """Hold a request; return whether it goes on to be answered."""
        request = arrival.request
        assert arrival.nth
        assert arrival.fault
        self._store.strike(request)
        how = self._holds.hold(Held(request, arrival.nth, arrival.fault), self._bound)
        if how == "stopped":  # what becomes of it is for the process that comes after this
            return False
        self._store.note(request, "released", how)
        if how == "answer":
            return True
        self._store.end(request, answered=False, outcome=dropped)
        connection.close()
        return False

    def _unanswered(self, connection: Connection, request: int) -> bool:
        self._store.end(request, answered=False)
        connection.close()
        return False
