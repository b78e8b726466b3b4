"""The same cells on a Dask cluster: lanes of pool.py, each of which has its cells run elsewhere.

A cell runs in a lean worker that is a child of a Dask worker's thread, as it does on one machine;
the Dask worker itself, which has threads, is never forked. Its capture comes back sealed. Where a
Dask worker dies, its scheduler has what ran there run again elsewhere, and only what came back is
ever written: each cell is there once.
"""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
import threading
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec

from rcr_probes import room, versions, worker
from rcr_probes.errors import NotInstalled, PlanError, RcrError, code_of
from rcr_probes.evidence import form, seal
from rcr_probes.model import Json
from rcr_probes.pool import Lane, LeanWorker, Received
from rcr_probes.scratch import scratch
from rcr_probes.worker import Job, lacked_room

SCHEME = "tcp://"
_CONNECT = 30.0  # seconds for the scheduler to answer, and for a first worker to be there
_LOST = 60.0  # seconds without any worker, or any word of the scheduler, after which a run ends
_LOOK = 5.0  # seconds between two looks whether there are workers
_IDLE = 60  # seconds after which a lean worker ends that nobody ended, as after a killed run
_FOR_ENDING = 10.0  # seconds for the cluster to end what runs there

Environment = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Reached:
    """A cluster that has answered.

    Attributes:
        address: of its scheduler.
        client: Dask's, of the scheduler.
        threads: how many cells it runs at a time; 1 or more.
    """

    address: str
    client: Any
    threads: int


@contextlib.contextmanager
def reached(address: str) -> Iterator[Reached]:
    """The cluster of a scheduler, for as long as the block lasts.

    Args:
        address: ``tcp://HOST:PORT``.

    Raises:
        RcrError: Dask is not installed, no scheduler answers, or it has no workers.
    """
    client = _connected(address)
    try:
        yield Reached(address, client, _threads(client, address))
    finally:
        with contextlib.suppress(Exception):
            client.close(_FOR_ENDING)


@contextlib.contextmanager
def lanes(
    there: Reached, cells: int, most: int | None, runtimes: Sequence[str], here: Environment,
    names: Iterator[str],
) -> Iterator[Sequence[Lane]]:  # fmt: skip
    """As many lanes as the cluster has threads. What still runs there is ended with the block.

    Args:
        there: the cluster.
        cells: how many there are to run.
        most: lanes at most; None is no limit.
        runtimes: under probe.
        here: the environment of this process; a worker must have the same.
        names: for the workers, in order of appearance.
    """
    client, run = there.client, uuid.uuid4().hex
    asked = _Asked(there, run, tuple(runtimes), here, names)
    try:
        number = min(cells or 1, there.threads, most or there.threads)
        yield [_Remote(asked) for _ in range(number)]
    finally:
        with contextlib.suppress(Exception):  # who is gone runs nothing any more
            client.cancel(list(asked.waiting), force=True)
            client.sync(
                client._run, end_there, run, on_error="ignore", callback_timeout=_FOR_ENDING
            )


class _Asked:
    """What all lanes share: the cluster, and what is asked of each of its workers."""

    def __init__(
        self, there: Reached, run: str, runtimes: tuple[str, ...], here: Environment,
        names: Iterator[str],
    ) -> None:  # fmt: skip
        self.there = there
        self.run = run
        self.runtimes = runtimes
        self.here = here
        self._names = names
        self._named: dict[str, str] = {}
        self.waiting: set[Any] = set()  # futures whose results nobody has taken yet

    def submit(self, job: Job) -> Any:
        """What will be the answer to a job.

        Raises:
            RcrError: the scheduler is gone.
        """
        try:
            future = self.there.client.submit(run_there, job, self.run, self.runtimes, pure=False)
        except Exception as error:  # a client that has given up the scheduler takes nothing more
            raise _gone(self.there.address) from error
        self.waiting.add(future)
        return future

    def threads(self) -> int:
        """How many threads the cluster has now.

        Raises:
            OSError: its scheduler is gone, or says nothing.
        """
        client = self.there.client
        found: Mapping[str, int] = client.sync(client.scheduler.ncores, callback_timeout=_LOST)
        return sum(found.values())

    def named(self, there: str) -> str:
        """Our own name for a worker: its own may hold a host."""
        if there not in self._named:
            self._named[there] = next(self._names)
        return self._named[there]


