"""A capture that says the same as one before it is not read anew, and nothing passes for that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import consistency, promised, seal, store, write
from rcr_probes.evidence.alike import Examined
from rcr_probes.evidence.check import check
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.form import PLAN
from rcr_probes.evidence.promised import OtherForm
from rcr_probes.evidence.rows import row
from rcr_probes.model import Capture, Cell, Judgement, Measurement, Plan
from rcr_probes.report import tables
from tests.evidence import made
from tests.evidence.made import lines, reseal

ROOT = Path(__file__).parents[2]
CELLS, REPEATS = (made.P3, made.LEFT), 5
LAST = REPEATS - 1  # of the first cell, by its line


def repeated(cell: Cell, repeat: int) -> Capture:
    one = made.capture(cell, 100 + 10 * repeat)
    measured = replace(one.measurement, cell=replace(cell, repeat=repeat))
    return seal.seal(measured, one.judgement, one.circumstances)


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Sound evidence of two cells, each measured five times."""
    captures = [repeated(cell, n) for cell in CELLS for n in range(REPEATS)]
    return made.write(tmp_path / "sweep", captures).folder


def test_each_distinct_fact_is_judged_once(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a cell was measured, it is read and judged once where all agree."""
    judged: list[int | None] = []

    def counted(measured: Measurement) -> Judgement:
        judged.append(measured.cell.repeat)
        return derive(measured)

    monkeypatch.setattr(consistency, "derive", counted)
    report = check(sweep)
    assert (report.sound, report.captures) == (True, 10)
    assert judged == [0, 0]


def with_part(old: bytes, new: bytes) -> Callable[[Path], None]:
    """The last repeat of the first cell, with one part of its line replaced."""

    def change(folder: Path) -> None:
        found = lines(folder)
        assert old in found[LAST]
        found[LAST] = found[LAST].replace(old, new, 1)
        reseal(folder, found)

    return change


def without_numbers(folder: Path) -> None:
    """None of its processes has an id, and none of them took any time."""
    found = lines(folder)
    facts, mark, circumstances = found[LAST].rpartition(b',"circumstances":{')
    found[LAST] = facts + mark + re.sub(rb":[0-9.e-]+", b":", circumstances)
    reseal(folder, found)


def swapped(folder: Path) -> None:
    found = lines(folder)
    found[LAST], found[LAST - 1] = found[LAST - 1], found[LAST]
    reseal(folder, found)


def twice(folder: Path) -> None:
    found = lines(folder)
    reseal(folder, [*found[:LAST], found[LAST - 1], *found[LAST + 1 :]])


def cut(folder: Path) -> None:
    reseal(folder, lines(folder)[:LAST])


def borrowed(folder: Path) -> None:
    """The digest of another repeat."""
    found = lines(folder)
    mine, other = (json.loads(found[n])["facts_sha256"].encode() for n in (LAST, 0))
    found[LAST] = found[LAST].replace(mine, other)
    reseal(folder, found)


def of_another_cell(folder: Path) -> None:
    """The facts of the other cell under this one's name, with fitting digests."""
    found = lines(folder)
    other = seal.decode(found[-1], "here")
    measured = replace(other.measurement, cell=seal.decode(found[LAST], "here").cell)
    found[LAST] = seal.encode(seal.seal(measured, other.judgement, other.circumstances))
    reseal(folder, found)


FORGED: list[Callable[[Path], None]] = [
    with_part(b'"repeat":4', b'"repeat":9'),
    with_part(b'"repeat":4', b'"repeat":04'),
    with_part(b'"repeat":4', b'"repeat":-4'),
    with_part(b'"repeat":4', b'"repeat":4.0'),
    with_part(b'"repeat":4', b'"repeat": 4'),
    with_part(b'"repeat":4', b'"repeat":4,"repeat":4'),
    with_part(b'"repeat":4', b'"repeat":null'),
    with_part(b'"calls":1', b'"calls":2'),
    with_part(b'"verdict":"duplicate_effect"', b'"verdict":"consistent"'),
    with_part(b'"fault":141', b'"fault":140'),
    with_part(b'"fault":141', b'"fault":0'),
    with_part(b'"fault":141', b'"fault":0141'),
    with_part(b'"fault":141', b'"fault":-141'),
    with_part(b'"fault":141', b'"fault":99999999'),
    with_part(b'"fault":141', b'"fault":141,"more":7'),
    with_part(b'"fault":141', b'"fault":141.0'),
    with_part(b'"fault":141', b'"other":141'),
    with_part(b'"fault":0.002', b'"fault":0.0020'),
    with_part(b'"fault":0.002', b'"fault":-0.002'),
    with_part(b'"fault":0.002', b'"fault":2e-3'),
    with_part(b'"fault":0.002', b'"fault":2e999'),
    with_part(b'"fault":0.002', b'"fault":0.0.2'),
    with_part(b'"fault":0.002', b'"fault":1'),
    with_part(b'"parent":140', b'"parent":null'),
    with_part(b'"parent":140', b'"parent":'),
    with_part(b'"parent":140', b'"parent":"140"'),
    with_part(b'"start":"fork","parent":140', b'"start":5"fork","parent":'),
    without_numbers,
    with_part(b'"start":"fork"', b'"start":"spoon"'),
    with_part(b'"circumstances":{', b'"circumstances": {'),
    with_part(b'"facts_sha256":"', b'"facts_sha256":"0'),
    with_part(b'"}\n', b'"}\r\n'),
    with_part(b'"}\n', b'","more":"1"}\n'),
    swapped,
    twice,
    cut,
    borrowed,
    of_another_cell,
]


@pytest.mark.parametrize("forge", FORGED, ids=range(len(FORGED)))
def test_what_is_found_is_what_reading_every_line_finds(
    sweep: Path, monkeypatch: pytest.MonkeyPatch, forge: Callable[[Path], None]
) -> None:
    """A repeat that was changed in anything is told of as if nothing like it had come before."""
    forge(sweep)
    quick = check(sweep)
    monkeypatch.setattr(Examined, "repeat", lambda *_: None)
    assert quick == check(sweep)
    assert not quick.sound


def test_which_repeat_it_is_changes_nothing_that_is_looked_at() -> None:
    """Else a repeat that was not read could be wrong where the one that was read is right."""
    found = [seal.decode(line, "here") for line in lines(ROOT / "evidence" / "locations")]
    for one in found:
        measured = replace(one.measurement, cell=replace(one.cell, repeat=77))
        again = seal.seal(measured, one.judgement, one.circumstances)
        assert not list(consistency.found(again))


@pytest.mark.parametrize("text", ['"repeat":1', ',"circumstances":{"start":', '\\"repeat\\":'])
def test_a_text_that_looks_like_a_part_is_none(text: str) -> None:
    """In a text the quotes are escaped, so a line is cut where its own keys are."""
    one = made.capture(made.P3)
    cell = replace(made.P3, variant=text)
    named = replace(one.measurement, cell=cell, says={text: "open", **one.measurement.says})
    line = seal.encode(seal.seal(named, one.judgement, one.circumstances))
    other = replace(named, cell=replace(cell, repeat=8))
    examined = Examined()
    examined.add(line)
    again = seal.encode(seal.seal(other, one.judgement, one.circumstances))
    assert examined.repeat(again) == (cell, 8)


# The rows of a sweep.


def test_rows_are_those_of_the_captures_and_shared_where_they_say_the_same(sweep: Path) -> None:
    """A table is made of as few rows as there are cells, and is the table of all captures."""
    evidence = store.read(sweep)
    assert list(evidence.rows()) == [row(capture) for capture in evidence.captures()]
    assert len({id(first) for first in [first for first, _ in evidence.told()]}) == len(CELLS)
    frame = tables.tidy(evidence)
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == [*evidence.rows()]
    assert frame["repeat"].dtype == "Int64"


@pytest.mark.parametrize("forge", [swapped, twice, cut, FORGED[0]])
def test_rows_that_the_plan_does_not_promise_are_refused(
    sweep: Path, forge: Callable[[Path], None]
) -> None:
    """Also where the line was not read as a whole."""
    forge(sweep)
    with pytest.raises(EvidenceError, match="the plan promises"):
        list(store.read(sweep).rows())


# What the plan promises.


def planned(folder: Path, *cells: Cell) -> Path:
    folder.mkdir()
    (folder / PLAN).write_bytes(write.encoded(Plan("plan", cells)))
    return folder / PLAN


def numbered(*numbers: tuple[int, int]) -> list[Cell]:
    return [replace(made.P3, seed=seed, repeat=repeat) for seed, repeat in numbers]


@pytest.mark.parametrize(
    "cells",
    [
        numbered((0, 0), (0, 1), (1, 0), (1, 1)),
        numbered((0, 0), (1, 0), (0, 1), (1, 1)),
        [made.CONTROL, *numbered((0, 0), (3, 0)), replace(made.CONTROL, repeat=1)],
    ],
    ids=["repeat fastest", "seed fastest", "two cells in turn"],
)
def test_a_plan_is_read_cell_by_cell(tmp_path: Path, cells: list[Cell]) -> None:
    """Its cells are those that are in it, as often as they are asked for."""
    found = promised.streamed(planned(tmp_path / "here", *cells))
    assert (found.name, found.count, found.distinct) == ("plan", len(cells), True)
    for _ in range(2):
        assert [replace(cell, repeat=n) for cell, n in found.cells()] == cells


@pytest.mark.parametrize(
    "cells",
    [
        numbered((0, 0), (0, 0)),
        numbered((0, 1), (0, 0)),
        numbered((0, 0), (1, 1), (1, 0), (0, 1)),
        [replace(made.P3, repeat=None)],
        [],
    ],
    ids=["twice", "falling", "in no order", "published", "none"],
)
def test_what_a_stream_cannot_vouch_for_is_read_as_a_whole(
    tmp_path: Path, cells: list[Cell]
) -> None:
    """Whether a cell is there twice is then seen from all of them."""
    with pytest.raises(OtherForm):
        promised.streamed(planned(tmp_path / "here", *cells))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"small"', b'"sm\\u0061ll"'),
        (b'"repeat": 1', b'"repeat": 01'),
        (b'"repeat": 1', b'"repeat":  1'),
        (b'"seed": 0', b'"seed": 0,\n      "more": 0'),
        (b"    },\n", b"    } ,\n"),
        (b"  ]\n}\n", b"  ]\n}"),
        (b"  ]\n}\n", b'  ],\n  "more": 1\n}\n'),
        (b'"name"', b'"name": "x",\n  "name"'),
    ],
)
def test_a_plan_of_another_form_is_told_of(
    sweep: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes
) -> None:
    """What is found in it is what reading it as a whole finds."""
    data = (sweep / PLAN).read_bytes()
    assert old in data
    (sweep / PLAN).write_bytes(data.replace(old, new, 1))
    quick = check(sweep)

    def refused(_: Path) -> None:
        raise OtherForm

    monkeypatch.setattr(promised, "streamed", refused)
    assert quick == check(sweep)
    assert not quick.sound


def test_a_plan_that_changes_while_it_is_read_is_a_finding(
    sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read beside the captures once more, and may be another by then."""
    streamed = promised.streamed

    def then_changed(path: Path) -> promised.Promised:
        found = streamed(path)
        path.write_bytes(path.read_bytes().replace(b"    {", b"   {"))
        return found

    monkeypatch.setattr(promised, "streamed", then_changed)
    assert "changed while it was read" in str(check(sweep).findings[0])
