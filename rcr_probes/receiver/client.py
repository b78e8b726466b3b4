"""Start a receiver in a process of its own, ask it and strike with it, and leave nothing running.

It imports no threading and no subprocess: the process that forks the phases may hold it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import socket
import sys
import time
from types import TracebackType
from typing import Any

from rcr_probes.receiver.records import (
    CONTROL,
    LOG,
    Effect,
    Event,
    Fault,
    Held,
    KeyAnswer,
    NotReached,
    ReceiverError,
    Record,
    Release,
    Request,
    Settings,
    Strike,
)

_START = 30.0  # seconds in which a receiver must have told its address
_STOP = 5.0  # seconds in which it must have ended in good order, before it is killed
_CALL = 15.0  # seconds for a call that waits for nothing
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Receiver:
    """A receiver of effects on 127.0.0.1, in a child process; use it in a ``with`` block.

    It ends with the block, with ``stop``, or when the process that started it ends. Its folder
    keeps the database, which ``read_back`` reads later, and which another receiver can continue.

    Attributes:
        folder: absolute path of its folder.
        address: such as ``http://127.0.0.1:40123``: what a worker is given.
        pid: of the receiver's process, a child of this one and the leader of its own group.
    """

    def __init__(self, folder: str, settings: Settings | None = None) -> None:
        """Start a receiver and wait until it serves.

        Args:
            folder: made if it is not there; what a receiver left in it is continued.
            settings: replace the stored ones; None keeps them (in a new folder the defaults).

        Raises:
            ReceiverError: it did not start; its own words are in the message.
        """
        self.folder = os.path.abspath(folder)
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        out, into = os.pipe()
        try:
            self.pid = _spawn(self.folder, settings, into)
        except BaseException:
            os.close(out)
            raise
        finally:
            os.close(into)
        self._pidfd = os.pidfd_open(self.pid)
        try:
            self.address = self._told(out)
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(out)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the receiver by its pid, and wait until it has ended; twice does no harm.

        What is in flight then is settled by the next receiver in this folder: a request that was
        not handled never is, and a delayed effect lands when it is due.
        """
        if self._pidfd < 0:
            return
        try:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._pidfd, number)
                if _readable(_STOP, self._pidfd):
                    break
            with contextlib.suppress(ChildProcessError):  # somebody reaps all children here
                os.waitpid(self.pid, 0)
        finally:
            os.close(self._pidfd)
            self._pidfd = -1

    # Questions.

    def ask(self, key: str) -> KeyAnswer:
        """What the receiver knows of an idempotency key."""
        return KeyAnswer(**self._call("ask", key=key))

    def record(self) -> Record:
        """All that it recorded, as one consistent view."""
        found = self._call("record")
        return Record(
            tuple(Request(**each) for each in found["requests"]),
            tuple(Effect(**each) for each in found["effects"]),
            tuple(Strike(**each) for each in found["strikes"]),
            tuple(Event(**each) for each in found["events"]),
            found["clock"],
        )

    def requests(self) -> tuple[Request, ...]:
        """Every request, in order of arrival."""
        return self.record().requests

    def effects(self) -> tuple[Effect, ...]:
        """Every effect, in order of making."""
        return self.record().effects

    # The clock and the strikes.

    def advance(self, seconds: int) -> int:
        """Move the receiver's clock forward; return its time. Delayed effects land by it."""
        now: int = self._call("advance", seconds=seconds)
        return now

    def arm(self, fault: Fault, nth: int = 1, delay: int = 0) -> None:
        """Arm a fault for the ``nth`` request, of all since the first, that can make an effect.

        Args:
            fault: one of ``FAULTS``.
            nth: from 1; a request that came already cannot be struck.
            delay: for ``delayed_effect``: seconds on the receiver's clock from the request's
                arrival, before which its effect does not land.

        Raises:
            ReceiverError: it cannot be armed so.
        """
        self._call("arm", fault=fault, nth=nth, delay=delay)

    def disarm(self) -> int:
        """Lift every strike that no request drew; return how many."""
        lifted: int = self._call("disarm")
        return lifted

    def wait_held(self, timeout: float, unless_ended: int | None = None) -> Held | None:
        """Wait until a request is held, and return the earliest one.

        Args:
            timeout: seconds.
            unless_ended: pid of a child process; None is returned once it ended and none is held.

        Raises:
            NotReached: neither came about in time.
        """
        until = time.monotonic() + timeout
        found = None
        if unless_ended is None:
            found = self._call("wait_held", timeout)
        else:
            worker = os.pidfd_open(unless_ended)
            try:
                found = self._call("wait_held", timeout, unless=worker)
                ended = _readable(0, worker)
            finally:
                os.close(worker)
            if found is None and ended:  # what it sent before may still be on its way to a hold
                left = max(0.0, until - time.monotonic())
                found = self._call("wait_held", left, or_settled=True)
        if found is None or not (found["held"] or found["settled"]):
            raise NotReached(
                f"No request was held within {timeout:g} seconds.",
                "Arm hold_before or hold_after for a request that the worker really sends.",
            )
        return Held(**found["held"]) if found["held"] else None

    def release(self, held: Held, how: Release) -> None:
        """Let a held request go on.

        Args:
            held: what ``wait_held`` returned.
            how: ``answer`` it (handling it first, where it was held before that), or ``drop`` its
                connection without a byte (and never handle it, where it was held before that).

        Raises:
            ReceiverError: it is not held.
        """
        self._call("release", request=held.request, how=how)

    def wait_idle(self, timeout: float) -> None:
        """Wait until it is drained: nothing unread, nothing in flight, no effect still to land.

        Raises:
            NotReached: it is not, after ``timeout`` seconds.
        """
        if not self._call("wait_idle", timeout):
            raise NotReached(
                f"The receiver was not idle within {timeout:g} seconds.",
                "Release what is held, end who still waits, or advance the clock to what is due.",
            )

    def repeat(self, request: Request) -> Request:
        """Handle a request once more as it was sent, though nobody sends it: no strike is drawn.

        Args:
            request: of this receiver or of another one; its method, path, key and payload count.

        Returns:
            The new request, and what became of it.

        Raises:
            ReceiverError: it was not whole, or it can make no effect.
        """
        return Request(**self._call("repeat", request=dataclasses.asdict(request)))

    def snapshot(self, into: str) -> None:
        """Copy the database into a folder without one; a receiver started there goes on alike.

        Strikes that no request drew are in the copy: ``disarm`` there. Of what is in flight, the
        copy has what ``stop`` leaves.
        """
        self._call("snapshot", into=os.path.abspath(into))

    def shutdown(self) -> None:
        """Ask it to end by itself; ``stop`` waits for that."""
        self._call("shutdown")

    # The wire.

    def _told(self, out: int) -> str:
        """The address, from the one line that a receiver prints once it serves."""
        until = time.monotonic() + _START
        line = b""
        while not line.endswith(b"\n"):
            if not _readable(until - time.monotonic(), out):
                raise self._silent(f"did not serve within {_START:g} seconds")
            piece = os.read(out, 4096)
            if not piece:
                raise self._silent("ended before it served")
            line += piece
        address: str = json.loads(line)["address"]
        return address

    def _silent(self, how: str) -> ReceiverError:
        log = os.path.join(self.folder, LOG)
        try:
            with open(log, encoding="utf-8", errors="replace") as file:
                said = file.read()[-2000:].strip()
        except OSError:
            said = ""
        return ReceiverError(f"The receiver in {self.folder} {how}.", said or f"See {log}.")

    def _call(
        self, verb: str, timeout: float | None = None, unless: int | None = None, **given: object
    ) -> Any:
        """Ask one thing; None where the descriptor ``unless`` became readable first."""
        if timeout is not None:
            given["timeout"] = timeout
        limit = _CALL + (timeout or 0.0)
        body = json.dumps(given).encode()
        head = f"POST /.rcr/{verb} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
        try:
            with _connected(self.folder, limit) as sock:
                sock.sendall(head.encode("ascii") + body)
                if unless is not None and not _first_readable(limit, sock.fileno(), unless):
                    return None
                answer = _until_end(sock, limit)
            status = int(answer.split(b" ", 2)[1])
            said = json.loads(answer.split(b"\r\n\r\n", 1)[1])
        except (OSError, ValueError, IndexError) as error:
            raise ReceiverError(
                f"The receiver in {self.folder} gave no answer to {verb}: {error}.",
                "Was it stopped? What it recorded is in its folder: read_back reads it.",
            ) from error
        if status != 200:
            raise ReceiverError(said["cause"], said["remedy"])
        return said["result"]


