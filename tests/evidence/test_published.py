"""A published package is verified byte for byte, and its probes become captures in our form."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import run as runs
from rcr_probes.errors import EvidenceError, NotEvidence, PlanError
from rcr_probes.evidence import form, store
from rcr_probes.evidence.check import check
from rcr_probes.evidence.compare import compare
from rcr_probes.evidence.package import read_package
from rcr_probes.evidence.published import import_package
from rcr_probes.evidence.rows import Row, rows
from rcr_probes.model import Capture
from scripts import transcribe_article
from tests.evidence import made

ROOT = Path(__file__).resolve().parents[2]
# The package as it was published, which is no part of this repository: where RCR_PACKAGE says, or
# in a folder that lies beside the repository.
REAL = Path(
    os.environ.get("RCR_PACKAGE")
    or next(iter(sorted(ROOT.parent.glob("*/rcr-20260831"))), ROOT.parent / "rcr-20260831")
)
TRANSCRIBED = ROOT / "evidence" / "rcr-20260831"
real = pytest.mark.skipif(
    not REAL.is_dir(), reason="the published package is not here: RCR_PACKAGE can name its folder"
)


def captures(package: Path, into: Path) -> list[Capture]:
    return list(import_package(package, into).evidence.captures())


def found(captures: list[Capture], part: str) -> tuple[Capture, Row]:
    """The one capture whose cell id holds a part, and its row."""
    (index,) = [i for i, c in enumerate(captures) if part in c.cell.id]
    return captures[index], rows(captures)[index]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A small package in the published form, one listed file absent."""
    return made.package(tmp_path / "package")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The article's plan, measured here."""
    return runs.run("article", tmp_path_factory.mktemp("measured") / "article").folder


# Reading a package


def test_a_package_is_verified_and_what_is_absent_is_listed(package: Path) -> None:
    """Absent files are allowed; files that nobody listed are named and not read."""
    (package / "ABOUT.md").write_text("ours")
    read = read_package(package)
    assert sorted(read.files) == sorted(
        f"fixtures/{name}.json" for name in ("historical-probes", "repeatability", "restart")
    )
    assert read.absent == ("README.md",)
    assert read.unlisted == ("ABOUT.md",)


@pytest.mark.parametrize("name", ["historical-probes", "repeatability", "restart"])
def test_a_changed_byte_is_found_in_its_file(package: Path, name: str) -> None:
    """The error names the file."""
    path = package / "fixtures" / f"{name}.json"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(EvidenceError, match="was changed") as raised:
        read_package(package)
    assert raised.value.place == f"fixtures/{name}.json"


@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "fixtures/../../x",
        "/etc/passwd",
        "..\\x",
        "C:/x",
        "./x",
        "a//b",
        "",
        "a\x00b",
        "a\nb",
    ],
)
def test_a_path_that_leaves_the_package_is_refused(package: Path, path: str) -> None:
    """It is refused before anything is opened, whether or not there is such a file."""
    made.write_manifest(package, [{"path": path, "sha256": "0" * 64}])
    with pytest.raises(EvidenceError, match="leaves the package"):
        read_package(package)


def test_a_listed_link_is_refused(package: Path) -> None:
    """Neither a file nor a folder on the way may be a symbolic link."""
    os.rename(package / "fixtures", package.parent / "fixtures")
    (package / "fixtures").symlink_to(package.parent / "fixtures")
    with pytest.raises(EvidenceError, match="symbolic link") as raised:
        read_package(package)
    assert raised.value.place == "fixtures"


def test_a_listed_folder_is_no_file(package: Path) -> None:
    """What is listed must be a regular file."""
    (package / "README.md").mkdir()
    with pytest.raises(EvidenceError, match="no regular file"):
        read_package(package)


