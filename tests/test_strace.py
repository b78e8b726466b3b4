"""What strace's log says, call by call, whichever of our options it was written under."""

from __future__ import annotations

import pytest

from rcr_probes import strace

LOG = """\
11 openat(AT_FDCWD</w>, "a = b", O_RDWR|O_CREAT, 0600) = 3</w/a = b>
11 write(3</w/a) = b>, ""..., 5 <unfinished ...>
12 close(4</w/c>)    = 0
11 <... write resumed>) = 5
12 +++ exited with 0 +++
11 rename("c", "d" <unfinished ...>
13 <... futex resumed>) = 0
11 <... rename resumed> <unfinished ...>) = ?
11 +++ killed by SIGKILL +++
14 fsync(5</w/e>
"""
CALLS = [
    (11, "openat", 'AT_FDCWD</w>, "a = b", O_RDWR|O_CREAT, 0600', "3</w/a = b>"),
    (11, "write", '3</w/a) = b>, ""..., 5', "5"),
    (12, "close", "4</w/c>", "0"),
    (11, "rename", '"c", "d" <unfinished ...>', "?"),
    (14, "fsync", "5</w/e>", None),
]


def test_a_call_is_told_once_where_it_began() -> None:
    """Its two lines are one; how it ended is not known where the log breaks off."""
    found = list(strace.logged(LOG))
    assert [(one.pid, one.call, one.arguments, one.result) for one in found] == CALLS
    assert {one.at for one in found} == {0.0}


def test_a_log_may_say_when_each_call_began() -> None:
    """The end of a call is told with a time of its own, which is not the call's."""
    lines = LOG.splitlines(keepends=True)
    timed = "".join(f"{line[:2]} {n}.25{line[2:]}" for n, line in enumerate(lines))
    found = list(strace.logged(timed))
    assert [(one.pid, one.call, one.arguments, one.result) for one in found] == CALLS
    assert [one.at for one in found] == [0.25, 1.25, 2.25, 5.25, 9.25]
    assert strace.killed(timed) == strace.killed(LOG) == {11}


@pytest.mark.parametrize(("ends", "ended"), [(") = 0\n", True), (") = ?\n", False), ("", False)])
def test_a_call_has_ended_where_the_log_says_how(ends: str, ended: bool) -> None:
    """One at which its process was killed never did, nor one in whose line the log breaks off."""
    (call,) = strace.calls(f"11 fsync(3</w/a>{ends}", "/w")
    assert call.ended is ended


@pytest.mark.parametrize(
    "line", ["", "11", "11 (", "x write(3</w/a>) = 0", "11 1.x write(3</w/a>) = 0"]
)
def test_a_line_that_strace_did_not_write_is_none(line: str) -> None:
    """Whoever is probed may have written to the log as well."""
    assert [one.call for one in strace.logged(f"{line}\n11 fsync(3</w/a>) = 0\n")] == ["fsync"]
