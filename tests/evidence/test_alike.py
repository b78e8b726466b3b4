"""A capture that says the same as one before it is not read anew, and nothing passes for that."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._sweep import reseeded
from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import consistency, promised, seal, store, write
from rcr_probes.evidence.alike import Examined
from rcr_probes.evidence.check import Report, check
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.form import PLAN
from rcr_probes.evidence.promised import OtherForm
from rcr_probes.evidence.rows import row
from rcr_probes.model import Capture, Cell, Judgement, Measurement, Plan, canonical_json
from rcr_probes.report import tables
from rcr_probes.vocabulary import REFERENCE
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


def whole(folder: Path) -> Report:
    """What a check finds that reads every line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Examined, "alike", lambda *_: None)
        return check(folder)


@pytest.mark.parametrize("forge", FORGED, ids=range(len(FORGED)))
def test_what_is_found_is_what_reading_every_line_finds(
    sweep: Path, forge: Callable[[Path], None]
) -> None:
    """A repeat that was changed in anything is told of as if nothing like it had come before."""
    forge(sweep)
    quick = check(sweep)
    assert quick == whole(sweep)
    assert not quick.sound


@pytest.mark.parametrize("evidence", ["locations", "contrast", "power_local", "syscalls"])
def test_which_seed_and_repeat_it_is_changes_nothing_that_is_looked_at(evidence: str) -> None:
    """Else one that was not read could be wrong where the one that was read is right."""
    for line in islice(lines(ROOT / "evidence" / evidence), 0, None, 7):
        one = reseeded(seal.decode(line, "here"), 40)
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
    assert examined.alike(again) == (cell, 0, 8)


# A sweep of seeds: the same under other names.


def of_seeds(folder: Path) -> Path:
    """Sound evidence of two cells as they were measured, under six seeds."""
    found = [seal.decode(line, "here") for line in lines(ROOT / "evidence" / "article")]
    captures = [reseeded(one, seed) for one in found[3:5] for seed in range(7, 13)]
    return made.write(folder, captures).folder


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    return of_seeds(tmp_path / "seeds")


