"""What the harness may ask of its receiver, each as ``POST /.rcr/VERB`` with a JSON object."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rcr_probes.receiver.course import Answer
from rcr_probes.receiver.records import ReceiverError, Release, Request
from rcr_probes.receiver.wire import Incoming

if TYPE_CHECKING:
    from rcr_probes.receiver.server import Server

LONGEST = 600.0  # seconds that one call may wait

Arguments = Mapping[str, Any]


class Control:
    """The verbs. Each returns the ``result`` that its answer carries.

    Attributes:
        ending: whether the receiver was asked to end, once that is answered.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.ending = False
        self.verbs: Mapping[str, Callable[[Arguments], object]] = {
            "about": self._about,
            "ask": self._ask,
            "record": self._record,
            "advance": self._advance,
            "arm": self._arm,
            "disarm": self._disarm,
            "wait_held": self._wait_held,
            "release": self._release,
            "wait_idle": self._wait_idle,
            "repeat": self._repeat,
            "snapshot": self._snapshot,
            "shutdown": self._shutdown,
        }

    def answer(self, incoming: Incoming) -> Answer:
        """Do what a request asks for: 200 with a result, or an error with cause and remedy."""
        name = (incoming.path or "").removeprefix("/.rcr/")
        verb = self.verbs.get(name)
        if verb is None or incoming.method != "POST":
            known = ", ".join(self.verbs)
            return _error(404, f"There is no {incoming.method} {incoming.path}.", f"POST: {known}.")
        try:
            arguments = json.loads(incoming.body or b"{}")
            return _json(200, {"result": verb(dict(arguments))})
        except ReceiverError as error:
            return _error(409, error.cause, error.remedy)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            return _error(400, f"{name} cannot be asked so: {error}.", "Send a JSON object.")

    def _about(self, _: Arguments) -> object:
        server = self._server
        settings = dataclasses.asdict(server.store.settings)
        return {"address": server.address, "pid": os.getpid(), "settings": settings}

    def _ask(self, given: Arguments) -> object:
        return dataclasses.asdict(self._server.ask(_text(given, "key")))

    def _record(self, _: Arguments) -> object:
        return dataclasses.asdict(self._server.store.record())

    def _advance(self, given: Arguments) -> object:
        return self._server.store.advance(_whole(given, "seconds"))

    def _arm(self, given: Arguments) -> object:
        delay = _whole(given, "delay", 0)
        self._server.store.arm(_text(given, "fault"), _whole(given, "nth", 1), delay)
        return None

    def _disarm(self, _: Arguments) -> object:
        return self._server.store.disarm()

    def _wait_held(self, given: Arguments) -> object:
        or_settled = given.get("or_settled", False) is True
        held, settled = self._server.wait_held(_seconds(given), or_settled)
        return {"held": held and dataclasses.asdict(held), "settled": settled}

    def _release(self, given: Arguments) -> object:
        ways: dict[str, Release] = {"answer": "answer", "drop": "drop"}
        how = ways.get(_text(given, "how"))
        if how is None:
            raise ValueError("how is answer or drop")
        self._server.holds.release(_whole(given, "request"), how)
        return None

    def _wait_idle(self, given: Arguments) -> object:
        return self._server.wait_idle(_seconds(given))

    def _repeat(self, given: Arguments) -> object:
        return dataclasses.asdict(self._server.store.repeat(Request(**given["request"])))

    def _snapshot(self, given: Arguments) -> object:
        into = _text(given, "into")
        if not os.path.isabs(into):
            raise ValueError("into is no absolute path")
        self._server.store.snapshot(into)
        return None

    def _shutdown(self, _: Arguments) -> object:
        self.ending = True
        return None


def _text(given: Arguments, name: str) -> str:
    value = given[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _whole(given: Arguments, name: str, default: int | None = None) -> int:
    value = given[name] if default is None else given.get(name, default)
    if type(value) is not int:
        raise TypeError(f"{name} is no whole number")
    return value


def _seconds(given: Arguments) -> float:
    value = given["timeout"]
    if type(value) not in (int, float) or not 0 <= value <= LONGEST:
        raise ValueError(f"timeout is no number of seconds from 0 to {LONGEST:g}")
    return float(value)


def _json(status: int, value: object) -> Answer:
    return Answer(status, json.dumps(value).encode() + b"\n")


def _error(status: int, cause: str, remedy: str) -> Answer:
    return _json(status, {"cause": cause, "remedy": remedy})
