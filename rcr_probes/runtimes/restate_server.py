"""A private Restate server: on Unix sockets in the cell's folder, and asked by its own APIs.

Its memory and its partitions are fewer than by default, and its telemetry is off; how it stores and
retries is left at the defaults ("Server Configuration"). Whenever it starts, it also looks for a
newer release at GitHub, and no setting prevents that: so it is made to trust no certificate that
anybody can show, and gets no further than the handshake. Nothing here waits for that.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rcr_probes.errors import RuntimeMissing
from rcr_probes.model import Json
from rcr_probes.runtimes.needs import PROGRAMS, program
from rcr_probes.runtimes.servers import Server, listens

PROGRAM = "restate-server"
SERVICE, HANDLER = "probe", "act"  # what it is asked to invoke
PENDING = frozenset({"ready", "running"})  # an attempt is about to be made, or is being made
PATIENCE = 60.0  # seconds for what takes parts of one; past them something is broken
_LOOK = 0.01  # seconds between two looks
_PID = "server.pid"
_FILES = "restate"
_SOCKETS = f"{_FILES}/probe"  # it keeps a folder by the name of its node
_CONFIG = "restate.toml"
_TRUSTED = "trusted.pem"
# Every path is a relative one: a socket's path must be short, and the files may be copied.
_CONFIGURED = f"""\
cluster-name = "probe"
node-name = "probe"
base-dir = "{_FILES}"
listen-mode = "unix"
advertised-address = "unix:{_SOCKETS}/fabric.sock"
default-num-partitions = 1
rocksdb-total-memory-size = "64 MiB"
disable-telemetry = true
disable-prometheus = true
log-format = "compact"
log-disable-ansi-codes = true

[admin]
disable-web-ui = true
"""
# An authority whose key was never kept: the server refuses to start without any.
_NOBODY = """\
-----BEGIN CERTIFICATE-----
MIIBejCCAR+gAwIBAgIUKAOUZvhhP7SxBLCbFjG4sV5S+2IwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyOTIxMjUwNloYDzIxMjYxMTA1MjEy
NTA2WjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATtXTXFN0Hw/wrt+68hQUxlfhf95DFCIDfddLD7a5woQdKNPxmQ3sS3lXkyagiU
0u342QorttzPnGyEYpHVzmeao1MwUTAdBgNVHQ4EFgQUKcnknLME/Y0IBdFdGy/L
z1/w+AAwHwYDVR0jBBgwFoAUKcnknLME/Y0IBdFdGy/Lz1/w+AAwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEAvLN5BFFjiD1CqznkToL8bG909Rgu
hJjsME8HOk0chKECIQCjRtaWjGVH00H8Atq0OGFyRQ1ISV6laNTsAHY6mP0kfQ==
-----END CERTIFICATE-----
"""


class Refused(Exception):
    """The server answered, and not with what was asked for."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status}: {said}")
        self.code = f"HTTP_{status}"


class Unsettled(Exception):
    """An invocation has not come to the state that was waited for."""

    code = "UNSETTLED"


