"""Captures that say the same as one before them, but for their repeat and their processes.

What is measured of a cell again and again is nearly always the same. Such a line is not read anew:
what it shares with a line that was examined was examined there, and what is its own is small.
Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rcr_probes.evidence import strict
from rcr_probes.evidence.consistency import LARGEST_PID
from rcr_probes.evidence.promised import MOST_KNOWN, WHOLE, Repeat, apart
from rcr_probes.model import Capture, Cell, canonical_json

_REPEAT = b'"repeat":'
_CIRCUMSTANCES = b',"circumstances":{"start":'
_DIGEST, _END = b',"facts_sha256":"', b'"}\n'
_STARTED = len(_CIRCUMSTANCES) + 8  # bytes by which fork, spawn and null are told apart
_NUMBER = re.compile(rb":([0-9][0-9.e-]*)")


class _Parts(NamedTuple):
    """A line, cut where two captures of a cell may differ; ``same`` is all that is left of it."""

    same: bytes
    repeat: bytes
    processes: Sequence[bytes]
    digest: bytes


@dataclass(frozen=True, slots=True)
class _Known:
    """What is kept of an examined capture: its cell, and its canonical form around its repeat."""

    cell: Cell
    before: Any  # the hash of what comes before the repeat
    after: bytes


def cut(line: bytes) -> tuple[bytes, int] | None:
    """What repeats of a cell share that give the same row, and which repeat a line is of.

    None where it is no line that a run writes of a measured cell. Who doubts evidence cuts finer.
    """
    places = _places(line)
    if places is None:
        return None
    repeat, after, about = places
    return line[:repeat] + line[after : about + _STARTED], int(line[repeat:after])


class Examined:
    """The lines in which nothing was found, as far as memory should be taken for them."""

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}
        self._known: dict[bytes, _Known] = {}

    def add(self, line: bytes) -> None:
        """Keep the line of a capture that was measured, and with which nothing is wrong."""
        parts = _parts(line)
        if parts is None:
            return
        if len(self._lines) >= MOST_KNOWN:
            self._lines.clear()
            self._known.clear()
        self._lines[parts.same] = line

    def repeat(self, line: bytes) -> Repeat | None:
        """The cell of a line that says the same as one of these, and with which nothing is wrong.

        None of any other: that must be read as a whole.
        """
        parts = _parts(line)
        if parts is None or parts.same not in self._lines or not _ran(parts.processes):
            return None
        if parts.same not in self._known:
            self._known[parts.same] = _known(self._lines[parts.same])
        known = self._known[parts.same]
        facts = known.before.copy()
        facts.update(parts.repeat + known.after)
        if facts.hexdigest().encode() != parts.digest:
            return None
        return known.cell, int(parts.repeat)


def _places(line: bytes) -> tuple[int, int, int] | None:
    """Where the repeat begins and ends, and where the circumstances begin.

    The cell is the first that a capture holds, and none of its values is a map: so the first key of
    this name is its repeat, for in a text the quotes would be escaped. The circumstances are the
    last map that a capture holds, and no map in them has a start.
    """
    repeat = line.find(_REPEAT) + len(_REPEAT)
    after = line.find(b"}", repeat)
    about = line.rfind(_CIRCUMSTANCES)
    if not len(_REPEAT) <= repeat < after < about or not WHOLE.fullmatch(line, repeat, after):
        return None
    return repeat, after, about


def _parts(line: bytes) -> _Parts | None:
    """A line cut into its parts; None where it is no line that a run writes.

    Where a number stood in the circumstances a 0 stands in what is shared: so a line that lacks
    one, or has it elsewhere, shares nothing with a line that has them all.
    """
    places, digest = _places(line), line.rfind(_DIGEST)
    if places is None or not line.endswith(_END):
        return None
    repeat, after, about = places
    if about >= digest:
        return None
    circumstances = _NUMBER.split(line[about:digest])
    return _Parts(
        line[:repeat] + line[after:about] + b":0".join(circumstances[::2]),
        line[repeat:after],
        circumstances[1::2],
        line[digest + len(_DIGEST) : -len(_END)],
    )


def _ran(numbers: Sequence[bytes]) -> bool:
    """Whether a run may have written these: distinct process ids, then so many times but one."""
    count = (len(numbers) + 1) // 2
    pids, seconds = numbers[:count], numbers[count:]
    return (
        len(set(pids)) == count
        and all(WHOLE.fullmatch(pid) and 0 < int(pid) <= LARGEST_PID for pid in pids)
        and all(_is_number(took.decode()) for took in seconds)
    )


def _is_number(text: str) -> bool:
    try:
        return strict.number(float(text)) == text
    except ValueError:
        return False


def _known(line: bytes) -> _Known:
    capture = strict.decoded(line, Capture)
    facts = {"measurement": capture.measurement, "judgement": capture.judgement}
    # Keys are sorted, and neither the judgement nor what was approved has one of this name.
    before, mark, after = canonical_json(facts).partition(_REPEAT)
    cell, repeat = apart(capture.cell)
    return _Known(cell, hashlib.sha256(before + mark), after.removeprefix(str(repeat).encode()))
