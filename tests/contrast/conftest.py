"""What the tests of the contrast share: its plan measured once, an operation, a quiet executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Json
from rcr_probes.runtime import Operation

REQUEST = {
    "executor": "local-marker",
    "action": "append",
    "target": "marker-0",
    "session_id": "session-1",
}


@dataclass
class Executor:
    """Notes what it is called with, outside the system's folder."""

    name: str = "local-marker"
    declares: tuple[str, ...] = ()
    effects: int = 1
    called: list[str] = field(default_factory=list)

    def raise_fence(self) -> None:
        """Its calls carry no fencing tokens."""

    def __call__(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        self.called.append(operation_key)
        return {"kind": self.name, "observed_count": len(self.called)}


@pytest.fixture(scope="session")
def contrast(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Every cell of the plan ``contrast``."""
    return runs.run("contrast", tmp_path_factory.mktemp("contrast") / "evidence")


@pytest.fixture
def executor() -> Executor:
    return Executor()


def asked(folder: Path, variant: str, executor: Executor) -> Operation:
    """One operation of a test."""
    return Operation("key-1", REQUEST, folder, executor, variant)
