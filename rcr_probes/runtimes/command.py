"""A runtime in any language: one command, run once a phase, that speaks JSON (docs/own-runtime.md).

It is described by a TOML file. ``command.schema.json`` has the shape of every message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rcr_probes import points
from rcr_probes.errors import RuntimeUnusable
from rcr_probes.model import Json, Recorded
from rcr_probes.runtime import Operation, factual
from rcr_probes.runtimes.description import Described, read
from rcr_probes.runtimes.program import Answered, run
from rcr_probes.vocabulary import Says

_CODE = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_RECORDED = tuple(field.name for field in fields(Recorded))
_OURS = ("RCR_REACH", "RCR_ARMED")  # of a probe around this one, if there is one
BAD_ANSWER = "BAD_ANSWER"


class CommandFailed(Exception):
    """What the caller of a command sees: the error that it told, or how it ended.

    Attributes:
        code: the runtime's own; ``EXIT_7``; the name of the signal that ended it; or
            ``BAD_ANSWER``, where what it said is no answer.
    """

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


class CommandRuntime:
    """Each verb is a process of the described command."""

    state_at_points = False  # asking is a process; it is done once a phase, when all is quiet

    def __init__(self, described: Described) -> None:
        self._command = described.command
        self._folder = described.folder
        self.points: Mapping[str, frozenset[str]] = described.points
        self.recoveries = described.recoveries
        self.says: Mapping[str, Says] = described.says
        self.variants = described.variants

    def start(self, operation: Operation) -> None:
        self._act("start", None, operation)

    def recover(self, operation: Operation, way: str) -> None:
        self._act("recover", way, operation)

    def state(self, operation: Operation) -> Recorded:
        told = _told(self._run("state", None, operation, (), {}))
        unknown = sorted(told.keys() - set(_RECORDED))
        if unknown or "status" not in told:
            raise CommandFailed(
                BAD_ANSWER,
                f"the answer to state has no {unknown[0]!r}" if unknown else "it has no status",
            )
        evidence = told.get("evidence", [])
        if not isinstance(evidence, list):
            raise CommandFailed(BAD_ANSWER, "evidence is no list")
        try:
            return factual(Recorded(**{**told, "evidence": tuple(evidence)}))
        except RuntimeUnusable as error:
            raise CommandFailed(BAD_ANSWER, f"{error.cause} {error.remedy}") from error

    def _act(self, verb: str, way: str | None, operation: Operation) -> None:
        """Have a verb done.

        Raises:
            CommandFailed: it was not, or the answer does not say that it was.
            RuntimeUnusable: this process is not under probe, so there is nothing to call.
        """
        outside = points.outside()
        if outside is None:
            raise RuntimeUnusable(
                "A command is started by a phase alone.", "Run it with rcr run, or rcr conformance."
            )
        environment = {"RCR_REACH": json.dumps(outside.reach)}
        if outside.armed is not None:
            environment["RCR_ARMED"] = outside.armed
        answered = self._run(verb, way, operation, outside.call, environment)
        told = _told(answered, silent=True)
        error = told.get("error") if told.keys() == {"error"} else ""
        if error is not None and not (isinstance(error, str) and _CODE.fullmatch(error)):
            raise CommandFailed(BAD_ANSWER, f"the answer is {told!r:.80}, not an error or null")
        if error is None and answered.ended != "EXIT_0":
            raise CommandFailed(answered.ended, f"the command ended with {answered.ended}")
        if error is not None:
            raise CommandFailed(error, f"the command answered {error}")

    def _run(
        self,
        verb: str,
        way: str | None,
        operation: Operation,
        executor: tuple[str, ...],
        environment: Mapping[str, str],
    ) -> Answered:
        order = {
            "verb": verb,
            "way": way,
            "key": operation.key,
            "request": operation.request,
            "folder": os.path.abspath(operation.folder),
            "variant": operation.variant,
            "executor": executor,
        }
        own = {name: value for name, value in os.environ.items() if name not in _OURS}
        return run(self._command, self._folder, json.dumps(order), {**own, **environment})


def _told(answered: Answered, *, silent: bool = False) -> Mapping[str, Json]:
    """The one JSON object that a command wrote.

    Args:
        answered: how it ended, and what it wrote.
        silent: whether it may have failed without a word: then how it ended is the error.

    Raises:
        CommandFailed: it wrote something else.
    """
    # A line ends with a newline alone: JSON may hold what Python takes for other ends of lines.
    lines = answered.output.removesuffix("\n").split("\n") if answered.output else []
    if not lines and answered.ended != "EXIT_0":
        if silent:
            return {"error": answered.ended}
        raise CommandFailed(answered.ended, f"the command ended with {answered.ended}")
    if len(lines) != 1:
        raise CommandFailed(BAD_ANSWER, f"the command wrote {len(lines)} lines to stdout, not one")
    try:
        told: Any = json.loads(lines[0])
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise CommandFailed(BAD_ANSWER, f"the command wrote {lines[0]!r:.80}, no JSON object")
    return told


def described(path: str) -> CommandRuntime:
    """The runtime that a TOML file describes.

    Raises:
        RuntimeUnusable: there is no such file, or it describes none.
    """
    return CommandRuntime(read(Path(path)))
