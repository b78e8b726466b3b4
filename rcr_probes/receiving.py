"""The receiver before a cell's executor: started before the fault phase, drained, and told of.

What it recorded is the word on what was done: effects and strikes become events of the cell by it,
and not by what the process that called it got to know.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from rcr_probes import folder, ledger, process
from rcr_probes.ledger import EventLine
from rcr_probes.model import Cell, Effect, Json
from rcr_probes.request import MARKERS
from rcr_probes.request import RECEIVER as KIND
from rcr_probes.vocabulary import RECEIVED, RECEIVER_FAULTS, RECEIVER_KEY, Lane, by_receiver

if TYPE_CHECKING:  # a worker whose cells have no receiver does not pay for its database
    from rcr_probes.receiver import Fault, Receiver, Record, Request

_DRAIN = 10.0  # seconds in which a receiver must be drained once nobody calls it any more


class Served:
    """What a worker asks of the receiver of one cell; where the cell has none, nothing is done."""

    def __init__(self, place: str, cell: Cell, receiver: Receiver | None) -> None:
        self._place = place
        self._cell = cell
        self._receiver = receiver

    def settle(self) -> tuple[str, ...]:
        """Drain it, and write down as events what it did; to be called when no phase is alive.

        Returns:
            What is still in flight, as damage of the observation; empty where nothing is.
        """
        if self._receiver is None:
            return ()
        from rcr_probes.receiver import NotReached

        damage: tuple[str, ...] = ()
        try:
            self._receiver.wait_idle(_DRAIN)
        except NotReached:
            damage = ("receiver: something that was sent was still in flight",)
        self._receiver.disarm()
        self._tell(self._receiver.record(), self._receiver.pid)
        return damage

    def age(self) -> None:
        """Let its clock pass the time for which it remembers a key, where the cell says so."""
        if self._receiver is not None and self._cell.dedupe != RECEIVER_KEY:
            from rcr_probes.receiver import Settings

            self._receiver.advance(Settings().retention)

    @contextmanager
    def copied(self, copy: str) -> Iterator[Served]:
        """A receiver of its own over a copy of the database, for the cell's copy of the world."""
        if self._receiver is None:
            yield self
            return
        self._receiver.snapshot(os.path.join(copy, folder.RECEIVER))
        with _running(copy, self._cell) as receiver:
            yield Served(copy, self._cell, receiver)

    def _tell(self, record: Record, pid: int) -> None:
        """Put what the receiver did behind the call that asked for it: the nth request is its nth.

        Each call is one request, and they come one after another: the executor waits for its answer
        before it returns.
        """
        path = os.path.join(self._place, folder.EVENTS)
        read = ledger.read(path, EventLine)
        if read.damage:  # what cannot be read is not ours to move
            return
        sent = {request.nth: request for request in record.requests if request.nth is not None}
        told: list[EventLine] = []
        calls = 0
        for line in read.lines:
            if line.pid == pid:  # told before; what it did is written anew
                continue
            told.append(line)
            if line.lane == "call":
                calls += 1
                told += self._answered(line, sent.get(calls), record, pid)
        ledger.rewrite(path, told)

    def _answered(
        self, call: EventLine, request: Request | None, record: Record, pid: int
    ) -> Iterator[EventLine]:
        """What became of a call: an effect perhaps, and a strike before or after it."""
        if request is None:
            return
        happened: list[tuple[Lane, Mapping[str, Json]]] = [
            ("effect", {"operation_key": effect.key, "target": _target(effect.path)})
            for effect in record.effects
            if effect.request == request.id
        ]
        if any(e.request == request.id and e.what == "struck" for e in record.events):
            point = self._cell.point
            strike: list[tuple[Lane, Mapping[str, Json]]] = [
                ("point", {"point": point}),
                ("fault", {"point": point, "fault": request.fault}),
            ]
            first = RECEIVER_FAULTS[str(request.fault)] == "before_action"
            happened = [*strike, *happened] if first else [*happened, *strike]
        for lane, value in happened:
            yield EventLine(call.phase, lane, dict(value), pid, at=call.at)


@contextmanager
def before(place: str, cell: Cell) -> Iterator[Served]:
    """The receiver of the cell in this folder, for as long as the block runs; it is ended by pid.

    Raises:
        ReceiverError: it did not start.
    """
    if cell.dedupe not in RECEIVED:
        yield Served(place, cell, None)
        return
    with _running(place, cell) as receiver:
        if by_receiver(cell.point, cell.fault):
            receiver.arm(cast("Fault", cell.fault))
        yield Served(place, cell, receiver)


@contextmanager
def _running(place: str, cell: Cell) -> Iterator[Receiver]:
    from rcr_probes.receiver import Receiver

    with Receiver(os.path.join(place, folder.RECEIVER)) as receiver, process.spared(receiver.pid):
        with open(os.path.join(place, folder.ADDRESS), "w", encoding="ascii") as file:
            file.write(receiver.address)
        yield receiver


def effects(place: str) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """The effects that the receiver of a cell recorded, and why they cannot be read."""
    from rcr_probes.receiver import ReceiverError, read_back

    try:
        record = read_back(os.path.join(place, folder.RECEIVER))
    except ReceiverError as error:
        return (), (f"receiver: {type(error).__name__}",)
    return tuple(Effect(e.id, e.key, KIND, _target(e.path)) for e in record.effects), ()


def _target(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path.removeprefix(MARKERS))
