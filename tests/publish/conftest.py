"""What the tests of publishing share: evidence with claims and a guide, published once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rcr_probes.publish.build import publish
from tests.publish import packaged


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of evidence, their claims and a guide; no test changes it."""
    return packaged.evidence(tmp_path_factory.mktemp("source") / "evidence")


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> packaged.Keys:
    """A key pair, and the public key of somebody else."""
    return packaged.keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def published(source: Path, keys: packaged.Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A signed package of it; no test changes it."""
    into = tmp_path_factory.mktemp("published") / "package"
    publish(source, into, key=keys.private, **packaged.ORIGIN)
    return into


@pytest.fixture
def package(published: Path, tmp_path: Path) -> Path:
    """A copy of the package for one test to change."""
    return Path(shutil.copytree(published, tmp_path / "package"))
