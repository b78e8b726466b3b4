"""A comparison as a reader sees it: what differs, where, and what was not compared at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rcr_probes.evidence import seal, store
from rcr_probes.evidence.compare import _parts, compare
from rcr_probes.evidence.derive import derive
from rcr_probes.model import Capture, Measurement
from rcr_probes.report.compared import lines
from rcr_probes.report.texts import LANGS, section, text
from tests.evidence import made


def changed(change: Any) -> Capture:
    """P3's capture with its measurement changed, judged anew."""
    data = json.loads(msgspec.json.encode(made.capture(made.P3).measurement))
    change(data)
    measured = msgspec.convert(data, Measurement)
    return seal.seal(measured, derive(measured), made.capture(made.P3).circumstances)


def against(tmp_path: Path, *captures: Capture, lang: str = "en") -> list[str]:
    """What is said of the small evidence in ``ours`` and these captures in ``theirs``."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    made.small(ours)
    made.write(theirs, captures)
    said = lines(compare(store.read(ours), store.read(theirs)), lang)
    return [line.replace(f"{tmp_path}/", "") for line in said]


def once(measured: Any) -> None:
    measured["observations"][1]["effects"].pop()


def noted(measured: Any) -> None:
    measured["events"][0]["value"]["note"] = "?"


def test_a_value_that_differs_stands_below_its_cell(tmp_path: Path) -> None:
    """With both values and the folder of each; the first line says how many there are."""
    said = against(tmp_path, changed(once))
    (place,) = (n for n, line in enumerate(said) if line == f"  {made.P3.id}")
    below = [line for line in said if line.startswith("    ")]
    assert said[0].startswith(f"The facts differ: differences: {len(below)} (")
    assert len(below) > 1
    assert said[place + 1 : place + 1 + len(below)] == below
    assert "    effects_after_recovery: 2 in ours, 1 in theirs" in below


def test_a_difference_of_the_facts_is_counted_as_no_value(tmp_path: Path) -> None:
    """All values of the pair are equal, and it is not said of how many values it is one."""
    said = against(tmp_path, changed(noted))
    assert said[0].startswith("The facts differ: differences: 1 (pairs of matching rows: 1,")
    assert said[2].startswith("    all columns agree, and the events differ; rcr explain tells")
    assert not any("sha256" in line for line in said)


@pytest.mark.parametrize("lang", LANGS)
def test_each_part_of_the_facts_has_its_word(lang: str) -> None:
    """Whichever it is in which two captures differ that look alike."""
    parts = {part.partition(" ")[0] for part in _parts(made.capture(made.P3))}
    words = {part: text(f"compare.part.{part}", lang) for part in parts}
    assert len({*words.values()}) == len(parts) > 5
    assert {key.split(".")[2] for key in section("compare") if ".part." in key} == parts


@pytest.mark.parametrize(("lang", "heading"), [("en", "Only in ours"), ("zh", "只在 ours 中有")])
def test_a_cell_that_the_other_folder_lacks_is_listed(
    tmp_path: Path, lang: str, heading: str
) -> None:
    """And is no difference; nor are the folders the same, which the first line says."""
    said = against(tmp_path, made.capture(made.P3), lang=lang)
    begins, ends = {
        "en": ("Where rows match, the same facts: none differs", "only one folder has: 2."),
        "zh": ("匹配的行事实相同：1 对，", "只有一方才有的行：2 行。"),
    }[lang]
    assert said[0].startswith(begins)
    assert said[0].endswith(ends)
    assert said[1].startswith(heading)
    assert said[2:] == [f"  {made.CONTROL.id}", f"  {made.LEFT.id}"]


def test_what_a_publication_leaves_out_is_listed(tmp_path: Path) -> None:
    """Each column, and in how many of the pairs."""
    published = store.read(Path(__file__).parents[2] / "evidence" / "rcr-20260831")
    found = compare(store.read(made.small(tmp_path / "ours")), published)
    [column] = [one for one in found.not_given if one.column == "verdict"]
    for lang, line in (
        ("en", f"  verdict: in {column.pairs} of {found.pairs} pairs"),
        ("zh", f"  verdict：{found.pairs} 对中有 {column.pairs} 对"),
    ):
        said = lines(found, lang)
        headings = [one for one in said[: said.index(line)] if not one.startswith("  ")]
        assert str(published.folder) in headings[-1]


def test_folders_without_a_value_in_common_have_nothing_to_compare(tmp_path: Path) -> None:
    """Which is not said to be the same."""
    other = changed(lambda measured: measured["cell"].update(runtime="another:runtime"))
    assert against(tmp_path, other)[0].startswith("Nothing to compare")


def test_a_name_of_a_folder_steers_no_terminal(tmp_path: Path) -> None:
    """Nor does it break a line in two."""
    ours, theirs = tmp_path / "a\x1b[2Jb", tmp_path / "a\nb"
    made.small(ours)
    made.write(theirs, [made.capture(made.P3)])
    assert all(line.isprintable() for line in lines(compare(store.read(ours), store.read(theirs))))
