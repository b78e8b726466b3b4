"""What can be typed: every command, what is said of it, and its options.

Only the options of the command that was typed are made ready, and only what these need is imported.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from rcr_probes import commands
from rcr_probes.errors import RcrError, UnknownName


class _Parser(argparse.ArgumentParser):
    """argparse, except that its errors are ours: cause and remedy, with what can be typed."""

    def error(self, message: str) -> NoReturn:
        example = " ".join((self.epilog or "").split())
        raise RcrError(f"{message}.", f"See: {self.prog} --help\n  {example}")

    def print_help(self, file: Any = None) -> None:
        """Print it, or fail: argparse passes over an output that takes nothing."""
        print(self.format_help(), end="", file=file, flush=True)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            kind = action.option_strings[0] if action.option_strings else "command"
            raise UnknownName(kind, value, action.choices)


class _Version(argparse.Action):
    """Says which version this is; who knows it is imported only where somebody asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version

        print(f"rcr-probes {version('rcr-probes')}")
        parser.exit()


class Command(NamedTuple):
    """One command: what does it, what is said of it, and what can be typed after it."""

    does: Callable[[argparse.Namespace], int]
    job: str
    example: str
    options: Callable[[argparse.ArgumentParser], None] | None
    speaks: bool  # in the language of --lang


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal; argparse would ask shutil, and that imports every archiver."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):  # no terminal
            columns = 80
        super().__init__(prog, width=(columns or 80) - 2)


