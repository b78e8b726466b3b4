"""``python -P -m rcr_probes.receiver FOLDER``: one receiver, until its parent ends or SIGTERM."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from rcr_probes.receiver.records import SAFE, ReceiverError, Settings
from rcr_probes.receiver.server import serve

_EXAMPLE = """example:
  python -P -m rcr_probes.receiver /tmp/receiver --answer charged.json --status 201
  curl --unix-socket /tmp/receiver/control.sock -d '{}' http://receiver/.rcr/record"""


def main(argv: Sequence[str]) -> int:
    """Serve in a folder; the address is one JSON line on stdout."""
    given = _parser().parse_args(argv)
    try:
        if given.parent is None:  # else that one has made it, and may have cleared it away since
            os.makedirs(given.folder, mode=0o700, exist_ok=True)
        serve(given.folder, _settings(given), given.parent or os.getppid())
    except ReceiverError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"The receiver cannot run in {given.folder}: {error}.", file=sys.stderr)
    return 2


def _settings(given: argparse.Namespace) -> Settings | None:
    """What the options say; None where there is none, so that a folder keeps its own."""
    named = {
        name: getattr(given, name)
        for name in Settings.__dataclass_fields__
        if getattr(given, name) is not None
    }
    return Settings(**named) if named else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -P -m rcr_probes.receiver",
        description="A stand-in for a remote API on 127.0.0.1: it records requests and effects.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("folder", help="where its database and its control socket are")
    parser.add_argument("--keys", choices=("honoured", "ignored"), help="idempotency keys")
    parser.add_argument(
        "--retention", type=int, metavar="S", help="how long a key is kept, on its own clock"
    )
    parser.add_argument(
        "--effects-of",
        type=lambda text: tuple(text.split(",")),
        metavar="METHODS",
        help=f"such as POST,PUT; default: all but {', '.join(sorted(SAFE))}",
    )
    parser.add_argument(
        "--answer", type=os.path.abspath, metavar="FILE", help="JSON that every request gets"
    )
    parser.add_argument("--status", type=int, help="HTTP status of that answer")
    parser.add_argument(
        "--bound", type=float, metavar="S", help="how long an answer is withheld, or a request held"
    )
    parser.add_argument(
        "--read-within", type=float, metavar="S", help="how long a request may take to arrive"
    )
    parser.add_argument("--key-header", metavar="NAME", help="the field that carries the key")
    parser.add_argument(
        "--parent",
        type=int,
        metavar="PID",
        help="the process whose end is its end, and which has made FOLDER; the one that starts it",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
