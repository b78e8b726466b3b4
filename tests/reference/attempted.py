"""An approved operation whose attempt failed before its action, for tests of its recovery."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from rcr_probes import fence, witness
from rcr_probes.model import Known
from rcr_probes.reference import ADMIN, Actor, ApprovalError, audit
from rcr_probes.reference.policies import EvidenceGated
from rcr_probes.reference.records import Record
from rcr_probes.runtime import Operation
from rcr_probes.witness import Timeline

REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}
CHANGED = {**REQUEST, "target": "marker-1"}
KEY = "operation-0"
PERSON = Actor("admin-1", ADMIN)
HOUR = 3600.0
Effect = Literal["present", "absent"]


class Executor:
    """Counts its calls, makes an effect on each, and says of its key what it is told to say."""

    name = "local-marker"
    effects = 1

    def __init__(self, *declares: str) -> None:
        self.declares = declares
        self.made: list[str] = []
        self.says: Known | Exception = Known(0, in_flight=False)

    def __call__(self, key: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.made.append(str(request["target"]))
        return {"kind": self.name, "observed_count": len(self.made)}

    def raise_fence(self) -> None:
        """Its calls carry no fencing tokens."""

    def look(self, key: str) -> Known:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


class Store:
    """One approved operation whose attempt failed before its action, in a folder of its own."""

    def __init__(self, folder: Path, *declares: str, requester: str = "user") -> None:
        self.folder = folder
        self.now = 1_000.0
        self.executor = Executor(*declares)
        self.service = EvidenceGated(folder, now=lambda: self.now)
        self.attempts = folder / "attempts"
        self.attempts.mkdir()
        self.witness = folder / "witness.json"
        self.id = self.service.prepare(REQUEST, requester).id  # type: ignore[arg-type]
        token = self.service.approve(self.id, PERSON, "a marker of the tests")

        def fails(request: Mapping[str, Any]) -> Mapping[str, Any]:
            raise OSError(5, "before the action")

        os.close(fence.enter(self.attempts).fd)
        self.service.execute(self.id, token, REQUEST, fails)

    def sees(self, effects: int | None, covers: int | None = None) -> None:
        """What the witness says: so many effects, up to the last attempt; None: nothing."""
        self.witness.unlink(missing_ok=True)
        if effects is None:
            return
        at = len(os.listdir(self.attempts)) if covers is None else covers
        named = [
            {"effect_id": f"E{n}", "operation_key": KEY, "kind": "local-marker", "target": t}
            for n, t in enumerate(["marker-0"] * effects, 1)
        ]
        envelope = {
            "id": "one",
            "owner": KEY,
            "available_at": at,
            "kind": witness.EFFECTS,
            "body": {"effects": named, "in_flight": False},
        }
        manifest = {"one": witness.digest(envelope)}
        self.witness.write_bytes(witness.written(Timeline(KEY, (envelope,), manifest)))

    def operation(self, request: Mapping[str, Any] = REQUEST) -> tuple[Operation, int]:
        """The operation in a new attempt, and what keeps that attempt alive."""
        begun = fence.enter(self.attempts)
        made = Operation(KEY, request, self.folder, self.executor)
        given = replace(made, attempt=begun.number, attempts=self.attempts, witness=self.witness)
        return given, begun.fd

    def recover(self, request: Mapping[str, Any] = REQUEST) -> Record:
        operation, _ = self.operation(request)
        try:
            return self.service.recover(self.id, operation)
        finally:
            self.end()

    def end(self) -> None:
        """What the end of its process does to an attempt: nothing of the fence is held any more."""
        for fd in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/self/fd/{fd}").startswith(str(self.attempts)):
                    os.close(int(fd))

    def refused(self, request: Mapping[str, Any] = REQUEST) -> str:
        with pytest.raises(ApprovalError) as caught:
            self.recover(request)
        return caught.value.code

    def rule(self, effect: Effect, until: float = HOUR) -> Record:
        return self.service.rule(self.id, PERSON, effect, "counted by hand", self.now + until)

    @property
    def record(self) -> Record:
        return self.service.records.read(self.id)

    @property
    def trail(self) -> list[audit.AuditLine]:
        return [e for e in audit.read(self.service.audit_path).lines if e.approval_id == self.id]

    def bytes(self) -> dict[str, bytes]:
        """Every file of the store."""
        found = self.folder.rglob("*")
        return {str(p): p.read_bytes() for p in found if p.is_file() and "attempts" not in str(p)}


def stopped(store: Store) -> Record:
    """The operation after a recovery that had to stop, because nothing says what exists."""
    store.sees(None)
    return store.recover()
