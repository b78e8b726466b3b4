"""What the tests of a described runtime share: one in a folder below the current directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtimes.spoken import DESCRIBED, SPOKEN, toml


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A described runtime in a folder below the current directory."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "spoken.py").write_text(SPOKEN)
    (folder / "runtime.toml").write_text(toml(DESCRIBED))
    monkeypatch.chdir(tmp_path)
    return folder
