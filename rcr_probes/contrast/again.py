"""The one way to recover that these systems have: whoever asked asks once more."""

from __future__ import annotations

from rcr_probes.errors import UnknownName

_AGAIN = "again"


def only_again(way: str) -> None:
    """Refuse every other way.

    Raises:
        UnknownName: no such way.
    """
    if way != _AGAIN:
        raise UnknownName("way to recover", way, (_AGAIN,))
