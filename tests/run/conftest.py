"""Where the tests of a run stand, and the run that many of them look at."""

from __future__ import annotations

import pytest

from rcr_probes import run as runs
from rcr_probes.evidence import store
from tests.run.cells import ROOT


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phases find the runtimes of these tests as they find a user's: in the current directory."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> store.Evidence:
    return runs.run("article", tmp_path_factory.mktemp("forked") / "article", start="fork")
