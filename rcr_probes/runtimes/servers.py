"""A private server of an adapter: started on loopback or a socket, and stopped by its own pid."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

from rcr_probes import linux

_WITHIN = 30.0  # seconds in which a server must serve
_STOP = 10.0  # seconds in which a server must end by itself, before it is killed
_LOOK = 0.01  # seconds between two looks at whether it serves


class ServerFailed(Exception):
    """A server ended, or did not serve in time; the message holds the last lines of its log."""

    code = "SERVER_FAILED"


class Server:
    """A server in a child process; use it in a ``with`` block, from the main thread.

    It dies with the process that started it, however that ends, and binds what its own arguments
    say: give it 127.0.0.1 with a free port, or a Unix socket in the cell's folder.
    """

    def __init__(
        self,
        argv: Sequence[str],
        log: str | os.PathLike[str],
        ready: Callable[[], bool],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        """Say what to start; ``with`` starts it.

        Args:
            argv: program and arguments.
            log: the file that gets what it prints.
            ready: whether it serves; asked again and again until it does.
            env: its whole environment; None: this process's.
            cwd: where it runs; None: here.
        """
        self._argv, self._log, self._ready = [*argv], log, ready
        self._env, self._cwd = env, cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The pid of the running server."""
        assert self._process is not None
        return self._process.pid

    def running(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Server:
        parent = os.getpid()
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=None if self._env is None else dict(self._env),
                cwd=self._cwd,
                preexec_fn=lambda: linux.die_with(parent),
            )
        until = time.monotonic() + _WITHIN
        try:
            while not self._ready():
                if not self.running():
                    raise self._failed("ended")
                if time.monotonic() > until:
                    raise self._failed(f"did not serve within {_WITHIN:g} s")
                time.sleep(_LOOK)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it by its pid, in good order if it will; twice does no harm."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _failed(self, how: str) -> ServerFailed:
        with open(self._log, encoding="utf-8", errors="replace") as file:
            said = file.read()[-1000:].strip()
        return ServerFailed(f"{os.path.basename(self._argv[0])} {how}: {said}")


def listens(address: str | tuple[str, int]) -> bool:
    """Whether something accepts connections: at a Unix socket's path, or at (host, port)."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(address) == 0
