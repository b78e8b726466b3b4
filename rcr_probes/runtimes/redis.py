"""A Redis of one cell's own: on a Unix socket in its folder, kept in its append-only file.

It listens on no port, so nothing here can ever reach a Redis of the user's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from rcr_probes.runtimes.needs import program
from rcr_probes.runtimes.servers import Server, listens

_CONFIG = "redis.conf"
_SOCKET = "redis.sock"
_LOG = "redis.log"
_FILES = "appendonlydir"
_REFUSED = "redis-refused.json"  # how many commands it refused for want of replicas
_REFUSES = "min-replicas-to-write"
_CONFIGURED = f"""\
port 0
unixsocket {_SOCKET}
unixsocketperm 700
appendonly yes
save ""
hz 100
"""  # hz: how often in a second it looks whether it is asked to end


class PrivateRedis:
    """The server, for the length of a ``with`` block; clients may be used in forked processes."""

    def __init__(self, folder: Path) -> None:
        """Name the folder in which it lives; what an earlier server left there is still known."""
        self._folder = folder
        config = folder / _CONFIG
        if not config.exists():
            config.write_text(_CONFIGURED)
        found = program("redis-server")
        assert found is not None  # the adapter's factory has seen it
        self._server = Server([found, _CONFIG], folder / _LOG, self._serves, cwd=folder)
        self._fd = -1

    @property
    def socket(self) -> str:
        """Its socket's path: by way of a descriptor, for a socket's path must be a short one."""
        return f"/proc/self/fd/{self._fd}/{_SOCKET}"

    def client(self) -> Any:
        """A client of its own for whoever asks."""
        from redis import Redis

        return Redis(unix_socket_path=self.socket)

    def queue(self) -> Any:
        """RQ's default queue on it."""
        from rq import Queue

        return Queue(connection=self.client())

    def note_refusals(self) -> None:
        """Leave in the folder how many commands it has refused, where it has refused any."""
        refused = self.client().info("errorstats").get("errorstat_NOREPLICAS")
        if refused:
            (self._folder / _REFUSED).write_text(json.dumps(refused))

    def _serves(self) -> bool:
        from redis import RedisError

        if not listens(self.socket):
            return False
        with contextlib.suppress(RedisError):  # it may still be reading its file
            return bool(self.client().ping())
        return False

    def __enter__(self) -> PrivateRedis:
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        self._server.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop()
        os.close(self._fd)


class RefusedByRedis:
    """A ``Refusal`` by Redis: it takes no writes, as one that has lost its replicas.

    The setting is written to its configuration, too, so that it outlives the server.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder of the cell's Redis."""
        self._folder = folder

    def place(self) -> None:
        """Tell the running server."""
        from redis import Redis

        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with Redis(unix_socket_path=f"/proc/self/fd/{fd}/{_SOCKET}") as client:
                client.config_set(_REFUSES, 1)
                client.config_rewrite()
        finally:
            os.close(fd)

    def standing(self) -> bool:
        """Whether it is configured so, and did refuse something."""
        return any(map(_refuses, self._lines())) and (self._folder / _REFUSED).exists()

    def lift(self) -> None:
        """Take it out of the configuration."""
        kept = [line for line in self._lines() if not _refuses(line)]
        (self._folder / _CONFIG).write_text("".join(kept))

    def _lines(self) -> list[str]:
        config = self._folder / _CONFIG
        return config.read_text().splitlines(keepends=True) if config.exists() else []


def _refuses(line: str) -> bool:
    return line.split() == [_REFUSES, "1"]


@contextlib.contextmanager
def copied(folder: Path) -> Iterator[Path | None]:
    """A copy of what the cell's Redis keeps; None where it has kept nothing."""
    if not (folder / _FILES).exists():
        yield None
        return
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place)
        shutil.copytree(folder / _FILES, copy / _FILES)
        yield copy
