"""Courses of made-up workers: a real receiver's store, and nobody who runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rcr_probes.evidence import seal
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Cell
from rcr_probes.probe import strike
from rcr_probes.probe.attribute import acting, attribution
from rcr_probes.probe.drive import Course
from rcr_probes.probe.measure import circumstances, measurement
from rcr_probes.probe.process import Ended
from rcr_probes.receiver import HOLDS
from rcr_probes.receiver.course import Arrival
from rcr_probes.receiver.store import Store
from tests.receiver.calls import MEMORY


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a worker: which job it is for, its key, and whether its payload is another."""

    job: str
    key: str | None = None
    other: bool = False
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class Made:
    """A made-up worker under one fault.

    Attributes:
        cell: the fault.
        sends: what it sends where nothing strikes.
        retries: what it sends besides in its own run, after the fault.
        recovers: what its recovery sends.
        ends: how it ends where it is not killed: an exit status, a signal's name, ``deadline``.
        recovery_ends: how its recovery ends.
        varies: what of its requests differs from run to run: nothing, ``body``, or ``path`` too.
        proven: for a kill at a call, whether the log tells of it.
    """

    cell: Cell
    sends: tuple[Call, ...]
    retries: tuple[Call, ...] = ()
    recovers: tuple[Call, ...] = ()
    ends: int | str = 1
    recovery_ends: int | str = 0
    varies: str = ""
    proven: bool | None = None


def capture(made: Made) -> Capture:
    """The sealed capture of a made-up worker's cell."""
    control, _ = strike.controls(str(made.cell.policy))
    plain = course(Made(control, made.sends, ends=0))
    found = plain if made.cell.point == "none" and not made.recovers else course(made)
    by_id = {request.id: request for request in plain.after_fault.requests}
    other: dict[str, Any] = {"": {}, "body": {"body_sha256": "x"}, "path": {"path": "/x"}}[
        made.varies
    ]
    again = [replace(request, **other) for request in plain.after_fault.requests]
    told = attribution(
        [plain.after_fault.requests, again],
        [by_id[effect.request] for effect in plain.after_fault.effects],
        [acting(found.after_fault.requests)[: strike.nth(made.cell)]],
    )
    measured = measurement(replace(found, cell=made.cell), told)
    return seal.seal(measured, derive(measured), circumstances(found, 1))


def course(made: Made) -> Course:
    """What would have been seen of it."""
    fault = strike.AT_REQUEST.get((made.cell.point, made.cell.fault))
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        store = Store(place)
        if fault is not None:
            store.arm(fault, strike.nth(made.cell))
        _send(store, made.sends)
        killed = any(r.fault in HOLDS for r in store.record().requests)
        if not killed:
            _send(store, made.retries)
        store.disarm()
        before = store.record()
        store.snapshot(os.path.join(place, "copy"))
        copy = Store(os.path.join(place, "copy"))
        called = acting(before.requests)
        forced = copy.repeat(next((r for r in called if r.fault), called[-1]))
        truth = copy.record()
        copy.close()
        _send(store, made.recovers)
        after = store.record()
        store.close()
    worker = _ended(2, "SIGKILL" if killed else made.ends)
    recovery = _ended(3, made.recovery_ends)
    return Course(
        made.cell,
        worker,
        recovery,
        (True, True),
        before,
        after,
        truth,
        forced,
        (4, 0.1),
        made.proven,
        (),
        (),
    )


def _send(store: Store, calls: Sequence[Call]) -> None:
    """Send calls until one is struck: what its worker does then is for the test to say."""
    for call in calls:
        key = [] if call.key is None else [call.key]
        body = f"{call.job}{' other' if call.other else ''}"
        sent = store.arrive(call.method, "/charges", key, body, len(body))
        _handle(store, sent)
        if sent.fault is not None:
            return


def _handle(store: Store, sent: Arrival) -> None:
    """What the receiver does with a request, each step in its order."""
    request, fault = sent.request, sent.fault
    if fault == "hold_before":
        store.strike(request)
        store.note(request, "released", "drop")
        store.end(request, answered=False, outcome="dropped")
        return
    if fault == "error_before_effect":
        store.strike(request)
        store.end(request, answered=True, outcome="dropped")
        return
    store.handle(request)
    if fault is not None:
        store.strike(request, 500 if fault == "error_after_effect" else None)
    if fault == "hold_after":
        store.note(request, "released", "drop")
    if fault == "timeout":
        store.note(request, "gave_up", "caller")
    store.end(request, answered=fault in (None, "error_after_effect"))


def _ended(pid: int, how: int | str) -> Ended:
    if isinstance(how, int):
        return Ended(pid, "exit", how, 0.1, 0)
    return Ended(pid, how, None, 0.1, 0)