def _spawn(folder: str, settings: Settings | None, out: int) -> int:
    argv = [sys.executable, "-P", "-m", __package__, folder, "--parent", str(os.getpid())]
    argv += _as_options(settings)
    # The very package that asks is started, also where it is not installed but on sys.path.
    places = [_PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])]
    log = os.path.join(folder, LOG)
    return os.posix_spawn(
        sys.executable,
        argv,
        {**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ),
        setpgroup=0,  # Ctrl-C is the harness's to handle
        setsigmask=(),
    )


def _as_options(settings: Settings | None) -> list[str]:
    if settings is None:
        return []
    options = [
        f"--keys={settings.keys}",
        f"--retention={settings.retention}",
        f"--status={settings.status}",
        f"--bound={settings.bound!r}",
        f"--read-within={settings.read_within!r}",
        f"--key-header={settings.key_header}",
    ]
    if settings.effects_of is not None:
        options.append(f"--effects-of={','.join(settings.effects_of)}")
    if settings.answer is not None:
        options.append(f"--answer={os.path.abspath(settings.answer)}")
    return options


def _connected(folder: str, limit: float) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(limit)
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:  # through the descriptor, because the path of a socket has 107 bytes at most
            sock.connect(f"/proc/self/fd/{place}/{CONTROL}")
        finally:
            os.close(place)
    except BaseException:
        sock.close()
        raise
    return sock


def _until_end(sock: socket.socket, limit: float) -> bytes:
    until = time.monotonic() + limit
    whole = bytearray()
    while _readable(until - time.monotonic(), sock.fileno()):
        piece = sock.recv(1 << 16)
        if not piece:
            return bytes(whole)
        whole += piece
    raise TimeoutError(f"it took more than {limit:g} seconds")


def _readable(seconds: float, fd: int) -> bool:
    return _first_readable(seconds, fd, None)


def _first_readable(seconds: float, fd: int, other: int | None) -> bool:
    """Whether ``fd`` became readable, before ``other`` did and within that time."""
    poll = select.poll()
    for each in (fd, other):
        if each is not None:
            poll.register(each, select.POLLIN)
    return fd in {each for each, _ in poll.poll(max(0.0, seconds) * 1000)}
