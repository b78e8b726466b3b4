"""Executors that know an operation key: in the effect itself, or in a store of their own."""

from __future__ import annotations

import os

from msgspec import Struct

from rcr_probes import folder, ledger
from rcr_probes.executors.marker import Emit, LedgerDamaged, Marker, Reached, of_key
from rcr_probes.model import Json, Known


class KeyLine(Struct, frozen=True):
    """One key, as an executor that has a store for them recorded it."""

    operation_key: str


class Looked(Marker):
    """A local executor that can be asked about a key."""

    def look(self, key: str) -> Known:
        """What it knows of the key.

        It is local and synchronous: an attempt that could still act is a live process, which is for
        the fence to tell and not for this executor. Nothing is in flight but a call that has come
        in and has not acted yet.

        Raises:
            LedgerDamaged: the effects that exist cannot be read.
        """
        with self._alone() as effects:
            known = Known(self._known(len(of_key(effects, key))), os.path.exists(self._under_way))
            self._emit("ask", asked(key, known))
            return known

    def _known(self, effects: int) -> int:
        """How many effects it says that there are, where there are so many."""
        return effects


def asked(key: str, known: Known) -> dict[str, Json]:
    """An answer to a look-up, as the value of its event."""
    return {"operation_key": key, "effects": known.effects, "in_flight": known.in_flight}


class OperationKey(Looked):
    """The effect itself carries the key: it looks and acts under one kernel lock."""

    def _act(self, key: str, target: str) -> int:
        with self._acting() as effects:
            return len(of_key(effects, key)) or self._append(effects, key, target)


class _Stored(Marker):
    """It keeps keys in a store of its own: key and effect are two writes."""

    def __init__(
        self, place: str, dedupe: str, emit: Emit, reached: Reached, token: int | None
    ) -> None:
        super().__init__(place, dedupe, emit, reached, token)
        self._keys = os.path.join(place, folder.KEYS)

    def _has(self, key: str) -> bool:
        known = ledger.read(self._keys, KeyLine)
        if known.damage:
            raise LedgerDamaged("; ".join(known.damage))
        return any(line.operation_key == key for line in known.lines)

    def _keep(self, key: str) -> None:
        ledger.append(self._keys, KeyLine(key))


class ClaimFirst(_Stored):
    """It records the key, then acts: what dies between leaves a key without an effect."""

    def _act(self, key: str, target: str) -> int:
        with self._acting() as effects:
            if self._has(key):
                return len(of_key(effects, key))
            self._keep(key)
        self._reached("after_claim", None)
        with self._acting() as effects:
            return self._append(effects, key, target)


class LateKey(_Stored):
    """It acts, then records the key: what dies between leaves an effect without a key."""

    def _act(self, key: str, target: str) -> int:
        with self._acting() as effects:
            if self._has(key):
                return len(of_key(effects, key))
            count = self._append(effects, key, target)
        self._reached("before_key", None)
        with self._alone():
            self._keep(key)
        return count
