"""A real receiver for each test that asks for one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rcr_probes.receiver import Receiver, Settings
from tests.receiver.calls import MEMORY

Start = Callable[..., Receiver]


@pytest.fixture(autouse=True, scope="session")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each receiver is a new interpreter: the first leaves its bytecode to the others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where there is one, as the folders of cells are: fsync costs nothing."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a receiver with settings, in a folder of the test's; each ends with the test."""
    with ExitStack() as stack:

        def begin(settings: Settings | None = None, folder: str = "receiver") -> Receiver:
            return stack.enter_context(Receiver(str(tmp_path / folder), settings))

        yield begin


@pytest.fixture
def receiver(start: Start) -> Receiver:
    """A receiver as it is by default."""
    return start()
