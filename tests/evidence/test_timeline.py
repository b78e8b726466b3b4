"""Where timelines come from: the published form, a package, our captures; and what is none."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rcr_probes.cli import main
from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import archive, store
from rcr_probes.evidence.admissibility import cutoffs, read
from rcr_probes.evidence.check import check
from rcr_probes.evidence.package import read_package
from rcr_probes.evidence.published import import_package
from rcr_probes.evidence.rows import row
from rcr_probes.evidence.seal import seal
from rcr_probes.evidence.timeline import of_capture, of_package, parsed, read_file
from rcr_probes.report import timeline as report
from scripts import make_synthetic_package as synthetic
from tests.evidence import made
from tests.evidence.timelines import SAID, value

ROOT = Path(__file__).resolve().parents[2]
# The package as it was published, which is no part of this repository.
REAL = Path(
    os.environ.get("RCR_PACKAGE")
    or next(iter(sorted(ROOT.parent.glob("*/rcr-20260831"))), ROOT.parent / "rcr-20260831")
)
real = pytest.mark.skipif(
    not REAL.is_dir(), reason="the published package is not here: RCR_PACKAGE can name its folder"
)


def written(folder: Path, content: Any) -> Path:
    place = folder / "timeline.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return place


def rcr(*argv: object) -> tuple[int, str, str]:
    """One command in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in argv])
    return code, out.getvalue(), err.getvalue()