class PrivateRestate:
    """The server, for the length of a ``with`` block."""

    def __init__(self, folder: Path, key: str) -> None:
        """Name the folder in which it lives, and the idempotency key of what it is asked for.

        What an earlier server left in the folder is still known.
        """
        self._folder, self._key = folder, key
        (folder / _CONFIG).write_text(_CONFIGURED)
        (folder / _TRUSTED).write_text(_NOBODY)
        argv = [binary(), "--no-logo", "--config-file", _CONFIG]
        env = {"SSL_CERT_FILE": _TRUSTED}  # and no other variable: they would be settings, too
        self._server = Server(argv, folder / "server.txt", self._serves, env=env, cwd=folder)
        self._fd = -1

    def connect(self, which: str) -> http.client.HTTPConnection:
        """A connection to its ``ingress`` or ``admin`` API, for one request."""
        return _Local(self._socket(which))

    def ask(self, which: str, method: str, path: str, body: Json = None) -> Json:
        """What it answers to one request.

        Raises:
            Refused: it answers with an error.
        """
        status, said = self._ask(which, method, path, body)
        if status >= 300:
            raise Refused(status, said)
        return json.loads(said) if said else None

    def invocation(
        self, passing: frozenset[str], after: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any] | None:
        """The newest invocation, once its status is none of the passing ones; None: there is none.

        Args:
            passing: the statuses that are waited out.
            after: an invocation that one must be newer than.

        Raises:
            Unsettled: it stays in one of them.
        """
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with contextlib.suppress(Refused):  # the partition may still be starting
                found = self.rows(
                    "SELECT id, status, completion_result FROM sys_invocation "
                    "ORDER BY created_at DESC LIMIT 1"
                )
                newest = found[0] if found else None
                older = after is not None and (newest is None or newest["id"] == after["id"])
                if not older and (newest is None or newest["status"] not in passing):
                    return newest
            time.sleep(_LOOK)
        raise Unsettled(f"still one of {', '.join(sorted(passing))}")

    def rows(self, query: str) -> list[Mapping[str, Any]]:
        """What its introspection API answers ("SQL Introspection API")."""
        answer = self.ask("admin", "POST", "/query", {"query": query})
        return list(answer["rows"])

    def _socket(self, which: str) -> str:
        """A socket's path, by way of a descriptor: it must be a short one."""
        return f"/proc/self/fd/{self._fd}/{_SOCKETS}/{which}.sock"

    def _ask(self, which: str, method: str, path: str, body: Json = None) -> tuple[int, str]:
        with contextlib.closing(self.connect(which)) as connection:
            sent = None if body is None else json.dumps(body)
            headers = {"content-type": "application/json", "accept": "application/json"}
            connection.request(method, path, sent, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def _serves(self) -> bool:
        """Whether its partition has its leader, who has read all of the log.

        Before that, introspection answers with an older state, or with nothing. It is asked for
        the output of our invocation, because that question goes through the leader.
        """
        if not (listens(self._socket("admin")) and listens(self._socket("ingress"))):
            return False
        path = f"/restate/invocation/{SERVICE}/{HANDLER}/{self._key}/output"
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self._ask("ingress", "GET", path)[0] < 500
        return False

    def __enter__(self) -> PrivateRestate:
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._server.__enter__()
        except BaseException:
            os.close(self._fd)
            raise
        (self._folder / _PID).write_text(str(self._server.pid))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop()
        os.close(self._fd)


class _Local(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def server_pid(folder: Path) -> int:
    """The pid of the server that runs in this folder."""
    return int((folder / _PID).read_text())


@contextlib.contextmanager
def copied(folder: Path) -> Iterator[Path | None]:
    """A copy of what the cell's server keeps; None where it has kept nothing."""
    if not (folder / _FILES).exists():
        yield None
        return
    with tempfile.TemporaryDirectory() as place:
        sockets = shutil.ignore_patterns("*.sock")  # a killed server leaves them
        shutil.copytree(folder / _FILES, Path(place, _FILES), ignore=sockets)
        yield Path(place)


def binary() -> str:
    """The server's own program.

    npm puts a script of Node's in its place, which starts it as a child: a signal that ends the
    script at once would leave that child behind.

    Raises:
        RuntimeMissing: there is none.
    """
    found = os.path.realpath(program(PROGRAM) or "")
    if not found.endswith(".js"):
        return found
    package = Path(found).parents[1]  # @restatedev/restate-server; its binary's lies beside, or in
    for place in (package.parent, package / "node_modules" / package.parent.name):
        for native in place.glob(f"{package.name}-linux-*/bin/{PROGRAM}"):
            if os.access(native, os.X_OK):
                return str(native)
    raise RuntimeMissing(
        f"{found} is there, but the package with its binary for this machine is not.",
        f"Do not leave optional dependencies out: {PROGRAMS[PROGRAM]}",
    )
