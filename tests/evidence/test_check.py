"""Whatever is done to an evidence folder, the check finds it and names the place."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rcr_probes import worker
from rcr_probes.errors import NotEvidence
from rcr_probes.evidence import consistency, seal, write
from rcr_probes.evidence.check import check
from rcr_probes.evidence.checked import check_all
from rcr_probes.evidence.form import CAPTURES, ENVIRONMENT, FILES, MANIFEST, PLAN
from rcr_probes.model import Plan
from tests.evidence import made
from tests.evidence.made import edit, lines, remake, reseal

Tamper = Callable[[Path], object]
ROOT = Path(__file__).parents[2]
CONTROL, P3, LEFT = range(3)  # the captures, by their line


def rewrite(name: str, change: Callable[[Any], object]) -> Tamper:
    """Change one of the small JSON files, in its canonical form."""

    def tamper(folder: Path) -> None:
        data = json.loads((folder / name).read_bytes())
        change(data)
        (folder / name).write_bytes(write.encoded(data))

    return tamper


def refitted(tamper: Tamper) -> Tamper:
    """Seal the folder anew after it was tampered with."""

    def both(folder: Path) -> None:
        tamper(folder)
        reseal(folder)

    return both


def replan(change: Callable[[list[Any]], object]) -> Tamper:
    """Change the cells of the plan, and seal the folder anew."""
    return refitted(rewrite(PLAN, lambda plan: change(plan["cells"])))


def replaced(old: bytes, new: bytes, number: int = P3) -> Tamper:
    """Replace bytes once in one line, and seal the folder anew."""

    def tamper(folder: Path) -> None:
        found = lines(folder)
        assert old in found[number]
        found[number] = found[number].replace(old, new, 1)
        reseal(folder, found)

    return tamper


def forged(change: Callable[[Any], object], number: int = P3) -> Tamper:
    """Change a capture, then derive its judgement and every digest anew."""
    return lambda folder: remake(folder, number, change)


def measurement(path: str, value: Any) -> Tamper:
    """Forge one value of a measurement; the path has dots."""

    def change(data: Any) -> None:
        *parents, last = path.split(".")
        place = data["measurement"]
        for name in parents:
            place = place[int(name) if name.isdigit() else name]
        place[int(last) if last.isdigit() else last] = value

    return forged(change)


def circumstance(**values: Any) -> Tamper:
    """Forge a circumstance."""
    return forged(lambda data: data["circumstances"].update(values))


def edited(folder: Path, change: Callable[[Any], object]) -> None:
    """Change the measurement of P3, and fit the manifest alone."""
    reseal(folder, edit(folder, P3, change))


def digested(folder: Path) -> None:
    """Edit P3 with a fitting facts_sha256, and leave the manifest as it was."""
    manifest = (folder / MANIFEST).read_bytes()
    measurement("approved.target", "marker-1")(folder)
    (folder / MANIFEST).write_bytes(manifest)


def judged(folder: Path) -> None:
    """Claim another verdict, with every digest in order."""
    found = lines(folder)
    one = seal.decode(found[P3], "here")
    other = seal.decode(found[LEFT], "here").judgement
    found[P3] = seal.encode(seal.seal(one.measurement, other, one.circumstances))
    reseal(folder, found)


def linked(folder: Path) -> None:
    """Keep the captures elsewhere."""
    os.rename(folder / CAPTURES, folder.parent / "elsewhere")
    (folder / CAPTURES).symlink_to(folder.parent / "elsewhere")


def piped(folder: Path) -> None:
    """Put a pipe that nobody writes to in the captures' place."""
    (folder / CAPTURES).unlink()
    os.mkfifo(folder / CAPTURES)


def nested(folder: Path) -> None:
    """Nest a value deeper than any reader follows."""
    deep = b"[" * 100_000 + b"]" * 100_000
    replaced(b'"status":"approved"', b'"status":' + deep)(folder)


