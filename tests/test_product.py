"""A table of cells is a product, less what its filters leave out."""

from __future__ import annotations

import itertools
import math
import time
import tracemalloc
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rcr_probes import plan
from rcr_probes.errors import PlanError, RcrError, UnknownName
from rcr_probes.model import Cell, Plan
from rcr_probes.product import product
from rcr_probes.vocabulary import RECOVERY_FAULTS

AXES: dict[str, Any] = {
    "point": ["before_action", "after_action", "response"],
    "fault": ["exception", "kill"],
    "policy": ["again", "resume"],
}
TABLE = """[[cells]]
point = ["before_action", "after_action", "response"]
fault = ["exception", "kill"]
policy = ["again", "resume"]
"""


def read(tmp_path: Path, text: str) -> Sequence[Cell]:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return plan.read(path).cells


def ids(cells: Sequence[Cell]) -> list[str]:
    return [cell.id for cell in cells]


def test_without_leaves_out_the_cells_of_which_one_of_its_filters_is_true(tmp_path: Path) -> None:
    """All axes of a filter must agree, each with one of its values; the order stays."""
    text = TABLE + (
        'without = [{ point = "response" }, { point = "before_action", fault = ["kill"] }]\n'
    )
    assert ids(read(tmp_path, text)) == [
        "before_action/exception/none/same/again",
        "before_action/exception/none/same/resume",
        "after_action/exception/none/same/again",
        "after_action/exception/none/same/resume",
        "after_action/kill/none/same/again",
        "after_action/kill/none/same/resume",
    ]


def test_only_keeps_the_cells_of_which_one_of_its_filters_is_true(tmp_path: Path) -> None:
    """A single filter needs no list; what only keeps, without may still leave out."""
    text = TABLE + 'only = { fault = "kill" }\nwithout = { point = "response", policy = "again" }\n'
    assert ids(read(tmp_path, text)) == [
        "before_action/kill/none/same/again",
        "before_action/kill/none/same/resume",
        "after_action/kill/none/same/again",
        "after_action/kill/none/same/resume",
        "response/kill/none/same/resume",
    ]


def test_a_filter_can_be_a_table_of_its_own(tmp_path: Path) -> None:
    """Where there are several, TOML reads better so."""
    text = TABLE + '[[cells.without]]\npoint = "response"\n[[cells.without]]\nfault = "kill"\n'
    assert len(read(tmp_path, text)) == 4


def test_seed_and_repeat_take_ranges_that_hold_both_ends(tmp_path: Path) -> None:
    """In an axis and in a filter."""
    text = (
        '[[cells]]\npoint = "none"\nfault = "none"\nseed = { from = 3, to = 6 }\n'
        "repeat = { from = 0, to = 1 }\nwithout = { seed = { from = 4, to = 5 }, repeat = 1 }\n"
    )
    made = [(cell.seed, cell.repeat) for cell in read(tmp_path, text)]
    assert made == [(3, 0), (3, 1), (4, 0), (5, 0), (6, 0), (6, 1)]


def test_python_says_it_in_the_same_words(tmp_path: Path) -> None:
    """What TOML has as a key is an argument, and a range is a range."""
    text = TABLE + 'seed = { from = 0, to = 9 }\nonly = { fault = "kill", seed = [1, 2] }\n'
    made = product(**AXES, seed=range(10), only={"fault": "kill", "seed": range(1, 3)})
    assert made == read(tmp_path, text)
    assert made == product(
        **AXES, seed={"from": 0, "to": 9}, only=[{"fault": "kill", "seed": [1, 2]}]
    )