def test_seeds_that_say_the_same_are_judged_once(
    seeds: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each length that a seed has: a line is compared with one as long as it."""
    judged: list[int | None] = []

    def counted(measured: Measurement) -> Judgement:
        judged.append(measured.cell.seed)
        return derive(measured)

    monkeypatch.setattr(consistency, "derive", counted)
    report = check(seeds)
    assert (report.sound, report.captures) == (True, 12)
    assert judged == [7, 10, 7, 10]


DIGEST = re.compile(rb"(?<=sha256:)[0-9a-f]{64}")
INJECTED = b'a","status":"done","more":"'.ljust(64, b"a")


def with_digests(change: Callable[[bytes], bytes], *which: int) -> Callable[[list[bytes]], None]:
    """Some of the digests of the second seed are other ones."""

    def forge(found: list[bytes]) -> None:
        texts = DIGEST.split(found[1])
        digests = DIGEST.findall(found[1])
        for place in which or range(len(digests)):
            digests[place] = change(digests[place])
        digests.append(b"")
        found[1] = b"".join(a + b for a, b in zip(texts, digests, strict=True))

    return forge


def renamed(old: bytes, new: bytes, count: int) -> Callable[[list[bytes]], None]:
    def forge(found: list[bytes]) -> None:
        assert old in found[1]
        found[1] = found[1].replace(old, new, count)

    return forge


def exchanged(found: list[bytes]) -> None:
    """One seed tells what the other was found to do, and keeps its own seal."""
    _, _, first = found[0].rpartition(b'"facts_sha256"')
    facts, mark, _ = found[1].rpartition(b'"facts_sha256"')
    found[1] = facts + mark + first


def copied(found: list[bytes]) -> None:
    """What was told of one seed, under the number of the other."""
    found[1] = found[0].replace(b'"seed":7', b'"seed":8', 1)


def injected(found: list[bytes]) -> None:
    """What stands where a digest should brings a key with it, under a seal that fits the bytes."""
    one = seal.decode(found[1], "here")
    facts = canonical_json({"measurement": one.measurement, "judgement": one.judgement})
    sealed = hashlib.sha256(DIGEST.sub(INJECTED, facts)).hexdigest().encode()
    told, mark, _ = found[1].rpartition(b',"facts_sha256":"')
    found[1] = DIGEST.sub(INJECTED, told) + mark + sealed + b'"}\n'


OTHERWISE: list[Callable[[list[bytes]], None]] = [
    with_digests(lambda _: b"0" * 64),
    with_digests(lambda _: b"0" * 64, 0),
    with_digests(bytes.upper),
    with_digests(lambda _: INJECTED),
    with_digests(lambda _: INJECTED, 1),
    with_digests(lambda digest: digest + b"0"),
    *(
        renamed(old, new, count)
        for old, new in [
            (b'"seed":8', b'"seed":9'),
            (b'"seed":8', b'"seed":08'),
            (b'"seed":8', b'"seed":8,"seed":8'),
            (b'"operation-8"', b'"operation-7"'),
            (b'"operation-8"', b'"operation-88"'),
            (b'"marker-8"', b'"marker-7"'),
            (b'"marker-8"', b'"marker-8@session-1"'),
            (b'"calls":1', b'"calls":2'),
            (b'"EISDIR"', b'"EIO"'),
        ]
        for count in (1, -1)
    ),
    exchanged,
    copied,
    injected,
]


@pytest.mark.parametrize("sealed", [False, True], ids=["as it was sealed", "sealed anew"])
@pytest.mark.parametrize("forge", OTHERWISE, ids=range(len(OTHERWISE)))
def test_what_is_found_in_seeds_is_what_reading_every_line_finds(
    seeds: Path, forge: Callable[[list[bytes]], None], sealed: bool
) -> None:
    """Nothing passes that did not say the same, and nothing is accused that did."""
    found = lines(seeds)
    forge(found)
    if sealed:
        found[1] = as_sealed(found[1])
    reseal(seeds, found)
    assert check(seeds) == whole(seeds)


def as_sealed(line: bytes) -> bytes:
    """The same line, with the digest that fits it, if it is one of a capture at all."""
    try:
        one = seal.decode(line, "here")
    except EvidenceError:
        return line
    return seal.encode(seal.seal(one.measurement, one.judgement, one.circumstances))


def test_what_one_seed_does_not_name_another_may(seeds: Path) -> None:
    """An effect elsewhere is harm in one cell; in that to which the place belongs it is none."""
    captures = [seal.decode(line, "here") for line in lines(seeds)[:3]]
    place = captures[1].measurement.approved.target
    first, second, third = (strayed(one, place) for one in captures)
    assert not list(consistency.found(first))
    assert second.judgement != first.judgement == third.judgement
    examined = Examined()
    examined.add(seal.encode(first))
    forged = seal.seal(second.measurement, first.judgement, second.circumstances)
    assert examined.alike(seal.encode(forged)) is None
    assert examined.alike(seal.encode(third)) is not None


def strayed(one: Capture, target: str) -> Capture:
    """The same of a runtime that nothing else is known of, where recovery acts on this target."""
    line = seal.encode(one).replace(REFERENCE.encode(), b"some_runtime:Own")
    own = one.measurement.approved.target.encode()
    seen, mark, forced = line.partition(b'"forced":')
    elsewhere = rb"\g<1>" + target.encode()
    seen = re.sub(rb'("effect_id":"E2",[^}]*"target":")%b' % own, elsewhere, seen)
    measured = seal.decode(seen + mark + forced, "here").measurement
    return seal.seal(measured, derive(measured), one.circumstances)


def test_a_name_that_is_a_key_is_read_as_a_whole(seeds: Path) -> None:
    """Keys are sorted by what they say, so under other names their order may be another."""
    captures = [seal.decode(line, "here") for line in lines(seeds)[:2]]
    examined = Examined()
    for one in captures:
        key = one.measurement.approved.operation_key
        named = replace(one.measurement, says={key: "open", **one.measurement.says})
        line = seal.encode(seal.seal(named, one.judgement, one.circumstances))
        assert examined.alike(line) is None
        examined.add(line)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    folder = of_seeds(tmp_path_factory.mktemp("sound") / "seeds")
    return folder, lines(folder)


@given(
    line=st.integers(0, 11),
    at=st.integers(0, 6000),
    length=st.integers(0, 3),
    new=st.binary(max_size=2) | st.sampled_from([b"0", b"1", b'"', b",", b"-", b"}", b"\0"]),
    sealed=st.booleans(),
)
@settings(max_examples=150)
def test_nothing_passes_because_something_like_it_did(
    sound: tuple[Path, list[bytes]], line: int, at: int, length: int, new: bytes, sealed: bool
) -> None:
    """Whatever is changed in a line, somewhere."""
    folder, found = sound[0], [*sound[1]]
    place = at % len(found[line])
    found[line] = found[line][:place] + new + found[line][place + length :]
    if sealed:
        found[line] = as_sealed(found[line])
    reseal(folder, found)
    assert check(folder) == whole(folder)


# The rows of a sweep.


def test_rows_are_those_of_the_captures_and_shared_where_they_say_the_same(sweep: Path) -> None:
    """A table is made of as few rows as there are cells, and is the table of all captures."""
    evidence = store.read(sweep)
    assert list(evidence.rows()) == [row(capture) for capture in evidence.captures()]
    assert len({id(first) for first in [first for first, *_ in evidence.told()]}) == len(CELLS)
    frame = tables.tidy(evidence)
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == [*evidence.rows()]
    assert frame["repeat"].dtype == "Int64"


def test_rows_of_seeds_are_shared_too_unless_they_tell_a_name(seeds: Path) -> None:
    """A state may be called as a key is: then it is another one for each seed."""
    evidence = store.read(seeds)
    assert list(evidence.rows()) == [row(capture) for capture in evidence.captures()]
    assert len({id(first) for first, *_ in evidence.told()}) == 2
    found = lines(seeds)
    for n, line in enumerate(found):
        seed = b"%d" % (7 + n % 6)
        found[n] = line.replace(b'"status":"failed"', b'"status":"operation-%b"' % seed)
    assert found != lines(seeds)
    reseal(seeds, found)
    named = store.read(seeds)
    assert list(named.rows()) == [row(capture) for capture in named.captures()]
    assert "operation-12" in {one["state_after_fault"] for one in named.rows()}


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
        assert [*map(promised.whole, found.cells())] == cells


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
