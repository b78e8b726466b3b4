"""What a person is told beside the results, on stderr; and what becomes of names in it."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

from rcr_probes.errors import printable


def say(lines: str) -> None:
    """Say it on stderr, whoever listens."""
    with suppress(OSError):  # nobody does
        print(told(lines), file=sys.stderr)


def told(lines: str) -> str:
    """What a person is told; names in it may come from elsewhere, and a terminal obeys none."""
    return "\n".join(map(printable, lines.split("\n")))


def refused(error: OSError) -> str:
    """What the system refused, and what to do about it."""
    remedy = {
        errno.ENOSPC: "Free some space, then type the same command again.",
        errno.EEXIST: "Name a folder, not a file.",
        errno.ENOTDIR: "Name a folder, not a file.",
        errno.EMFILE: "Raise the limit of open files, as with: ulimit -n 1024",
        errno.EFBIG: "Raise the limit of a file's size, as with: ulimit -f unlimited",
    }.get(error.errno or 0, "Name a place that is there, and that you may use.")
    named = error.filename2 or error.filename  # of two, it is the second that was to be written
    place = f"{named}: " if named else ""
    return f"{place}{error.strerror or error}.\n  {remedy}"


def interrupted(given: Sequence[str], lang: str) -> str:
    """That it was, and how to go on where what was typed can be resumed."""
    from rcr_probes.report.texts import text  # only where something was interrupted

    said = text("run.interrupted", lang)
    if given[:1] != ["run"]:
        return said
    typed = shlex.join(["rcr", *(word for word in given if word != "--again")])
    return f"{said}\n  {text('run.kept', lang, typed=typed)}"