def test_cells_are_a_sequence_like_any_other_though_none_is_made_before_it_is_asked_for() -> None:
    """Of one table, and of several one after another, in which a cell may be there twice."""
    one = product(**AXES, without={"fault": "kill", "point": "response"})
    several = one + product(point="none", fault="none", seed=range(3)) + one
    for cells, tables in ((one, 1), (several, 3)):
        listed = list(cells)
        assert cells == tuple(listed)
        assert len(cells) == len(listed)
        assert [cells[place] for place in range(-len(listed), len(listed))] == listed * 2
        assert cells[2:-1] == tuple(listed[2:-1])
        assert cells != listed[:-1]
        assert cells.distinct is (tables == 1)
        with pytest.raises(IndexError):
            cells[len(listed)]
    with pytest.raises(PlanError, match="twice"):
        plan.validated(Plan("mine", several))


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ('without = { pont = "response" }', "axis in without: 'pont'", "Did you mean 'point'"),
        ('only = { point = "respond" }', "point in only: 'respond'", "Did you mean 'response'"),
        ('only = { dedupe = "pair" }', "dedupe in only: 'pair'", "Known: none"),
        ("without = { seed = 3 }", "seed in without: 3", "Known: 0"),
        ("without = { seed = true }", "wrong type", "a whole number"),
        ("without = {}", "is no filter", "without = { point"),
        ("without = []", "is no filter", "or a list of such"),
        ("only = [1]", "is no filter", "only = { point"),
        ('only = "kill"', "is no filter", "only = { point"),
        ('without = { fault = ["kill", "exception"] }', "leave no cell", "the whole table"),
        ('without = { digest = "same" }', "leave no cell", "Drop one"),
        ('only = { fault = ["kill", "exception"] }', "keeps every cell", "Drop it"),
        ('only = { digest = "same" }', "keeps every cell", "Drop it"),
        (
            'only = { fault = "kill" }\nwithout = { fault = "exception" }',
            "leaves out no cell",
            "Mend it",
        ),
        (
            'only = [{ fault = "kill" }, { fault = "kill", policy = "again" }]',
            "keeps no cell",
            "another filter had them",
        ),
        (
            'without = [{ fault = "kill" }, { fault = "kill" }]',
            "leaves out no cell",
            "another filter had them",
        ),
        ("without = { fault = [] }", "fault has no values", "one value or more"),
        ('without = { fault = ["kill", "kill"] }', "'kill' twice", "Name it once"),
        ("seed = [1, 2, 1]", "seed has the value 1 twice", "vary repeat"),
        ('dedupe = ["none", "none"]', "'none' twice", "Name it once"),
        ("seed = { from = 5, to = 4 }", "from 5 to 4", "seed = { from = 4, to = 5 }"),
        ("seed = { from = 1 }", "seed lacks to", "Write seed = { from = 0, to = 9 }"),
        ("seed = {}", "seed lacks from and to", "Write seed = { from = 0, to = 9 }"),
        ("seed = { from = 0, too = 9 }", "'too'", "Did you mean 'to'? Known: from, to. Write seed"),
        ("repeat = { from = 1, to = 2, step = 3 }", "'step'", "Known: from, to. Write repeat = {"),
        ("seed = { from = 0.5, to = 9 }", "from = 0.5, which is no", "Write seed = { from = 0,"),
        ("seed = { from = 0, to = true }", "to = True, which is no whole number", "Write seed"),
        ("seed = { from = -1, to = 2 }", "out of range", "Count from 0"),
        ('seed = { from = "0", to = 2 }', "from = '0', which is no", "whole numbers"),
        (f"seed = {{ from = 0, to = {2**53} }}", "out of range", "Count from 0"),
        (f"seed = {{ from = 0, to = {2**53 - 1} }}", "before any is left out", "1000000 at most"),
        ('pairwise = ["point", "fault"]', "names no three axes", "every pair is every combination"),
        ('pairwise = ["point", "fault", "fault"]', "names no three axes", "Write pairwise ="),
        ('pairwise = "point"', "names no three axes", "Write pairwise ="),
        ('pairwise = ["point", "fault", "polcy"]', "axis in pairwise: 'polcy'", "Did you mean"),
        ('pairwise = ["point", "fault", "digest"]', "digest, of which", "Give the axis several"),
        ("recoverers = { from = 1, to = 2 }", "gives no values", "for seed and repeat alone"),
        ("policy = { from = 1, to = 2 }", "gives no values", "for seed and repeat alone"),
    ],
)
def test_a_table_that_does_not_do_what_it_says_is_refused(
    tmp_path: Path, text: str, cause: str, remedy: str
) -> None:
    """A filter that takes away nothing, or everything; an axis or a value that is not there."""
    table = TABLE.replace('policy = ["again", "resume"]\n', "") if text[:6] == "policy" else TABLE
    with pytest.raises(RcrError) as caught:
        read(tmp_path, f"{table}{text}\n")
    assert cause in caught.value.cause
    assert remedy in str(caught.value)
    assert caught.value.exit_code == 2


