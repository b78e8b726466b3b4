"""What recovery recomputes differs from what was approved just as the digest says."""

from __future__ import annotations

import pytest

from rcr_probes import request
from rcr_probes.model import Cell
from rcr_probes.reference.digest import meaning_digest, request_digest
from rcr_probes.vocabulary import DIGESTS


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("seed", [0, 7])
def test_what_recovery_asks_for_has_another_meaning_just_where_the_digest_says(
    digest: str, seed: int
) -> None:
    """Key order, session and credential do not count; another real target does.

    A digest of the whole request sees a new credential, and no target that moves with its session;
    one of the meaning sees just the other.
    """
    cell = Cell(point="none", fault="none", digest=digest, seed=seed)
    first, second = request.requested(cell), request.recomputed(cell)
    real = [request.effective_target(asked) for asked in (first, second)]
    other = digest in ("changed", "coarse")
    assert (real[0] != real[1]) is other
    assert (meaning_digest(first) != meaning_digest(second)) is other
    assert (request_digest(first) != request_digest(second)) is (digest in ("changed", "volatile"))
    assert first["session_id"] != second["session_id"]
    assert real[0] == request.approved(cell).target
    assert (list(first) == list(second)) is (digest != "reordered")


def test_each_seed_has_its_own_names() -> None:
    """A sweep's operations cannot be taken for one another."""
    keys = {request.approved(Cell(point="none", fault="none", seed=s)) for s in range(5)}
    assert len(keys) == 5
