"""What a cell and a run of the plan ``article`` cost, each as a ratio to its floor.

The floor of a forked P3 cell is three forks (fault, forced call, recovery) whose children do the
same file operations in plain Python. That of a run of ``article`` is as many interpreters as it
starts, each with json, hashlib and os alone, and under fork eighteen empty forks; what a run also
does, and its floor does not, is to import pandas and to draw its tables.

Every figure and its floor are timed in turn in the same run, and the medians are divided: the
machine may be shared and noisy, so seconds alone say little. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rcr_probes import executors, linux, observe, phase, worker
from rcr_probes import folder as layout
from rcr_probes.model import Cell
from rcr_probes.runtime import load
from rcr_probes.worker import Job

P3 = Cell(point="completion_audit", fault="audit_is_directory", policy="resume")
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
FLOOR_IMPORTS = "import json, hashlib, os"
Operation = tuple[str, tuple[str, ...], int]


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def ratio(work: Callable[[], object], floor: Callable[[], object], rounds: int) -> dict[str, float]:
    """Median seconds of the work and of its floor, interleaved, and the one over the other."""
    pairs = [(timed(work), timed(floor)) for _ in range(rounds)]
    ours, least = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {
        "seconds": round(ours, 5),
        "floor_seconds": round(least, 5),
        "ratio": round(ours / least, 2),
    }


@contextmanager
def scratch_folder(memory: str | None) -> Iterator[str]:
    """A folder that no exit handler removes: a phase that is forked from here runs those, too."""
    folder = tempfile.mkdtemp(prefix="rcr-bench-", dir=memory)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def in_child(work: Callable[[], object]) -> None:
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("a child of the benchmark failed")


def run_cell(folder: str) -> None:
    worker.run_cell(Job(P3, folder, "fork", 30.0))
    layout.remove(folder)


def recorded(scratch: str) -> list[list[Operation]]:
    """The file operations of a P3 cell's three phases, as CPython's own audit events tell them."""
    seen: list[list[Operation]] = []
    cell = os.path.join(scratch, "cell")
    layout.make(cell, P3)
    for verb in ("fault", "force", "recover"):
        place = layout.copy_world(cell, P3) if verb == "force" else cell
        note = Path(scratch, f"operations-{verb}.json")
        in_child(partial(_noted, place, verb, os.getpid(), note))
        seen.append([(n, tuple(p), f) for n, p, f in json.loads(note.read_text())])
        if verb == "force":  # the fault stands until the call has been forced
            in_hand = phase.operation(
                P3, cell, "recover", executors.make(cell, P3.dedupe, lambda *_: None)
            )
            lines = observe.written(cell).lines
            struck = observe.strike(lines, load(P3.runtime), in_hand)
            assert struck is not None
            struck.lift()
    return seen


def _noted(place: str, verb: str, parent: int, note: Path) -> None:
    operations: list[Operation] = []
    sys.addaudithook(lambda name, args: operations.append(_operation(name, args)))
    phase.perform(place, verb, parent)
    note.write_text(json.dumps([o for o in operations if place in str(o[1][:1])]))


def _operation(name: str, args: tuple[object, ...]) -> Operation:
    if name == "open" and isinstance(args[0], str):
        return name, (args[0],), args[2] if isinstance(args[2], int) else 0
    if name in ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.listdir"):
        return name, tuple(str(a) for a in args if isinstance(a, str)), 0
    return "other", (), 0


def replay(operations: list[Operation]) -> None:
    """Do the same file operations in plain Python: a line written, or the whole file read."""
    for name, paths, flags in operations:
        try:
            if name == "open":
                fd = os.open(paths[0], flags or os.O_RDONLY, 0o600)
                if flags & (os.O_WRONLY | os.O_RDWR):
                    os.write(fd, b'{"phase":"fault","lane":"point","value":{}}\n')
                else:
                    os.read(fd, 1 << 16)
                os.close(fd)
            else:
                getattr(os, name.removeprefix("os."))(*paths)
        except OSError:
            pass  # the recorded operation failed too: EISDIR, or no such file


def forked_cell(rounds: int) -> dict[str, object]:
    with scratch_folder(MEMORY) as scratch:
        phases = recorded(scratch)
        gc.freeze()
        place = os.path.join(scratch, "one")

        def floor() -> None:
            for operations in phases:
                in_child(partial(replay, operations))

        run_cell(place)
        made = ratio(lambda: run_cell(place), floor, rounds)
    return {"file_operations": sum(map(len, phases)), **made}


def whole_run(start: str, rounds: int) -> dict[str, float]:
    """``rcr run article`` from the shell: the command, its worker, and three phases a cell."""
    with scratch_folder(None) as scratch:
        into = os.path.join(scratch, "article")
        command = [sys.executable, "-m", "rcr_probes.cli", "run", "article", "--into", into]
        command += ["--again", "--start", start, "--workers", "1"]

        def work() -> None:
            subprocess.run(command, check=True, capture_output=True)

        def floor() -> None:
            for _ in range(2 + (18 if start == "spawn" else 0)):
                subprocess.run([sys.executable, "-c", FLOOR_IMPORTS], check=True)
            if start == "fork":
                for _ in range(18):
                    in_child(lambda: None)

        return ratio(work, floor, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="of the whole runs; at least 7")
    rounds = max(7, parser.parse_args().rounds)
    linux.adopt_descendants()
    result = {
        "forked_p3_cell": forked_cell(rounds * 8),
        "rcr_run_article_fork": whole_run("fork", rounds),
        "rcr_run_article_spawn": whole_run("spawn", rounds),
        "python": sys.version.split()[0],
        "rounds": rounds,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
