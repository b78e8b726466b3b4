"""Run one program to its end: what goes to its stdin, what comes from its stdout, how it ended."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rcr_probes import linux

_PIECE = 1 << 16
_MOST = 1 << 20  # bytes of an answer; a program that writes more is not answering
_CANNOT_RUN = 126  # what a shell exits with for a program that cannot be run


@dataclass(frozen=True, slots=True)
class Answered:
    """What a program said, and how it ended.

    Attributes:
        output: all that it wrote to stdout before its end.
        ended: ``EXIT_`` and its exit status, or the name of the signal that ended it.
    """

    output: str
    ended: str


def run(words: Sequence[str], cwd: Path, given: str, environment: Mapping[str, str]) -> Answered:
    """Run a program, and return when it has ended, whether or not what it started has.

    It dies with this process. What it writes to stderr goes where ours goes.

    Args:
        words: the program and its arguments.
        cwd: where it runs.
        given: what it finds on stdin.
        environment: all of it.
    """
    stdin = os.memfd_create("stdin")  # however long, nobody waits for somebody to read it
    try:
        _write(stdin, given.encode())
        os.lseek(stdin, 0, os.SEEK_SET)
        out, its_out = os.pipe()
        try:
            parent = os.getpid()
            child = os.fork()
            if not child:
                _become(words, cwd, environment, stdin, its_out, parent)
            os.close(its_out)
            output = _read(child, out)
        finally:
            os.close(out)
    finally:
        os.close(stdin)
    _, status = os.waitpid(child, 0)
    return Answered(output.decode(errors="replace"), _ended(os.waitstatus_to_exitcode(status)))


def _become(
    words: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    stdin: int,
    stdout: int,
    parent: int,
) -> NoReturn:
    try:
        linux.die_with(parent)
        for ignored in linux.PYTHON_IGNORES:
            signal.signal(ignored, signal.SIG_DFL)
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.chdir(cwd)
        os.execvpe(words[0], list(words), dict(environment))
    except BaseException as error:
        os.write(2, f"harness: {words[0]} cannot be run: {error}\n".encode(errors="replace"))
    os._exit(_CANNOT_RUN)


def _read(child: int, out: int) -> bytes:
    """What a child writes until it ends or closes its stdout; it is killed where that is too much.

    What it started may hold its stdout open for longer: that is not waited for.
    """
    read = b""
    watched = os.pidfd_open(child)
    poll = select.poll()
    for fd in (watched, out):
        poll.register(fd, select.POLLIN)
    try:
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if out not in ready:
                return read  # it has ended, and what it wrote is read
            piece = os.read(out, _PIECE)
            read += piece
            if not piece:
                return read
            if len(read) > _MOST:
                os.kill(child, signal.SIGKILL)
                return read
    finally:
        os.close(watched)


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _ended(code: int) -> str:
    return f"EXIT_{code}" if code >= 0 else linux.signal_name(-code)
