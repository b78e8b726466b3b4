"""The benchmarks still measure what they say, if only once here: their figures are not judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import frame, page
from benchmarks.frame import Ratio, figure, misses

ROOT = Path(__file__).parents[1]
AT_MOST = Ratio("name", "what", "floor", 2.0)
AT_LEAST = Ratio("name", "what", "floor", 2.0, least=True)


def pairs(*ratios: float) -> list[frame.Pair]:
    return [(3 * one, 3.0) for one in ratios]


def test_every_benchmark_has_its_figures_and_the_page_is_made_of_them() -> None:
    """A ratio that was added or renamed must be taken, and the page filled, before it is told."""
    results = json.loads(frame.RESULTS.read_text("utf-8"))
    assert sorted(results) == frame.names()
    for name in frame.names():
        assert list(results[name]["figures"]) == [one.name for one in frame.load(name).RATIOS]
    assert page.check() == 0


def test_a_number_changed_in_the_page_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    edited = tmp_path / "performance.md"
    edited.write_text(page.text().replace("at most", "at  most", 1), "utf-8")
    monkeypatch.setattr(page, "PAGE", edited)
    assert page.check() == 1
    page.fill()
    assert page.check() == 0


@pytest.mark.parametrize(
    ("ratios", "missed"),
    [
        ((1, 1, 1, 1, 1, 1, 9), False),
        ((3, 3, 3, 3, 3, 3, 1), True),
        ((1.9, 1.9, 1.9, 2.1, 2.1, 2.1, 2.1), False),  # noise: the quartiles lie on both sides
    ],
)
def test_a_bound_is_missed_where_both_quartiles_lie_beyond_it(
    ratios: tuple[float, ...], missed: bool
) -> None:
    assert misses(AT_MOST, figure(pairs(*ratios))) is missed
    assert misses(AT_LEAST, figure(pairs(*(4 / one for one in ratios)))) is missed


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ((1.9, 1.9, 1.9, 1.9, 2.1, 2.1, 2.1), "kept"),
        ((1.9, 1.9, 1.9, 2.1, 2.1, 2.1, 2.1), "within noise"),
        ((2.1, 2.1, 2.1, 2.1, 2.1, 2.1, 2.1), "missed"),
    ],
)
def test_what_noise_hides_is_not_called_kept(ratios: tuple[float, ...], said: str) -> None:
    assert frame.word(AT_MOST, figure(pairs(*ratios))) == said


def test_what_is_held_is_what_fails_and_the_bound_is_still_said_to_be_missed() -> None:
    """A bound that is not reached must not hide that things became worse."""
    held = Ratio("name", "what", "floor", 2.0, held=4.0)
    for ratio, misses_it, said in (
        (1.0, False, "kept"),
        (3.0, False, "missed, held"),
        (5.0, True, "missed"),
    ):
        found = figure(pairs(*[ratio] * 7))
        assert (misses(held, found), frame.word(held, found)) == (misses_it, said)
    assert page.bound(held) == "at most 2, held to 4"


def test_what_has_no_bound_misses_none() -> None:
    assert not misses(Ratio("name", "what", "floor", None), figure(pairs(*[9.0] * 7)))


def test_few_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="6 pairs"):
        figure(pairs(*[1.0] * 6))


def test_sides_are_divided_within_their_pair() -> None:
    """A load that falls on both sides of one pair changes no ratio."""
    found = figure([(2.0, 1.0)] * 6 + [(200.0, 100.0)])
    assert (found.ratio, found.lower, found.upper) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("name", ["cell", "spawn", "start"])  # the others take minutes
def test_a_benchmark_takes_a_pair_for_each_of_its_ratios(name: str) -> None:
    benchmark, (taken, notes, count) = frame.load(name), once(name)
    assert sorted(taken) == sorted(one.name for one in benchmark.RATIOS)
    assert all(ours > 0 and floor > 0 for ours, floor in taken.values())
    assert count >= frame.LEAST_PAIRS
    if name == "cell":  # the floor repeats what all three phases do
        assert notes["file_operations"] > 100


def once(name: str) -> Any:
    """One pair of each ratio, what was noted, how many pairs would be taken: in a new process."""
    code = (
        "import json; from benchmarks.frame import load\n"
        f"with load({name!r}).taking() as taking: taken = taking.pair()\n"
        "print(json.dumps((taken, taking.notes, taking.pairs)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