def unjudge(data: Any) -> None:
    """Pass a measured row off as one that others published, which nobody judges."""
    data["measurement"]["forced"] = None


P3_LINE = "captures.jsonl:2 completion_audit/audit_is_directory/none/same/resume"

WAYS: dict[str, tuple[Tamper, str, str]] = {
    # what is missing, added or elsewhere
    "captures missing": (lambda f: (f / CAPTURES).unlink(), CAPTURES, "is missing"),
    "plan missing": (lambda f: (f / PLAN).unlink(), PLAN, "is missing"),
    "environment missing": (lambda f: (f / ENVIRONMENT).unlink(), ENVIRONMENT, "is missing"),
    "manifest missing": (lambda f: (f / MANIFEST).unlink(), MANIFEST, "is missing"),
    "file added": (lambda f: (f / "more.json").write_text("{}"), "more.json", "was added"),
    "folder added": (lambda f: (f / "more").mkdir(), "more", "was added"),
    "link added": (lambda f: (f / "link").symlink_to("/etc"), "link", "symbolic link"),
    "captures linked": (linked, CAPTURES, "symbolic link"),
    "captures a pipe": (piped, CAPTURES, "no regular file"),
    "name for a terminal": (
        lambda f: (f / "\x1b[2J").write_text(""),
        r"'\x1b[2J'",
        "was added",
    ),
    # what is empty, cut or torn
    "captures empty": (lambda f: reseal(f, []), CAPTURES, "holds no capture"),
    "plan without cells": (replan(list.clear), PLAN, "promises no cell"),
    "plan of no name": (
        refitted(rewrite(PLAN, lambda plan: plan.update(name="../up"))),
        PLAN,
        "its name is '../up', which no plan can have",
    ),
    "plan file empty": (lambda f: (f / PLAN).write_bytes(b""), PLAN, "is empty"),
    "manifest file empty": (lambda f: (f / MANIFEST).write_bytes(b""), MANIFEST, "is empty"),
    "capture dropped": (
        lambda f: reseal(f, lines(f)[:2]),
        "captures.jsonl completion_audit/audit_is_directory/none/same/never",
        "it is missing",
    ),
    "cut in a line": (
        lambda f: os.truncate(f / CAPTURES, sum(map(len, lines(f)[:2])) - 9),
        "captures.jsonl:2",
        "torn",
    ),
    "last newline lost": (
        lambda f: reseal(f, [b"".join(lines(f))[:-1]]),
        "captures.jsonl:3",
        "torn",
    ),
    "blank line": (lambda f: reseal(f, [*lines(f), b"\n"]), "captures.jsonl:4", "no capture"),
    # what is edited, with more and more made to fit
    "environment edited": (
        rewrite(ENVIRONMENT, lambda e: e.update(python="3.0")),
        ENVIRONMENT,
        "was changed",
    ),
    "plan edited": (rewrite(PLAN, lambda p: p.update(name="other")), PLAN, "was changed"),
    "capture edited": (
        lambda f: (f / CAPTURES).write_bytes(
            b"".join(edit(f, P3, lambda d: d["circumstances"].update(start="spawn")))
        ),
        CAPTURES,
        "was changed",
    ),
    "facts digest fits, manifest not": (digested, CAPTURES, "was changed"),
    "manifest fits, facts digest not": (
        lambda f: edited(f, lambda d: d["measurement"]["approved"].update(target="marker-1")),
        P3_LINE,
        "its facts were changed",
    ),
    "judgement does not follow": (judged, P3_LINE, "its verdict does not follow"),
    "no judgement": (
        lambda f: edited(f, lambda d: d["judgement"].update(verdict=None)),
        P3_LINE,
        "its verdict does not follow",
    ),
    # the plan and its captures
    "capture twice": (
        lambda f: reseal(f, [*lines(f), lines(f)[P3]]),
        "captures.jsonl:4 completion_audit/audit_is_directory/none/same/resume",
        "there twice; line 2",
    ),
    "cell twice": (replan(lambda c: c.append(c[0])), "plan.json none/none", "twice"),
    "reordered": (
        lambda f: reseal(f, lines(f)[::-1]),
        "captures.jsonl:2 completion_audit/audit_is_directory/none/same/resume",
        "out of the plan's order",
    ),
    "capture of another plan": (
        replan(lambda c: c.pop(P3)),
        P3_LINE,
        "the plan has no such cell",
    ),
    "plan renamed in manifest": (
        rewrite(MANIFEST, lambda m: m.update(plan="other")),
        MANIFEST,
        "names the plan 'other'",
    ),
    "count changed in manifest": (
        rewrite(MANIFEST, lambda m: m.update(captures=2)),
        MANIFEST,
        "promises 2 captures",
    ),
    # paths of the manifest
    "path up": (
        rewrite(MANIFEST, lambda m: m["files"].update({"../x": "0"})),
        "manifest.json ../x",
        "outside",
    ),
    "path absolute": (
        rewrite(MANIFEST, lambda m: m["files"].update({"/etc/passwd": "0"})),
        "manifest.json /etc/passwd",
        "outside",
    ),
    "path with backslash": (
        rewrite(MANIFEST, lambda m: m["files"].update({"..\\x": "0"})),
        "manifest.json ..\\x",
        "outside",
    ),
    "path of no evidence": (
        rewrite(MANIFEST, lambda m: m["files"].update({"more": "0"})),
        "manifest.json more",
        "no file of evidence",
    ),
    "path left out": (
        rewrite(MANIFEST, lambda m: m["files"].pop(PLAN)),
        MANIFEST,
        "does not list plan.json",
    ),
    # the form
    "format of the manifest": (
        rewrite(MANIFEST, lambda m: m.update(schema=2)),
        MANIFEST,
        "format 2",
    ),
    "format of the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e.update(schema=True))),
        ENVIRONMENT,
        "format True",
    ),
    "key more in the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e.update(host="mine"))),
        ENVIRONMENT,
        "one more: host",
    ),
    "key less in the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e.pop("machine"))),
        ENVIRONMENT,
        "lacks a key that a run writes, or has one more: machine",
    ),
    "no text in the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e.update(python=3))),
        ENVIRONMENT,
        "its python holds what is no text",
    ),
    "map for text in the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e.update(system={}))),
        ENVIRONMENT,
        "its system is no text",
    ),
    "text for map in the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e.update(packages="all"))),
        ENVIRONMENT,
        "its packages is no map of texts",
    ),
    "no version in the environment": (
        refitted(rewrite(ENVIRONMENT, lambda e: e["packages"].update(msgspec=None))),
        ENVIRONMENT,
        "its packages holds what is no text",
    ),
    "key more in the manifest": (
        rewrite(MANIFEST, lambda m: m.update(more=1)),
        MANIFEST,
        "says more",
    ),
    "not JSON": (lambda f: (f / MANIFEST).write_text("{"), MANIFEST, "cannot be read"),
    "not UTF-8": (replaced(b"EISDIR", b"EIS\xff\xfeR"), "captures.jsonl:2", "no capture"),
    "key twice": (
        replaced(b'"source":"measured"', b'"source":"other","source":"measured"'),
        P3_LINE,
        "says more",
    ),
    "key twice in an event": (
        replaced(b'{"status":"approved",', b'{"status":"failed","status":"approved",'),
        P3_LINE,
        "says more",
    ),
    "key more": (replaced(b'"source":', b'"note":"?","source":'), P3_LINE, "says more"),
    "spacing": (replaced(b'"source":', b'"source": '), P3_LINE, "says more"),
    "wrong type": (replaced(b'"calls":1', b'"calls":"1"'), "captures.jsonl:2", "no capture"),
    "too deep": (nested, "captures.jsonl:2", "no capture"),
    # what no run writes
    "recovery in the process of the fault": (
        circumstance(pids={"fault": 201, "force": 202, "recover": 201}),
        P3_LINE,
        "the same pid",
    ),
    "phase in the parent": (
        circumstance(pids={"fault": 200, "force": 202, "recover": 203}),
        P3_LINE,
        "the same pid",
    ),
    "no parent": (circumstance(parent=None), P3_LINE, "process id"),
    "pid of a group": (
        circumstance(pids={"fault": -1, "force": 202, "recover": 203}),
        P3_LINE,
        "process id",
    ),
    "start method": (circumstance(start="thread"), P3_LINE, "neither fork nor spawn"),
    "recovery without a process": (
        circumstance(pids={"fault": 201, "force": 202}, seconds={"fault": 1.0, "force": 1.0}),
        P3_LINE,
        "no process is recorded for its phase recover",
    ),
    "process without a phase": (
        forged(lambda d: d["circumstances"]["pids"].update(recover=1), LEFT),
        "captures.jsonl:3",
        "which the cell does not have",
    ),
    "negative time": (
        circumstance(seconds={"fault": -1.0, "force": 1.0, "recover": 1.0}),
        P3_LINE,
        "its times",
    ),
    "observation missing": (
        lambda f: edited(f, lambda d: d["measurement"]["observations"].pop()),
        P3_LINE,
        "its observations are ['fault']",
    ),
    "observations swapped": (
        lambda f: edited(f, lambda d: d["measurement"]["observations"].reverse()),
        P3_LINE,
        "its observations are ['recover', 'fault']",
    ),
    "event missing": (
        forged(lambda d: d["measurement"]["events"].pop(3)),
        P3_LINE,
        "its event 3 carries the number 4",
    ),
    "event after the end": (
        forged(
            lambda d: d["measurement"]["events"].append(
                {**d["measurement"]["events"][0], "seq": 18}
            )
        ),
        P3_LINE,
        "the last observation is cut at 18",
    ),
    "event of another phase": (
        measurement("events.0.phase", "recover"),
        P3_LINE,
        "an event of another phase",
    ),
    "cut beyond": (measurement("observations.1.events", 99), P3_LINE, "is cut at 99"),
    "cut negative": (measurement("observations.0.events", -1), P3_LINE, "is cut at -1"),
    "effect hidden": (
        forged(lambda d: d["measurement"]["observations"][1]["effects"].pop()),
        P3_LINE,
        "are not those of its events",
    ),
    "effect of another target": (
        measurement("observations.1.effects.1.target", "marker-1"),
        P3_LINE,
        "are not those of its events",
    ),
    "call hidden": (
        measurement("observations.1.calls", 1),
        P3_LINE,
        "counts 1 calls, but 2",
    ),
    "error changed": (measurement("observations.1.error", "EIO"), P3_LINE, "its caller saw 'EIO'"),
    "return removed": (
        measurement("events.13.lane", "audit"),
        P3_LINE,
        "no event says what it returned",
    ),
    "state changed": (
        measurement("observations.1.recorded.status", "failed"),
        P3_LINE,
        "its state after recover is 'failed'",
    ),
    "phase did not end": (
        measurement("observations.1.ended", None),
        P3_LINE,
        "does not say how the phase ended",
    ),
    "phase that did not run": (
        forged(lambda d: d["measurement"]["observations"][1].update(ended="exit"), LEFT),
        "captures.jsonl:3",
        "a phase that did not run",
    ),
    "forced call elsewhere": (
        measurement("forced.effects.0.target", "marker-1"),
        P3_LINE,
        "did not begin with the effects",
    ),
    "measured, but not judged": (forged(unjudge), P3_LINE, "no forced call"),
    "published, but forced": (
        measurement("source", "somebody"),
        P3_LINE,
        "but a forced call is in it",
    ),
    "published runtime, but measured": (
        measurement("cell.runtime", "published:01234567"),
        P3_LINE,
        "but its runtime",
    ),
    "published, but our runtime": (
        forged(lambda d: d["measurement"].update(source="somebody", forced=None)),
        P3_LINE,
        "but its runtime",
    ),
    "published, but with processes": (
        forged(lambda d: d["measurement"].update(source="somebody", forced=None)),
        P3_LINE,
        "carries processes of a run",
    ),
    "measured, with their word": (
        measurement("published_verdict", "fine"),
        P3_LINE,
        "carries a published verdict",
    ),
    "measured, but policy null": (
        measurement("cell.policy", None),
        "captures.jsonl:2 completion_audit/audit_is_directory/none/same/unpublished",
        "its policy is null",
    ),
    "fault at no point": (
        measurement("cell.point", "none"),
        "captures.jsonl:2 none/audit_is_directory",
        "point = 'none' with fault",
    ),
    "unknown dedupe": (
        lambda f: edited(f, lambda d: d["measurement"]["cell"].update(dedupe="hope")),
        "captures.jsonl:2 completion_audit/audit_is_directory/hope",
        "which nothing knows",
    ),
    "nothing can be derived": (
        lambda f: edited(f, lambda d: d["measurement"].update(observations=[])),
        P3_LINE,
        "no judgement follows",
    ),
}


