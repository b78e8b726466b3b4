"""A private Prefect server: its settings, its database, and its process.

The settings are Prefect's own, in the environment ("How to run a local Prefect server"). Whatever
else of Prefect's stands there is taken out, so that no profile, key or remote server of the user's
is ever reached.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from rcr_probes import linux
from rcr_probes.runtimes.forked import forked
from rcr_probes.runtimes.servers import ServerFailed, listens
from rcr_probes.runtimes.sqlite import address

DATABASE = "prefect.db"
RESULTS = "results"
_LOG = "server.txt"
_HOST = "127.0.0.1"
_SERVES = 60.0  # seconds in which it must serve
_STOPS = 10.0  # seconds in which it must end by itself, before it is killed
_LOOK = 0.01  # seconds between two looks at whether it serves


def settings(folder: Path, port: int) -> Mapping[str, str]:
    """The settings of server and flow runs: everything in this folder, nothing over the network."""
    return {
        "PREFECT_HOME": str(folder / "home"),
        "PREFECT_API_URL": f"http://{_HOST}:{port}/api",
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": address("sqlite+aiosqlite", folder / DATABASE),
        "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false",  # that is done before
        "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",  # no flow here uses a block
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_UI_ENABLED": "false",
        "PREFECT_RESULTS_LOCAL_STORAGE_PATH": str(folder / RESULTS),
        "PREFECT_RESULTS_DEFAULT_SERIALIZER": "json",
        "PREFECT_LOGGING_TO_API_ENABLED": "false",
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_CLIENT_SERVER_VERSION_CHECK_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[None]:
    """A server that is there while the block runs; flow runs of this process's children use it.

    It is forked from this process, which must have one thread alone, and dies with it. What both
    import is imported here, once for the two of them: it is most of what a phase costs.

    Raises:
        ServerFailed: it ended, or did not serve in time.
    """
    with socket.socket() as held:  # by us, for as long as it takes to come to serve there
        held.bind((_HOST, 0))
        address = held.getsockname()
        _set(folder, address[1])
        _import()
        _prepare(folder / DATABASE)
        pid = _fork(folder / _LOG, held)
    try:
        _wait(pid, folder / _LOG, address)
        yield
    finally:
        _stop(pid)


def _set(folder: Path, port: int) -> None:
    """Make these settings this process's, and no others."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    os.environ.update(settings(folder, port))
    os.chdir(folder)  # a prefect.toml where the user works is no setting of ours


def _import() -> None:
    """Import what the server and a flow run need, as fast as it can be done."""
    import gc

    gc.disable()  # in this process and its children, which live for seconds: a third of the time
    # An optional part of jsonschema, which compiles grammars for seconds when it is imported.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    import prefect.flow_engine
    import prefect.server.api.server
    import prefect.task_engine  # noqa: F401
    import uvicorn  # noqa: F401


def _prepare(database: Path) -> None:
    """Put an empty database there: a copy of what ``prefect server database upgrade`` makes.

    The migrations take many seconds, and make the same for every cell: so they are run once for
    each version of Prefect, and what they made is kept in the user's cache, where that can be.
    """
    if database.exists():
        return
    blank = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rcr-probes")
    blank /= f"prefect-{version('prefect')}.db"
    with _turn(blank):  # of many cells that start at once, one makes it
        if blank.exists():
            shutil.copyfile(blank, database)
            return
        status = forked(_upgrade)
        if status:
            raise ServerFailed(f"prefect server database upgrade ended with {status}")
        with contextlib.closing(sqlite3.connect(database)) as made:
            made.execute("PRAGMA journal_mode = DELETE")  # one file; the server sets it anew
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=blank.parent) as private:
            os.rename(shutil.copy(database, private), blank)  # whole, or not at all


@contextlib.contextmanager
def _turn(blank: Path) -> Iterator[None]:
    """Wait until no other process is about to make it; where nothing can be kept there, do not."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            blank.parent.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(open(blank.with_suffix(".lock"), "wb"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _upgrade() -> None:
    """The command, in a child process: it ends with SystemExit, and it starts threads."""
    import asyncio

    from prefect.cli.server import upgrade

    try:
        asyncio.run(upgrade(yes=True))
    except SystemExit as ended:  # with 0, too
        if ended.code:
            raise


def _fork(log: Path, bound: socket.socket) -> int:
    """Start the server as ``prefect server start --no-services`` does, in a child process."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        linux.die_with(parent)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        import uvicorn
        from prefect.server.api.server import create_app

        config = uvicorn.Config(create_app(final=True, webserver_only=True))
        uvicorn.Server(config).run([bound])
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _wait(pid: int, log: Path, address: tuple[str, int]) -> None:
    until = time.monotonic() + _SERVES
    while not listens(address):
        if linux.ends_within(pid, 0) or time.monotonic() > until:
            said = log.read_text(errors="replace")[-1000:].strip()
            raise ServerFailed(f"prefect server start did not come to serve: {said}")
        time.sleep(_LOOK)


def _stop(pid: int) -> None:
    """End it by its pid, in good order if it will, and reap it."""
    if not linux.ends_within(pid, _STOPS, signal.SIGTERM):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
