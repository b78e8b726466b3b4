"""The executors that the harness hands to a runtime: they act, and they count.

Each carries what it declares (``declares``); one that declares ``lookup`` can be asked about a key
(``look``). What it truly has is measured.
"""

from __future__ import annotations

from rcr_probes.executors.keyed import ClaimFirst, LateKey, OperationKey
from rcr_probes.executors.marker import Emit, Marker, Reached, unwatched
from rcr_probes.executors.pairs import Pair, PairEffectKey, PairOperationKey
from rcr_probes.runtime import Executor
from rcr_probes.vocabulary import RECEIVED, RECEIVER_KEY

PATIENCE = 30.0  # seconds that a call waits for its receiver
_LOCAL: dict[str, type[Marker]] = {
    "none": Marker,
    "operation_key": OperationKey,
    "claim_first": ClaimFirst,
    "late_key": LateKey,
    "pair": Pair,
    "pair_operation_key": PairOperationKey,
    "pair_effect_key": PairEffectKey,
}


def make(
    place: str,
    dedupe: str,
    emit: Emit,
    reached: Reached = unwatched,
    patience: float = PATIENCE,
    token: int | None = None,
) -> Executor:
    """The executor of one phase of one cell.

    Args:
        place: the cell's folder.
        dedupe: what another call with the same operation key does (docs/design.md §3).
        emit: receives each call, each effect that is made here, and each answer to a look-up.
        reached: told of each point inside the executor; a fault may strike there.
        patience: seconds that a call waits for its receiver, where there is one.
        token: the fencing token that calls carry, the number of the attempt; None: they carry none.

    Raises:
        KeyError: there is no such dedupe.
    """
    if dedupe not in RECEIVED:
        return _LOCAL[dedupe](place, dedupe, emit, reached, token)
    # A phase without a receiver does not pay for sockets.
    from rcr_probes.executors import sending

    kind = sending.ReceiverKey if dedupe == RECEIVER_KEY else sending.Sender
    return kind(place, dedupe, emit, patience)