class _Remote:
    """A lane whose cells run wherever the scheduler sends them."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._unanswered: deque[tuple[Job, Any]] = deque()

    def send(self, job: Job) -> None:
        self._unanswered.append((job, self._asked.submit(job)))

    def receive(self) -> Received:
        """The capture of the oldest unanswered job.

        Raises:
            RcrError: the cluster is gone, or a worker of it cannot run cells as they run here.
        """
        from distributed.scheduler import KilledWorker

        job, future = self._unanswered.popleft()
        try:
            line, there, environment = self._result(future)
        except KilledWorker:  # wherever it was run, it took its worker with it
            return Received(worker.broken(job, "the cluster's workers died"))
        except (RcrError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            if future.status != "error":  # it is not the cell that has failed
                raise _gone(self._asked.there.address) from error
            raise _failed(error) from error
        finally:
            self._asked.waiting.discard(future)
        _refuse_unlike(environment, self._asked.here)
        capture = seal.decode(line, "worker")
        digest = form.facts_sha256(capture.measurement, capture.judgement)
        if capture.cell != job.cell or digest != capture.facts_sha256:
            raise RcrError(
                f"What came back for {job.cell.id} is not its capture.",
                "Start the cluster anew, and type the same command again.",
            )
        return Received(capture, self._asked.named(there))

    def _result(self, future: Any) -> tuple[bytes, str, Environment]:
        """What the function returned, however long it takes, while there is somebody to run it."""
        alone = 0.0
        while True:
            failed = future.status == "error"
            try:
                made: tuple[bytes, str, Environment] = future.result(timeout=_LOOK)
            except TimeoutError:
                if failed:
                    raise  # it is what the function raised, and no look that is over
                alone = 0.0 if self._asked.threads() else alone + _LOOK
                if alone < _LOST:
                    continue
                raise RcrError(
                    "The cluster has no worker any more.",
                    "What is measured is kept: start some, and type the same command again.",
                ) from None
            return made


def check(address: str) -> None:
    """Refuse what cannot be the address of a scheduler.

    Raises:
        PlanError: it is none.
    """
    host, _, port = address.removeprefix(SCHEME).rpartition(":")
    if not address.startswith(SCHEME) or not host or not port.isdecimal():
        raise PlanError(
            f"{address!r} is no address of a scheduler.", "Write it as tcp://HOST:PORT."
        )


def _connected(address: str) -> Any:
    """A client of the scheduler.

    Raises:
        RcrError: Dask is not installed, or nobody answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise NotInstalled("A cluster needs Dask, which is not installed.", "dask") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters, we say ourselves
    try:
        return Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise RcrError(
            f"No scheduler answers at {address}.", f"Start one with: {_scheduler(address)}"
        ) from error


def _threads(client: Any, address: str) -> int:
    """How many cells the cluster runs at a time."""
    try:
        client.wait_for_workers(1, timeout=_CONNECT)
    except TimeoutError as error:
        raise RcrError(
            f"The cluster at {address} has no workers.", f"Start one with: dask worker {address}"
        ) from error
    except OSError as error:  # it had answered a moment ago
        raise _gone(address) from error
    threads: int = sum(client.nthreads().values())
    return max(1, threads)


def _gone(address: str) -> RcrError:
    return RcrError(
        f"The scheduler at {address} is gone.",
        f"What is measured is kept: start it and its workers again ({_scheduler(address)}, "
        f"dask worker {address}), and type the same command again, which goes on from there.",
    )


