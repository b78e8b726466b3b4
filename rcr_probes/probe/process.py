"""Run one command in a session of its own, and leave nothing of it alive."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rcr_probes import linux, room

_LINGER = 0.5  # seconds in which what a command started may end by itself once the command has
_NOT_STARTED = 127  # what a shell exits with for a command that it cannot start
_CAUGHT = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        pid: its process id.
        how: ``exit``, a signal's name, or ``deadline`` (it was still running, and was ended).
        code: its exit status; None where it did not exit.
        seconds: wall time on the monotonic clock.
        left_behind: how many processes outlived it, outside its group where that was killed.
    """

    pid: int
    how: str
    code: int | None
    seconds: float
    left_behind: int

    @property
    def status(self) -> str:
        """One word for it: ``exit_0``, a signal's name, ``deadline``."""
        return self.how if self.code is None else f"exit_{self.code}"


class Running:
    """A command that runs; use it in a ``with`` block, which ends whatever is left of it.

    The caller is single-threaded and has called ``linux.adopt_descendants``. Children that it has
    when the command starts are spared; all others are the command's.

    Attributes:
        pid: of the command, the leader of its own session and group.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        output: str,
        watch: room.Watch,
    ) -> None:
        """Start it in the current directory, without input.

        Args:
            words: the command.
            environment: all of it.
            output: the file to which its stdout and stderr are appended.
            watch: looks at what it writes while it is waited for.
        """
        self._watch = watch
        self._spared = frozenset(linux.children(os.getpid()))
        self._begun = time.monotonic()
        self._killed = False
        self._status: int | None = None
        self.pid = _fork(words, environment, output)
        self._pidfd = os.pidfd_open(self.pid)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pidfd >= 0:  # no look at what it wrote is to hinder its end
            self.kill()
            self._ended(overran=False)

    def wait(self, seconds: float, *others: int) -> set[int]:
        """Wait for its end, or until another descriptor is readable.

        Returns:
            The pid where it ended, and the descriptors among ``others`` that are readable.

        Raises:
            FolderTooLarge, NoRoom: it wrote more than it may.
        """
        until = time.monotonic() + seconds
        poll = select.poll()
        for fd in (self._pidfd, *others):
            poll.register(fd, select.POLLIN)
        while True:
            self._watch.look()  # also where others are readable whenever one asks
            left = max(0.0, until - time.monotonic())
            ready = {fd for fd, _ in poll.poll(min(left, room.LOOK) * 1000)}
            if ready or left <= room.LOOK:
                return {self.pid if fd == self._pidfd else fd for fd in ready}

    def kill(self) -> None:
        """End it and its whole group at once."""
        self._killed = True
        linux.kill_group(self.pid)

    def end(self, seconds: float) -> Ended:
        """Wait for its end, end it where that takes longer, and end all that is left of it.

        Raises:
            FolderTooLarge, NoRoom: it wrote more than it may.
        """
        overran = not self.wait(seconds) and not self._killed
        if overran:
            self.kill()
        return self._ended(overran)

    def _ended(self, overran: bool) -> Ended:
        """How it ended, once nothing is left of it; it is on its way out, or was killed."""
        _, status = os.waitpid(self.pid, 0)
        took = time.monotonic() - self._begun
        os.close(self._pidfd)
        self._pidfd = -1
        left_behind = self._end_rest()
        if overran:
            return Ended(self.pid, "deadline", None, took, left_behind)
        if os.WIFSIGNALED(status):
            how = linux.signal_name(os.WTERMSIG(status))
            return Ended(self.pid, how, None, took, left_behind)
        return Ended(self.pid, "exit", os.WEXITSTATUS(status), took, left_behind)

    def _end_rest(self) -> int:
        """End every process that is left, and all that it has below it; return how many lived."""
        until = time.monotonic() + (0.0 if self._killed else _LINGER)
        lived = 0
        while left := [pid for pid in linux.children(os.getpid()) if pid not in self._spared]:
            for pid in sorted(left, key=self._dies, reverse=True):
                if not (self._dies(pid) or linux.ends_within(pid, until - time.monotonic())):
                    lived += linux.end_all_below(self._spared)
                    break
                os.waitpid(pid, 0)
        return lived

    def _dies(self, pid: int) -> bool:
        """Whether it was killed with the command's group, and is on its way out."""
        return self._killed and _group(pid) == self.pid


def _fork(words: Sequence[str], environment: Mapping[str, str], output: str) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:  # nothing of the parent's may run on in here, whatever happens
        os.setsid()
        linux.die_with(parent)
        for number in (*linux.PYTHON_IGNORES, *_CAUGHT):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (out, 1), (out, 2)):
            os.dup2(source, target)
        try:
            os.execvpe(words[0], list(words), dict(environment))
        except OSError as error:
            os.write(2, f"{words[0]}: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(_NOT_STARTED)


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return -1
