"""A log of strace is read as it comes, however long it is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from rcr_probes import strace
from rcr_probes.errors import RcrError
from rcr_probes.probe import trace

CALL = b'7  openat(AT_FDCWD</w>, "jobs.db", O_RDWR|O_CREAT, 0644) = 3</w/jobs.db>\n'


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    here, there = os.pipe()
    os.set_blocking(here, False)
    yield here, there
    os.close(here)
    os.close(there)


def test_each_line_of_a_log_is_looked_at_once(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a line comes in two pieces; all of it is there at the end."""
    looked: list[str] = []
    killed = strace.killed

    def counted(log: str) -> frozenset[int]:
        looked.append(log)
        return killed(log)

    monkeypatch.setattr(strace, "killed", counted)
    log = trace._Log(pipe[0])
    pieces = [CALL * 3, CALL[:9], CALL[9:], b"7  +++ killed by", b" SIGKILL +++\n", CALL]
    told = [bool(os.write(pipe[1], piece)) and log.read() for piece in pieces]
    assert told == [False, False, False, False, True, False]
    assert "".join(looked) == log.text() == b"".join(pieces).decode()


def test_a_log_that_nobody_can_strike_through_is_refused(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read until there is no memory."""
    monkeypatch.setattr(trace, "_LARGEST", 2 * len(CALL))
    log = trace._Log(pipe[0])
    os.write(pipe[1], CALL * 3)
    with pytest.raises(RcrError, match="MiB"):
        log.read()
