"""A Restate service: an ASGI application in a forked child, at an address that its cell keeps.

It is forked, so that the points which it reaches are watched. Restate retries an invocation at the
deployment where it began ("Versioning"), so a later phase serves at the same address where it can.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any

from rcr_probes import linux

_HOST = "127.0.0.1"
_ADDRESS = "service.uri"
_STOPS = 10.0  # seconds in which it must end by itself, before it is killed

App = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]


class ServiceProcess:
    """The service, for the length of a ``with`` block in a process with one thread.

    Attributes:
        uri: where it is; a part of it is this cell's secret, so that a server which remembers the
            port of a service that is gone cannot invoke whoever came to have it.
        moved: whether it is elsewhere than it was in an earlier phase.
    """

    def __init__(self, folder: Path, app: Callable[[], App]) -> None:
        """Name the folder that keeps its address, and what makes the application in the child."""
        self._folder, self._app = folder, app
        self._pid = self._fd = self._stop = -1
        self.uri, self.moved = "", False

    def fileno(self) -> int:
        """A descriptor that is readable once the process is gone."""
        return self._fd

    def __enter__(self) -> ServiceProcess:
        with self._bound() as listening:
            parent = os.getpid()
            stopped, self._stop = os.pipe()
            self._pid = os.fork()
            if not self._pid:
                os.close(self._stop)
                self._child(parent, listening.fileno(), stopped)
        os.close(stopped)
        self._fd = os.pidfd_open(self._pid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it: not by SIGTERM, whose handler the SDK sets, and which then ends nothing."""
        os.close(self._stop)
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        if not poll.poll(_STOPS * 1000):
            signal.pidfd_send_signal(self._fd, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    def _bound(self) -> socket.socket:
        """A socket that listens: where the service was before, or at a free port."""
        kept = self._folder / _ADDRESS
        before = kept.read_text() if kept.exists() else f"http://{_HOST}:0/{os.urandom(8).hex()}"
        authority, _, secret = before.removeprefix("http://").partition("/")
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_HOST, int(authority.rpartition(":")[2])))
        except OSError:  # somebody else has it now
            listening.bind((_HOST, 0))
        listening.listen()  # whoever connects before the application is there waits for it
        self.uri = f"http://{_HOST}:{listening.getsockname()[1]}/{secret}"
        self.moved = kept.exists() and before != self.uri
        kept.write_text(self.uri)
        return listening

    def _child(self, parent: int, listening: int, stopped: int) -> None:
        """Serve until whoever holds the other end of the pipe closes it, or is gone."""
        status = 1
        try:
            linux.die_with(parent)
            import asyncio

            secret = f"/{self.uri.rpartition('/')[2]}/"
            asyncio.run(_serve(guarded(self._app(), secret), listening, stopped))
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)


async def _serve(app: App, listening: int, stopped: int) -> None:
    import asyncio

    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        loop.remove_reader(stopped)
        over.set()

    loop.add_reader(stopped, stop)
    config = Config()
    config.bind = [f"fd://{listening}"]
    config.loglevel = "WARNING"
    await serve(app, config, shutdown_trigger=over.wait)


def guarded(app: App, secret: str) -> App:
    """The application, for those alone who know the secret part of its address."""

    async def admitted(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not scope["path"].startswith(secret):
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body"})
        else:
            await app(scope, receive, send)

    return admitted