def _scheduler(address: str) -> str:
    """What starts a scheduler there; without its host it would listen on every network."""
    host, _, port = address.rpartition("//")[2].rpartition(":")
    return f"dask scheduler --host {host.strip('[]')} --port {port}"


def _failed(error: BaseException) -> RcrError:
    kept = "What is measured is kept: mend the cluster, and type the same command again."
    if isinstance(error, ImportError):
        return RcrError(
            f"A worker of the cluster cannot import what it needs ({error.name}).",
            f"Install rcr-probes there, the same version as here. {kept}",
        )
    return RcrError(f"The cluster has failed ({code_of(error)}).", kept)


def _refuse_unlike(there: Environment, here: Environment) -> None:
    """What the evidence says of its environment is to be true of every capture."""
    if there == here:
        return
    unlike = sorted(key for key in {*there, *here} if there.get(key) != here.get(key))
    said = ", ".join(f"{key}: {there.get(key)} there, {here.get(key)} here" for key in unlike)
    raise RcrError(
        f"A worker of the cluster has another environment than this one ({said}).",
        "Install the same versions in both places, and type the same command again.",
    )


# What follows runs in a Dask worker.

_lean: dict[tuple[str, int], LeanWorker] = {}  # run and thread → its child
_busy: set[tuple[str, int]] = set()
_over: set[str] = set()  # runs that have ended
_lock = threading.Lock()  # of the three; never held while a child is started or waited for


def run_there(job: Job, run: str, runtimes: tuple[str, ...]) -> tuple[bytes, str, Environment]:
    """Run one cell in a lean worker of this thread; it is kept for the next one.

    Returns:
        The sealed capture as a line, who we are, and what the environment is here.
    """
    from distributed import get_worker

    environment = environment_there(run, runtimes)
    with scratch() as place, _of_this_thread(run) as lean:
        lean.send(replace(job, folder=str(place / "cell")))
        capture = lean.receive().capture
        if lacked_room(capture):
            raise room.lacking(place.parent)
        room.require(place.parent)
    return seal.encode(capture), str(get_worker().id), environment


def end_there(run: str) -> None:
    """End every lean worker of a run, and what it is running. A busy one is its own thread's."""
    with _lock:
        _over.add(run)
        busy = [lean for key, lean in _lean.items() if key[0] == run and key in _busy]
        idle = [_lean.pop(key) for key in list(_lean) if key[0] == run and key not in _busy]
    for lean in busy:
        lean.interrupt()
    for lean in idle:
        lean.end()


@contextlib.contextmanager
def _of_this_thread(run: str) -> Iterator[LeanWorker]:
    """A lean worker that no other thread uses meanwhile.

    Raises:
        RcrError: the run has ended: what was still in the queue must not begin, for nobody would
            end it.
    """
    key = (run, threading.get_ident())
    with _lock:
        lean = _lean.pop(key, None)
    if lean is not None and lean.idle_for() > _IDLE / 2:  # it may be about to end by itself
        lean.end()
        lean = None
    lean = lean or LeanWorker(idle=_IDLE)
    with _lock:
        over = run in _over
        if not over:
            _lean[key] = lean
            _busy.add(key)
    try:
        if over:
            raise RcrError("The run has ended.", "Nothing more is measured for it.")
        yield lean
    finally:
        with _lock:
            _busy.discard(key)
            over = run in _over
            if over:
                _lean.pop(key, None)
        if over:
            lean.end()


@cache
def environment_there(run: str, runtimes: tuple[str, ...]) -> Environment:
    """The environment as a new process finds it; once for each run."""
    words = (sys.executable, "-P", "-m", versions.__name__, *runtimes)
    done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise RcrError(
            f"A worker of the cluster cannot load what is probed ({''.join(last)}).",
            "Install the same there as here, or start it where the runtime can be imported.",
        )
    return msgspec.json.decode(done.stdout, type=dict[str, Json])