GOOD = "0" * 64


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        pytest.param("{}" + " " * (1 << 24), "more than 16777216 bytes", id="huge"),
        ('{"schema_version": 2, "files": []}', "schema_version 2"),
        ('{"schema_version": true, "files": []}', "schema_version True"),
        ('{"schema_version": 1, "files": []}', "lists no file"),
        ('{"schema_version": 1}', "not of the known form"),
        ('{"schema_version": 1, "files": {"a": "b"}}', "not of the known form"),
        ('{"schema_version": 1, "files": [{"path": "a", "sha256": "XYZ"}]}', "no SHA-256"),
        ('{"schema_version": 1, "schema_version": 1, "files": []}', "repeated"),
        (
            f'{{"schema_version": 1, "files": [{{"path": "a", "sha256": "{GOOD}"}},'
            f' {{"path": "a", "sha256": "{GOOD}"}}]}}',
            "twice",
        ),
        ("{", "cannot be read"),
        ("[]", "not of the known form"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_manifest_that_is_none_is_refused(package: Path, manifest: str, problem: str) -> None:
    """Each with its own words, and the file's name."""
    (package / "manifest.json").write_text(manifest)
    with pytest.raises(EvidenceError, match=problem) as raised:
        read_package(package)
    assert raised.value.place == "manifest.json"


def test_what_is_no_package_is_misuse(package: Path, tmp_path: Path) -> None:
    """No folder, no manifest, or evidence of our own: there is nothing to import."""
    with pytest.raises(NotEvidence, match="There is no folder"):
        read_package(tmp_path / "gone")
    with pytest.raises(NotEvidence, match="no package"):
        read_package(package / "fixtures")
    with pytest.raises(NotEvidence, match="evidence already"):
        read_package(made.small(tmp_path / "own"))


def test_only_what_was_verified_is_read(package: Path) -> None:
    """A file that changed after it was verified, or was never listed, is not read."""
    read = read_package(package)
    (package / "fixtures" / "restart.json").write_text("{}")
    with pytest.raises(EvidenceError, match="was changed"):
        read.json("fixtures/restart.json")
    with pytest.raises(EvidenceError, match="is absent"):
        read.json("README.md")
    with pytest.raises(EvidenceError, match="not listed"):
        read.json("notes.json")


# Importing it


def test_imported_evidence_is_sound(package: Path, tmp_path: Path) -> None:
    """The captures pass the check, are not judged, and say that they were published."""
    found = captures(package, tmp_path / "e")
    assert check(tmp_path / "e").findings == ()
    assert len(found) == 7
    for capture in found:
        assert capture.cell.runtime == "published:01234567"
        assert capture.measurement.forced is None
        assert set(rows([capture])[0].items()) >= {("verdict", None), ("start", None)}


def test_p0_is_seen_after_the_second_submission_alone(package: Path, tmp_path: Path) -> None:
    """Its error is what the caller saw when it submitted again."""
    capture, row = found(captures(package, tmp_path / "e"), "none/none")
    assert [o.after for o in capture.measurement.observations] == ["recover"]
    assert (row["policy"], row["variant"]) == ("again", "E-A0")
    assert (row["recovery_error"], row["effects_after_recovery"]) == ("CONSUMED", 1)
    assert row["calls_after_recovery"] is None
    assert row["published_verdict"] == "v0"


@pytest.mark.parametrize(("point", "state"), [("approval_audit", "ok"), ("start_audit", "busy")])
def test_p1_and_p2_have_no_published_recovery(
    package: Path, tmp_path: Path, point: str, state: str
) -> None:
    """Their policy is not published, and neither is a second observation."""
    capture, row = found(captures(package, tmp_path / "e"), point)
    assert [o.after for o in capture.measurement.observations] == ["fault"]
    assert (row["policy"], row["fault"]) == (None, "audit_is_directory")
    assert (row["caller_error"], row["state_after_fault"]) == ("EISDIR", state)
    assert row["effects_after_fault"] == 0


def test_p3_keeps_its_evidence_and_its_second_effect(package: Path, tmp_path: Path) -> None:
    """Both observations are there; the error of the recovery was not published."""
    imported = [c for c in captures(package, tmp_path / "e") if c.cell.variant == "E-A0"]
    capture, row = found(imported, "completion_audit")
    first = capture.measurement.after("fault")
    assert first
    assert first.recorded.evidence == ({"marker": "kept"},)
    assert (row["effects_after_fault"], row["effects_after_recovery"]) == (1, 2)
    assert (row["recovery_error"], row["calls_after_recovery"]) == (None, None)


def test_the_stages_of_a_restart_become_events(package: Path, tmp_path: Path) -> None:
    """Calls, effects and states in order, a return for each phase, and cuts between them."""
    imported = [c for c in captures(package, tmp_path / "e") if c.cell.variant == "E-A1"]
    capture, _ = found(imported, "none/same")
    events = capture.measurement.events
    assert [(e.phase, e.lane) for e in events] == [
        ("fault", "state"),
        ("fault", "state"),
        ("fault", "call"),
        ("fault", "effect"),
        ("fault", "state"),
        ("fault", "return"),
        ("recover", "call"),
        ("recover", "effect"),
        ("recover", "state"),
        ("recover", "return"),
    ]
    assert [o.events for o in capture.measurement.observations] == [6, 10]
    assert [e.value["effect_id"] for e in events if e.lane == "effect"] == ["E1", "E2"]
    assert [e.value["error"] for e in events if e.lane == "return"] == ["EISDIR", "none"]
    assert capture.measurement.approved.operation_key == "key"


def test_the_three_controls_are_dedupe_and_digest(package: Path, tmp_path: Path) -> None:
    """Effects, calls and the recovery's error are those of each control."""
    imported = [c for c in captures(package, tmp_path / "e") if c.cell.variant == "E-A1"]
    columns = ("effects_after_recovery", "calls_after_recovery", "recovery_error")
    figures = {
        (c.cell.dedupe, c.cell.digest): tuple(row[name] for name in columns)
        for c, row in zip(imported, rows(imported), strict=True)
    }
    assert figures == {
        ("none", "same"): (2, 2, "none"),
        ("operation_key", "same"): (1, 2, "none"),
        ("none", "changed"): (1, 1, "STALE"),
    }


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    """Other probes, keys without a column, unknown controls, and a recovery that was no restart."""
    restart = made.restart()
    restart["variants"][0]["separate_processes"] = False
    restart["variants"][1]["variant"] = "other"
    probes = copy.deepcopy(made.PROBES)
    probes[0]["rows"][1]["approvedEventPresent"] = False
    package = made.package(
        tmp_path / "p", probes=probes, restart=restart, repeated=made.repetition(restart)
    )
    imported = import_package(package, tmp_path / "e")
    assert imported.left_out == (
        "E-A0 P1 of 01234567: approvedEventPresent, for which there is no column",
        "E-A0 P9 of 01234567: not one of the probes P0 to P3",
        "E-A1 non-idempotent: recovery was in the process of the fault",
        "E-A1 other: not one of non-idempotent, idempotent, changed-digest",
    )


def test_a_package_without_its_probes_has_nothing_to_import(tmp_path: Path) -> None:
    """An absent file that is needed is an error that names it, and no folder is begun."""
    for n, name in enumerate(("probes", "restart")):
        package = made.package(tmp_path / f"p{n}", **{name: None})
        with pytest.raises(EvidenceError, match="is absent"):
            import_package(package, tmp_path / "e")
    assert not (tmp_path / "e").exists()
    package = made.package(tmp_path / "p", repeated=None)
    assert import_package(package, tmp_path / "e").evidence.manifest.captures == 7


def test_evidence_is_not_written_over(package: Path, tmp_path: Path) -> None:
    """A second import into the same folder is refused."""
    import_package(package, tmp_path / "e")
    with pytest.raises(PlanError, match="sealed"):
        import_package(package, tmp_path / "e")


Files = dict[str, Any]
RESTART = "fixtures/restart.json"
REPEATED = "fixtures/repeatability.json"
PROBES = "fixtures/historical-probes.json"


def variant(change: Callable[[Any], object]) -> Callable[[Files], object]:
    """Change the first variant of the restart file."""
    return lambda files: change(files["restart"]["variants"][0])


def stage(number: int, **values: Any) -> Callable[[Files], object]:
    """Change one stage of the first variant."""
    return variant(lambda v: v["observations"][number].update(values))


# What is changed, the file that it is found in, and the words.
CONTRADICTIONS: dict[str, tuple[Callable[[Files], object], str, str]] = {
    "effects": (variant(lambda v: v["after_retry"].update(effects=1)), RESTART, "after_retry"),
    "calls": (variant(lambda v: v["before_retry"].update(calls=0)), RESTART, "before_retry"),
    "status": (variant(lambda v: v["after_retry"].update(status="x")), RESTART, "after_retry"),
    "stage": (variant(lambda v: v["observations"].pop()), RESTART, "its stages"),
    "order": (variant(lambda v: v["observations"].reverse()), RESTART, "its stages"),
    "seq": (stage(1, seq=5), RESTART, "its stages"),
    "owner": (stage(1, owner="x"), RESTART, "owners"),
    "effect gone": (stage(2, effects=[]), RESTART, "is gone"),
    "call gone": (stage(2, executor_calls=0), RESTART, "is gone"),
    "same name": (
        variant(lambda v: v["observations"][3].update(effects=v["observations"][2]["effects"] * 2)),
        RESTART,
        "the same name",
    ),
    "no variant": (lambda f: f["restart"]["variants"].clear(), RESTART, "no variant"),
    "variant twice": (
        lambda f: f["restart"]["variants"].append(f["restart"]["variants"][0]),
        RESTART,
        "twice",
    ),
    "commit": (lambda f: f["restart"].update(commit="HEAD"), RESTART, "which is none"),
    "huge": (stage(3, executor_calls=10**9), RESTART, "not of the known form"),
    "boolean": (stage(3, executor_calls=True), RESTART, "not of the known form"),
    "repeated figure": (
        lambda f: f["repeated"][0]["variants"][0].update(effects_after=1),
        REPEATED,
        "are not those of",
    ),
    "repeated missing": (
        lambda f: f["repeated"][0]["variants"].pop(),
        REPEATED,
        "are not those of",
    ),
    "no probe": (lambda f: f["probes"].clear(), PROBES, "no probe"),
    "probe twice": (
        lambda f: f["probes"][0]["rows"].append(f["probes"][0]["rows"][0]),
        PROBES,
        "twice",
    ),
    "probe without effects": (
        lambda f: f["probes"][0]["rows"][1].pop("effects"),
        PROBES,
        "not of the known form",
    ),
}


@pytest.mark.parametrize("way", CONTRADICTIONS)
def test_a_package_that_contradicts_itself_is_refused(tmp_path: Path, way: str) -> None:
    """Every digest is in order, and yet the figures cannot all be true."""
    change, place, problem = CONTRADICTIONS[way]
    files = {
        "probes": copy.deepcopy(made.PROBES),
        "restart": made.restart(),
        "repeated": made.repetition(made.restart()),
    }
    change(files)
    package = made.package(tmp_path / "p", **files)
    with pytest.raises(EvidenceError, match=problem) as raised:
        import_package(package, tmp_path / "e")
    assert raised.value.place == place
    assert not (tmp_path / "e").exists()


def test_a_repetition_on_another_baseline_says_nothing(tmp_path: Path) -> None:
    """Its figures are of another source, and need not agree."""
    repeated = made.repetition(made.restart())
    repeated[0]["commit"] = "f" * 40
    repeated[0]["variants"].pop()
    package = made.package(tmp_path / "p", repeated=repeated)
    assert import_package(package, tmp_path / "e").evidence.manifest.captures == 7


# The published package itself


@real
def test_the_published_package_is_imported(tmp_path: Path) -> None:
    """Two baselines of four probes and three restart variants; eleven files are absent."""
    imported = import_package(REAL, tmp_path / "e")
    assert len(imported.package.absent) == 11
    assert imported.package.unlisted == ("ABOUT.md",)
    assert imported.evidence.manifest.captures == 11
    assert len([left for left in imported.left_out if " P4 " in left]) == 2
    assert check(tmp_path / "e").findings == ()


@real
def test_the_published_rows_compare_equal(tmp_path: Path, measured: Path) -> None:
    """What was published, what we transcribed and what is measured here are the same facts."""
    there = import_package(REAL, tmp_path / "e").evidence
    here, transcribed = store.read(measured), store.read(TRANSCRIBED)
    for ours, theirs in ((here, there), (there, here), (transcribed, there)):
        comparison = compare(ours, theirs)
        assert comparison.same, comparison.differences
        assert comparison.only_theirs == ()


@real
@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        "provenance.json",
        "fixtures/historical-probes.json",
        "fixtures/repeatability.json",
        "fixtures/restart.json",
        "fixtures/run-metadata.json",
        "fixtures/timeline.json",
    ],
)
@pytest.mark.parametrize("where", [0.1, 0.5, 0.9])
def test_one_damaged_byte_of_the_package_is_found(tmp_path: Path, name: str, where: float) -> None:
    """The error names the file; the manifest is held against its own published digest."""
    copied = Path(shutil.copytree(REAL, tmp_path / "copy"))
    data = bytearray((copied / name).read_bytes())
    data[int(len(data) * where)] ^= 1
    os.chmod(copied / name, 0o600)
    (copied / name).write_bytes(data)
    with pytest.raises(EvidenceError) as raised:
        import_package(copied, tmp_path / "e")
    assert raised.value.exit_code == 1
    assert raised.value.place == name


