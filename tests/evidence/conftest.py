"""What the tests of evidence share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence import made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small sound evidence folder of three measured cells."""
    return made.small(tmp_path / "small")
