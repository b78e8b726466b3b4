"""Executors whose action is two effects, so that a half of it can be there."""

from __future__ import annotations

from rcr_probes.executors.keyed import Looked
from rcr_probes.executors.marker import Marker, of_key

FIRST, SECOND = "1", "2"  # Effect.kind: which of the approved effects it is
_BETWEEN = "between_effects"


class Pair(Marker):
    """It makes both effects on every call."""

    effects = 2

    def _act(self, key: str, target: str) -> int:
        with self._acting() as effects:
            self._append(effects, key, target, FIRST)
        self._reached(_BETWEEN, None)
        with self._acting() as effects:
            return self._append(effects, key, target, SECOND)


class PairOperationKey(Looked):
    """Each effect carries the operation's key; where any does, the whole action is left out.

    So what dies between the two leaves a half that no further call completes, and a look-up tells
    that the action was done.
    """

    effects = 2

    def _act(self, key: str, target: str) -> int:
        with self._acting() as effects:
            if known := len(of_key(effects, key)):
                return known
            self._append(effects, key, target, FIRST)
        self._reached(_BETWEEN, None)
        with self._acting() as effects:
            return self._append(effects, key, target, SECOND)

    def _known(self, effects: int) -> int:
        return 2 if effects else 0


class PairEffectKey(Looked):
    """Each effect has a key of its own, the operation's and its kind: what is missing is made."""

    effects = 2

    def _act(self, key: str, target: str) -> int:
        self._complete(key, target, FIRST)
        self._reached(_BETWEEN, None)
        return self._complete(key, target, SECOND)

    def _complete(self, key: str, target: str, kind: str) -> int:
        with self._acting() as effects:
            own = of_key(effects, key)
            if any(effect.kind == kind for effect in own):
                return len(own)
            return self._append(effects, key, target, kind)
