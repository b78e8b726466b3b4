"""Evidence that the tests of tables and figures read: measured once, and never changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rcr_probes.evidence import store
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Plan
from rcr_probes.product import product
from rcr_probes.run import run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def article(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """The article's six cells."""
    return run("article", tmp_path_factory.mktemp("article") / "evidence")


@pytest.fixture(scope="session")
def locations(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Every cell of the plan ``locations``."""
    return run("locations", tmp_path_factory.mktemp("locations") / "evidence")


@pytest.fixture(scope="session")
def repeats(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A runtime with a variant, each cell measured twice."""
    axes: dict[str, Any] = {
        "runtime": "tests.forking_runtime:runtime",
        "dedupe": ["none", "operation_key"],
    }
    cells = (
        *product(point="none", fault="none", policy="never", repeat=[0, 1], **axes),
        *product(
            point=["before_action", "after_action"],
            fault="kill",
            policy=["again", "never"],
            repeat=[0, 1],
            **axes,
        ),
        *product(point="after_action", fault="kill", variant="twice", repeat=[0, 1], **axes),
    )
    return run(Plan("repeats", cells), tmp_path_factory.mktemp("repeats") / "evidence")


@pytest.fixture(scope="session")
def published() -> Evidence:
    """The article's figures, as they were published."""
    return store.read(ROOT / "evidence" / "rcr-20260831")