def answer(*argv: object) -> dict[str, Any]:
    code, out, _ = rcr("timeline", *argv, "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


WORDS = ("approval_status", "effect_count", "effect_observed", "duplicate_observed")


def said(found: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(found[word] for word in WORDS)


# The published file


@real
@pytest.mark.parametrize("place", ["", "fixtures/timeline.json"])
@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_the_published_timeline_at_each_cutoff(place: str, at: int) -> None:
    """E-C1: unknown, one effect, one effect though failed, two; what comes later is rejected."""
    found = answer(REAL / place, "--at", at)
    assert said(found) == SAID[at]
    ids = ["approval-0", "approval-1", "effects-1", "approval-2", "effects-2", "approval-3"]
    ids.append("effects-3")
    known = [name for name in ids if int(name[-1]) <= at]
    assert found["accepted"] == known
    assert found["rejected"] == [
        {"id": name, "reason": "after_cutoff"} for name in ids if name not in known
    ]
    assert said(found["naive"]) == SAID[3]


@real
def test_the_published_timeline_with_one_thing_put_wrong() -> None:
    """Each control at the moment at which somebody must decide: the record says failed."""
    controls = {one["control"]: one for one in answer(REAL, "--at", 2)["controls"]}
    assert [r["reason"] for one in controls.values() for r in one["rejected"]] == [
        "wrong_owner",
        "after_cutoff",
        "integrity_or_unregistered",
    ]
    assert {name: said(one) for name, one in controls.items()} == {
        "effects_missing": ("failed", None, "unknown", None),
        "foreign_owner": SAID[2],
        "future_evidence": SAID[2],
        "forged_effect": SAID[2],
    }
    assert {name: said(one["naive"])[1:] for name, one in controls.items()} == {
        "effects_missing": (0, "not_observed", False),
        "foreign_owner": (0, "not_observed", False),
        "future_evidence": (2, "yes", True),
        "forged_effect": (2, "yes", True),
    }


Change = Callable[[dict[str, Any]], object]


def drop_effects(v: dict[str, Any]) -> None:
    v["envelopes"] = [e for e in v["envelopes"] if e["kind"] != "effect-snapshot"]


def disown(v: dict[str, Any]) -> None:
    v["envelopes"][4]["owner"] = "run-b"


def postpone(v: dict[str, Any]) -> None:
    v["envelopes"][4]["available_at"] = 3


def forge(v: dict[str, Any]) -> None:
    v["envelopes"][4]["body"]["effects"].append({"effect_id": "E9", "operation_key": "key-a"})


def add_unregistered(v: dict[str, Any]) -> None:
    v["envelopes"].append({**copy.deepcopy(v["envelopes"][6]), "id": "new", "available_at": 2})


# What a hand changes in the file → what is said at 2, and which envelope is rejected for it.
BY_HAND: dict[str, tuple[Change, tuple[Any, ...], tuple[str, str] | None]] = {
    "missing": (drop_effects, ("failed", None, "unknown", None), None),
    "foreign": (disown, SAID[2], ("effects-2", "wrong_owner")),
    "future": (postpone, SAID[2], ("effects-2", "after_cutoff")),
    "forged": (forge, SAID[2], ("effects-2", "integrity_or_unregistered")),
    "added": (add_unregistered, SAID[2], ("new", "integrity_or_unregistered")),
}


@pytest.mark.parametrize("way", BY_HAND)
def test_a_file_in_which_one_thing_was_changed_by_hand(tmp_path: Path, way: str) -> None:
    """The command says what still counts and names the envelope that does not, with its reason."""
    change, expected, rejected = BY_HAND[way]
    content = value()
    change(content)
    found = answer(written(tmp_path, content), "--at", 2)
    assert said(found) == expected
    reasons = {(one["id"], one["reason"]) for one in found["rejected"]}
    assert rejected is None or rejected in reasons


def test_the_answer_for_a_person_says_what_to_do_and_what_a_naive_reader_says(
    tmp_path: Path,
) -> None:
    """In both languages; a stranger's ids cannot steer the terminal."""
    content = value()
    content["envelopes"][4]["id"] = "\x1b[2Jeffects"
    place = written(tmp_path, content)
    _, out, err = rcr("timeline", place, "--at", 2)
    assert "do not call again, whatever the record says" in out
    assert "naive, at any time   succeeded" in out
    assert "\\x1b[2Jeffects" in out
    assert "\x1b" not in out
    assert err == ""
    code, out, _ = rcr("timeline", place, "--at", 0, "--lang", "zh")
    assert code == 0
    assert "这是不知道，不是没有" in out
    assert "不知道（unknown）" in out


def test_in_chinese_each_code_stands_beside_its_term(tmp_path: Path) -> None:
    """What is observed, why an envelope is rejected, its kind; another kind is shown as it is."""
    content = value()
    content["envelopes"][4]["owner"] = "run-b"
    content["envelopes"].append({**content["envelopes"][4], "id": "e", "kind": "of-its-own"})
    code, out, _ = rcr("timeline", written(tmp_path, content), "--at", 2, "--lang", "zh")
    assert code == 0
    for term in (
        "未观测到（not_observed）",
        "归属不符（wrong_owner）",
        "效果快照（effect-snapshot）",
    ):
        assert term in out
    for known in ("yes", "not_observed", "unknown", "wrong_owner", "effect-snapshot"):
        assert not re.search(rf"(?<![（[]){known}", out)
    assert " of-its-own " in out


# The synthetic package that comes with the project


def test_the_synthetic_package_is_what_its_script_writes(tmp_path: Path) -> None:
    """Byte for byte, and nothing else lies there."""
    there = synthetic.write(tmp_path / "p")
    for folder in (there, synthetic.INTO):
        found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.*")}
        assert found == synthetic.files()


def test_the_synthetic_package_is_imported_and_read_as_the_published_one(tmp_path: Path) -> None:
    """Nothing is absent, left out or unsound, and its timeline says the same at each cutoff."""
    imported = import_package(synthetic.INTO, tmp_path / "e")
    assert (imported.package.absent, imported.package.unlisted, imported.left_out) == ((), (), ())
    assert check(tmp_path / "e").findings == ()
    timeline = of_package(imported.package)
    assert cutoffs(timeline) == tuple(SAID)
    for at, expected in SAID.items():
        reading = read(timeline, at)
        assert tuple(getattr(reading, word) for word in WORDS) == expected


def test_a_package_may_be_a_zip(tmp_path: Path) -> None:
    """It is read as its folder is."""
    place = tmp_path / "package.zip"
    archive.write(place, synthetic.files())
    assert answer(place, "--at", 2) == answer(synthetic.INTO, "--at", 2)


def test_a_timeline_that_its_package_does_not_vouch_for_is_not_read(tmp_path: Path) -> None:
    """It was changed, or is not there at all."""
    package = synthetic.write(tmp_path / "p")
    place = package / "fixtures" / "timeline.json"
    place.write_bytes(place.read_bytes().replace(b'"failed"', b'"sealed"'))
    code, _, err = rcr("timeline", package, "--at", 2)
    assert (code, "fixtures/timeline.json: was changed" in err) == (1, True)
    with pytest.raises(EvidenceError, match="not listed"):
        of_package(read_package(made.package(tmp_path / "q")))


# Captures of ours


@pytest.mark.parametrize("name", ["article", "locations", "rcr-20260831"])
def test_at_each_observation_the_timeline_says_what_the_row_says(name: str) -> None:
    """Status and effects after the fault, and after recovery, of every committed capture."""
    for capture in store.read(ROOT / "evidence" / name).captures():
        timeline, figures = of_capture(capture), row(capture)
        for number, observed in enumerate(capture.measurement.observations):
            events = capture.measurement.events
            reading = read(timeline, observed.events - 1 if events else number)
            phase = {"fault": "fault", "recover": "recovery"}[observed.after]
            assert reading.approval_status == figures[f"state_after_{phase}"]
            assert reading.effect_count == figures[f"effects_after_{phase}"]
            assert f"effect-after-{observed.after}" in reading.accepted


def test_the_events_of_a_capture_become_snapshots_of_their_time() -> None:
    """P3: unknown before the effect, one through the failure, two after recovery."""
    timeline = of_capture(made.capture(made.P3))
    says = {at: read(timeline, at) for at in cutoffs(timeline)}
    assert {at: (r.approval_status, r.effect_count) for at, r in says.items()} == {
        0: ("approved", None),
        2: ("executing", None),
        6: ("executing", 1),
        9: ("succeeded", 1),
        12: ("failed", 1),
        13: ("failed", 1),
        15: ("failed", 2),
        16: ("succeeded", 2),
        17: ("succeeded", 2),
    }
    assert [at for at, r in says.items() if r.duplicate_observed] == [15, 16, 17]


def test_a_capture_whose_facts_were_changed_vouches_for_nothing() -> None:
    """All its envelopes are of the right owner and time, and none of them is registered."""
    forged = replace(made.capture(made.P3), facts_sha256="0" * 64)
    reading = read(of_capture(forged), 99)
    assert reading.accepted == ()
    assert {r.reason for r in reading.rejected} == {"integrity_or_unregistered"}


def test_an_observation_that_contradicts_the_events_leaves_the_effect_unknown() -> None:
    """Two snapshots of one time that differ; and a damaged one cannot be read at all."""
    sound = made.capture(made.P3)
    first, last = sound.measurement.observations
    fewer = replace(last, events=16, effects=last.effects[:1] if last.effects else None)
    for observed in (fewer, replace(last, damage=("a ledger is torn",))):
        measured = replace(sound.measurement, observations=(first, observed))
        sealed = seal(measured, sound.judgement, sound.circumstances)
        reading = read(of_capture(sealed), observed.events - 1)
        assert reading.effect_observed == "unknown"


# What is none


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "list": (list, "is no map"),
    "no owner": (lambda: {**value(), "owner": None}, "names no owner"),
    "no manifest": (lambda: {**value(), "manifest": []}, "no manifest"),
    "digests": (lambda: {**value(), "manifest": {"a": 1}}, "no manifest"),
    "many": (lambda: {**value(), "envelopes": value()["envelopes"] * 1000}, "more than 1000"),
    "no envelopes": (lambda: {**value(), "envelopes": []}, "holds no envelope"),
    "envelopes": (lambda: {**value(), "envelopes": {"a": {}}}, "holds no envelope"),
    "envelope": (lambda: {**value(), "envelopes": [[]]}, "its envelope 0 is no map"),
    "id": (lambda: {**value(), "envelopes": [{"id": 1}]}, "the id of its envelope 0 is no text"),
    "time": (
        lambda: {**value(), "envelopes": [{"id": "a", "owner": "o", "kind": "k", "body": 1}]},
        "its envelope 0 has no available_at",
    ),
    "deep": (lambda: value([deep(200)]), "nests"),
}


def deep(levels: int) -> dict[str, Any]:
    body: Any = 0
    for _ in range(levels):
        body = [body]
    return {"id": "a", "owner": "o", "available_at": 0, "kind": "k", "body": body}


@pytest.mark.parametrize("way", WRONG)
def test_what_is_not_of_the_form_is_refused_with_the_form(way: str) -> None:
    """The error says where and what, and shows what a timeline is."""
    make, problem = WRONG[way]
    with pytest.raises(EvidenceError, match=problem) as raised:
        parsed(make(), "some.json")
    assert raised.value.place == "some.json"
    assert "envelopes: [{id, owner, available_at, kind, body}]" in raised.value.remedy


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"owner": "a", "owner": "b"}',
        b"[" * 100_000,
        b'{"owner": NaN}',
        b'{"owner": ' + b"1" * 5000 + b"}",
    ],
)
def test_a_file_that_is_no_json_is_refused(tmp_path: Path, data: bytes) -> None:
    """A clear error and exit 1; what is repeated or no number is not JSON either."""
    (tmp_path / "t.json").write_bytes(data)
    code, out, err = rcr("timeline", tmp_path / "t.json", "--at", 0)
    assert (code, out) == (1, "")
    assert err.startswith("rcr: ")


