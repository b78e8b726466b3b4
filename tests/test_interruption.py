"""What is interrupted ends soon and in good order, whatever runs and however often it is told."""

from __future__ import annotations

import argparse
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rcr_probes import cli, linux, pool
from rcr_probes import run as runs
from rcr_probes.errors import RcrError
from rcr_probes.evidence import store
from rcr_probes.scratch import MEMORY, PREFIX
from tests.run.cells import ends

ROOT = Path(__file__).parents[1]


def below(pid: int) -> list[int]:
    """Every process that it or one of those has started."""
    found = linux.children(pid)
    return found + [deeper for one in found for deeper in below(one)]


@pytest.mark.parametrize("runtime", ["Hanging", "Deaf"])
def test_ctrl_c_ends_a_run_within_two_seconds(tmp_path: Path, runtime: str) -> None:
    """A cell hangs, a worker ignores SIGTERM, and who is impatient types it three times."""
    toml = tmp_path / "hangs.toml"
    toml.write_text(
        f"[[cells]]\nruntime = 'tests.runtimes_under_test:{runtime}'\n"
        "point = 'none'\nfault = 'none'\nseed = [0, 1]\n",
        encoding="utf-8",
    )
    words = ["run", str(toml), "--into", str(tmp_path / "evidence"), "--workers", "2"]
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "rcr_probes.cli", *words, "--deadline", "600"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as run:  # fmt: skip
        try:
            # Two workers, a phase of each, and a child of each of these.
            while len(started := below(run.pid)) < 6 and time.monotonic() < begun + 60:
                time.sleep(0.02)
            until_it_hung = time.monotonic() - begun
            begun = time.monotonic()
            for pause in (0.05, 0.2, 0.0):
                run.send_signal(signal.SIGINT)
                time.sleep(pause)
            out, err = run.communicate(timeout=60)
            took = time.monotonic() - begun
        finally:
            run.kill()
    assert len(started) >= 6
    assert run.returncode == 130
    assert err.splitlines()[0] == "rcr: interrupted."
    assert "To resume: rcr run" in err
    assert "Traceback" not in out + err
    assert took < 2 + until_it_hung / 2  # on a machine that others use, all takes longer
    assert all(map(ends, started))
    assert not list(Path(MEMORY).glob(f"{PREFIX}{run.pid}-*"))


def killed_first(place: Path, times: int) -> str:
    """An interpreter that is killed as it starts, so many times."""
    made = place / "python"
    made.write_text(
        f"#!/bin/sh\nfor n in $(seq {times}); do\n"
        f"  if mkdir {place}/killed-$n 2> /dev/null; then kill -KILL $$; fi\ndone\n"
        f'exec {sys.executable} "$@"\n'
    )
    made.chmod(made.stat().st_mode | stat.S_IXUSR)
    return str(made)


def test_a_worker_that_is_killed_as_it_starts_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs no cell; where each one is killed, the run says so and keeps what it has."""
    monkeypatch.setattr(sys, "executable", killed_first(tmp_path, 2))
    evidence = runs.run("article", tmp_path / "article", workers=1)
    committed = store.read(ROOT / "evidence" / "article")
    assert [c.facts_sha256 for c in evidence.captures()] == [
        c.facts_sha256 for c in committed.captures()
    ]
    monkeypatch.setattr(sys, "executable", killed_first(tmp_path, 100))
    with pytest.raises(RcrError, match="cannot start"):
        runs.run("article", tmp_path / "never", workers=1)


def test_a_worker_is_told_once_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal would strike while it ends what it was running."""
    told: list[int] = []
    terminate = subprocess.Popen.terminate

    def counted(process: subprocess.Popen[bytes]) -> None:
        told.append(process.pid)
        terminate(process)

    monkeypatch.setattr(subprocess.Popen, "terminate", counted)
    with pool.local(1):
        pass
    assert len(told) == 1


def test_what_calls_a_command_can_be_ended_after_it_was_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a notebook, or a test: the signals are theirs again."""
    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(end) for end in ends]

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(cli, "_parsed", lambda _: argparse.Namespace(command=interrupted))
    assert cli.main(["decide"]) == 130
    assert [signal.getsignal(end) for end in ends] == before


def test_whoever_ends_with_a_command_is_interrupted_once() -> None:
    """Whenever the second signal comes, also just after the command: it would change the end."""
    code = (
        "import signal; from rcr_probes.interruption import interruptible\n"
        "ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)\n"
        "try:\n"
        "    with interruptible(last=True): signal.raise_signal(signal.SIGINT)\n"
        "except KeyboardInterrupt:\n"
        "    for end in ends: signal.raise_signal(end)\n"
        "    print('once')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n", "")
