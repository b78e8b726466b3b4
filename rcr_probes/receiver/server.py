"""The receiver's process: one port on 127.0.0.1 for callers, one Unix socket for the harness."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable

from rcr_probes.receiver.control import Control
from rcr_probes.receiver.course import problem
from rcr_probes.receiver.records import CONTROL, Held, KeyAnswer, ReceiverError, Settings
from rcr_probes.receiver.store import Store
from rcr_probes.receiver.strikes import Holds, Strikes
from rcr_probes.receiver.wire import Connection, Incoming, Left, Refused, Stopped

HOST = "127.0.0.1"
RESERVED = "/.rcr/"  # the harness's; a caller that strays there makes no effect
_MOST = 256  # connections of callers at once; each has a thread
_RECHECK = 0.05  # seconds after which a wait looks again though nothing was reported


class Server:
    """All that one receiver's threads share."""

    def __init__(self, folder: str, settings: Settings | None, parent: int) -> None:
        """Open the folder's database and both listeners.

        Args:
            folder: a folder that exists; it becomes the current one.
            settings: replace the stored ones; None keeps them.
            parent: the pid of the process that this one must not outlive.

        Raises:
            ReceiverError: another receiver runs in this folder, or it cannot be used.
        """
        self._parent = parent
        self._stop = os.eventfd(0)
        self._own(folder)
        self.store = Store(os.getcwd(), settings)
        self.holds = Holds()
        self._strikes = Strikes(self.store, self.holds, self.store.settings.bound)
        self._control = Control(self)
        self._changed = threading.Condition()
        self._connections: set[Connection] = set()
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self._harness = _unix_listener()
        for listener in (self._listener, self._harness):
            listener.setblocking(False)  # who left between poll and accept is not waited for
        self.address = "http://{}:{}".format(*self._listener.getsockname())

    def run(self) -> None:
        """Serve until told to stop, or until the parent is gone. Every commit so far stays."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        with contextlib.suppress(ProcessLookupError):
            watch = os.pidfd_open(self._parent)
            if os.getppid() == self._parent:  # else it ended before there was anything to watch
                self._serve(watch)
        self.stop()
        self.holds.stop()
        self.store.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(CONTROL)

    def stop(self) -> None:
        """Tell every thread to end."""
        os.eventfd_write(self._stop, 1)

    def idle(self) -> bool:
        """Whether nothing that was sent can still act, and every request is done with."""
        # In this order: what is read in between is recorded before it is no longer unread.
        return not self._unrecorded() and self.store.open_requests() == 0

    def wait_idle(self, timeout: float) -> bool:
        """Whether it became idle within ``timeout`` seconds."""
        until = time.monotonic() + timeout
        while not self.idle():
            left = until - time.monotonic()
            if left <= 0:
                return False
            with self._changed:
                self._changed.wait(min(left, _RECHECK))
        return True

    def wait_held(self, timeout: float, or_settled: bool) -> tuple[Held | None, bool]:
        """Wait for a held request.

        Args:
            timeout: seconds.
            or_settled: end the wait also once nothing that was sent so far can come to be held.

        Returns:
            The earliest held request, and whether it is settled that there is none.
        """
        until = time.monotonic() + timeout
        while True:
            left = max(0.0, until - time.monotonic())
            if or_settled and not self._unrecorded() and not self.store.open_holds():
                return None, True
            held = self.holds.wait(min(left, _RECHECK) if or_settled else left)
            if held or left <= 0:
                return held, False

    def ask(self, key: str) -> KeyAnswer:
        """What the receiver says of a key; bytes that it did not read yet may be under it."""
        unrecorded = self._unrecorded()
        said = self.store.ask(key)
        return KeyAnswer(said.took_effect, said.in_flight or unrecorded)

    def _own(self, folder: str) -> None:
        os.umask(0o077)
        os.chdir(folder)
        lock = os.open("receiver.lock", os.O_RDWR | os.O_CREAT, 0o600)  # held until we end
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReceiverError(
                f"Another receiver runs in {folder}.", "Stop it, or give another folder."
            ) from None

    def _serve(self, watch: int) -> None:
        poll = select.poll()
        for fd in (watch, self._stop, self._listener.fileno(), self._harness.fileno()):
            poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if watch in ready or self._stop in ready:
                return
            if self._harness.fileno() in ready:
                self._accept(self._harness, self._obey)
            if self._listener.fileno() in ready:
                self._accept(self._listener, self._converse)

    def _accept(self, listener: socket.socket, serve: Callable[[Connection], None]) -> None:
        with self._changed:  # so that no connection is between the queue and the set
            try:
                sock, _ = listener.accept()
            except OSError:  # it left before we looked, or there are no descriptors left
                self._changed.wait(_RECHECK)
                return
            connection = Connection(sock, self._stop, self.store.settings.read_within)
            if listener is self._listener:
                if len(self._connections) >= _MOST:
                    print(f"more than {_MOST} connections: one was closed unread", file=sys.stderr)
                    connection.close()
                    return
                self._connections.add(connection)
        try:
            threading.Thread(target=self._watched, args=(serve, connection), daemon=True).start()
        except RuntimeError:  # no more threads
            self._forget(connection)

    def _watched(self, serve: Callable[[Connection], None], connection: Connection) -> None:
        try:
            serve(connection)
        except Stopped:
            pass
        except Exception:  # a broken conversation ends; the receiver does not
            traceback.print_exc()
        finally:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        connection.close()
        with self._changed:
            self._connections.discard(connection)
            self._changed.notify_all()

    def _unrecorded(self) -> bool:
        """Whether bytes of callers are in the kernel or in here that are no recorded request."""
        with self._changed:
            waiting = select.poll()
            waiting.register(self._listener, select.POLLIN)
            if waiting.poll(0):
                return True
            return any(connection.unread() for connection in self._connections)

    def _converse(self, connection: Connection) -> None:
        """Serve a caller: one request after the other."""
        keep = True
        while keep:
            try:
                incoming = connection.read()
                if incoming is None:
                    return
                if (incoming.path or "").startswith(RESERVED):
                    raise Refused(404, f"{RESERVED} is not for callers")
            except Refused as refused:
                self._refuse(connection, refused)
                return
            except Left:
                self._record_refusal(connection, None)
                return
            keep = self._answer(connection, incoming)
        connection.linger()

    def _answer(self, connection: Connection, incoming: Incoming) -> bool:
        arrival = self.store.arrive(
            incoming.method or "",
            incoming.path or "",
            incoming.texts(self.store.settings.key_header),
            hashlib.sha256(incoming.body).hexdigest(),
            len(incoming.body),
        )
        connection.reading = False
        keep = self._strikes.answer(connection, arrival, incoming.keep)
        with self._changed:
            self._changed.notify_all()
        return keep

    def _refuse(self, connection: Connection, refused: Refused) -> None:
        request = self._record_refusal(connection, refused.status)
        sent = connection.send(problem(refused.status, "Refused", f"{refused.detail}."), False)
        self.store.end(request, answered=sent)
        connection.linger()

    def _record_refusal(self, connection: Connection, status: int | None) -> int:
        so_far = connection.incoming
        key_fields = so_far.texts(self.store.settings.key_header)
        request = self.store.refuse(status, so_far.method, so_far.path, key_fields)
        connection.reading = False
        if status is None:
            self.store.end(request, answered=False)
        return request

    def _obey(self, connection: Connection) -> None:
        """Serve the harness: one request a connection."""
        try:
            incoming = connection.read()
        except Left:
            return
        except Refused as refused:
            connection.send(problem(refused.status, "Refused", refused.detail), False)
        else:
            if incoming is None:
                return
            connection.send(self._control.answer(incoming), False)
        connection.linger()
        if self._control.ending:
            self.stop()


def serve(folder: str, settings: Settings | None, parent: int) -> None:
    """Run a receiver in a folder until it is told to stop; its address is one line on stdout.

    Raises:
        ReceiverError: it cannot run there.
    """
    server = Server(folder, settings, parent)
    print(json.dumps({"address": server.address, "pid": os.getpid()}), flush=True)
    server.run()
    sys.stderr.flush()
    os._exit(0)  # threads that still wait for the database would keep a plain exit from ending


def _unix_listener() -> socket.socket:
    """A socket in the current folder: by its short name, because a path has 107 bytes at most."""
    with contextlib.suppress(FileNotFoundError):  # of one that was killed; the folder is ours
        os.unlink(CONTROL)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(CONTROL)
    listener.listen(64)
    return listener
