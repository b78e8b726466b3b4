"""A sealed sweep: the committed cells of ``locations``, each in so many repeats.

What was measured is what was measured once; repeats, process ids and times are told anew, so that
no two lines are the same, and every line is sealed as a run seals it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec

from benchmarks.frame import FOLDER
from rcr_probes.evidence import seal, store, write
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.model import Capture, Circumstances, Plan

LOCATIONS = FOLDER.parent / "evidence" / "locations"


def sealed(place: Path, captures: int) -> Path:
    """A folder of evidence with about so many captures."""
    cells = list(store.read(LOCATIONS).captures())
    repeats = -(-captures // len(cells))
    plan = tuple(replace(c.cell, repeat=n) for c in cells for n in range(repeats))
    with write.Writer(place, Plan("sweep", plan)) as writer:
        for one in cells:
            for capture in _repeated(one, repeats):
                writer.append(capture)
        return writer.seal().folder


_PEAK = """
import sys
from pathlib import Path
from rcr_probes.cli import main
if main(sys.argv[1:]):
    sys.exit("it has failed")
[most] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")]
print(most.split()[1], file=sys.stderr)
"""


def peak(*words: str) -> float:
    """Bytes that an ``rcr`` command had in memory at most.

    It says so itself: what the system tells of a child that has ended counts this process in.
    """
    command = [sys.executable, "-c", _PEAK, *words]
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True
    )
    return 1024.0 * int(done.stderr.split()[-1])


def lines(place: Path) -> Iterator[bytes]:
    with open(place / CAPTURES, "rb") as file:
        yield from file


def decoded(place: Path) -> None:
    """Decode every line, as quickly as it can be."""
    decode = msgspec.json.Decoder(Capture).decode
    for line in lines(place):
        decode(line)


def _repeated(one: Capture, repeats: int) -> Iterator[Capture]:
    for repeat in range(repeats):
        measured = replace(one.measurement, cell=replace(one.cell, repeat=repeat))
        yield seal.seal(measured, one.judgement, _circumstances(one.circumstances, repeat))


def _circumstances(first: Circumstances, repeat: int) -> Circumstances:
    parent = 1000 + 10 * repeat % 4_000_000
    pids = {verb: parent + number for number, verb in enumerate(first.pids, 1)}
    seconds = {verb: round(0.001 + repeat % 997 * 1e-6, 6) for verb in first.seconds}
    return Circumstances(first.start, parent, pids, seconds)
