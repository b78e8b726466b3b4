"""The program that a package carries: it checks the package it lies in, and speaks two languages.

Standard library alone: ``check.py`` is this module and all that it imports, embedded as they are.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from rcr_probes.errors import RcrError
from rcr_probes.publish.said import lines
from rcr_probes.publish.verify import verify

INTERRUPTED = 130  # as of any program that Ctrl-C ended


def main(argv: Sequence[str], here: Path, texts: Mapping[str, Mapping[str, str]]) -> int:
    """Check a package, and say what came of it.

    Args:
        argv: what was typed.
        here: the folder of the program.
        texts: key → language → text.

    Returns:
        0 sound, 1 not to be trusted, 2 misuse.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: what goes there goes nowhere
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for the process's life)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without Chinese must not end a report
            stream.reconfigure(errors="replace")
    parser = argparse.ArgumentParser(
        prog="check.py",
        description=f"{texts['checked.job']['en']}\n{texts['checked.job']['zh']}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--lang", choices=("en", "zh"), default="en")
    parser.add_argument("package", nargs="?", type=Path, default=here, help="a folder (this one)")
    args = parser.parse_args(argv)
    try:
        report = verify(args.package)
    except RcrError as error:
        _say(error)
        return error.exit_code
    except KeyboardInterrupt:
        _say("check.py: interrupted.")
        return INTERRUPTED
    try:
        for line in lines(report, lambda key, **values: texts[key][args.lang].format_map(values)):
            print(line)
        sys.stdout.flush()
    except OSError as error:
        _drop(sys.stdout)
        if not isinstance(error, BrokenPipeError):  # else the reader, such as head, has seen enough
            _say(f"The report cannot be written: {error.strerror}.\n  Free some space, and repeat.")
            return RcrError.exit_code
    return 0 if report.sound else 1


def _say(line: object) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # nobody listens
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Let what cannot be written go nowhere, so that Python does not try it again at the exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
