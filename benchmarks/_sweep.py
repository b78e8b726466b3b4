"""A sealed sweep: the committed cells of ``locations``, each in so many repeats, or seeds.

What was measured is what was measured once; repeats or seeds, process ids and times are told anew,
so that no two lines are the same, and every line is sealed as a run seals it.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import msgspec

from benchmarks.frame import FOLDER
from rcr_probes.evidence import seal, store, write
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.model import Capture, Circumstances, Plan

LOCATIONS = FOLDER.parent / "evidence" / "locations"


def sealed(place: Path, captures: int, seeds: bool = False) -> Path:
    """A folder of evidence with about so many captures: cells in so many repeats, or seeds."""
    cells = list(store.read(LOCATIONS).captures())
    again, times = reseeded if seeds else repeated, -(-captures // len(cells))
    plan = (
        replace(one.cell, seed=n) if seeds else replace(one.cell, repeat=n)
        for one, n in product(cells, range(times))
    )
    with write.Writer(place, Plan("sweep", tuple(plan))) as writer:
        for one, n in product(cells, range(times)):
            told = _circumstances(one.circumstances, n)
            writer.append(seal.seal(again(one, n).measurement, one.judgement, told))
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


def repeated(one: Capture, repeat: int) -> Capture:
    """A capture of repeat 0 as it would be in another one."""
    measured = replace(one.measurement, cell=replace(one.cell, repeat=repeat))
    return seal.seal(measured, one.judgement, one.circumstances)


def reseeded(one: Capture, seed: int) -> Capture:
    """A capture of seed 0 as it would be under another one: under other names, and no more."""
    line = seal.encode(one).replace(b'"seed":0', b'"seed":%d' % seed)
    for name in (b"operation-", b"marker-"):
        line = re.sub(rb"%b0(?![0-9])" % name, b"%b%d" % (name, seed), line)
    line = re.sub(rb"(?<=sha256:)[0-9a-f]{64}", lambda found: _other(found[0], seed), line)
    renamed = seal.decode(line, "a capture under another seed")
    return seal.seal(renamed.measurement, renamed.judgement, renamed.circumstances)


def _other(digest: bytes, seed: int) -> bytes:
    return hashlib.sha256(b"%d %b" % (seed, digest)).hexdigest().encode()


def _circumstances(first: Circumstances, time: int) -> Circumstances:
    parent = 1000 + 10 * time % 4_000_000
    pids = {verb: parent + number for number, verb in enumerate(first.pids, 1)}
    seconds = {verb: round(0.001 + time % 997 * 1e-6, 6) for verb in first.seconds}
    return Circumstances(first.start, parent, pids, seconds)
