"""Two folders say the same when every value that both give is equal, and there is one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import form, seal, store
from rcr_probes.evidence.compare import COMPARED, Comparison, compare
from rcr_probes.evidence.derive import derive
from rcr_probes.evidence.published import import_package
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.transcribed import observed, published_capture, published_cell
from rcr_probes.model import Capture, Cell, Measurement
from tests.evidence import made

P3_ID = made.P3.id
COMMITTED = sorted(p.parent for p in (Path(__file__).parents[2] / "evidence").glob("*/plan.json"))


def changed(cell: Cell, change: Callable[[Any], object], pid: int = 700) -> Capture:
    """A capture of the cell with its measurement changed, judged anew."""
    data = json.loads(msgspec.json.encode(made.capture(cell).measurement))
    change(data)
    measured = msgspec.convert(data, Measurement)
    return seal.seal(measured, derive(measured), made.capture(cell, pid).circumstances)


def published(**figures: Any) -> Capture:
    """P3 as somebody published it: effects after recovery, and what else is given."""
    axes: Mapping[str, Any] = {"policy": "resume", **figures.pop("axes", {})}
    cell = published_cell(figures.pop("commit", "0123abcd"), "E-A0", "completion_audit", **axes)
    return published_capture(
        cell, "somebody, table 1", (observed("recover", "succeeded", **figures),)
    )


def against(folder: Path, *captures: Capture) -> Comparison:
    """Compare the small evidence with a folder of these captures."""
    return compare(store.read(folder), made.write(folder.parent / "other", captures))


def equals_itself(evidence: Evidence) -> bool:
    """Every row is paired with itself and with no other, and nothing differs."""
    found = compare(evidence, evidence)
    unpaired = (*found.only_ours, *found.only_theirs)
    return found.same and found.pairs == len(evidence.plan.cells) and not unpaired


@pytest.mark.parametrize("place", COMMITTED, ids=lambda place: place.name)
def test_committed_evidence_equals_itself_pair_for_pair(place: Path) -> None:
    """Measured or published: a publication's baselines are not compared with each other."""
    assert equals_itself(store.read(place))


def test_a_package_whose_baselines_differ_equals_itself_pair_for_pair(tmp_path: Path) -> None:
    """What one baseline did is no difference from what the other did; against ours, each counts."""
    [probes] = made.PROBES
    last = {**probes["rows"][0], "status": "open"}
    other = {"commit": "f" * 40, "rows": [last, *probes["rows"][1:]]}
    package = made.package(tmp_path / "package", probes=[probes, other])
    published = import_package(package, tmp_path / "published").evidence
    assert equals_itself(published)
    measured = store.read(made.small(tmp_path / "small"))
    found = [
        (d.our_value, d.their_value)
        for d in compare(published, measured).differences
        if (d.theirs, d.column) == (made.CONTROL.id, "state_after_recovery")
    ]
    assert found == [("done", "succeeded"), ("open", "succeeded")]


def test_publications_of_another_baseline_do_not_match(tmp_path: Path) -> None:
    """Neither is a measurement of what the other ran."""
    one, other = (
        made.write(tmp_path / commit, [published(effects=2, commit=commit)])
        for commit in ("0123abcd", "4567cdef")
    )
    assert compare(one, other).pairs == 0


def evidence_told(measured: Any) -> None:
    measured["observations"][1]["recorded"]["evidence"] = [{"marker": "kept"}]


def event_told_otherwise(measured: Any) -> None:
    measured["events"][0]["value"]["stage"] = "other"


def effect_renamed(measured: Any) -> None:
    measured["observations"][0]["effects"][0]["effect_id"] = "E9"


