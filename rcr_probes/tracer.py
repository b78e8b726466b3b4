"""Follow the system calls of one thread from a process beside it, and change one of them.

ptrace through ctypes, so that it works in a forked phase and in a spawned one alike, and needs no
other program. Source: ptrace(2); the numbers are those of Linux's own headers.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from typing import NoReturn

from msgspec import Struct

from rcr_probes.errors import FaultError

_SYSCALL, _DETACH = 24, 17
_GETREGSET, _SETREGSET, _SEIZE, _INTERRUPT, _LISTEN = range(0x4204, 0x4209)
_GET_SYSCALL_INFO = 0x420E
_TRACESYSGOOD = 1
_EVENT_STOP = 128
_NT_PRSTATUS = 1
_WALL = 0x40000000
_PR_SET_PTRACER, _ANY = 0x59616D61, -1
_STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_ENTRY, _EXIT = 1, 2  # what a stop is at, as PTRACE_GET_SYSCALL_INFO tells it
_READY = b"ready"
_LONGEST = 4096  # bytes of a path
PERMIT = (
    "Allow ptrace: kernel.yama.ptrace_scope below 3; in a container, SYS_PTRACE; and run under no "
    "other tracer, such as strace or a debugger."
)


class _Machine(Struct, frozen=True):
    """Where a processor keeps what is looked at or changed here.

    Attributes:
        words: how many words of 8 bytes its registers are.
        third: the place among them of a call's third argument.
        result: the place of what a call returns.
        calls: number → name, of the calls in ``strace.KNOWN``.
    """

    words: int
    third: int
    result: int
    calls: Mapping[int, str]


_X86_64 = _Machine(27, 12, 10, {
    1: "write", 2: "open", 3: "close", 18: "pwrite64", 20: "writev", 74: "fsync",
    75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir",
    85: "creat", 86: "link", 87: "unlink", 257: "openat", 258: "mkdirat", 263: "unlinkat",
    264: "renameat", 265: "linkat", 285: "fallocate", 296: "pwritev", 316: "renameat2",
    328: "pwritev2",
})  # fmt: skip
_AARCH64 = _Machine(34, 2, 0, {
    34: "mkdirat", 35: "unlinkat", 37: "linkat", 38: "renameat", 45: "truncate", 46: "ftruncate",
    47: "fallocate", 56: "openat", 57: "close", 64: "write", 66: "writev", 68: "pwrite64",
    70: "pwritev", 82: "fsync", 83: "fdatasync", 276: "renameat2", 287: "pwritev2",
})  # fmt: skip
_MACHINES: Mapping[str, _Machine] = {"x86_64": _X86_64, "aarch64": _AARCH64}

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class Call:
    """One system call of the followed thread, which is stopped at it."""

    def __init__(self, thread: int, machine: _Machine, name: str, given: tuple[int, ...]) -> None:
        self.thread = thread
        self.name = name
        self.given = given
        self._machine = machine

    def file(self, descriptor: int) -> str:
        """Where the kernel shows what is open under a descriptor: to be read or asked about."""
        return f"/proc/{self.thread}/fd/{ctypes.c_int(descriptor).value}"

    def memory(self, address: int, size: int) -> bytes:
        """So many bytes of the thread's memory.

        Raises:
            OSError: they cannot be read.
        """
        with open(f"/proc/{self.thread}/mem", "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, address)

    def path(self, address: int) -> str:
        """A path that the call names, as it is spelled."""
        return os.fsdecode(self.memory(address, _LONGEST).partition(b"\0")[0])

    def shorten(self, count: int) -> None:
        """Change the third argument, which is the count of a write, before the call is made."""
        self._put(self._machine.third, count)

    def answer(self, result: int) -> None:
        """Change what the call returns, once it is made; an error is a negative number."""
        self._put(self._machine.result, result)

    def kill(self) -> None:
        """End the thread's process here, with SIGKILL."""
        os.kill(self.thread, signal.SIGKILL)

    def _put(self, place: int, value: int) -> None:
        words = (ctypes.c_uint64 * self._machine.words)()
        vector = _Vector(ctypes.addressof(words), ctypes.sizeof(words))
        _ptrace(_GETREGSET, self.thread, _NT_PRSTATUS, ctypes.addressof(vector))
        words[place] = value & (2**64 - 1)
        _ptrace(_SETREGSET, self.thread, _NT_PRSTATUS, ctypes.addressof(vector))


Leaving = Callable[[int], bool]
"""What to do once the call is made, with what it returned; whether that was all."""
Entering = Callable[[Call], Leaving | None]
"""What to do before a call is made; None where this one is left alone."""


