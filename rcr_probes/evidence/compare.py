"""Compare the facts of two evidence folders, row by row; what one does not give is no difference.

Both are taken at their word: ``check`` is what doubts them.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec import to_builtins

from rcr_probes.evidence import rows
from rcr_probes.evidence.rows import COLUMNS, PUBLISHED_VERDICT, Row, Value
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import MATCHED, Capture, Effect, Json, Observation, canonical_json

Side = Literal["ours", "theirs"]

# Rows match on these where both give them; and on what was run, where both were measured or both
# published, because a publication has its own name for what we measure.
MATCHING = (*MATCHED, "witness", "recovery_fault", "recoverers", "seed", "repeat")
RUNTIME = ("runtime", "variant")
COMPARED = tuple(c for c in COLUMNS if c not in (*MATCHING, *RUNTIME, "cell", "source", "start"))
# Between two published rows, what they give besides. Where neither gives events, or both do, their
# effects are named alike: a row without events has its effects numbered by us.
TOLD = (
    PUBLISHED_VERDICT,
    "events",
    *(
        f"{what}_after_{phase}"
        for phase in ("fault", "recovery")
        for what in ("execution", "evidence")
    ),
)
NAMED = ("named_effects_after_fault", "named_effects_after_recovery")
FACTS = "facts"  # the column of a difference that no other column shows


@dataclass(frozen=True, slots=True)
class Difference:
    """One value in which two matching rows differ.

    Attributes:
        ours: id of our cell.
        theirs: id of their cell.
        column: the column, or ``facts`` where every column agrees and the facts do not.
        our_value: our value.
        their_value: their value.
    """

    ours: str
    theirs: str
    column: str
    our_value: Value
    their_value: Value


@dataclass(frozen=True, slots=True)
class NotGiven:
    """A column that the published rows of one side leave out, in so many of the matching pairs."""

    column: str
    side: Side
    pairs: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two evidence folders say of the same cells.

    Attributes:
        ours: our folder.
        theirs: their folder.
        pairs: how many pairs of rows match; a published row may match several.
        values: how many values both rows of a pair give.
        differences: where they differ, in the order of our rows.
        not_given: what one side leaves out and the other gives.
        only_ours: ids of our cells that match nothing.
        only_theirs: ids of their cells that match nothing.
    """

    ours: Path
    theirs: Path
    pairs: int
    values: int
    differences: tuple[Difference, ...]
    not_given: tuple[NotGiven, ...]
    only_ours: tuple[str, ...]
    only_theirs: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Nothing differs, and there was something to compare."""
        return not self.differences and self.values > 0


def compare(ours: Evidence, theirs: Evidence) -> Comparison:
    """Compare two sealed evidence folders.

    Rows match on point, fault, dedupe, digest and policy, and on what else both have; on runtime
    and variant where both were measured or both published. Null in a row that others published is
    "not published" and never differs; in a measured row it is a value.

    Raises:
        EvidenceError: a capture of one of them cannot be read, or some are missing.
    """
    mine, yours = _lines(ours), _lines(theirs)
    pairs = [_compared(our, their) for our, their in _matching(mine, yours)]
    absent = Counter(absent for pair in pairs for absent in pair.absent)
    matched = {id(line) for pair in pairs for line in (pair.ours, pair.theirs)}
    sides: tuple[Side, Side] = ("ours", "theirs")
    return Comparison(
        ours=ours.folder,
        theirs=theirs.folder,
        pairs=len(pairs),
        values=sum(pair.values for pair in pairs),
        differences=tuple(found for pair in pairs for found in pair.differences),
        not_given=tuple(
            NotGiven(column, side, absent[column, side])
            for side in sides
            for column in (*COMPARED, *TOLD, *NAMED)
            if (column, side) in absent
        ),
        only_ours=tuple(line.cell for line in mine if id(line) not in matched),
        only_theirs=tuple(line.cell for line in yours if id(line) not in matched),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """What comparing needs of a capture, so that captures need not be kept.

    ``parts`` holds the digest of each part of a measured capture's facts; empty for published ones.
    """

    cell: str
    row: Row
    measured: bool
    parts: Mapping[str, str]

    def key(self) -> tuple[Value, ...]:
        return tuple(self.row[column] for column in (*MATCHING, *RUNTIME))


@dataclass(frozen=True, slots=True)
class _Pair:
    ours: _Line
    theirs: _Line
    values: int
    differences: tuple[Difference, ...]
    absent: tuple[tuple[str, Side], ...]


def _lines(evidence: Evidence) -> list[_Line]:
    return [_line(capture) for capture in evidence.captures()]


def _line(capture: Capture) -> _Line:
    row, cell = rows.row(capture), capture.cell.id
    if capture.measurement.published:
        return _Line(cell, {**row, **_told(capture)}, False, {})
    return _Line(cell, row, True, _parts(capture))


def _told(capture: Capture) -> Row:
    """What a published row gives besides the columns, as text; null where it does not."""
    measured = capture.measurement
    events = to_builtins(measured.events)
    return {
        PUBLISHED_VERDICT: measured.published_verdict,
        "events": f"{len(events)}, sha256:{_sha256(events)}" if events else None,
        **_told_after("fault", measured.after("fault")),
        **_told_after("recovery", measured.after("recover")),
    }


def _told_after(phase: str, observed: Observation | None) -> Row:
    recorded, effects = (observed.recorded, observed.effects) if observed else (None, None)
    return {
        f"execution_after_{phase}": recorded.execution if recorded else None,
        f"evidence_after_{phase}": _text(recorded.evidence if recorded else None),
        f"named_effects_after_{phase}": _text(effects),
    }


def _text(value: tuple[Mapping[str, Json], ...] | tuple[Effect, ...] | None) -> str | None:
    return None if value is None else canonical_json(to_builtins(value)).decode()


def _parts(capture: Capture) -> dict[str, str]:
    measured = capture.measurement
    parts = {
        PUBLISHED_VERDICT: measured.published_verdict,
        "approved": measured.approved,
        "says": measured.says,
        "events": measured.events,
        **{f"observation after {o.after}": o for o in measured.observations},
        "forced": measured.forced,
        "judgement": capture.judgement,
    }
    return {name: _sha256(to_builtins(part)) for name, part in parts.items()}


def _sha256(value: Json) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _matching(ours: list[_Line], theirs: list[_Line]) -> Iterator[tuple[_Line, _Line]]:
    """Every pair of rows that match, in the order of ours.

    Measured rows give all that they match on, so that equal ones are looked up; a published row
    leaves some of it open, and is tried against every row with its point and fault.
    """
    equal: dict[tuple[Value, ...], list[_Line]] = defaultdict(list)
    open_ones: dict[tuple[Value, Value], list[_Line]] = defaultdict(list)
    every: dict[tuple[Value, Value], list[_Line]] = defaultdict(list)
    for their in theirs:
        every[_place(their)].append(their)
        if their.measured:
            equal[their.key()].append(their)
        else:
            open_ones[_place(their)].append(their)
    for our in ours:
        if our.measured:
            tried = [*equal[our.key()], *open_ones[_place(our)]]
        else:
            tried = every[_place(our)]
        yield from ((our, their) for their in tried if _fit(our, their))


def _place(line: _Line) -> tuple[Value, Value]:
    return line.row["point"], line.row["fault"]


def _fit(ours: _Line, theirs: _Line) -> bool:
    alike = (*MATCHING, *RUNTIME) if ours.measured == theirs.measured else MATCHING
    our, their = ours.row, theirs.row
    return all(our[c] == their[c] or our[c] is None or their[c] is None for c in alike)


def _columns(ours: _Line, theirs: _Line) -> tuple[str, ...]:
    if ours.measured or theirs.measured:
        return COMPARED
    alike = (ours.row["events"] is None) == (theirs.row["events"] is None)
    return (*COMPARED, *TOLD, *(NAMED if alike else ()))


def _compared(ours: _Line, theirs: _Line) -> _Pair:
    values = 0
    differences: list[Difference] = []
    absent: list[tuple[str, Side]] = []
    for column in _columns(ours, theirs):
        our, their = ours.row[column], theirs.row[column]
        if our is None and not ours.measured:
            if their is not None:
                absent.append((column, "ours"))
        elif their is None and not theirs.measured:
            if our is not None:
                absent.append((column, "theirs"))
        else:
            values += 1
            if our != their:
                differences.append(Difference(ours.cell, theirs.cell, column, our, their))
    if not differences:
        differences += _unseen(ours, theirs)
    return _Pair(ours, theirs, values, tuple(differences), tuple(absent))


def _unseen(ours: _Line, theirs: _Line) -> Iterator[Difference]:
    """The first part in which the facts of two measured rows differ, though every column agrees."""
    if not (ours.measured and theirs.measured):
        return
    for part, digest in ours.parts.items():
        other = theirs.parts.get(part, "")
        if digest != other:
            mine, yours = (f"{part} sha256:{d[:12]}" for d in (digest, other))
            yield Difference(ours.cell, theirs.cell, FACTS, mine, yours)
            return
