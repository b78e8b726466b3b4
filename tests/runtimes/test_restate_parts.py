"""What the adapter to Restate is made of, where it can be seen without Restate."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.errors import RuntimeMissing
from rcr_probes.runtimes.restate_server import binary, copied
from rcr_probes.runtimes.restate_service import guarded


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("")
    path.chmod(0o755)
    return path


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script that npm installs, and its link in .bin."""
    script = executable(tmp_path / "node_modules/@restatedev/restate-server/lib/index.js")
    link = tmp_path / "node_modules/.bin/restate-server"
    link.parent.mkdir()
    link.symlink_to(script)
    monkeypatch.setenv("RCR_RESTATE_SERVER", str(link))
    return script


@pytest.mark.parametrize("nested", [False, True])
def test_the_server_itself_is_found_behind_the_script_of_npm(script: Path, nested: bool) -> None:
    """Beside its package, or within it: npm may put it in either place."""
    package = script.parents[1]
    scope = package / "node_modules" / "@restatedev" if nested else package.parent
    native = executable(scope / "restate-server-linux-x64" / "bin" / "restate-server")
    assert binary() == str(native)


def test_a_script_without_a_server_is_refused(script: Path) -> None:
    """Its package is an optional dependency, which npm can be told to leave out."""
    with pytest.raises(RuntimeMissing, match="binary"):
        binary()


def test_a_server_that_is_a_program_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one from the release page."""
    program = executable(tmp_path / "bin" / "restate-server")
    monkeypatch.setenv("RCR_RESTATE_SERVER", str(program))
    assert binary() == str(program)


def test_a_folder_without_files_of_a_server_has_no_copy(tmp_path: Path) -> None:
    """Nothing was ever started there."""
    with copied(tmp_path) as copy:
        assert copy is None


@pytest.mark.parametrize(
    ("path", "called"), [("/secret/invoke/probe/act", True), ("/invoke/probe/act", False)]
)
def test_who_does_not_know_the_secret_invokes_nothing(path: str, called: bool) -> None:
    """Nobody else's server comes through, whatever it asks for."""
    calls, sent = [], []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["path"])

    async def send(message: Any) -> None:
        sent.append(message.get("status"))

    asyncio.run(guarded(app, "/secret/")({"type": "http", "path": path}, None, send))
    assert (calls, sent) == (([path], []) if called else ([], [404, None]))