def follow(entering: Entering) -> None:
    """Have a process of its own follow this thread from here on, until its work is done.

    That process is no child of this one, for a runtime may wait for any child of its own. It ends
    when this thread does, and holds nothing open that is a runtime's.

    Raises:
        FaultError: it may not, or cannot on this machine.
    """
    here = os.uname().machine
    machine = _MACHINES.get(here)
    if machine is None:
        raise FaultError(
            f"System calls cannot be followed on {here}.",
            f"It works on {' and '.join(_MACHINES)}.",
        )
    thread = _thread.get_native_id()
    _libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(_ANY), 0, 0, 0)  # unknown where Yama is not
    ready, tell = os.pipe()
    try:
        child = os.fork()
        if not child:
            _begin(thread, machine, tell, entering)
        os.close(tell)
        os.waitpid(child, 0)
        answer = os.read(ready, len(_READY))
    finally:
        os.close(ready)
        _libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(0), 0, 0, 0)
    if answer != _READY:
        why = errno.errorcode.get(int(answer or b"0"), "it ended")
        raise FaultError(
            f"A process may not follow the system calls of another one here ({why}).",
            PERMIT,
        )


def _begin(thread: int, machine: _Machine, tell: int, entering: Entering) -> NoReturn:
    """Become the process that follows, in a child of the child: whoever adopts it is its parent."""
    try:
        if not os.fork():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            kept = 3
            os.dup2(tell, kept)
            os.closerange(kept + 1, 2**20)  # a fence that it held would outlive the attempt
            _attach(thread, machine, kept, entering)
    except BaseException as raised:
        os.write(2, f"harness: the tracer failed: {type(raised).__name__}: {raised}\n".encode())
    finally:
        os._exit(0)


def _attach(thread: int, machine: _Machine, tell: int, entering: Entering) -> None:
    try:
        _ptrace(_SEIZE, thread, 0, _TRACESYSGOOD)
        _ptrace(_INTERRUPT, thread)
        os.waitpid(thread, _WALL)
        _ptrace(_SYSCALL, thread)
    except OSError as refused:
        os.write(tell, str(refused.errno).encode())
        return
    os.write(tell, _READY)
    os.close(tell)
    try:
        _loop(thread, machine, entering)
    except ProcessLookupError:
        return  # it was killed while it was stopped
    except BaseException:
        _ptrace(_DETACH, thread)  # whatever became of us, it goes on
        raise


def _loop(thread: int, machine: _Machine, entering: Entering) -> None:
    leaving: Leaving | None = None
    while True:
        _, status = os.waitpid(thread, _WALL)
        if not os.WIFSTOPPED(status):
            return
        stop, how, passed = os.WSTOPSIG(status), _SYSCALL, 0
        if stop == signal.SIGTRAP | 0x80:
            at, number, *given = _stopped(thread)
            if at == _ENTRY and number in machine.calls:
                leaving = entering(Call(thread, machine, machine.calls[number], tuple(given)))
            elif at == _EXIT and leaving is not None:
                if leaving(ctypes.c_int64(number).value):
                    _ptrace(_DETACH, thread)
                    return
                leaving = None
        elif status >> 16 == _EVENT_STOP:
            how = _LISTEN if stop in _STOPS else _SYSCALL
        else:
            passed = stop  # a signal on its way, which is not ours
        _ptrace(how, thread, 0, passed)


def _stopped(thread: int) -> tuple[int, ...]:
    """At which side of a call it stopped; then the call's number and arguments, or its result."""
    told = ctypes.create_string_buffer(96)
    _ptrace(_GET_SYSCALL_INFO, thread, len(told), ctypes.addressof(told))
    return (told.raw[0], *struct.unpack_from("=7Q", told.raw, 24))


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> None:
    if _libc.ptrace(request, thread, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace({request:#x}): {os.strerror(number)}")


def _try() -> None:
    """Shorten a write of our own, where nothing hangs on it.

    Raises:
        FaultError: that is not possible here.
    """

    def entering(call: Call) -> Leaving | None:
        if call.name != "write" or call.given[0] != out:
            return None
        call.shorten(1)
        return lambda result: True

    into, out = os.pipe()
    follow(entering)
    if os.write(out, b"two") != 1:
        raise FaultError("The count of a write could not be changed.", "Use another kernel.")
    os.close(into)
    os.close(out)


if __name__ == "__main__":
    try:
        _try()
    except FaultError as refused:
        sys.exit(f"{refused.cause}\n{refused.remedy}")
