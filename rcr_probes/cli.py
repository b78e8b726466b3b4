"""The command line: what was typed, and what becomes of it. commands.py does it.

Each command imports what it needs when it runs, so that ``rcr --help`` and ``rcr decide`` answer at
once.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from rcr_probes.errors import RcrError, UnknownName
from rcr_probes.grammar import COMMANDS, reader
from rcr_probes.interruption import interruptible
from rcr_probes.stderr import interrupted, refused, say

INTERRUPTED = 130
_OWN = ("-h", "--help", "--version")  # the options that no command comes before
BROKEN_PIPE = 141  # what a shell shows for a program that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the process's exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a locale without Chinese must not end a report
            stream.reconfigure(errors="replace")
    args = argparse.Namespace()
    try:
        with interruptible(last=argv is None):  # else what calls us goes on
            args = _parsed(given)
            code: int = args.command(args)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        code = BROKEN_PIPE
    except KeyboardInterrupt:
        say(interrupted(given, getattr(args, "lang", None) or "en"))
        code = INTERRUPTED
    except RcrError as error:
        say(f"rcr: {error.cause}\n  {error.remedy}")
        code = error.exit_code
    except OSError as error:
        say(f"rcr: {refused(error)}")
        code = RcrError.exit_code
    except MemoryError:
        say("rcr: There is too little memory.\n  Raise its limit, as with: ulimit -v unlimited")
        code = RcrError.exit_code
    try:
        sys.stdout.flush()
    except OSError:  # what cannot be written is dropped, and not tried again at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _open_streams() -> None:
    """Where a standard stream is closed, what goes there goes nowhere, and nothing else does."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for the process's life)


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Read what was typed.

    Raises:
        RcrError: it is no command.
    """
    if argv[:1] and argv[0].startswith("-") and argv[0] not in _OWN:
        raise RcrError(
            f"rcr itself has no option {argv[0]!r}.",
            "Options come after a command, such as: rcr run article --lang zh (see rcr --help)",
        )
    parser = reader(*(name for name in argv[:1] if name in COMMANDS))
    ours, worker = list(argv), None
    if ours[:1] == ["probe"] and "--" in ours:  # what comes after it is somebody's, dashes and all
        place = ours.index("--")
        ours, worker = ours[:place], ours[place + 1 :]
    args, extra = parser.parse_known_args(ours)
    if worker is not None and not extra:
        args.worker = [*args.worker, *worker]
    if extra:
        options = re.findall(r"(?<![\w-])--?[a-z]+(?:-[a-z]+)*", args.parser.format_usage())
        if extra[0].startswith("-"):
            raise UnknownName("option", extra[0], options)
        args.parser.error(f"{extra[0]!r} is one argument too many")
    return args


if __name__ == "__main__":
    sys.exit(main())
