"""What recovery recomputes differs from what was approved just as the digest says."""

from __future__ import annotations

import pytest

from rcr_probes import request
from rcr_probes.model import DIGESTS, Cell
from rcr_probes.reference.digest import request_digest


@pytest.mark.parametrize("digest", DIGESTS)
@pytest.mark.parametrize("seed", [0, 7])
def test_only_a_changed_meaning_changes_the_digest(digest: str, seed: int) -> None:
    """Key order and session do not count; another target does."""
    cell = Cell(point="none", fault="none", digest=digest, seed=seed)
    first, second = request.requested(cell), request.recomputed(cell)
    assert (request_digest(first) == request_digest(second)) is (digest != "changed")
    assert (first["target"] == second["target"]) is (digest != "changed")
    assert first["session_id"] != second["session_id"]
    assert first["target"] == request.approved(cell).target
    assert (list(first) == list(second)) is (digest != "reordered")


def test_each_seed_has_its_own_names() -> None:
    """A sweep's operations cannot be taken for one another."""
    keys = {request.approved(Cell(point="none", fault="none", seed=s)) for s in range(5)}
    assert len(keys) == 5