def test_sound_evidence_passes(folder: Path) -> None:
    """What a run sealed is sound, and every capture was read."""
    report = check(folder)
    assert report.findings == ()
    assert report.sound
    assert report.captures == 3


@pytest.mark.parametrize("way", WAYS)
def test_tampering_is_found_and_its_place_named(folder: Path, way: str) -> None:
    """Each way to damage the folder gives a finding with the file, the cell and the problem."""
    tamper, place, problem = WAYS[way]
    tamper(folder)
    findings = [str(finding) for finding in check(folder).findings]
    assert any(f.startswith(place) and problem in f for f in findings), findings


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sound evidence whose bytes each example puts back."""
    return made.small(tmp_path_factory.mktemp("flipped") / "small")


@given(data=st.data(), name=st.sampled_from(FILES), mask=st.integers(1, 255))
@settings(max_examples=400)
def test_any_flipped_byte_is_found(
    pristine: Path, data: st.DataObject, name: str, mask: int
) -> None:
    """No byte of any file can differ from what was sealed."""
    original = (pristine / name).read_bytes()
    at = data.draw(st.integers(0, len(original) - 1))
    changed = bytearray(original)
    changed[at] ^= mask
    try:
        (pristine / name).write_bytes(changed)
        assert not check(pristine).sound
    finally:
        (pristine / name).write_bytes(original)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(data=st.data(), value=JSON)
@settings(max_examples=100)
def test_no_forgery_ends_the_check(pristine: Path, data: st.DataObject, value: Any) -> None:
    """Any value in any place of a capture, with the manifest made to fit: findings, no error."""
    original = {name: (pristine / name).read_bytes() for name in FILES}

    def change(capture: Any) -> None:
        place = capture
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = data.draw(st.sampled_from(keys))
            inner = place[key]
            if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
                place[key] = value
                return
            place = inner

    try:
        reseal(pristine, edit(pristine, P3, change))
        assert check(pristine).captures >= 2
    finally:
        for name, content in original.items():
            (pristine / name).write_bytes(content)


def test_no_byte_of_the_manifest_is_free(pristine: Path) -> None:
    """The manifest is listed nowhere, and yet every byte of it is held against something."""
    original = (pristine / MANIFEST).read_bytes()
    try:
        for at in range(len(original)):
            (pristine / MANIFEST).write_bytes(
                original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :]
            )
            assert not check(pristine).sound, at
    finally:
        (pristine / MANIFEST).write_bytes(original)


def test_a_cell_that_the_harness_could_not_measure_is_sound(tmp_path: Path) -> None:
    """Evidence that says it measured nothing there is honest: its verdict is unknown."""
    broken = worker.broken(worker.Job(made.P3, "gone", "fork", 1.0), "OSError")
    assert check(made.write(tmp_path / "e", [broken]).folder).findings == ()


def test_states_of_one_runtime_say_the_same_in_every_cell(tmp_path: Path) -> None:
    """Else a forger chooses, cell by cell, whether the same word says that all is done."""
    folder = Path(shutil.copytree(ROOT / "evidence" / "contrast", tmp_path / "e"))
    remake(folder, 1, lambda data: data["measurement"]["says"].update(failed="done"))
    (finding,) = check(folder).findings
    assert finding.place.startswith("captures.jsonl:2 ")
    assert "another meaning than an earlier cell does" in finding.problem


def test_what_breaks_an_examination_is_a_finding() -> None:
    """A value that nothing expects is distrusted, and the other examinations go on."""
    sound = made.capture(made.P3)
    soon: Any = dict.fromkeys(sound.circumstances.pids, "soon")
    odd = replace(sound.circumstances, seconds=soon)
    found = list(consistency.problems(replace(sound, circumstances=odd)))
    assert [problem.split(":")[0] for problem in found] == ["it cannot be examined"]


def test_a_judge_that_broke_is_told_from_a_verdict(folder: Path) -> None:
    """Where nothing can be derived, a run writes ``judge_failed``; elsewhere that is a lie."""

    def failed(data: Any) -> None:
        data["judgement"] = dict.fromkeys(data["judgement"])
        data["judgement"]["verdict"] = {"verdict": "unknown", "reasons": ["judge_failed"]}

    edited(folder, failed)
    assert any("its verdict does not follow" in f.problem for f in check(folder).findings)


def test_a_folder_of_evidence_is_checked_one_by_one(tmp_path: Path) -> None:
    """Each evidence folder gets its report; what is no evidence beside them is left alone."""
    made.small(tmp_path / "b")
    made.small(tmp_path / "a")
    (tmp_path / "claims.toml").write_text("")
    (tmp_path / "notes").mkdir()
    (tmp_path / "a" / PLAN).unlink()
    reports = check_all(tmp_path)
    assert [(r.folder.name, r.sound) for r in reports] == [("a", False), ("b", True)]


def test_evidence_itself_is_checked_alone(folder: Path) -> None:
    """A folder that is evidence gives one report, of itself."""
    assert [report.folder for report in check_all(folder)] == [folder]


def test_a_link_among_evidence_is_not_followed(tmp_path: Path) -> None:
    """A linked folder lies outside; it is distrusted without being opened."""
    made.small(tmp_path / "outside")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "link").symlink_to(tmp_path / "outside")
    (report,) = check_all(tmp_path / "all")
    assert str(report.findings[0]) == "link: is a symbolic link; it was not followed."


def test_nothing_is_misuse_not_distrust(tmp_path: Path) -> None:
    """A folder without evidence, and no folder at all, are the caller's mistake."""
    for place in (tmp_path, tmp_path / "gone"):
        with pytest.raises(NotEvidence):
            check_all(place)
    with pytest.raises(NotEvidence):
        check(tmp_path / "gone")


def test_a_folder_that_cannot_be_read_is_a_finding(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system refuses to read is distrusted, and nothing is raised."""

    def refused(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("rcr_probes.evidence.check.sha256", refused)
    assert any("cannot be read" in f.problem for f in check(folder).findings)


def test_an_unsealed_folder_is_not_sound(folder: Path, tmp_path: Path) -> None:
    """A run that was interrupted left no manifest, and promises more than it holds."""
    shutil.rmtree(folder)
    cells = (made.CONTROL, made.P3)
    with write.Writer(folder, Plan("small", cells)) as writer:
        writer.append(made.capture(made.CONTROL))
    findings = [str(f) for f in check(folder).findings]
    assert f"{MANIFEST}: is missing." in findings
    assert f"{CAPTURES} {made.P3.id}: the plan promises this cell; it is missing." in findings
