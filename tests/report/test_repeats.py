"""Repeats of a cell are one result, or unstable; what to change is read off the other cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from matplotlib.text import Text

from benchmarks import _sweep
from rcr_probes.evidence import store
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import Capture, Cell, Verdict
from rcr_probes.report import matrix, tables
from rcr_probes.report.figure import FORMATS, rendered
from rcr_probes.report.repeats import (
    SOUND,
    UNSTABLE,
    Repeated,
    change,
    gap,
    repeated,
    split,
    table,
)
from rcr_probes.report.texts import LANGS, text
from rcr_probes.vocabulary import VERDICTS, Eligibility
from tests.report.conftest import ROOT


def unsettled(evidence: Evidence) -> Evidence:
    """The same evidence, with another verdict in the last repeat of its last cell."""

    def changed() -> Iterator[Capture]:
        *all_but, last = evidence.captures()
        yield from all_but
        judged = replace(last.judgement, verdict=Verdict("blocked", ()))
        yield replace(last, judgement=judged)

    return replace(evidence, remembered=tuple(changed()))


def by_key(evidence: Evidence) -> dict[Cell, Repeated]:
    return {one.key: one for one in repeated(evidence)}


def test_every_cell_stands_once_with_all_its_repeats(repeats: Evidence) -> None:
    """In the order of the plan, and no capture is left out."""
    found = repeated(repeats)
    assert sum(len(one.rows) for one in found) == len(repeats.plan.cells)
    assert [one.cell for one in found] == [c for c in repeats.plan.cells if c.repeat == 0]
    assert not any(one.differs for one in found)


def test_repeats_that_differ_are_unstable_and_never_averaged(repeats: Evidence) -> None:
    """Both verdicts are shown, in the order of the repeats, with a sentence that says why."""
    last = repeated(unsettled(repeats))[-1]
    assert last.result == UNSTABLE
    assert set(last.differs) == {"verdict", "reasons"}
    *_, shown = table(unsettled(repeats)).to_dict("records")
    assert shown["verdict"].startswith("unstable (")
    assert shown["verdict"].endswith(" / blocked)")
    assert "verdict" in shown["what to change"]


def test_what_to_change_is_what_came_out_sound_in_the_same_evidence(repeats: Evidence) -> None:
    """A key, another way, another configuration: only where a cell of the evidence shows it."""
    others = by_key(repeats)
    sentences = Counter((one.result, bool(change(one, others))) for one in repeated(repeats))
    assert all(said is (result not in SOUND) for result, said in sentences)
    doubled = next(
        one
        for one in repeated(repeats)
        if one.result == "duplicate_effect" and one.cell.variant == "baseline"
    )
    assert "operation key" in change(doubled, others)
    alone = {doubled.key: doubled}
    assert "operation key" not in change(doubled, alone)


def test_a_seed_is_one_repeat_more(tmp_path: Path) -> None:
    """It gives other names: a sweep is as long a table as its cells are many, in any medium."""
    evidence = store.read(_sweep.sealed(tmp_path / "sweep", 540, seeds=True))
    found = repeated(evidence)
    assert {len(one.rows) for one in found} == {10}
    assert [one.cell for one in found] == [c for c in evidence.plan.cells if c.seed == 0]
    assert not any(one.differs for one in found)
    assert len(table(evidence)) == len(found) == 54
    assert not table(evidence).duplicated(["point", "fault", "dedupe", "policy"]).any()


def test_of_many_repeats_it_is_told_how_often_each_was_seen(tmp_path: Path) -> None:
    """Nobody reads ten thousand verdicts in one line."""
    evidence = store.read(_sweep.sealed(tmp_path / "sweep", 540, seeds=True))
    last = repeated(unsettled(evidence))[-1]
    before = repeated(evidence)[-1].result
    assert last.each("verdict") == f"{before} (9) / blocked (1)"
    assert last.cell.seed == 0


def test_what_to_change_rests_on_no_cell_of_another_request(repeats: Evidence) -> None:
    """What came out sound under another digest, or around recovery, says nothing of this cell."""
    found = repeated(repeats)
    doubled = next(one for one in found if one.result == "duplicate_effect")
    said = change(doubled, {one.key: one for one in found})
    axes: dict[str, Any] = {"digest": "changed", "recovery_fault": "twice", "recoverers": 2}
    for axis, value in axes.items():
        others = [replace(one, cell=replace(one.cell, **{axis: value})) for one in found]
        each = {one.key: one for one in (*found, *others)}
        assert len(each) == 2 * len(found), axis
        assert change(doubled, each) == said
        apart = {one.key: one for one in (doubled, *others)}
        assert change(doubled, apart) == text(f"action.{doubled.result}", "en"), axis


def test_the_gap_is_what_the_first_configuration_does_with_an_executor_that_acts_on_every_call(
    repeats: Evidence,
) -> None:
    """The rows of the whole table that are of it, a recovery each, and no others."""
    shown = gap(repeats).to_dict("records")
    [runtime] = {row["runtime"] for row in shown}
    assert [(row["policy"], row["effects"]) for row in shown] == [
        (row["policy"], row["effects"])
        for row in table(repeats).to_dict("records")
        if (row["runtime"], row["point"], row["dedupe"]) == (runtime, "after_action", "none")
    ]
    assert {row["verdict"] for row in shown} == {"duplicate_effect", "protected"}


@pytest.mark.parametrize("folder", ["runtimes", "locations"])
def test_who_recovered_is_told_of_every_cell_once(folder: str) -> None:
    """Again, never or the runtime's own way: together the cells of a verdict, which are all."""
    evidence = store.read(ROOT / "evidence" / folder)
    cells = repeated(evidence)
    rows = split(evidence).to_dict("records")
    again, never, own = "under again", "under never", "under a way of the runtime's own"
    assert sum(row["cells"] for row in rows) == len(cells)
    for row in rows:
        having = [one.cell for one in cells if one.result == row["verdict"]]
        assert row["cells"] == len(having) == row[again] + row[never] + row[own]
        assert row[again] == sum(cell.policy == "again" for cell in having)
        assert row["of all, without a fault"] == sum(cell.point == "none" for cell in having)
    assert any(row[own] for row in rows)
    assert len({row["cells"] for row in rows}) > 1


