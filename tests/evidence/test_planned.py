"""A plan that is kept as few cells and numbers is the plan that stands in its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import planned, promised, store, write
from rcr_probes.evidence.form import PLAN
from rcr_probes.evidence.planned import Planned
from rcr_probes.evidence.promised import OtherForm
from rcr_probes.model import Cell, Plan
from tests.evidence import made

P0 = Cell(point="none", fault="none")
SWEPT = tuple(replace(c, repeat=n) for c in (P0, made.P3) for n in range(5))
SEEDS = tuple(replace(made.P3, seed=n, repeat=m) for n in (3, 7, 2**40) for m in (0, 1))
ROUNDS = tuple(replace(c, repeat=n) for n in range(3) for c in (made.P3, P0))
ODD = (replace(made.P3, variant='},\n    {\n"seed": 1,\n      "repeat": 2'), made.P3)
PUBLISHED = (replace(made.P3, seed=None, repeat=None), P0)
SHUFFLED = tuple(replace(made.P3, repeat=n, seed=5 - n) for n in (2, 0, 1))


def written(folder: Path, cells: Sequence[Cell]) -> Path:
    path = folder / PLAN
    path.write_bytes(write.encoded(Plan("plan", cells)))
    return path


@pytest.mark.parametrize("cells", [SWEPT, SEEDS, ROUNDS, ODD])
def test_what_is_kept_in_few_bytes_is_what_stands_there(
    tmp_path: Path, cells: tuple[Cell, ...]
) -> None:
    """From the front, by number, in part, and compared from either side."""
    read = planned.read(written(tmp_path, cells))
    assert read == Plan("plan", cells) == read
    kept = read.cells
    assert isinstance(kept, Planned)
    assert tuple(kept) == cells == tuple(kept[n] for n in range(len(cells)))
    assert (kept[-1], kept[1:3], len(kept)) == (cells[-1], cells[1:3], len(cells))
    assert [*map(promised.whole, planned.numbered(read))] == [*cells]
    assert kept != cells[:-1]
    assert kept != (*cells[:-1], P0.id)
    with pytest.raises(IndexError):
        kept[len(cells)]


@pytest.mark.parametrize("cells", [PUBLISHED, SHUFFLED])
def test_what_cannot_be_kept_so_is_read_as_a_whole(tmp_path: Path, cells: tuple[Cell, ...]) -> None:
    """What has no number, or is in an order that does not show its cells to be distinct."""
    with pytest.raises(OtherForm):
        planned.read(written(tmp_path, cells))
    assert store.read_plan(tmp_path) == Plan("plan", cells)


def test_a_plan_in_another_spelling_is_the_same_plan(tmp_path: Path) -> None:
    """As nobody indents it, or with a key in it that no cell has."""
    path = written(tmp_path, SWEPT)
    text = path.read_bytes()
    for other in (
        msgspec.json.encode(Plan("plan", SWEPT)),
        text.replace(b'"fault": ', b'"more": {"seed": 3},\n      "fault": '),
        text.replace(b"    },\n    {\n", b"    }, {\n", 1),
    ):
        path.write_bytes(other)
        assert store.read_plan(tmp_path) == Plan("plan", SWEPT)


@pytest.mark.parametrize(
    ("spelled", "other"),
    [(b"", b""), (b'"fault": ', b'"fault":  '), (b'"digest": "s', b'"digest": "\\u0073')],
)
def test_a_cell_that_is_there_twice_is_found_in_whatever_spelling(
    folder: Path, spelled: bytes, other: bytes
) -> None:
    """Of texts that differ, one cell may be meant."""
    head, opened, rest = (folder / PLAN).read_bytes().partition(b'"cells": [\n    ')
    block = rest.partition(b"    },\n")[0] + b"    },\n    "
    assert spelled in block
    (folder / PLAN).write_bytes(head + opened + block.replace(spelled, other) + rest)
    with pytest.raises(EvidenceError, match="holds a cell twice"):
        store.read(folder)


@pytest.mark.parametrize("damage", [(b'"fault"', b'"fualt"'), (b'"repeat": 1', b'"repeat": x')])
def test_a_plan_that_cannot_be_read_is_refused(tmp_path: Path, damage: tuple[bytes, bytes]) -> None:
    path = written(tmp_path, SWEPT)
    path.write_bytes(path.read_bytes().replace(*damage))
    with pytest.raises(EvidenceError, match="cannot be read"):
        store.read_plan(tmp_path)
