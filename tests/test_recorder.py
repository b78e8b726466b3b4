"""A recording of file operations: what was done is what stands there, read from strace's log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rcr_probes import power, recorder, strace
from rcr_probes.contents import Change
from rcr_probes.recorder import Made
from tests.recorded import below

needs_strace = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)

WAYS = {
    "a file that is written in parts": "f = open_('a', W); write(f, b'one'); write(f, b'\\0,two')",
    "a name that needs quoting": "f = open_('ü \"a', W); write(f, b'\"x')",
    "a line that is appended": (
        "f = open_('a', A); write(f, b'1\\n'); g = open_('a', A); write(g, b'2\\n'); write(f, b'3')"
    ),
    "a place that is sought": (
        "f = open_('a', W); write(f, b'abc'); os.lseek(f, 1, 0); write(f, b'X'); write(f, b'Y')"
    ),
    "a place that is given": "f = open_('a', W); os.pwrite(f, b'X', 4); write(f, b'1')",
    "several parts at once": "f = open_('a', W); os.writev(f, [b'one', b'two']); write(f, b'3')",
    "a file that is cut": "f = open_('a', W); write(f, b'abc'); os.ftruncate(f, 1)",
    "a file that is filled up": "f = open_('a', W); os.ftruncate(f, 3)",
    "a file that is emptied": "write(open_('a', W), b'abc'); open_('a', W | os.O_TRUNC)",
    "a rename over another": (
        "write(open_('a', W), b'1'); write(open_('b', W), b'2'); os.rename('b', 'a')"
    ),
    "a rename of what is open": (
        "f = open_('a', W); os.rename('a', 'b'); write(f, b'x'); write(f, b'y')"
    ),
    "a file that is removed": (
        "f = open_('a', W); os.unlink('a'); write(f, b'gone'); open_('a', A)"
    ),
    "a folder and what lies in it": (
        "os.mkdir('d'); os.mkdir('e'); os.rmdir('e'); os.chdir('d'); write(open_('a', W), b'x')\n"
        "os.rename('a', 'b'); os.fchdir(os.open('..', os.O_RDONLY)); os.rename('d', 'e')"
    ),
    "a second name": "write(open_('a', W), b'x'); os.link('a', 'b'); write(open_('b', A), b'y')",
    "what is refused": "try_(os.unlink, 'no'); try_(os.mkdir, '.'); write(open_('a', W), b'x')",
    "a child with the open file": (
        "f = open_('a', W); write(f, b'1'); p = os.fork()\n"
        "if not p: write(f, b'2'); os.rename('a', 'b'); os._exit(0)\n"
        "os.wait(); write(f, b'3')"
    ),
    "what is read only": "write(open_('a', W), b'x'); os.read(os.open('a', os.O_RDONLY), 9)",
}
BEGINNING = """
import os, sys
os.chdir(sys.argv[1])
W, A = os.O_RDWR | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_APPEND
def open_(path, flags): return os.open(path, flags, 0o600)
def write(fd, data): assert os.write(fd, data) == len(data)
def try_(call, *given):
    try: call(*given)
    except OSError: pass
