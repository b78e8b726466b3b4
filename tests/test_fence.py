"""The fence: an attempt is over when the kernel says so, and never because of a pid."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rcr_probes import fence


@contextmanager
def attempt(folder: Path, *, closes: bool = False) -> Iterator[int]:
    """An attempt in a process of its own, alive inside the block; gives its pid."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        begun = fence.enter(folder)
        if closes:
            os.close(begun.fd)
        os.write(tell, b".")
        signal.pause()
        os._exit(0)
    os.read(told, 1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(told)
        os.close(tell)


def test_attempts_are_numbered_in_the_order_in_which_they_begin(tmp_path: Path) -> None:
    """The number grows with every attempt, whether the ones before are over or not."""
    with attempt(tmp_path), attempt(tmp_path):
        third = fence.enter(tmp_path)
        assert third.number == 3
        os.close(third.fd)
    assert fence.enter(tmp_path).number == 4


def test_nobody_is_alone_while_another_attempt_lives(tmp_path: Path) -> None:
    """Neither an earlier nor a later one may be passed over; once they are gone, one is alone."""
    own = fence.enter(tmp_path)
    assert fence.alone(tmp_path, own.number) == 0
    with attempt(tmp_path):
        assert fence.alone(tmp_path, own.number) is None
    assert fence.alone(tmp_path, own.number) == 2


def test_what_was_proven_stays_so(tmp_path: Path) -> None:
    """Whoever is alone holds the others' places: who begins later is not alone."""
    with attempt(tmp_path):
        pass
    own = fence.enter(tmp_path)
    assert fence.alone(tmp_path, own.number) == 1
    later = fence.enter(tmp_path)
    assert fence.alone(tmp_path, later.number) is None


def test_a_zombie_is_over_though_its_pid_answers(tmp_path: Path) -> None:
    """What a pid says would be wrong: signals reach a zombie, and it can do nothing any more."""
    pid = os.fork()
    if pid == 0:
        fence.enter(tmp_path)
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    os.kill(pid, 0)
    assert fence.over(tmp_path) == 1
    assert fence.all_over(tmp_path)
    os.waitpid(pid, 0)


def test_attempts_are_over_up_to_the_first_that_is_alive(tmp_path: Path) -> None:
    """A later one that has ended does not speak for an earlier one."""
    assert (fence.over(tmp_path), fence.all_over(tmp_path)) == (0, True)
    with attempt(tmp_path):
        pass
    with attempt(tmp_path):
        with attempt(tmp_path):
            pass
        assert (fence.over(tmp_path), fence.all_over(tmp_path)) == (1, False)
    assert (fence.over(tmp_path), fence.all_over(tmp_path)) == (3, True)


def test_one_that_closed_its_descriptors_is_beyond_the_fence(tmp_path: Path) -> None:
    """The fence does not prove the end of everything, and the design says so."""
    with attempt(tmp_path, closes=True):
        assert fence.all_over(tmp_path)


def test_an_attempt_that_was_put_aside_cannot_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its file and its lock another may prove that it is not there."""
    real, others = fcntl.flock, list[int]()

    def first_another(fd: int, how: int) -> None:
        if not others:
            others.append(os.open(tmp_path / "1", os.O_RDWR))
            real(others[0], how)
        real(fd, how)

    monkeypatch.setattr(fcntl, "flock", first_another)
    with pytest.raises(BlockingIOError):
        fence.enter(tmp_path)
    os.close(others[0])
