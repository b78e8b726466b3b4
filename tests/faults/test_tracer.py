"""A process follows another one's system calls, changes one of them, and leaves no trace."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rcr_probes import faults, strace, tracer
from rcr_probes.errors import FaultError
from rcr_probes.strace import CallPoint
from tests.faults.beside import below, needs_ptrace

HERE = os.uname().machine
NUMBERS = {name: number for number, name in tracer._MACHINES[HERE].calls.items()}
_libc = ctypes.CDLL(None, use_errno=True)


def nothing(call: tracer.Call) -> tracer.Leaving | None:
    return None


def call(name: str, *given: int | bytes) -> int:
    """One system call by its number, past every library; its result, or the negative error."""
    words = [ctypes.c_long(g) if isinstance(g, int) else ctypes.c_char_p(g) for g in given]
    result = int(_libc.syscall(ctypes.c_long(NUMBERS[name]), *words))
    return result if result >= 0 else -ctypes.get_errno()


def tracer_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("TracerPid:")[1].split()[0])


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


# Each call on the file f in a folder: how it is made, on a file that is there and open at ``fd``;
# and what it changes.
RDWR, HERE_FD = os.O_RDWR, -100
CALLS: dict[str, Callable[[int, bytes], int]] = {
    "write": lambda fd, f: call("write", fd, b"new", 3),
    "pwrite64": lambda fd, f: call("pwrite64", fd, b"new", 3, 0),
    "writev": lambda fd, f: vector("writev", fd),
    "pwritev": lambda fd, f: vector("pwritev", fd),
    "pwritev2": lambda fd, f: vector("pwritev2", fd),
    "ftruncate": lambda fd, f: call("ftruncate", fd, 1),
    "fallocate": lambda fd, f: call("fallocate", fd, 0, 0, 99),
    "fsync": lambda fd, f: call("fsync", fd),
    "fdatasync": lambda fd, f: call("fdatasync", fd),
    "close": lambda fd, f: call("close", fd),
    "open": lambda fd, f: call("open", f, RDWR, 0o600),
    "openat": lambda fd, f: call("openat", HERE_FD, f, RDWR, 0o600),
    "creat": lambda fd, f: call("creat", f, 0o600),
    "truncate": lambda fd, f: call("truncate", f, 1),
    "rename": lambda fd, f: call("rename", f, f + b"2"),
    "renameat": lambda fd, f: call("renameat", HERE_FD, f, HERE_FD, f + b"2"),
    "renameat2": lambda fd, f: call("renameat2", HERE_FD, f + b"1", HERE_FD, f, 0),
    "link": lambda fd, f: call("link", f, f + b"2"),
    "linkat": lambda fd, f: call("linkat", HERE_FD, f, HERE_FD, f + b"2", 0),
    "unlink": lambda fd, f: call("unlink", f),
    "unlinkat": lambda fd, f: call("unlinkat", HERE_FD, f, 0),
    "mkdir": lambda fd, f: call("mkdir", f, 0o700),
    "mkdirat": lambda fd, f: call("mkdirat", HERE_FD, f, 0o700),
    "rmdir": lambda fd, f: call("rmdir", f),
}


def vector(name: str, fd: int) -> int:
    data = ctypes.create_string_buffer(b"new", 3)
    one = (ctypes.c_size_t * 2)(ctypes.addressof(data), 3)
    return call(name, fd, ctypes.addressof(one), 1, 0, 0, 0)


def test_every_call_that_a_point_may_name_has_a_number_here() -> None:
    """The tracer knows what strace does; a newer machine lacks those that others replaced."""
    assert set(tracer._X86_64.calls.values()) == set(strace.KNOWN)
    old = {"open", "creat", "rename", "link", "unlink", "mkdir", "rmdir"}
    assert set(tracer._AARCH64.calls.values()) == set(strace.KNOWN) - old
    assert set(CALLS) == set(strace.KNOWN)


def changed(place: Path) -> list[object]:
    """What can be seen of the files: names, contents, and what is open."""
    seen = [
        (
            p.name,
            p.read_bytes().hex() if p.is_file() else "",
            p.stat().st_nlink if p.exists() else 0,
        )
        for p in sorted(place.iterdir())
    ]
    return [seen, len(os.listdir("/proc/self/fd"))]


@needs_ptrace
@pytest.mark.parametrize("spelled", ["absolute", "relative"])
@pytest.mark.parametrize("name", [name for name in CALLS if name in NUMBERS])
def test_a_call_is_executed_and_says_that_it_failed(
    tmp_path: Path, name: str, spelled: str
) -> None:
    """Each of them: the second of its name on this file says EIO, and did what it does."""
    made = {}
    for struck in (False, True):
        place = tmp_path / str(struck)
        place.mkdir()

        def work(place: Path = place, struck: bool = struck) -> list[object]:
            os.chdir(place)
            new = name in ("mkdir", "mkdirat", "creat")
            for file in ("f", "f1", "g"):
                if file != "f" or not new:
                    Path(file).mkdir() if name == "rmdir" else Path(file).write_text("old one")
            path = str(place / "f").encode() if spelled == "absolute" else b"f"
            fds = [os.open("g" if new else "f", os.O_RDONLY if name == "rmdir" else RDWR)]

            def proof() -> Callable[[], None]:
                (place.parent / "proof").touch()
                return (place.parent / "changed").touch

            if struck:
                faults.misreport(CallPoint(name, "f", 1), str(place), proof)
            other = os.open("g", os.O_RDONLY if name == "rmdir" else RDWR)
            elsewhere = CALLS[name](other, b"g")
            result = CALLS[name](fds[0], path)
            return [elsewhere >= 0 or name in ("mkdir", "mkdirat"), result, changed(place)]

        done = below(work)
        assert (done.ended, done.left) == ("exit", 0), done
        made[struck] = done.told
    assert made[True][1] == -errno.EIO, made
    assert made[False][1] >= 0, made
    assert made[True][2] == made[False][2]
    assert (tmp_path / "proof").exists()
    assert (tmp_path / "changed").exists()


@needs_ptrace
def test_a_call_that_fails_by_itself_is_counted_and_not_struck(tmp_path: Path) -> None:
    """It was not executed, so to call it done would be a lie; and the next one is not the first."""
    point = CallPoint("rmdir" if "rmdir" in NUMBERS else "unlinkat", "f", 1)

    def work() -> list[int]:
        faults.misreport(point, str(tmp_path), lambda: lambda: None)
        path = str(tmp_path / "f").encode()
        first = (
            call("unlinkat", HERE_FD, path, 0x200)
            if point.call == "unlinkat"
            else call("rmdir", path)
        )
        (tmp_path / "f").mkdir()
        return [first, call("rmdir", path) if point.call == "rmdir" else 0]

    assert below(work).told == [-errno.ENOENT, 0]


@needs_ptrace
def test_a_runtime_does_not_see_the_tracer_among_its_children() -> None:
    """It may wait for any child; and signals, stops and what it starts are as without one."""

    def work() -> list[object]:
        caught: list[int] = []
        signal.signal(signal.SIGUSR1, lambda number, _: caught.append(number))
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        tracer.follow(nothing)
        os.kill(os.getpid(), signal.SIGUSR1)
        child = os.fork()
        if not child:
            os._exit(7)
        pid, status = os.wait()
        with pytest.raises(ChildProcessError):
            os.wait()
        ran = subprocess.run(["true"], check=False).returncode
        return [
            pid == child,
            os.waitstatus_to_exitcode(status),
            caught,
            ran,
            tracer_of(os.getpid()) > 0,
        ]

    assert below(work).told == [True, 7, [signal.SIGUSR1], 0, True]


@needs_ptrace
def test_a_process_that_is_followed_can_be_stopped_and_goes_on(tmp_path: Path) -> None:
    """A stop from outside holds it, until it is told to continue."""
    count, enough = tmp_path / "count", tmp_path / "enough"
    count.write_text("0")

    def work() -> bool:
        tracer.follow(nothing)
        for number in range(100_000):
            (tmp_path / "new").write_text(str(number))
            (tmp_path / "new").rename(count)
            if enough.exists():
                return True
        return False

    def counted_on() -> bool:
        before = count.read_text()
        time.sleep(0.05)
        return count.read_text() != before

    def meanwhile(pid: int) -> None:
        until(counted_on)
        os.kill(pid, signal.SIGSTOP)
        until(lambda: not counted_on() and not counted_on())
        assert tracer_of(pid) > 0
        os.kill(pid, signal.SIGCONT)
        until(counted_on)
        enough.touch()

    done = below(work, meanwhile)
    assert (done.ended, done.told, done.left) == ("exit", True, 0)


@needs_ptrace
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_is_followed_dies_as_it_would(number: signal.Signals) -> None:
    """Its parent learns the signal, and the tracer ends with it."""

    def work() -> None:
        tracer.follow(nothing)
        time.sleep(20)

    def meanwhile(pid: int) -> None:
        until(lambda: tracer_of(pid) > 0)
        os.kill(pid, number)

    done = below(work, meanwhile)
    assert (done.ended, done.left) == (number.name, 0)


@needs_ptrace
def test_a_tracer_that_is_killed_lets_go(tmp_path: Path) -> None:
    """The process that it followed goes on, and its calls are its own."""

    def work() -> int:
        tracer.follow(nothing)
        (tmp_path / "followed").touch()
        until(lambda: tracer_of(os.getpid()) == 0)
        return 1

    def meanwhile(pid: int) -> None:
        until((tmp_path / "followed").exists)
        os.kill(tracer_of(pid), signal.SIGKILL)

    assert below(work, meanwhile).told == 1


@needs_ptrace
def test_a_tracer_holds_nothing_open(tmp_path: Path) -> None:
    """A lock that its process gives back can be taken, though the tracer is there."""

    def work() -> bool:
        held = os.open(tmp_path / "fence", os.O_RDWR | os.O_CREAT)
        os.set_inheritable(held, True)
        fcntl.flock(held, fcntl.LOCK_EX)
        tracer.follow(nothing)
        os.close(held)
        again = os.open(tmp_path / "fence", os.O_RDWR)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return tracer_of(os.getpid()) > 0

    assert below(work).told is True


@needs_ptrace
def test_a_process_that_is_followed_already_is_refused_with_the_reason() -> None:
    """There is one tracer for a process; the second says what the kernel said."""

    def work() -> str:
        tracer.follow(nothing)
        tracer.follow(nothing)
        return "followed twice"

    done = below(work)
    assert done.told.startswith("FaultError: A process may not follow")
    assert "(EPERM)" in done.told
    assert "ptrace_scope" in done.told


def test_a_machine_whose_registers_are_not_known_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It says which ones are."""
    monkeypatch.setattr(tracer, "_MACHINES", {"other": tracer._X86_64})
    with pytest.raises(FaultError, match=f"on {HERE}"):
        tracer.follow(nothing)


@needs_ptrace
@pytest.mark.skipif(shutil.which(strace.PROGRAM) is None, reason="strace is not installed")
@pytest.mark.parametrize("fault", ["torn_append", "error_after_call"])
def test_where_ptrace_is_not_permitted_a_plan_is_refused(fault: str) -> None:
    """Here it is taken already: by strace, which follows everything that the interpreter starts."""
    point = "completion_audit" if fault == "torn_append" else "write@audit.jsonl#1"
    program = (
        "from rcr_probes import plan; from rcr_probes.model import Cell, Plan\n"
        "from rcr_probes.errors import PlanError\n"
        f"cells = (Cell(point={point!r}, fault={fault!r}),)\n"
        "try: plan.validated(Plan('mine', cells))\n"
        "except PlanError as error: print(error)\n"
    )
    quiet = [strace.PROGRAM, "-f", "-qqq", "-o", os.devnull, "-e", "trace=none"]
    words = [*quiet, sys.executable, "-P", "-c", program]
    told = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    assert f"The fault '{fault}' cannot be placed here." in told
    assert "(EPERM)" in told
    assert "ptrace" in told.splitlines()[-1]
