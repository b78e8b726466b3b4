"""HTTP/1.1 on one connection: read a request, send an answer, each within bounds.

Source: RFC 9112. What is no request that we can handle is refused with a status, never guessed.
"""

from __future__ import annotations

import contextlib
import http
import re
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Literal

from rcr_probes.receiver.course import Answer

HEAD_LIMIT = 64 * 1024  # bytes of request line and header fields, or of trailer fields
BODY_LIMIT = 8 * 1024 * 1024  # bytes of a payload
_IDLE = 300.0  # seconds that an open connection may rest between two requests
_LINGER = 1.0  # seconds in which a client may read the last answer and stop sending
_PIECE = 64 * 1024

_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) HTTP/(\d)\.(\d)")
_FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_ABSOLUTE = re.compile(r"https?://[^/?#]+(.*)", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?")

_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR
Gone = Literal["caller", "bound", "stopped"]


class Refused(Exception):
    """What came is not handled: answered with ``status``, and the connection ends."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(status, detail)
        self.status = status
        self.detail = detail


class Left(Exception):
    """The client left in the middle of a request."""


class Stopped(Exception):
    """The receiver is stopping."""


@dataclass(slots=True)
class Incoming:
    """A request as far as it has been read.

    ``path`` is the target in origin form; text is latin-1: every byte one character.
    """

    method: str | None = None
    path: str | None = None
    fields: dict[str, list[str]] = field(default_factory=dict)
    body: bytes = b""
    keep: bool = False

    def texts(self, name: str) -> list[str]:
        """The text of each field with this name, in any case."""
        return self.fields.get(name.lower(), [])

    def single(self, name: str) -> str | None:
        """The value of a field that may come once; repeated with the same value is once."""
        values = set(self.fields.get(name, []))
        if len(values) > 1:
            raise Refused(400, f"there are several different {name} fields")
        return next(iter(values), None)


class Connection:
    """One client's connection.

    Attributes:
        reading: whether bytes were taken that may be a request, and it is not recorded yet. Set
            before bytes leave the kernel; cleared by whoever recorded the request.
        done: whether nothing more that comes here will be read as a request.
        incoming: the latest request, as far as it was read.
    """

    def __init__(self, sock: socket.socket, stop: int, read_within: float) -> None:
        """Take over a connected socket.

        Args:
            sock: the socket.
            stop: a file descriptor that becomes readable, and stays so, when all is to end.
            read_within: seconds from the first byte of a request to its last, and for an answer.
        """
        sock.setblocking(False)  # so that looking for bytes never waits; waiting is a poll
        self._sock = sock
        self._stop = stop
        self._read_within = read_within
        self._buffer = bytearray()
        self._deadline = 0.0
        self.reading = False
        self.done = False
        self.incoming = Incoming()

    def unread(self) -> bool:
        """Whether bytes came that are not recorded as a request, and may be one."""
        if self.done:
            return False
        if self.reading or self._buffer:
            return True
        try:
            return bool(self._sock.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def read(self) -> Incoming | None:
        """The next request, whole; None where the client sends no more, or rests for too long.

        Raises:
            Refused: it cannot be handled.
            Left: the client left in the middle of it.
            Stopped: the receiver is stopping.
        """
        self.incoming = Incoming()
        if not self._buffer and not self._wait(select.POLLIN, _IDLE):
            return None
        self.reading = True
        self._deadline = time.monotonic() + self._read_within
        first = self._first_line()
        if first is None:
            self.reading = False
            return None
        version = self._request_line(first)
        self._header_fields(self.incoming.fields)
        self._target()
        self._read_body(version)
        tokens = {t.strip().lower() for t in ",".join(self._all("connection")).split(",")}
        self.incoming.keep = "close" not in tokens and (version >= 1 or "keep-alive" in tokens)
        return self.incoming

    def send(self, answer: Answer, keep: bool) -> bool:
        """Send an answer; return whether all of it was handed to the kernel."""
        if not keep:
            self.done = True
        bodiless = answer.status in (204, 205, 304)
        lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
        if not bodiless:
            lines += [f"Content-Type: {answer.kind}", f"Content-Length: {len(answer.body)}"]
        elif answer.status == 205:
            lines += ["Content-Length: 0"]
        if not keep:
            lines += ["Connection: close"]
        body = b"" if bodiless or self.incoming.method == "HEAD" else answer.body
        return self._send_all("\r\n".join([*lines, "", ""]).encode("ascii") + body)

    def wait_until_gone(self, bound: float) -> Gone:
        """Wait until the client closed its side of the connection.

        A client that only ends its sending half cannot be told from one that left.
        """
        try:
            return "caller" if self._wait(_GONE, bound) else "bound"
        except Stopped:
            return "stopped"

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def linger(self) -> None:
        """End the connection so that the client can read the last answer: no reset overtakes it."""
        self.done = True
        until = time.monotonic() + _LINGER
        with contextlib.suppress(OSError, Stopped):
            self._sock.shutdown(socket.SHUT_WR)
            while self._wait(select.POLLIN, until - time.monotonic()):
                if not self._sock.recv(_PIECE):
                    break
        self.close()

    def close(self) -> None:
        """End the connection; twice does no harm."""
        self.done = True
        self._sock.close()

    def _wait(self, event: int, seconds: float) -> bool:
        if self._sock.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._sock, event)
        poll.register(self._stop, select.POLLIN)
        ready = {fd for fd, _ in poll.poll(max(0.0, seconds) * 1000)}
        if self._stop in ready:
            raise Stopped
        return bool(ready)

    def _send_all(self, data: bytes) -> bool:
        until = time.monotonic() + self._read_within
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                if not self._wait(select.POLLOUT, until - time.monotonic()):
                    return False
            except OSError:
                return False
        return True

    def _fill(self) -> None:
        if not self._wait(select.POLLIN, self._deadline - time.monotonic()):
            raise Refused(408, f"the request was not whole within {self._read_within:g} seconds")
        try:
            piece = self._sock.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            raise Left
        self._buffer += piece

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._fill()
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _line(self, room: int) -> bytes:
        """The next line without its end; ``room`` bytes are left for it."""
        seen = 0
        while (end := self._buffer.find(b"\n", seen, room)) < 0:
            seen = len(self._buffer)
            if seen >= room:
                raise Refused(431, f"the head is larger than {HEAD_LIMIT} bytes")
            self._fill()
        return self._take(end + 1)[:-1].removesuffix(b"\r")

    def _first_line(self) -> bytes | None:
        """The request line; empty lines before it are passed over (RFC 9112 §2.2)."""
        for _ in range(8):
            try:
                line = self._line(HEAD_LIMIT)
            except Left:
                if self._buffer:
                    raise
                return None
            if line:
                return line
        raise Refused(400, "there are only empty lines")

    def _request_line(self, line: bytes) -> int:
        """Read method and target; return the minor version."""
        found = _REQUEST_LINE.fullmatch(line)
        if not found:
            raise Refused(400, "the first line is no request line")
        self.incoming.method = found[1].decode("latin-1")
        self.incoming.path = found[2].decode("latin-1")
        if found[3] != b"1":
            raise Refused(505, "this is HTTP/1.1")
        return int(found[4])

    def _header_fields(self, into: dict[str, list[str]]) -> None:
        room = HEAD_LIMIT
        while line := self._line(room):
            room -= len(line)
            found = _FIELD.fullmatch(line)
            if not found:
                raise Refused(400, "a header line is no field")
            name = found[1].decode("latin-1").lower()
            into.setdefault(name, []).append(found[2].decode("latin-1").rstrip(" \t"))

    def _target(self) -> None:
        """Bring the target into origin form (RFC 9112 §3.2)."""
        method, target = self.incoming.method, self.incoming.path or ""
        if method == "CONNECT":
            raise Refused(501, "CONNECT asks for a tunnel, and this is no proxy")
        absolute = _ABSOLUTE.fullmatch(target)
        if absolute:
            target = absolute[1] if absolute[1].startswith("/") else f"/{absolute[1]}"
        elif not target.startswith("/") and (method, target) != ("OPTIONS", "*"):
            raise Refused(400, "the target is no path")
        self.incoming.path = target

    def _read_body(self, version: int) -> None:
        expected = self.incoming.single("expect")
        if expected is not None and expected.lower() != "100-continue":
            raise Refused(417, "only 100-continue can be expected")
        length = self.incoming.single("content-length")
        codings = self._all("transfer-encoding")
        if not codings and length is None:
            return
        if codings and length is not None:
            raise Refused(400, "there are both Content-Length and Transfer-Encoding")
        if codings and [coding.lower() for coding in codings] != ["chunked"]:
            raise Refused(501, "chunked is the only transfer coding here")
        if length is not None and not _NUMBER.fullmatch(length):
            raise Refused(400, "Content-Length is no number")
        size = int(length or 0)
        _check_size(size)
        if expected is not None and version >= 1 and not self._buffer:
            self._send_all(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.incoming.body = self._chunks() if codings else self._take(size)

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            found = _CHUNK.fullmatch(self._line(_PIECE))
            if not found:
                raise Refused(400, "a chunk does not begin with its size")
            size = int(found[1], 16)
            if size == 0:
                self._header_fields({})
                return bytes(body)
            _check_size(len(body) + size)
            body += self._take(size)
            if self._line(_PIECE):
                raise Refused(400, "a chunk is longer than its size")

    def _all(self, name: str) -> list[str]:
        return self.incoming.fields.get(name, [])


def _check_size(size: int) -> None:
    if size > BODY_LIMIT:
        raise Refused(413, f"the payload is larger than {BODY_LIMIT} bytes")


def _reason(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
