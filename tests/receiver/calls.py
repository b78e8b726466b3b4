"""How the tests call a receiver: as an ordinary client, and byte by byte."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from urllib.parse import urlsplit

from rcr_probes.receiver import Receiver

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
PATIENCE = 10.0  # seconds; a wait that takes longer fails its test

# A worker: one POST, and its outcome on stdout. It is killed, times out, or prints.
WORKER = """
import http.client, sys
headers = {"Idempotency-Key": sys.argv[2]} if sys.argv[2:] else {}
connection = http.client.HTTPConnection(sys.argv[1].removeprefix("http://"), timeout=60)
connection.request("POST", "/charge", b"{}", headers)
print(connection.getresponse().status, flush=True)
"""


def place(receiver: Receiver) -> tuple[str, int]:
    """Host and port."""
    parts = urlsplit(receiver.address)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def send(
    receiver: Receiver,
    method: str = "POST",
    path: str = "/charge",
    body: bytes = b'{"amount":1}',
    key: str | None = None,
    timeout: float = PATIENCE,
) -> tuple[int, bytes]:
    """One request on a connection of its own: status and body."""
    headers: Mapping[str, str] = {} if key is None else {"Idempotency-Key": key}
    host, port = place(receiver)
    with closing(http.client.HTTPConnection(host, port, timeout=timeout)) as connection:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()


def connect(receiver: Receiver) -> socket.socket:
    """A bare connection."""
    return socket.create_connection(place(receiver), timeout=PATIENCE)


def until_end(sock: socket.socket) -> bytes:
    """All that comes until the receiver ends the connection."""
    whole = b""
    while piece := sock.recv(65536):
        whole += piece
    return whole


def raw(receiver: Receiver, data: bytes) -> bytes:
    """Send bytes, end the sending half, and read until the receiver ends the connection."""
    with connect(receiver) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return until_end(sock)


def until(state: Callable[[], object]) -> None:
    """Look again and again until a state has come about; it fails after ``PATIENCE``."""
    end = time.monotonic() + PATIENCE
    while not state():
        assert time.monotonic() < end, "the state did not come about"


def worker(receiver: Receiver, *key: str) -> subprocess.Popen[bytes]:
    """A process of its own that calls the receiver once."""
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, receiver.address, *key],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
