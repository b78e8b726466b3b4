"""What it costs to doubt a sweep, beside reading, decoding and hashing each of its lines."""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import msgspec

from benchmarks import _sweep
from benchmarks.frame import FOLDER, Noted, Pair, Ratio, Taking, seconds
from rcr_probes.evidence import consistency
from rcr_probes.evidence.check import check
from rcr_probes.model import Capture

RATIOS = (
    Ratio(
        "sweep",
        "the whole check of a sweep",
        "its lines read, decoded by msgspec, and hashed",
        4.0,
    ),
    Ratio(
        "integrity",
        "the same without a look at what the captures say",
        "its lines read, decoded by msgspec, and hashed",
        2.0,
    ),
    Ratio(
        "seeds",
        "the whole check of a sweep of seeds",
        "its lines read, decoded by msgspec, and hashed",
        4.0,
    ),
    Ratio(
        "distinct",
        "the whole check of evidence in which no two captures say the same",
        "its lines read, decoded by msgspec, and hashed",
        None,
    ),
    Ratio(
        "memory",
        "the largest memory of `rcr check` for ten times as many captures",
        "the same for the sweep",
        1.25,
        unit="bytes",
    ),
)
PAGE = """
## Checking a sweep

The sweep has {captures} captures of {cells} cells in many repeats, and the one ten times as large \
{many}; the sweep of seeds has as many as the first. No line of any is the same as another. Of a \
repeat, or a seed, that says what one before it said, but for the names that its seed gives, the \
check reads what is its own (its numbers, its names, its processes, its digest, its place in the \
plan), and the floor decodes it whole: so the ratio falls as repeats are added, and the bound of 4 \
is one for sweeps. \
What is distinct is read strictly, written again, derived again and looked at from every side, in \
plain Python that a stranger can run without msgspec; there the ratio is that of `distinct`, taken \
over the {distinct} captures of `evidence/faults`. Memory is that of a process of its own, and \
was taken once.
"""
FAULTS = FOLDER.parent / "evidence" / "faults"
CAPTURES = 10_000


def floor(folder: Path) -> int:
    decode, count = msgspec.json.Decoder(Capture).decode, 0
    for line in _sweep.lines(folder):
        decode(line)
        hashlib.sha256(line).hexdigest()
        count += 1
    return count


def whole(folder: Path) -> int:
    """How many captures were checked.

    Raises:
        RuntimeError: the check did not find them sound.
    """
    report = check(folder)
    if not report.sound:
        raise RuntimeError(str(report.findings[0]))
    return report.captures


def integrity(folder: Path) -> None:
    def found(capture: Capture) -> Iterator[tuple[str, str]]:
        return (("digest", problem) for problem in consistency._digest(capture))

    with mock.patch.object(consistency, "found", found):
        whole(folder)


@contextlib.contextmanager
def taking(captures: int = CAPTURES) -> Iterator[Taking]:
    with tempfile.TemporaryDirectory(prefix="rcr-bench-") as scratch:
        sweep = _sweep.sealed(Path(scratch, "sweep"), captures)
        seeds = _sweep.sealed(Path(scratch, "seeds"), captures, seeds=True)
        many = _sweep.sealed(Path(scratch, "many"), 10 * captures)
        memory = (_sweep.peak("check", str(many)), _sweep.peak("check", str(sweep)))

        def pair() -> dict[str, Pair]:
            least = seconds(lambda: floor(sweep))
            return {
                "sweep": (seconds(lambda: whole(sweep)), least),
                "integrity": (seconds(lambda: integrity(sweep)), least),
                "seeds": (seconds(lambda: whole(seeds)), seconds(lambda: floor(seeds))),
                "distinct": (seconds(lambda: whole(FAULTS)), seconds(lambda: floor(FAULTS))),
                "memory": memory,
            }

        cells = sum(1 for _ in _sweep.lines(_sweep.LOCATIONS))
        notes: dict[str, Noted] = {
            "captures": f"{whole(sweep):,}",
            "many": f"{whole(many):,}",
            "cells": str(cells),
            "distinct": f"{whole(FAULTS):,}",
        }
        yield Taking(pair, 7, notes)
