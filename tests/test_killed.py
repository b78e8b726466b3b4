"""The tool is as safe from crashes as it asks others to be: whatever is killed, whenever.

Runs are killed at random moments: the orchestrator, a worker, or everything at once. After each the
evidence is complete and sound, or can be resumed; and once it is complete, each cell is there once.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rcr_probes import plan as plans
from rcr_probes import run as runs
from rcr_probes.evidence import form, store
from rcr_probes.evidence.check import check
from rcr_probes.scratch import MEMORY, PREFIX
from tests.run.cells import ends

KILLS = 200
BUDGET = 240.0  # seconds, on a machine that others use as well; fewer kills are a failure
LONGEST = 0.6  # seconds until a kill: a run of this plan comes to its end in about as long
# One interpreter, which forks each run: so a run costs its workers, and not our imports besides.
RUNS = """
import os, sys
from rcr_probes.run import run
for line in sys.stdin:
    into, start, workers = line.split()
    if (pid := os.fork()) == 0:
        run("article", into, start=start, workers=int(workers))
        os._exit(0)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def facts(evidence: store.Evidence) -> dict[str, str]:
    return {c.cell.id: c.facts_sha256 for c in evidence.captures()}


def children(pid: int) -> list[int]:
    """The processes that it started, and has not waited for."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def struck(run: int, whom: str) -> list[int]:
    """Kill the run, one of its workers before it, or all that is below it too; return those."""
    workers = children(run)
    below = [*workers, *(phase for worker in workers for phase in children(worker))]
    for pid in {"run": [run], "worker": workers[:1], "everything": [run, *below]}[whom]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return below


def left(pids: list[int]) -> list[str]:
    """What of them does not end before long: what a killed run had started dies with it."""
    stay = [pid for pid in pids if not ends(pid)]
    return [Path(f"/proc/{pid}/status").read_text() for pid in stay]


def asked(zygote: subprocess.Popen[str], run: str | None = None) -> str:
    """Ask for a run, where one is named; what is said next: its pid, and then how it ended."""
    assert zygote.stdin
    assert zygote.stdout
    if run is not None:
        zygote.stdin.write(f"{run}\n")
        zygote.stdin.flush()
    return zygote.stdout.readline()


@pytest.fixture
def zygote() -> Iterator[subprocess.Popen[str]]:
    """The process that forks the runs."""
    words = [sys.executable, "-c", RUNS]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        yield one
        assert one.stdin
        one.stdin.close()


@pytest.mark.timeout(BUDGET + 60)  # what comes before and after the kills is short
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_killed_at_any_moment_evidence_is_complete_or_can_be_resumed(
    tmp_path: Path, zygote: subprocess.Popen[str]
) -> None:
    """Never silently short, never a cell twice, never one that is judged differently."""
    cells = [cell.id for cell in plans.read("article").cells]
    expected = facts(runs.run("article", tmp_path / "expected"))
    chance, until = random.Random(20260831), time.monotonic() + BUDGET
    kills = complete = 0
    into = tmp_path / "0"
    while kills < KILLS and time.monotonic() < until:
        whom = chance.choice(("run", "worker", "everything"))
        start, workers = chance.choice(("fork", "fork", "fork", "spawn")), chance.choice((1, 2))
        run = int(asked(zygote, f"{into} {start} {workers}"))
        time.sleep(chance.uniform(0, LONGEST))
        below = struck(run, whom)
        if whom == "worker":  # it is replaced, until the run is killed as well
            time.sleep(chance.uniform(0, LONGEST))
            below += struck(run, "run")
        kills += 1
        how = int(asked(zygote))
        assert how in (0, -signal.SIGKILL)
        assert left(below) == []
        if not (into / form.MANIFEST).exists():
            continue  # the next run resumes it
        complete += 1
        evidence = store.read_whole(into)
        assert check(into).findings == ()
        assert list(facts(evidence)) == cells
        for capture in evidence.captures():
            judged = capture.judgement.verdict
            assert judged is not None
            assert capture.facts_sha256 == expected[capture.cell.id] or judged.verdict == "unknown"
        into = tmp_path / str(complete)
    assert kills == KILLS, f"{kills} kills in {BUDGET:.0f} s; {complete} runs came to their end"
    assert complete > 0
    assert facts(runs.run("article", into)).keys() == expected.keys()
    assert not list(Path(MEMORY).glob(f"{PREFIX}{run}-*"))
