"""The article's evidence, measured once, and a folder of its own for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes import run as runs


@pytest.fixture(scope="module")
def article(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evidence of the article's plan; no test changes it."""
    return runs.run("article", tmp_path_factory.mktemp("runs") / "article").folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command writes by default, it writes below the current directory."""
    monkeypatch.chdir(tmp_path)