def test_cells_equal_the_same_cells_and_nothing_else() -> None:
    """Whatever holds them."""
    cells = product(**AXES)
    assert cells == list(cells)
    assert cells == tuple(cells)
    assert cells != list(cells)[1:]
    assert product(point="none", fault="none") not in (["x"], "x", [None])


def test_a_word_that_is_neither_axis_nor_filter_is_answered_with_the_nearest() -> None:
    """Also where somebody would have written except."""
    with pytest.raises(UnknownName, match="Did you mean 'without'"):
        product(**AXES, withot={"fault": "kill"})
    with pytest.raises(UnknownName, match="Did you mean 'pairwise'"):
        product(**AXES, pairwize=["point", "fault", "policy"])
    with pytest.raises(UnknownName, match="without"):
        product(**AXES | {"except": {"fault": "kill"}})


def test_a_number_that_is_no_number_is_refused_in_every_cell() -> None:
    """That a combination was seen before does not let a bad seed through."""
    good = Cell(point="none", fault="none")
    for seed in (True, -1, "1", None):
        bad = Cell(point="none", fault="none", seed=seed)  # type: ignore[arg-type]
        with pytest.raises(PlanError, match="seed"):
            plan.validated(Plan("mine", (good, bad)))


@given(st.data())
def test_filters_choose_what_a_reader_would_choose_by_hand(data: st.DataObject) -> None:
    """Kept is what only names and without does not, in the order of the whole product."""

    def filters(kind: str) -> list[dict[str, list[str]]] | None:
        several = {
            a: st.lists(st.sampled_from(v), min_size=1, unique=True) for a, v in AXES.items()
        }
        one = st.fixed_dictionaries({}, optional=several).filter(bool)
        return data.draw(st.none() | st.lists(one, min_size=1, max_size=3), label=kind)

    def named(cell: Cell, some: list[dict[str, list[str]]]) -> bool:
        return any(all(getattr(cell, a) in v for a, v in one.items()) for one in some)

    only, without = filters("only"), filters("without")
    whole = product(**AXES)
    wanted = [c for c in whole if only is None or named(c, only)]
    wanted = [c for c in wanted if without is None or not named(c, without)]
    try:
        made = list(product(**AXES, only=only, without=without))
    except PlanError as error:
        idle = ("no cell that is left", "keeps every cell")
        made = wanted if any(words in error.cause for words in idle) else []
    assert made == wanted


def pairs(cells: Iterable[Cell], axes: Sequence[str]) -> set[tuple[object, ...]]:
    """Every pair of values that some cell has in two of these axes."""
    return {
        (a, getattr(cell, a), b, getattr(cell, b))
        for cell in cells
        for a, b in itertools.combinations(axes, 2)
    }


COVERED: dict[str, list[str]] = {
    "dedupe": ["none", "operation_key", "claim_first"],
    "digest": ["same", "changed", "reordered", "volatile", "coarse"],
    "witness": ["exact", "lagging", "absent", "damaged"],
    "recovery_fault": ["none", "twice", "torn_line", "nulls"],
}


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(sorted(COVERED)), min_size=3, unique=True),
    st.lists(
        st.fixed_dictionaries({a: st.sampled_from(v) for a, v in list(COVERED.items())[:2]}),
        unique_by=lambda one: tuple(sorted(one.items())),
        max_size=6,
    ),
)
def test_a_pairwise_table_holds_every_pair_that_its_filters_leave_and_few_cells_else(
    paired: list[str], without: list[dict[str, str]]
) -> None:
    """Each with every value of the axes that are not paired, in the order of the whole product."""
    axes: dict[str, Any] = {**COVERED, "point": ["before_action", "after_action"], "fault": "kill"}
    whole = product(**axes, without=without or None)
    made = product(**axes, without=without or None, pairwise=paired)
    assert pairs(made, paired) == pairs(whole, paired)
    part = attrgetter(*paired)
    chosen = {part(cell) for cell in made}
    assert [cell for cell in whole if part(cell) in chosen] == list(made)
    # No cover can have fewer rows than two of its axes have pairs; the greedy one comes close.
    least = max(len(pairs(whole, two)) for two in itertools.combinations(paired, 2))
    assert least <= len(chosen) <= 2 * least