def test_an_unstable_cell_is_a_row_of_its_own_in_the_split(repeats: Evidence) -> None:
    """It is counted under none of its verdicts."""
    *_, last = split(unsettled(repeats)).to_dict("records")
    assert last["verdict"].startswith("unstable")
    assert last["cells"] == 1


@pytest.mark.parametrize(("lang", "said"), [("en", "{}"), ("zh", "对账（{}）")])
def test_what_was_allowed_is_told_in_words(repeats: Evidence, lang: str, said: str) -> None:
    """In the whole table as in the gap."""
    for frame in (table(repeats, lang), gap(repeats, lang)):
        shown = set(frame[text("column.eligibility", lang)])
        assert said.format("reconcile") in shown
        assert shown <= {text(f"eligibility.{one}", lang) for one in get_args(Eligibility)}


@pytest.mark.parametrize("lang", LANGS)
def test_the_matrix_has_a_square_for_each_cell_and_the_table_a_row(
    repeats: Evidence, lang: str
) -> None:
    """The figure and its table in words hold the same cells, in both languages."""
    found = repeated(repeats)
    drawn = matrix.matrix(repeats, lang)
    gids = [gid for artist in drawn.findobj() if (gid := artist.get_gid()) is not None]
    assert sorted(gids) == sorted(one.cell.id for one in found)
    assert len(table(repeats, lang)) == len(found)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("suffix", FORMATS)
def test_the_matrix_is_drawn_to_the_same_bytes_on_every_run(
    repeats: Evidence, lang: str, suffix: str
) -> None:
    """Also where a cell is unstable; every character has a glyph."""
    shown = unsettled(repeats)
    first, second = (rendered(matrix.matrix(shown, lang), suffix) for _ in range(2))
    assert first == second


def test_the_matrix_shows_the_effects_that_the_tidy_table_counts(repeats: Evidence) -> None:
    """The number in a square is that of the capture."""
    tidy = tables.tidy(repeats)
    shown = [found.get_text() for found in matrix.matrix(repeats).findobj(Text)]
    counted = tidy[tidy["repeat"] == 0]["effects_after_recovery"].value_counts()
    assert {n: shown.count(str(n)) for n in counted.index} == counted.to_dict()


def lightness(colour: str) -> float:
    """CIE L* of a colour: what is left of it without its hue, from 0 to 100."""
    levels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in levels]
    luminance = sum(w * one for w, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def test_no_two_results_of_a_square_look_alike_to_whoever_sees_no_hue() -> None:
    """Each is edged, hatched, or of a lightness of its own."""
    shown: dict[tuple[str, str | None], list[float]] = {}
    for result, colour in matrix.COLOURS.items():
        sign = (matrix._edge(result), matrix._HATCHED.get(result))
        shown.setdefault(sign, []).append(lightness(colour))
    assert sum(map(len, shown.values())) == len(VERDICTS) + 1
    for levels in map(sorted, shown.values()):
        assert all(lighter - darker > 6 for darker, lighter in pairwise(levels))
