"""A probe as a user starts it: ``rcr probe`` in a process of its own, in a folder of the test's."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "unmodified-worker"

Start = Callable[..., "subprocess.Popen[str]"]
Probe = Callable[..., "subprocess.CompletedProcess[str]"]


def rcr(*words: object) -> list[str]:
    """The words that start ``rcr``."""
    return [sys.executable, "-m", "rcr_probes.cli", *map(str, words)]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Ours; but each interpreter leaves its bytecode to the next, as where a user runs it."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    bytecode = str(tmp_path_factory.mktemp("bytecode"))
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": bytecode}


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Iterator[Start]:
    """Start a probe in the test's folder; what is left of it ends with the test."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*words: object, into: str = "found") -> subprocess.Popen[str]:
        begun.append(
            subprocess.Popen(
                rcr("probe", "--into", into, *words),
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return begun[-1]

    yield begin
    for one in begun:
        with one:  # closes its pipes
            one.kill()


@pytest.fixture
def probe(start: Start) -> Probe:
    """Run a probe to its end."""

    def run(*words: object, into: str = "found") -> subprocess.CompletedProcess[str]:
        begun = start(*words, into=into)
        out, err = begun.communicate(timeout=300)
        return subprocess.CompletedProcess(begun.args, begun.returncode, out, err)

    return run


@pytest.fixture
def worker(tmp_path: Path) -> Callable[[str], list[str]]:
    """Write a Python worker into the test's folder; return the words that run it."""

    def write(program: str) -> list[str]:
        (tmp_path / "worker.py").write_text(CALL + textwrap.dedent(program), encoding="utf-8")
        return ["--", sys.executable, "-S", "worker.py"]

    return write


# What the workers of the tests share: one call of the API, by hand, and where their state is.
CALL = """
import os, socket, sys, time
folder = os.environ["RCR_FOLDER"]
def call(body, key=None, wait=3.0):
    host, port = os.environ["RCR_RECEIVER"].removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=wait) as sock:
        head = f"POST /charges HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: {len(body)}\\r\\n"
        head += f"Idempotency-Key: {key}\\r\\n" if key else ""
        sock.sendall((head + "Connection: close\\r\\n\\r\\n" + body).encode())
        answer = b""
        while piece := sock.recv(4096):
            answer += piece
    return int(answer.split()[1]) if answer else 0
def done():
    return os.path.exists(folder + "/done")
def finish():
    open(folder + "/done", "w").close()
"""
