"""Recovery by name: find the executor that a record names, recompute the request, and resume."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from rcr_probes.errors import UnknownName
from rcr_probes.model import Json
from rcr_probes.reference.records import Record
from rcr_probes.reference.service import Act, ApprovalService

Recompute = Callable[[Mapping[str, Json]], Mapping[str, Json]]
"""The stored request → what would be asked for now."""


class Controlled(Struct, frozen=True):
    """An executor under control of the registry."""

    act: Act
    recompute: Recompute


class ExecutorRegistry:
    """The executors of one process, by name.

    A record outlives the process that wrote it, and knows its executor by this name alone.
    """

    def __init__(self, service: ApprovalService) -> None:
        self._service = service
        self._executors: dict[str, Controlled] = {}

    def register(self, name: str, act: Act, recompute: Recompute) -> None:
        """Make ``name`` resumable in this process.

        Args:
            name: as requests give it.
            act: performs the action.
            recompute: gives the request as it is now, from the one that was stored; whether the
                two still agree is the digest's to say.
        """
        self._executors[name] = Controlled(act, recompute)

    def resume(self, approval_id: str) -> Record:
        """Resume the operation with the executor that its record names.

        Raises:
            UnknownName: no executor of that name is registered here; nothing was called.
            ApprovalError: as ``ApprovalService.resume``.
        """
        record = self._service.get(approval_id)
        controlled = self._executors.get(record.executor)
        if controlled is None:
            raise UnknownName("executor", record.executor, self._executors)
        request = controlled.recompute(record.request)
        return self._service.resume(approval_id, request, controlled.act)
