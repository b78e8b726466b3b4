"""What tests make of recorded file operations."""

from __future__ import annotations

from collections.abc import Iterable

from rcr_probes.contents import Change
from rcr_probes.recorder import own


def below(changes: Iterable[Change], top: str) -> list[Change]:
    """The changes within a folder, with paths below it."""
    return [Change(c.do, own(c.path, top), own(c.to, top), c.at, c.data) for c in changes]