def test_more_combinations_than_anybody_waits_for_are_refused_at_once(tmp_path: Path) -> None:
    """However few a filter would leave; with what to do about it."""
    axes = {a: [f"{a}{n}" for n in range(37)] for a in ("variant", "witness", "recovery_fault")}
    named = "".join(f"{axis} = {values}\n" for axis, values in axes.items())
    table = '[[cells]]\npoint = "after_action"\nfault = "kill"\n' + named
    begun = time.process_time()
    with pytest.raises(PlanError, match="50653 combinations of variant, witness") as said:
        read(tmp_path, table + f"pairwise = {list(axes)}\n")
    assert time.process_time() - begun < 5
    assert "Make 50000 at most: give these axes fewer values" in said.value.remedy


def test_axes_that_are_not_paired_cost_nothing_but_their_number() -> None:
    """A sweep of pairs takes some bytes for each combination, not a cell."""
    axes: dict[str, Any] = {**COVERED, "point": "after_action", "fault": "kill"}
    seeds = 2_000
    tracemalloc.start()
    made = product(**axes, seed=range(seeds), pairwise=[*COVERED][:3])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    combinations = seeds * math.prod(map(len, COVERED.values()))
    assert 0 < len(made) < combinations
    assert peak < 40 * combinations


def test_the_plan_of_all_faults_holds_every_pair_of_what_recovery_may_meet() -> None:
    """Of digest, witness, what happens around recovery, and variant, under evidence_gated."""
    cells = [c for c in plan.read("faults").cells if c.policy == "evidence_gated"]
    axes = ("variant", "digest", "witness", "recovery_fault")
    every = {axis: {getattr(cell, axis) for cell in cells} for axis in axes}
    wanted = {
        (a, x, b, y)
        for a, b in itertools.combinations(axes, 2)
        for x, y in itertools.product(every[a], every[b])
    }
    missing = sorted(wanted - pairs(cells, axes))
    assert every["recovery_fault"] >= set(RECOVERY_FAULTS)
    assert all(_never_comes_to_it(*one) for one in missing), missing


def _never_comes_to_it(_a: str, x: str, _b: str, y: str) -> bool:
    """A strike at a point that recovery comes to where it calls, and another request than approved.

    What is left out is what nothing could be measured of: a valid identity is what calling takes.
    """
    strikes = ("@start_audit", "@before_action", "@after_action")
    return x == "changed" and y.endswith(strikes)


def test_a_sweep_of_a_hundred_thousand_cells_is_read_in_seconds_and_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each combination is validated once, whatever its seeds; a cell costs the same in any plan."""
    asked: list[Cell] = []
    validate = plan._validate

    def counted(cell: Cell) -> None:
        asked.append(cell)
        validate(cell)

    monkeypatch.setattr(plan, "_validate", counted)
    sweep = (
        TABLE + "seed = { from = 0, to = %d }\n" + 'without = { point = "response", seed = 0 }\n'
    )
    begun = time.process_time()
    assert len(read(tmp_path, sweep % 9_999)) == 120_000 - 4
    assert time.process_time() - begun < 10
    assert len(asked) == 12

    def peak(seeds: int) -> float:
        tracemalloc.start()
        made = read(tmp_path, sweep % (seeds - 1))
        held = tracemalloc.get_traced_memory()[1] / len(made)
        tracemalloc.stop()
        return held

    assert peak(2_000) < 400
    assert peak(4_000) < 1.5 * peak(2_000)