@real
def test_nothing_of_the_package_is_committed() -> None:
    """The project transcribes the figures; it does not copy the files."""
    theirs = {
        hashlib.sha256(path.read_bytes()).hexdigest() for path in REAL.rglob("*") if path.is_file()
    }
    for path in TRANSCRIBED.iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() not in theirs


# The article's tables, transcribed


def test_the_transcription_is_what_its_script_writes(tmp_path: Path) -> None:
    """The committed folder holds exactly the rows of the script, and is sound."""
    assert check(TRANSCRIBED).findings == ()
    again = transcribe_article.transcribe(tmp_path / "again")
    for name in (form.CAPTURES, form.PLAN):
        assert (TRANSCRIBED / name).read_bytes() == (again.folder / name).read_bytes()


def test_the_measured_article_equals_its_tables(measured: Path) -> None:
    """Every figure of both tables is measured again here, on both baselines."""
    comparison = compare(store.read(measured), store.read(TRANSCRIBED))
    assert comparison.same, comparison.differences
    assert (comparison.pairs, comparison.only_ours, comparison.only_theirs) == (11, (), ())
    assert {a.side for a in comparison.not_given} == {"theirs"}


def test_every_transcribed_row_names_its_source() -> None:
    """The source says the table and the row, and where a value came from elsewhere."""
    sources = [c.measurement.source for c in store.read(TRANSCRIBED).captures()]
    assert all("RCR-20260831-01, table " in source for source in sources)
    assert json.dumps(sources).count("historical-probes.json") == 6