def test_a_path_that_cannot_be_a_timeline_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None there, a folder of nothing, a device that never ends, a file that is too large."""
    with pytest.raises(NotEvidence, match="There is no"):
        read_file(tmp_path / "gone.json")
    assert rcr("timeline", tmp_path, "--at", 0)[0] == 2
    assert rcr("timeline", "/dev/zero", "--at", 0)[0] == 1
    monkeypatch.setattr("rcr_probes.evidence.timeline._LARGEST", 100)
    with pytest.raises(EvidenceError, match="too large"):
        read_file(written(tmp_path, value()))


def test_misuse_is_named_with_what_to_type_instead(folder: Path, tmp_path: Path) -> None:
    """A cell is missing, unknown, or named where there is none; a cutoff is no whole number."""
    for argv, part in (
        ((folder, "--at", 0), made.P3.id),
        ((folder, "nowhere", "--at", 0), made.P3.id),
        ((written(tmp_path, value()), made.P3.id, "--at", 0), "Leave it out"),
        ((folder, made.P3.id, "--at", "1.0"), "'1.0' is no whole number of 64 bits"),
        ((folder, made.P3.id), "required: --at"),
    ):
        code, out, err = rcr("timeline", *argv)
        assert (code, out) == (2, "")
        assert part in err
    one = made.write(tmp_path / "one", [made.capture(made.P3)]).folder
    assert answer(one, "--at", 6) == answer(folder, made.P3.id, "--at", 6)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def spoil(change: Change) -> Any:
    """The published timeline with one thing changed."""
    content = value()
    change(content)
    return content


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A timeline of which some values, anywhere in it, were replaced or taken out."""
    content: Any = value()
    for _ in range(draw(st.integers(1, 3))):
        at = content
        while True:
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            inside = isinstance(at[key], dict | list) and draw(st.booleans())
            if inside:
                at = at[key]
                continue
            if draw(st.booleans()):
                at[key] = draw(JSON)
            else:
                del at[key]
            break
    return content


