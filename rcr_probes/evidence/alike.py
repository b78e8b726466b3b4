"""Captures that say the same as one before them, but for their seed, repeat and processes.

What is measured of a cell again and again is nearly always the same, and a seed only gives it other
names. Such a line is not read anew: it is what an examined line becomes under its own names, and
what is its own besides is small. Standard library alone: a reader's checker embeds this module as
it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from rcr_probes.evidence import strict
from rcr_probes.evidence.consistency import LARGEST_PID
from rcr_probes.evidence.promised import MOST_KNOWN, WHOLE, Numbered, apart
from rcr_probes.model import Capture, Cell, canonical_json

_SEED, _REPEAT = b'"seed":%b', b'"repeat":%b'
_CIRCUMSTANCES = b',"circumstances":{"start":'
_DIGEST, _END = b',"facts_sha256":"', b'"}\n'
_STARTED = len(_CIRCUMSTANCES) + 8  # bytes by which fork, spawn and null are told apart
_NUMBER = re.compile(rb":([0-9][0-9.e-]*)")
# What a seed names (rcr_probes/request.py), and the digests of requests, which a runtime computes
# its own way. No look at a capture depends on which they are, but on which are the same.
_NAMES = (b'"operation-%b', b'"marker-%b')
_SHA256 = re.compile(rb'"sha256:[0-9a-f]{64}')
_NAMED = ("operation-", "marker-", "sha256:")  # what they begin with
_KEY = re.compile(rb'"(?:operation-|marker-|sha256:)[^"]*":')  # keys are sorted by what they say

T = TypeVar("T")
Pieces: TypeAlias = Sequence[bytes]  # a text, a name, a text, a name, … and at last a text


class _Parts(NamedTuple):
    """A line, cut where two captures of a cell may differ."""

    kind: tuple[bytes, int, bytes]  # its cell, how long what it tells is, and how it tells of time
    seed: bytes
    repeat: bytes
    told: bytes  # what was measured and judged
    processes: Sequence[bytes]
    digest: bytes

    @property
    def names(self) -> Sequence[bytes]:
        """What is named in what is told, in the same order for each line."""
        return [name % self.seed for name in _NAMES] + [*dict.fromkeys(_SHA256.findall(self.told))]

    @property
    def numbers(self) -> Sequence[bytes]:
        """Its seed and its repeat, as a canonical form has them."""
        return _SEED % self.seed, _REPEAT % self.repeat


@dataclass(frozen=True, slots=True)
class _Known:
    """What is kept of an examined capture that is met again.

    Attributes:
        cell: of it, as in seed 0 and repeat 0.
        parts: of its line.
        names: what is named in it.
        count: how often these are there in what it tells.
        told: what it tells, cut at these names.
        facts: its canonical form, cut at these names and at its numbers.
    """

    cell: Cell
    parts: _Parts
    names: Sequence[bytes]
    count: int
    told: Pieces
    facts: Pieces

    def renamed(self, parts: _Parts) -> Sequence[bytes] | None:
        """The names under which this is what a line tells; None where it tells something else."""
        if (parts.seed, parts.told) == (self.parts.seed, self.parts.told):
            return self.names
        names = parts.names
        if len(names) != len(self.names):
            return None
        if _filled(self.told, dict(zip(self.names, names, strict=True))) != parts.told:
            return None
        # What is no name here may be one there: then that is there once more.
        return names if _count(parts.told, names) == self.count else None


def cut(line: bytes) -> tuple[bytes, int, int] | None:
    """What captures of a cell share that give the same row, and the seed and repeat of this one.

    None where it is no line that a run writes of a measured cell. Who doubts evidence cuts finer.
    """
    places = _places(line)
    if places is None:
        return None
    seed, named, repeat, after, about = places
    shared = line[:seed] + line[after : about + _STARTED]
    return shared, int(line[seed:named]), int(line[repeat:after])


class Shared(Generic[T]):
    """What was made of lines, for those that share it (``cut``): under other names, too."""

    def __init__(self) -> None:
        self._made: dict[bytes, T] = {}
        self._unnamed: dict[bytes, T] = {}

    def find(self, shared: bytes, seed: int) -> T | None:
        """What was made of a line like this one; None where there was none."""
        return self._made.get(shared) or self._unnamed.get(_unnamed(shared, seed))

    def keep(self, shared: bytes, seed: int, made: T, texts: Iterable[str]) -> None:
        """Keep what was made, which holds these texts: where one is a name, for this seed alone."""
        if len(self._made) >= MOST_KNOWN:
            self._made.clear()
            self._unnamed.clear()
        self._made[shared] = made
        if not any(name in text for text in texts for name in _NAMED):
            self._unnamed[_unnamed(shared, seed)] = made


def _unnamed(shared: bytes, seed: int) -> bytes:
    """The same without what its seed names, and without digests."""
    for name in _NAMES:
        shared = shared.replace(name % b"%d" % seed, name % b"")
    return _SHA256.sub(b"", shared)


class Examined:
    """The lines in which nothing was found, as far as memory should be taken for them."""

    def __init__(self) -> None:
        self._lines: dict[tuple[bytes, int, bytes], bytes] = {}
        self._known: dict[tuple[bytes, int, bytes], _Known] = {}

    def add(self, line: bytes) -> None:
        """Keep the line of a capture that was measured, and with which nothing is wrong."""
        parts = _parts(line)
        if parts is None or _KEY.search(line):
            return
        if len(self._lines) >= MOST_KNOWN:
            self._lines.clear()
            self._known.clear()
        self._lines[parts.kind] = line
        self._known.pop(parts.kind, None)

    def alike(self, line: bytes) -> Numbered | None:
        """The cell of a line that says the same as one of these, and with which nothing is wrong.

        None of any other: that must be read as a whole.
        """
        parts = _parts(line)
        if parts is None or parts.kind not in self._lines or not _ran(parts.processes):
            return None
        if parts.kind not in self._known:
            self._known[parts.kind] = _known(self._lines[parts.kind])
        known = self._known[parts.kind]
        names = known.renamed(parts)
        if names is None:
            return None
        then, now = (*known.names, *known.parts.numbers), (*names, *parts.numbers)
        facts = _filled(known.facts, dict(zip(then, now, strict=True)))
        if hashlib.sha256(facts).hexdigest().encode() != parts.digest:
            return None
        return known.cell, int(parts.seed), int(parts.repeat)


def _places(line: bytes) -> tuple[int, int, int, int, int] | None:
    """Where the seed begins and ends, the repeat begins and ends, and the circumstances begin.

    The cell is the first that a capture holds, and none of its values is a map: so the first key of
    these names is its own, for in a text the quotes would be escaped. The circumstances are the
    last map that a capture holds, and no map in them has a start.
    """
    seed = line.find(_SEED % b"") + len(_SEED % b"")
    named = line.find(b"," + _REPEAT % b"", seed)
    repeat = named + 1 + len(_REPEAT % b"")
    after = line.find(b"}", repeat)
    about = line.rfind(_CIRCUMSTANCES)
    if not len(_SEED % b"") <= seed < named < after < about:
        return None
    if not (WHOLE.fullmatch(line, seed, named) and WHOLE.fullmatch(line, repeat, after)):
        return None
    return seed, named, repeat, after, about


def _parts(line: bytes) -> _Parts | None:
    """A line cut into its parts; None where it is no line that a run writes.

    Where a number stood in the circumstances a 0 stands in what is shared: so a line that lacks
    one, or has it elsewhere, shares nothing with a line that has them all.
    """
    places, sealed = _places(line), line.rfind(_DIGEST)
    if places is None or not line.endswith(_END):
        return None
    seed, named, repeat, after, about = places
    if about >= sealed:
        return None
    circumstances = _NUMBER.split(line[about:sealed])
    return _Parts(
        (line[:seed], about - after, b":0".join(circumstances[::2])),
        line[seed:named],
        line[repeat:after],
        line[after:about],
        circumstances[1::2],
        line[sealed + len(_DIGEST) : -len(_END)],
    )


def _known(line: bytes) -> _Known:
    parts, capture = _parts(line), strict.decoded(line, Capture)
    assert parts is not None
    facts = canonical_json({"measurement": capture.measurement, "judgement": capture.judgement})
    names = parts.names
    # Keys are sorted, and neither the judgement nor what was approved has one of these names.
    pieces: list[bytes] = []
    for number in reversed(parts.numbers):
        before, mark, facts = facts.partition(number)
        pieces += [*_cut(before, names), mark]
    pieces += _cut(facts, names)
    told, count = _cut(parts.told, names), _count(parts.told, names)
    return _Known(apart(capture.cell)[0], parts, names, count, told, pieces)


def _cut(text: bytes, names: Sequence[bytes]) -> Pieces:
    """A text, cut at these names."""
    return re.split(b"(%b)" % b"|".join(map(re.escape, names)), text)


def _count(text: bytes, names: Sequence[bytes]) -> int:
    """How often these are there."""
    return sum(map(text.count, names))


def _filled(pieces: Pieces, names: Mapping[bytes, bytes]) -> bytes:
    """The text that these pieces make under other names."""
    filled = [*pieces]
    filled[1::2] = [names[name] for name in pieces[1::2]]
    return b"".join(filled)


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
