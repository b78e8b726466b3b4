"""The command line: what can be typed, and what becomes of it. commands.py does it.

Each command imports what it needs when it runs, so that ``rcr --help`` and ``rcr decide`` answer at
once.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from rcr_probes import commands
from rcr_probes.commands import say
from rcr_probes.errors import RcrError, UnknownName
from rcr_probes.model import CAPABILITIES, EFFECT_FACTS, IDENTITIES, NONE, STARTS

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell shows for a program that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the return value is the process's exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a locale without Chinese must not end a report
            stream.reconfigure(errors="replace")
    try:
        args = _parsed(given)
        code: int = args.command(args)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has seen enough
        code = BROKEN_PIPE
    except KeyboardInterrupt:
        say("rcr: interrupted.")
        if given[:1] == ["run"]:
            rest = [word for word in given if word != "--again"]
            say(f"  What is measured is kept. To resume: {shlex.join(['rcr', *rest])}")
        code = INTERRUPTED
    except RcrError as error:
        say(f"rcr: {error.cause}\n  {error.remedy}")
        code = error.exit_code
    except OSError as error:
        say(f"rcr: {commands.refused(error)}")
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


class _Parser(argparse.ArgumentParser):
    """argparse, except that its errors are ours: cause and remedy."""

    def error(self, message: str) -> NoReturn:
        raise RcrError(f"{message}.", f"See: {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            kind = action.option_strings[0] if action.option_strings else "command"
            raise UnknownName(kind, value, action.choices)


def _parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Read what was typed.

    Raises:
        RcrError: it is no command.
    """
    parser = _parser()
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


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rcr",
        description="An operation failed after its action ran: may it be called again?",
        epilog="Begin with: rcr run article",
        allow_abbrev=False,
    )
    added = parser.add_subparsers(metavar="COMMAND", required=True)
    language = argparse.ArgumentParser(add_help=False)
    language.add_argument("--lang", choices=("en", "zh"), default="en", help="of the answer (en)")

    def command(does: Any, job: str, example: str, *parents: Any) -> argparse.ArgumentParser:
        made = added.add_parser(
            example.split()[0],
            help=job,
            description=f"{job}.",
            epilog=f"example:\n  rcr {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=parents,
            allow_abbrev=False,
        )
        made.set_defaults(command=does, parser=made)
        return made

    folder: Any = {"type": Path, "metavar": "DIR"}
    flag: Any = {"action": "store_true"}

    job = "measure every cell of a plan: 0 complete, 3 some cells unknown, 130 interrupted"
    add = command(commands.run, job, "run article", language).add_argument
    shipped = "a shipped plan (article), a generated one (syscalls, power, power_local), or .toml"
    add("plan", metavar="PLAN", help=shipped)
    add("--into", **folder, help="the evidence folder (runs/PLAN)")
    add("--start", choices=STARTS, default="fork", help="how a phase starts (fork)")
    add("--workers", type=int, metavar="N", help="cells side by side (one a core)")
    add("--only", action="append", metavar="CELL", help="this cell; repeatable (runs/PLAN.only)")
    add("--keep", **flag, help="keep each cell's folder, in DIR.cells")
    add("--again", **flag, help="run anew; what DIR holds is moved to DIR.previous")
    add("--deadline", type=float, default=30.0, metavar="S", help="seconds for each phase (30)")
    add("--on", metavar="tcp://HOST:PORT", help="run the cells on this Dask cluster")
    add("--installed", **flag, help="leave out the runtimes that lack something on this machine")

    job = "probe a worker that calls an API: 0 no harm, 1 effects too many or missing, 3 unknown"
    curl = "curl -sS -m 2 -H 'Idempotency-Key: order-42' -d cents=1250 {receiver}/charges"
    example = f"probe -- {curl}"
    add = command(commands.probe, job, example, language).add_argument
    add("--recover", metavar="CMD", help="run after each fault (the worker's command again)")
    add("--setup", metavar="CMD", help="run before each, to prepare the fresh {folder}")
    add(
        "--request", type=_request, default=1, metavar="K", help="fault at this request, or all (1)"
    )
    add("--answer", metavar="FILE", help="JSON that the API answers with (it names an id)")
    add("--status", type=int, default=200, metavar="N", help="HTTP status of that answer (200)")
    add("--key-header", default="Idempotency-Key", metavar="NAME", help="(Idempotency-Key)")
    add("--syscalls", metavar="PATH", help="kill also at each call that changes a file below it")
    add("--into", **folder, default=Path("runs", "probe"), help="the evidence folder (runs/probe)")
    add("--timeout", type=float, default=30.0, metavar="S", help="seconds for each run (30)")
    add("worker", nargs="*", metavar="-- CMD", help="finds the API in RCR_RECEIVER or {receiver}")

    job = "list the real runtimes that can be probed: which run here, and how to get the others"
    command(commands.runtimes, job, "runtimes", language)

    job = "hold a runtime against its contract: 0 it keeps it, 1 it does not"
    add = command(
        commands.conformance, job, "conformance rcr_probes.reference:approval"
    ).add_argument
    add("runtime", metavar="RUNTIME", help="package.module:factory, or a .toml that describes one")
    add("--deadline", type=float, default=30.0, metavar="S", help="seconds for each phase (30)")

    show = command(commands.show, "print the tables of evidence", "show runs/article", language)
    show.add_argument("folder", type=Path, metavar="DIR|FILE", help="evidence, or its rows")
    show.add_argument(
        "--claims", **flag, help="of a folder of evidence folders: its claims, what each rests on"
    )
    form = show.add_mutually_exclusive_group()
    form.add_argument("--json", **flag, help="every row, as a list of objects")
    form.add_argument("--csv", **flag, help="every row; an empty field is null")
    form.add_argument("--markdown", **flag, help="the tables, in GitHub's Markdown")

    job = "write the rows of evidence to a Parquet file, which rcr show and other tools read"
    add = command(commands.export, job, "export runs/article --to article.parquet").add_argument
    add("folder", **folder)
    add("--to", type=Path, metavar="FILE.parquet", required=True, help="a new file")

    job = "explain one cell: its events in order, its facts, why this verdict"
    cell = "completion_audit/audit_is_directory/none/same/resume"
    add = command(commands.explain, job, f"explain runs/article {cell}", language).add_argument
    add("folder", **folder)
    add("cell", metavar="CELL", help="its id, or a part that no other id holds")

    job = "verify evidence, and derive every verdict again: 0 sound, 1 not to be trusted"
    add = command(commands.check, job, "check runs/article", language).add_argument
    add("folder", **folder, help="an evidence folder, a folder of them, or a package (.zip too)")
    add("--trust", type=Path, metavar="KEY.pub", help="of a package: it must be signed by this key")

    job = "publish evidence as a package that a stranger can check"
    example = "publish evidence --into package.zip --date 2026-11-30"
    add = command(commands.publish, job, example).add_argument
    add("folder", **folder, help="an evidence folder, or a folder of them with claims and guide")
    add("--into", type=Path, metavar="OUT", required=True, help="a new folder, or a .zip")
    add("--date", metavar="DAY", help="of the evidence (that of the last commit which touched it)")
    add("--commit", metavar="ID", help="of its source (the one that is checked out there)")
    add("--sign", type=Path, metavar="KEY.pem", help="sign the manifest with this Ed25519 key")

    job = "compare the facts of two evidence folders: 0 the same, 1 they differ"
    add = command(commands.compare, job, "compare runs/article evidence/rcr-20260831").add_argument
    add("ours", **folder)
    add("theirs", **folder)

    job = "turn a downloaded package into checked evidence: 1 where a file of it was changed"
    add = command(commands.import_, job, "import rcr-20260831 --into runs/published").add_argument
    add("package", type=Path, metavar="PACKAGE", help="the package's folder, or its .zip")
    add("--into", **folder, help="the evidence folder, or the folder of them (runs/PACKAGE)")

    job = "say what was admissible at a cutoff, and what it allowed to say"
    example = f"timeline runs/article {cell} --at 16"
    add = command(commands.timeline, job, example, language).add_argument
    add("place", type=Path, metavar="DIR|FILE", help="evidence, a package, or a timeline.json")
    add("cell", nargs="?", metavar="CELL", help="of evidence: its id, or a part of it alone")
    add(
        "--at",
        type=_cutoff,
        required=True,
        metavar="N",
        help="the cutoff; of a cell, an event's seq",
    )
    add("--json", **flag, help="as one object")

    job = "decide from facts whether an operation may be called again"
    example = "decide --identity valid --effect unknown --capability replay,lookup"
    add = command(commands.decide, job, example, language).add_argument
    add("--identity", choices=IDENTITIES, required=True, help="is it the approved request?")
    add("--effect", choices=EFFECT_FACTS, required=True, help="are the approved effects there?")
    add("--capability", type=_capability, default=(), metavar="NAMES", help="replay,lookup or none")
    add("--json", **flag, help="as one object")

    job = "build the pages that explain the evidence, in English and in Chinese"
    add = command(commands.guide, job, "guide --into runs/guide").add_argument
    add("--into", **folder, default=Path("runs", "guide"), help="(runs/guide)")
    add("--lang", choices=("en", "zh"), help="only the page in this language")
    add("--evidence", **folder, help="evidence folders with their claims (the repository's own)")

    job = "run the notebooks, and write them with their outputs"
    example = "notebooks 03_p3_causal_chain --into runs/notebooks -p start spawn"
    add = command(commands.notebooks, job, example).add_argument
    add("names", nargs="*", metavar="NAME", help="of a notebook, such as 03_p3_causal_chain (all)")
    add("--into", **folder, default=Path("runs", "notebooks"), help="(runs/notebooks)")
    add("-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter")
    return parser


def _request(given: str) -> int | None:
    """The number of a request; None is all."""
    if given == "all":
        return None
    if not given.isdecimal():
        raise argparse.ArgumentTypeError(f"{given!r} is neither a number nor all")
    return int(given)


def _cutoff(given: str) -> int:
    """A number of 64 bits: a longer one could be read, and not be written again."""
    if (
        len(given) > 20
        or not given.lstrip("-").isdecimal()
        or not -(1 << 63) <= int(given) < 1 << 63
    ):
        raise argparse.ArgumentTypeError(f"{given[:20]!r} is no whole number of 64 bits")
    return int(given)


def _capability(given: str) -> tuple[str, ...]:
    """Names with commas between them; ``none`` is none."""
    known = sorted({name for names in CAPABILITIES.values() for name in names})
    names = {name.strip() for name in given.split(",")} - {NONE, ""}
    for name in names:
        if name not in known:
            raise UnknownName("capability", name, known)
    return tuple(sorted(names))


if __name__ == "__main__":
    sys.exit(main())