def reader(*names: str) -> argparse.ArgumentParser:
    """What reads a command line.

    Args:
        names: of the commands that it knows, with their options; all, and no options, where none
            is named: an answer of one does not wait for what the others need.
    """
    parser = _Parser(
        prog="rcr",
        description="An operation failed after its action ran: may it be called again?",
        epilog="Begin with: rcr run article",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    added = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in names or COMMANDS:
        command = COMMANDS[name]
        made = added.add_parser(
            name,
            help=command.job,
            description=f"{command.job}.",
            epilog=f"example:\n  rcr {command.example}",
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        made.set_defaults(command=command.does, parser=made)
        if names:
            if command.speaks:
                langs: Any = {"choices": ("en", "zh"), "default": "en"}
                made.add_argument("--lang", **langs, help="of the answer (en)")
            if command.options:
                command.options(made)
    return parser


_FOLDER: Any = {"type": Path, "metavar": "DIR"}
_FLAG: Any = {"action": "store_true"}


def _run(parser: argparse.ArgumentParser) -> None:
    from rcr_probes.vocabulary import STARTS

    add = parser.add_argument
    shipped = "a shipped plan (article), a generated one (syscalls, power, power_local), or .toml"
    add("plan", metavar="PLAN", help=shipped)
    add("--into", **_FOLDER, help="the evidence folder (runs/PLAN)")
    add("--start", choices=STARTS, default="fork", help="how a phase starts (fork)")
    add("--workers", type=int, metavar="N", help="cells side by side (one a core)")
    add("--only", action="append", metavar="CELL", help="this cell; repeatable (runs/PLAN.only)")
    add("--keep", **_FLAG, help="keep each cell's folder, in DIR.cells")
    add("--again", **_FLAG, help="run anew; what DIR holds is moved to DIR.previous")
    add("--deadline", type=float, default=30.0, metavar="S", help="seconds for each phase (30)")
    add("--on", metavar="tcp://HOST:PORT", help="run the cells on this Dask cluster")
    add("--installed", **_FLAG, help="leave out the runtimes that lack something on this machine")


def _probe(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--recover", metavar="CMD", help="run after each fault (the worker's command again)")
    add("--setup", metavar="CMD", help="run before each, to prepare the fresh {folder}")
    add(
        "--request", type=_request, default=1, metavar="K", help="fault at this request, or all (1)"
    )
    add("--answer", metavar="FILE", help="JSON that the API answers with (it names an id)")
    add("--status", type=int, default=200, metavar="N", help="HTTP status of that answer (200)")
    add("--key-header", default="Idempotency-Key", metavar="NAME", help="(Idempotency-Key)")
    add("--syscalls", metavar="PATH", help="kill also at each call that changes a file below it")
    add("--into", **_FOLDER, default=Path("runs", "probe"), help="the evidence folder (runs/probe)")
    add("--timeout", type=float, default=30.0, metavar="S", help="seconds for each run (30)")
    add("worker", nargs="*", metavar="-- CMD", help="finds the API in RCR_RECEIVER or {receiver}")


def _conformance(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("runtime", metavar="RUNTIME", help="package.module:factory, or a .toml that describes one")
    add("--deadline", type=float, default=30.0, metavar="S", help="seconds for each phase (30)")


def _show(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", type=Path, metavar="DIR|FILE", help="evidence, or its rows")
    add("--claims", **_FLAG, help="of a folder of evidence folders: its claims, what each rests on")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", **_FLAG, help="every row, as a list of objects")
    form.add_argument("--csv", **_FLAG, help="every row; an empty field is null")
    form.add_argument("--markdown", **_FLAG, help="the tables, in GitHub's Markdown")


def _export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", **_FOLDER)
    add("--to", type=Path, metavar="FILE.parquet", required=True, help="a new file")


def _explain(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", **_FOLDER)
    said = "its id, or a part that no other id holds"
    add("cell", nargs="?", metavar="CELL", help=said)


def _check(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", **_FOLDER, help="an evidence folder, a folder of them, or a package (.zip too)")
    add("--trust", type=Path, metavar="KEY.pub", help="of a package: it must be signed by this key")


def _publish(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", **_FOLDER, help="an evidence folder, or a folder of them with claims and guide")
    add("--into", type=Path, metavar="OUT", required=True, help="a new folder, or a .zip")
    add("--date", metavar="DAY", help="of the evidence (that of the last commit which touched it)")
    add("--commit", metavar="ID", help="of its source (the one that is checked out there)")
    add("--sign", type=Path, metavar="KEY.pem", help="sign the manifest with this Ed25519 key")


def _compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("ours", **_FOLDER)
    add("theirs", **_FOLDER)


def _import(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("package", type=Path, metavar="PACKAGE", help="the package's folder, or its .zip")
    add("--into", **_FOLDER, help="the evidence folder, or the folder of them (runs/PACKAGE)")


def _timeline(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("place", type=Path, metavar="DIR|FILE", help="evidence, a package, or a timeline.json")
    add("cell", nargs="?", metavar="CELL", help="of evidence: its id, or a part of it alone")
    add(
        "--at",
        type=_cutoff,
        required=True,
        metavar="N",
        help="the moment; of a cell, the number of an event, as in rcr explain",
    )
    add("--json", **_FLAG, help="as one object")


def _decide(parser: argparse.ArgumentParser) -> None:
    from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES

    add = parser.add_argument
    add("--identity", choices=IDENTITIES, required=True, help="is it the approved request?")
    add("--effect", choices=EFFECT_FACTS, required=True, help="are the approved effects there?")
    add("--capability", type=_capability, default=(), metavar="NAMES", help="replay,lookup or none")
    add("--json", **_FLAG, help="as one object")


def _guide(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--into", **_FOLDER, default=Path("runs", "guide"), help="(runs/guide)")
    add("--lang", choices=("en", "zh"), help="only the page in this language")
    add("--evidence", **_FOLDER, help="evidence folders with their claims (the repository's own)")


def _notebooks(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="of a notebook, such as 03_p3_causal_chain (all)")
    add("--into", **_FOLDER, default=Path("runs", "notebooks"), help="(runs/notebooks)")
    add("-p", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="a parameter")


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
    from rcr_probes.vocabulary import CAPABILITIES, NONE

    known = sorted({name for names in CAPABILITIES.values() for name in names})
    names = {name.strip() for name in given.split(",")} - {NONE, ""}
    for name in names:
        if name not in known:
            raise UnknownName("capability", name, known)
    return tuple(sorted(names))


_CELL = "completion_audit/audit_is_directory/none/same/resume"
_CURL = "curl -sS -m 2 -H 'Idempotency-Key: order-42' -d cents=1250 {receiver}/charges"
COMMANDS: Mapping[str, Command] = {
    "run": Command(
        commands.run,
        "measure every cell of a plan: 0 complete, 3 some cells unknown, 130 interrupted",
        "run article",
        _run,
        speaks=True,
    ),
    "probe": Command(
        commands.probe,
        "probe a worker that calls an API: 0 no harm, 1 an effect too many, wrong, or falsely said "
        "done, 3 unknown",
        f"probe -- {_CURL}",
        _probe,
        speaks=True,
    ),
    "runtimes": Command(
        commands.runtimes,
        "list the real runtimes that can be probed: which run here, and how to get the others",
        "runtimes",
        None,
        speaks=True,
    ),
    "conformance": Command(
        commands.conformance,
        "hold a runtime against its contract: 0 it keeps it, 1 it does not",
        "conformance rcr_probes.reference:approval",
        _conformance,
        speaks=True,
    ),
    "show": Command(
        commands.show,
        "print the tables of evidence",
        "show runs/article",
        _show,
        speaks=True,
    ),
    "export": Command(
        commands.export,
        "write the rows of evidence to a Parquet file, which rcr show and other tools read",
        "export runs/article --to article.parquet",
        _export,
        speaks=False,
    ),
    "explain": Command(
        commands.explain,
        "explain one cell: its events in order, its facts, why this verdict",
        f"explain runs/article {_CELL}",
        _explain,
        speaks=True,
    ),
    "check": Command(
        commands.check,
        "verify evidence, and derive every verdict again: 0 sound, 1 not to be trusted",
        "check runs/article",
        _check,
        speaks=True,
    ),
    "publish": Command(
        commands.publish,
        "publish evidence as a package that a stranger can check",
        "publish evidence --into package.zip --date 2026-11-30",
        _publish,
        speaks=False,
    ),
    "compare": Command(
        commands.compare,
        "compare the facts of two evidence folders: 0 the same, 1 they differ",
        "compare runs/article evidence/rcr-20260831",
        _compare,
        speaks=True,
    ),
    "import": Command(
        commands.import_,
        "turn a downloaded package into checked evidence: 1 where a file of it was changed",
        "import rcr-20260831 --into runs/published",
        _import,
        speaks=False,
    ),
    "timeline": Command(
        commands.timeline,
        "say what was admissible at a cutoff, and what it allowed to say",
        f"timeline runs/article {_CELL} --at 16",
        _timeline,
        speaks=True,
    ),
    "decide": Command(
        commands.decide,
        "decide from facts whether an operation may be called again",
        "decide --identity valid --effect unknown --capability replay,lookup",
        _decide,
        speaks=True,
    ),
    "guide": Command(
        commands.guide,
        "build the pages that explain the evidence, in English and in Chinese",
        "guide --into runs/guide",
        _guide,
        speaks=False,
    ),
    "notebooks": Command(
        commands.notebooks,
        "run the notebooks, and write them with their outputs",
        "notebooks 03_p3_causal_chain --into runs/notebooks -p start spawn",
        _notebooks,
        speaks=False,
    ),
}