def accepted(content: Any, at: int) -> tuple[str, ...]:
    """The ids that must be accepted, found in another way: to the byte as they were registered."""
    sound = {json.dumps(e) for e in value()["envelopes"]}
    registered = value()["manifest"]
    found = [
        (one["available_at"], one["id"])
        for one in content["envelopes"]
        if json.dumps(one) in sound
        and content["owner"] == value()["owner"]
        and content["manifest"].get(one["id"]) == registered[one["id"]]
        and one["available_at"] <= at
    ]
    return tuple(name for _, name in sorted(set(found)))


@given(spoiled(), st.integers(-1, 4) | st.integers())
@example(value(), 3)
@example(value([deep(90)]), 0)
@example(spoil(lambda v: v["envelopes"][0].update(available_at=False)), 3)
@example(spoil(lambda v: v["envelopes"][2]["body"]["effects"].append({})), 3)
@example(spoil(lambda v: v["envelopes"][2].update(more=1)), 3)
@example(spoil(lambda v: v["manifest"].clear()), 3)
def test_whatever_a_file_holds_there_is_an_answer_or_a_clear_error(content: Any, at: int) -> None:
    """Never a traceback; what was changed is nowhere accepted, and what was not is everywhere."""
    try:
        timeline = parsed(content, "t")
    except EvidenceError:
        return
    assert report.answer(timeline, at)["accepted"] == accepted(content, at)
    assert report.drawn(timeline, at, "en")
