"""The executors that the harness hands to a runtime: they act, and they count."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rcr_probes import folder, ledger
from rcr_probes.model import Json, Lane

Emit = Callable[[Lane, Mapping[str, Json]], None]


class LedgerDamaged(Exception):
    """The effects that exist cannot be read, so this executor must not act."""

    code = "LEDGER_DAMAGED"


class MarkerExecutor:
    """Appends a marker line to the cell's effect ledger: a local, synchronous action.

    That ledger and the one of calls are the cell's outside world. They lie beside the runtime's
    records, never in them, and no fault strikes them.
    """

    name = "local-marker"
    kind = "local-marker"

    def __init__(self, place: str, dedupe: str, emit: Emit) -> None:
        """Make an executor for one phase of one cell.

        Args:
            place: the cell's folder.
            dedupe: ``none``, or ``operation_key``: the effect itself carries the key; the executor
                looks and acts under one kernel lock.
            emit: receives each call and each effect as an event.
        """
        self._dedupe = dedupe
        self._emit = emit
        self._calls = os.path.join(place, folder.CALLS)
        self._effects = os.path.join(place, folder.EFFECTS)

    def __call__(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        """Act once, unless dedupe finds the key; the evidence counts the key's effects after.

        Raises:
            LedgerDamaged: a line of the effect ledger cannot be read.
            OSError: a ledger cannot be appended to.
        """
        ledger.append(self._calls, ledger.CallLine(operation_key))
        self._emit("call", {"operation_key": operation_key})
        with self._alone():
            known = ledger.read(self._effects, ledger.EffectLine)
            if known.damage:
                raise LedgerDamaged("; ".join(known.damage))
            count = sum(line.operation_key == operation_key for line in known.lines)
            if not (self._dedupe == "operation_key" and count):
                target = str(request["target"])
                ledger.append(self._effects, ledger.EffectLine(operation_key, self.kind, target))
                self._emit("effect", {"operation_key": operation_key, "target": target})
                count += 1
        return {"kind": self.kind, "observed_count": count}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One kernel lock over look, act and tell: the kernel frees it when its holder dies.

        Also without dedupe: who is counted first must be told of first.
        """
        fd = os.open(self._effects, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
