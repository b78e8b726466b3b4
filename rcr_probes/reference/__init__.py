"""The approval runtime of the article, in code of our own: ``rcr_probes.reference:approval``."""

from __future__ import annotations

from rcr_probes.reference.adapter import ApprovalRuntime
from rcr_probes.reference.dispatch import ExecutorRegistry
from rcr_probes.reference.errors import CODES, ApprovalError, Code
from rcr_probes.reference.service import ADMIN, Actor, ApprovalService

__all__ = [
    "ADMIN",
    "CODES",
    "Actor",
    "ApprovalError",
    "ApprovalRuntime",
    "ApprovalService",
    "Code",
    "ExecutorRegistry",
    "approval",
]


def approval() -> ApprovalRuntime:
    """The runtime that the plans name ``rcr_probes.reference:approval``."""
    return ApprovalRuntime()