PUBLISHED_WAYS: Mapping[str, tuple[Callable[[Any], object], str]] = {
    "verdict": (lambda m: m.update(published_verdict="x"), "published_verdict"),
    "evidence": (evidence_told, "evidence_after_recovery"),
    "execution": (
        lambda m: m["observations"][0]["recorded"].update(execution="x"),
        "execution_after_fault",
    ),
    "events": (event_told_otherwise, "events"),
    "event removed": (lambda m: m["events"].pop(), "events"),
    "effect": (effect_renamed, "named_effects_after_fault"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A published package as evidence: its restarts have events."""
    place = tmp_path_factory.mktemp("told")
    return import_package(made.package(place / "package"), place / "told").evidence


@pytest.mark.parametrize("way", PUBLISHED_WAYS)
def test_what_a_publication_tells_besides_its_figures_differs_too(
    tmp_path: Path, told: Evidence, way: str
) -> None:
    """Two folders of one publication are the same when all that both tell is equal."""
    change, column = PUBLISHED_WAYS[way]
    captures = list(told.captures())
    number = next(
        n
        for n, c in enumerate(captures)
        if bool(c.measurement.events) == (way != "verdict") and c.measurement.after("recover")
    )
    data = json.loads(msgspec.json.encode(captures[number].measurement))
    change(data)
    measured = msgspec.convert(data, Measurement)
    captures[number] = seal.seal(measured, derive(measured), captures[number].circumstances)
    found = compare(told, made.write(tmp_path / "other", captures))
    assert [(d.column, d.ours) for d in found.differences] == [(column, captures[number].cell.id)]


def test_what_a_publication_does_not_tell_besides_never_differs(
    tmp_path: Path, told: Evidence
) -> None:
    """A transcription without events numbers its effects itself, and gives figures alone."""

    def bare(capture: Capture) -> Capture:
        measured = capture.measurement
        observations = tuple(
            replace(
                o,
                events=0,
                recorded=replace(o.recorded, evidence=None, execution=None),
                effects=observed(o.after, "", len(o.effects or ())).effects,
            )
            for o in measured.observations
        )
        plain = replace(measured, events=(), observations=observations, published_verdict=None)
        return seal.seal(plain, derive(plain), capture.circumstances)

    found = compare(told, made.write(tmp_path / "bare", map(bare, told.captures())))
    assert found.same
    absent = {a.column for a in found.not_given if a.side == "theirs"}
    assert absent >= {"events", "published_verdict", "evidence_after_fault"}


@pytest.mark.parametrize("left", [1, 2])
def test_a_folder_that_was_cut_is_refused(folder: Path, left: int) -> None:
    """What is left of it may be equal, and says nothing of what is gone."""
    whole = store.read(made.small(folder.parent / "whole"))
    (folder / form.CAPTURES).write_bytes(b"".join(made.lines(folder)[:left]))
    for one, other in ((whole, store.read(folder)), (store.read(folder), whole)):
        with pytest.raises(EvidenceError, match=f"ends after {left} captures"):
            compare(one, other)


def test_the_same_facts_in_other_circumstances_are_the_same(folder: Path) -> None:
    """Processes, times and the start method are no facts."""
    others = [made.capture(cell, 900) for cell in (made.CONTROL, made.P3, made.LEFT)]
    spawned = [replace(o, circumstances=replace(o.circumstances, start="spawn")) for o in others]
    found = against(folder, *spawned)
    assert found.same
    assert (found.pairs, found.values) == (3, 3 * len(COMPARED))
    assert (found.not_given, found.only_ours, found.only_theirs) == ((), (), ())


def test_a_value_that_differs_is_named_with_its_row(folder: Path) -> None:
    """The difference says which cell, which column, and both values."""

    def once(measured: Any) -> None:
        measured["observations"][1]["effects"].pop()

    found = against(folder, changed(made.P3, once))
    assert not found.same
    assert ("effects_after_recovery", 2, 1) in [
        (d.column, d.our_value, d.their_value) for d in found.differences
    ]
    assert {(d.ours, d.theirs) for d in found.differences} == {(P3_ID, P3_ID)}


def test_facts_that_no_column_shows_differ_too(folder: Path) -> None:
    """Two measured captures of one cell have the same facts, or the part that differs is named."""

    def later(measured: Any) -> None:
        measured["events"][0]["value"]["note"] = "?"

    (difference,) = against(folder, changed(made.P3, later)).differences
    assert difference.column == "facts"
    assert str(difference.our_value).startswith("events sha256:")
    assert difference.our_value != difference.their_value


def test_between_measured_rows_null_is_a_value(folder: Path) -> None:
    """A measured row that lost its error differs from one that has it."""

    def silent(measured: Any) -> None:
        measured["observations"][0]["error"] = None

    found = against(folder, changed(made.P3, silent))
    assert ("caller_error", "EISDIR", None) in [
        (d.column, d.our_value, d.their_value) for d in found.differences
    ]


def test_what_is_not_published_never_differs(folder: Path) -> None:
    """A published null is listed as not given; what is given must agree."""
    found = against(folder, published(effects=2))
    assert found.same
    assert found.values == 2  # the state and the effects after recovery
    absent = {(a.column, a.side, a.pairs) for a in found.not_given}
    assert ("caller_error", "theirs", 1) in absent
    assert ("verdict", "theirs", 1) in absent


def test_a_published_value_that_differs_is_found_from_both_sides(folder: Path) -> None:
    """It does not matter which of the folders is ours."""
    here = store.read(folder)
    there = made.write(folder.parent / "other", [published(effects=3)])
    for found in (compare(here, there), compare(there, here)):
        (difference,) = found.differences
        assert difference.column == "effects_after_recovery"
        assert {difference.our_value, difference.their_value} == {2, 3}


def test_a_measured_null_against_a_published_value_differs(folder: Path) -> None:
    """Where we measured that no recovery answered, a published answer is a difference."""
    axes = {"policy": "never"}
    found = against(folder, published(effects=1, error="none", axes=axes))
    assert ("recovery_error", None, "none") in [
        (d.column, d.our_value, d.their_value) for d in found.differences
    ]


def test_an_axis_that_is_not_published_matches_every_value(folder: Path) -> None:
    """A row without its policy is compared with each of ours that fits."""
    found = against(folder, published(effects=2, axes={"policy": None}))
    assert found.pairs == 2
    assert [d.ours for d in found.differences] == [made.LEFT.id] * 2
    assert {d.column for d in found.differences} == {
        "effects_after_recovery",
        "state_after_recovery",
    }


@pytest.mark.parametrize("axis", ["dedupe", "digest"])
def test_rows_of_another_cell_do_not_match(folder: Path, axis: str) -> None:
    """Where nothing matches there is nothing to compare, and that is never the same."""
    values = {"dedupe": "operation_key", "digest": "changed"}
    found = against(folder, published(effects=2, axes={axis: values[axis]}))
    assert (found.same, found.pairs, found.differences) == (False, 0, ())
    assert len(found.only_theirs) == 1


def test_measured_rows_of_another_runtime_do_not_match(folder: Path) -> None:
    """Two systems are not the same cell; a publication's name for its own says nothing of that."""
    found = against(folder, changed(made.P3, lambda m: m["cell"].update(runtime="another:runtime")))
    assert (found.same, found.pairs) == (False, 0)


def test_rows_that_match_and_give_nothing_are_not_the_same(folder: Path) -> None:
    """A publication without one figure confirms nothing."""
    cell = published_cell("0123abcd", "E-A0", "completion_audit", policy="never")
    bare = replace(observed("recover", "failed", 1), effects=None)
    found = against(folder, published_capture(cell, "somebody", (bare,)))
    assert (found.pairs, found.values) == (1, 1)
    there = folder.parent / "fault"
    bare = replace(observed("fault", "failed", 1), effects=None)
    one = made.write(there, [published_capture(cell, "somebody", (bare,))])
    other = store.read(folder.parent / "other")
    found = compare(one, other)  # one tells of the fault alone, the other of recovery alone
    assert (found.pairs, found.values, found.same) == (1, 0, False)


def test_extra_cells_are_listed_and_do_not_differ(folder: Path) -> None:
    """A larger plan may be compared with a smaller one."""
    found = against(folder, made.capture(made.P3))
    assert found.same
    assert found.only_ours == (made.CONTROL.id, made.LEFT.id)


def test_repeats_are_matched_each_with_its_own(tmp_path: Path) -> None:
    """Cells that differ in what both sides give are different rows."""
    cells = [
        changed(made.P3, lambda m, n=n: m["cell"].update(repeat=n))  # type: ignore[misc]
        for n in range(3)
    ]
    one = made.write(tmp_path / "one", cells)
    other = made.write(tmp_path / "other", cells[::-1])
    assert (compare(one, other).pairs, compare(one, other).same) == (3, True)
