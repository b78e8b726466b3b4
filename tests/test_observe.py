"""What the harness's own files say against each other is damage, and makes a cell unknown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rcr_probes import observe
from rcr_probes.ledger import EventLine
from rcr_probes.process import Ended

OURS, OTHER = 11, 12  # processes of the phase
ENDED = Ended(OURS, "hang", 0.1, 0)
TOLD = [
    EventLine("fault", "point", {"point": "response"}, OURS),
    EventLine("fault", "fault", {"point": "response", "fault": "hang"}, OURS),
    EventLine("fault", "fault", {"point": "response", "error": "HUNG"}, OURS),
]


def reached(pid: int, phase: str = "fault") -> EventLine:
    return EventLine(phase, "point", {"point": "response"}, pid)


@pytest.mark.parametrize(
    ("later", "went_on"),
    [
        ([], False),
        ([reached(OURS)], True),
        ([reached(OTHER), reached(OURS)], True),
        ([reached(OTHER)], False),
        ([reached(OURS, "recover")], False),
    ],
    ids=["silent", "went on", "went on later", "another process", "its pid, in another phase"],
)
def test_a_process_that_hangs_goes_no_further(later: Sequence[EventLine], went_on: bool) -> None:
    """When it is killed for hanging is chance: what it did until then would be chance, too."""
    damage = observe._contradictions([*TOLD, *later], 0, 0, ENDED)
    assert any("went on" in one for one in damage) == went_on