"""


def recorded(tmp_path: Path, program: str) -> list[Made]:
    """The calls of a program below ``tmp_path``; ``place`` is its current folder."""
    place, log = tmp_path / "place", tmp_path / "log"
    place.mkdir()
    words = [w for w in recorder.words(str(log)) if w != "-D"]  # so that we wait for strace
    subprocess.run(
        [*words, sys.executable, "-I", "-c", BEGINNING + program, str(place)], check=True
    )
    return recorder.made(log.read_text(), str(tmp_path))


def tree(place: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(place)): None if path.is_dir() else path.read_bytes()
        for path in place.rglob("*")
    }


@needs_strace
@pytest.mark.parametrize("way", WAYS)
def test_what_was_recorded_gives_what_stands_there(way: str, tmp_path: Path) -> None:
    """Whatever a program did to its files, the recording tells every byte and every name."""
    changes = recorder.changes(recorded(tmp_path, WAYS[way]), "place")
    stands = tree(tmp_path / "place")
    assert stands
    assert power.standing(below(changes, "place")) == stands


@needs_strace
def test_what_is_written_through_memory_is_not_recorded_and_shows(tmp_path: Path) -> None:
    """Whoever compares the recording with the folder sees that it is not whole."""
    program = (
        "import mmap; f = open_('a', W); os.ftruncate(f, 4); m = mmap.mmap(f, 4); m[:4] = b'wild'"
    )
    changes = recorder.changes(recorded(tmp_path, program), "place")
    assert tree(tmp_path / "place") == {"a": b"wild"}
    assert power.standing(below(changes, "place")) == {"a": b"\0\0\0\0"}


@needs_strace
def test_a_flush_is_recorded_of_files_and_folders(tmp_path: Path) -> None:
    """And a file that is opened to be flushed at once is flushed with each write."""
    program = (
        "f = open_('a', W); write(f, b'x'); os.fsync(f); os.fdatasync(f)\n"
        "os.fsync(os.open('.', os.O_RDONLY)); write(open_('a', A | os.O_DSYNC), b'y')"
    )
    changes = below(recorder.changes(recorded(tmp_path, program), "place"), "place")
    assert [c for c in changes if c.do == "flush"] == [
        Change("flush", "a"), Change("flush", "a"), Change("flush", "."), Change("flush", "a"),
    ]  # fmt: skip
    assert power.explored(changes) == power.Explored(({"a": b"xy"},), 0)


@needs_strace
def test_a_call_counts_all_of_its_name_on_its_file(tmp_path: Path) -> None:
    """Also those that only read, and those that fail: as strace counts where it strikes."""
    program = (
        "try_(os.open, 'a', os.O_RDONLY); f = open_('a', W); os.open('a', os.O_RDONLY)\n"
        "open_('b', W); open_('a', A)"
    )
    opened = [one for one in recorded(tmp_path, program) if one.call == "openat"]
    assert [(one.file, one.nth, bool(one.changes)) for one in opened if one.file == "place/a"] == [
        ("place/a", 1, False),
        ("place/a", 2, True),
        ("place/a", 3, False),
        ("place/a", 4, True),
    ]


@needs_strace
def test_paths_may_lead_through_a_link(tmp_path: Path) -> None:
    """A call names the path that it was given; an open file has the one that the kernel knows."""
    (tmp_path / "real").mkdir()
    os.symlink("real", tmp_path / "given")
    program = "f = open_(os.path.join(sys.argv[2], 'a'), W); write(f, b'x')"
    log, place = tmp_path / "log", tmp_path / "given"
    (place / "place").mkdir()
    words = [w for w in recorder.words(str(log)) if w != "-D"]
    given = str(place / "place")
    subprocess.run(
        [*words, sys.executable, "-I", "-c", BEGINNING + program, given, given], check=True
    )
    changes = recorder.changes(recorder.made(log.read_text(), str(place)), "place")
    assert power.standing(below(changes, "place")) == {"a": b"x"}


def test_calls_that_interleave_stand_where_they_began() -> None:
    """A call whose line is in two parts is read as one; one that never ended is none."""
    path = "".join(f"\\x{ord(letter):02x}" for letter in "/c/a")
    log = (
        f'11 openat(AT_FDCWD</>, "{path}", O_WRONLY|O_CREAT, 0600) = 3<{path}>\n'
        f'11 write(3<{path}>, "\\x31", 1 <unfinished ...>\n'
        f'12 write(3<{path}>, "\\x32", 1) = 1\n'
        "11 <... write resumed>) = 1\n"
        f'11 write(3<{path}>, "\\x33", 1 <unfinished ...>\n'
        "11 +++ killed by SIGKILL +++\n"
    )
    assert [(one.call, one.nth, one.data) for one in recorder.made(log, "/c")] == [
        ("openat", 1, b""),
        ("write", 1, b"1"),
        ("write", 1, b"2"),
    ]
