"""The action itself: a marker line in the cell's effect ledger, made on every call."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from rcr_probes import folder, ledger
from rcr_probes.ledger import CallLine, EffectLine
from rcr_probes.model import Json
from rcr_probes.request import MARKER, effective_target
from rcr_probes.vocabulary import CAPABILITIES, Lane

Emit = Callable[[Lane, Mapping[str, Json]], None]
Reached = Callable[[str, str | None], None]


class TokenLine(Struct, frozen=True):
    """The lowest fencing token that is accepted from now on."""

    token: int


class Fenced(Exception):
    """The call came with an older fencing token than the executor has seen: nothing was done."""

    code = "FENCED"


class LedgerDamaged(Exception):
    """What exists cannot be read, so this executor must not act."""

    code = "LEDGER_DAMAGED"


def unwatched(point: str, path: str | None) -> None:
    """Nobody is told of points."""


class Marker:
    """A local, synchronous executor that acts on every call.

    Its ledgers, of effects and of calls, are the cell's outside world. They lie beside the
    runtime's records, never in them, and no fault strikes them.
    """

    name = MARKER
    effects = 1  # that one call is to make

    def __init__(
        self, place: str, dedupe: str, emit: Emit, reached: Reached, token: int | None
    ) -> None:
        """Make an executor for one phase of one cell; the arguments are those of ``make``."""
        self.declares = CAPABILITIES[dedupe]
        self._token = token
        self._tokens = os.path.join(place, folder.TOKENS)
        self._under_way = os.path.join(place, folder.UNDER_WAY)
        self._emit = emit
        self._reached = reached
        self._calls = os.path.join(place, folder.CALLS)
        self._effects = os.path.join(place, folder.EFFECTS)

    def __call__(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        """Act as dedupe has it; the evidence counts the key's effects after.

        Raises:
            Fenced: a later attempt was here.
            LedgerDamaged: a line of a ledger cannot be read.
            OSError: a ledger cannot be appended to.
        """
        self.count(operation_key)
        return self.act(operation_key, request)

    def delay(self, operation_key: str) -> None:
        """Count a call that has come in, and is to act later."""
        self.count(operation_key)
        with open(self._under_way, "wb"):
            pass

    def arrive(self) -> None:
        """The call acts now that was to act later."""
        os.unlink(self._under_way)

    def count(self, operation_key: str) -> None:
        """Count a call that has come in."""
        ledger.append(self._calls, CallLine(operation_key))
        self._emit("call", {"operation_key": operation_key})

    def act(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        """What a call does that was counted; errors are those of the call."""
        count = self._act(operation_key, effective_target(request))
        return {"kind": self.name, "observed_count": count}

    def raise_fence(self) -> int | None:
        """Refuse every older attempt from now on, and say how many effects there are then.

        None where calls carry no token: nothing is done. What is still on its way cannot land any
        more; and what was read before is all that there is, where the number is the same.
        """
        if self._token is None:
            return None
        with self._acting() as effects:
            return len(effects)

    def _act(self, key: str, target: str) -> int:
        """Make the effects that this call makes; return how many of the key there are then."""
        with self._acting() as effects:
            return self._append(effects, key, target)

    def _append(
        self, effects: Sequence[EffectLine], key: str, target: str, kind: str | None = None
    ) -> int:
        """Make one effect, under the lock; return how many of the key there are then."""
        ledger.append(self._effects, EffectLine(key, kind or self.name, target))
        told = {} if kind is None else {"kind": kind}
        self._emit("effect", {"operation_key": key, **told, "target": target})
        return len(of_key(effects, key)) + 1

    @contextmanager
    def _acting(self) -> Iterator[Sequence[EffectLine]]:
        """The same, for who is about to act: in one step with the look at the fencing token.

        Raises:
            Fenced: a later attempt was here.
            LedgerDamaged: what exists cannot be read.
        """
        with self._alone() as effects:
            if self._token is not None:
                seen = ledger.read(self._tokens, TokenLine)
                if seen.damage:
                    raise LedgerDamaged("; ".join(seen.damage))
                highest = max((line.token for line in seen.lines), default=0)
                if self._token < highest:
                    raise Fenced(f"attempt {self._token} came after attempt {highest}")
                if self._token > highest:
                    ledger.append(self._tokens, TokenLine(self._token))
            yield effects

    @contextmanager
    def _alone(self) -> Iterator[Sequence[EffectLine]]:
        """One kernel lock over look, act and tell: the kernel frees it when its holder dies.

        Also without dedupe: who is counted first must be told of first.

        Raises:
            LedgerDamaged: the effects that exist cannot be read.
        """
        fd = os.open(self._effects, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            known = ledger.read(self._effects, EffectLine)
            if known.damage:
                raise LedgerDamaged("; ".join(known.damage))
            yield known.lines
        finally:
            os.close(fd)


def of_key(effects: Sequence[EffectLine], key: str) -> list[EffectLine]:
    """Those that carry the key."""
    return [effect for effect in effects if effect.operation_key == key]
