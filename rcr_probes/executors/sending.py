"""The executor whose action is a request to a receiver: what it sends, and how it reads answers.

It speaks HTTP over a plain socket, because a client library would cost each phase more than the
rest of it. What the receiver did is counted from the receiver's own record, and not in here.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from rcr_probes import folder, ledger
from rcr_probes.executors.keyed import asked
from rcr_probes.executors.marker import Emit
from rcr_probes.ledger import CallLine
from rcr_probes.model import Json, Known
from rcr_probes.request import MARKERS, RECEIVER, effective_target
from rcr_probes.vocabulary import CAPABILITIES

_PIECE = 1 << 16


class CallFailed(Exception):
    """A call without a good answer; ``code`` says which: no word on the effect."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class Sender:
    """Sends each call to the cell's receiver, under the operation's key."""

    name = RECEIVER
    effects = 1  # that one call is to make

    def __init__(self, place: str, dedupe: str, emit: Emit, patience: float) -> None:
        """Make an executor for one phase of one cell; the arguments are those of ``make``."""
        self.declares = CAPABILITIES[dedupe]
        self._emit = emit
        self._patience = patience
        self._calls = os.path.join(place, folder.CALLS)
        self._address = os.path.join(place, folder.ADDRESS)
        self._receiver = os.path.join(place, folder.RECEIVER)

    def raise_fence(self) -> None:
        """A receiver knows no fencing tokens; a plan in which its calls carry them is refused."""

    def __call__(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        """Send the request once; the evidence is what the receiver called the effect.

        Raises:
            CallFailed: the answer was an error (``HTTP_503``), did not come (``RESPONSE_LOST``), or
                not in time (``RESPONSE_LATE``).
            OSError: the receiver could not be called.
        """
        ledger.append(self._calls, CallLine(operation_key))
        self._emit("call", {"operation_key": operation_key})
        target = effective_target(request)
        with open(self._address, encoding="ascii") as file:
            host, port = _place(file.read())
        body = json.dumps({"action": request["action"], "target": target}).encode()
        head = (
            f"POST {MARKERS}{quote(target)} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f'Idempotency-Key: "{operation_key}"\r\nContent-Type: application/json\r\n'
        )
        with socket.create_connection((host, port), self._patience) as sock:
            status, said = _exchange(sock, head, body)
        if status >= 400:
            raise CallFailed(f"HTTP_{status}", f"the receiver answered {status}")
        return {"kind": self.name, "observed_id": str(said["id"])}


class ReceiverKey(Sender):
    """The receiver remembers the key for as long as a retry can matter, and can be asked."""

    def look(self, key: str) -> Known:
        """What the receiver knows of the key; what it forgot, nobody knows.

        Raises:
            CallFailed: it gave no good answer.
            OSError: it could not be asked.
        """
        body = json.dumps({"key": key}).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(self._patience)
            _connect(sock, self._receiver)
            status, said = _exchange(sock, "POST /.rcr/ask HTTP/1.1\r\n", body)
        if status != 200:
            raise CallFailed(f"HTTP_{status}", f"the receiver answered {status}")
        answer = said["result"]
        effects = {"yes": 1, "no": 0}.get(answer["took_effect"])
        known = Known(effects, in_flight=answer["in_flight"])
        self._emit("ask", asked(key, known))
        return known


def _place(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def _connect(sock: socket.socket, place: str) -> None:
    """Through a descriptor of the folder, because the path of a socket has 107 bytes at most."""
    fd = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.connect(f"/proc/self/fd/{fd}/control.sock")
    finally:
        os.close(fd)


def _exchange(sock: socket.socket, head: str, body: bytes) -> tuple[int, Any]:
    """Send one request on a connection of its own, and return the status and the JSON of it."""
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    whole = bytearray()
    try:
        sock.sendall(head.encode("ascii") + body)
        while piece := sock.recv(_PIECE):
            whole += piece
    except TimeoutError:
        raise CallFailed("RESPONSE_LATE", "no answer came in time") from None
    except ConnectionError:  # what came before it is no whole answer
        whole.clear()
    start, _, said = bytes(whole).partition(b"\r\n\r\n")
    try:
        return int(start.split(b" ", 2)[1]), json.loads(said)
    except (IndexError, ValueError):
        raise CallFailed("RESPONSE_LOST", "the connection ended without an answer") from None
