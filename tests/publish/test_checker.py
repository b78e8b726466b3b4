"""The program in a package is the project's own modules, needs nothing else, and speaks Chinese."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

import rcr_probes
from rcr_probes.cli import INTERRUPTED
from rcr_probes.errors import RcrError
from rcr_probes.evidence import (
    consistency,
    course,
    executed,
    of_reference,
    outages,
    received,
    recovered,
)
from rcr_probes.evidence.check import _LOOKS as LOOKS
from rcr_probes.evidence.check import check
from rcr_probes.publish import checker, layout, standalone
from rcr_probes.publish.build import publish
from rcr_probes.publish.verify import verify
from rcr_probes.report.texts import LANGS, table, text
from tests.evidence import made
from tests.publish import packaged

ROOT = Path(rcr_probes.__file__).parents[1]
SPOKEN = tuple(
    f"rcr_probes.{name}" for name in ("evidence.check", "publish.listed", "publish.verify")
)


def test_what_is_embedded_is_the_source_byte_for_byte(published: Path) -> None:
    """Nothing of the checker is written twice: each module stands in it as it stands here."""
    embedded = runpy.run_path(str(published / layout.CHECKER))["MODULES"]
    assert {
        "rcr_probes.model",
        "rcr_probes.eligibility",
        "rcr_probes.judge",
        "rcr_probes.evidence.derive",
        "rcr_probes.evidence.rows",
        "rcr_probes.evidence.claims",
    } <= embedded.keys()
    for name, source in embedded.items():
        path = ROOT / f"{name.replace('.', '/')}.py"
        if path.exists():
            assert source.encode() == path.read_bytes(), name
        else:  # a package, of which nothing is needed
            assert source == "", name


@pytest.mark.parametrize("held", ["x = '''y'''", "x = 1\\"])
def test_a_module_that_cannot_be_embedded_as_it_is_is_refused(
    monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """Also where Python runs without its assertions."""
    monkeypatch.setattr(checker, "embedded", lambda: {"odd": held})
    with pytest.raises(RcrError, match="odd cannot stand in check"):
        checker.program()


def test_it_carries_its_licence() -> None:
    """Which asks to be in every copy."""
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert licence in checker.program().decode()


@pytest.mark.parametrize("lang", LANGS)
def test_it_says_of_a_sound_package_what_rcr_check_says(
    published: Path, lang: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Line by line, with nothing but Python's own library."""
    code, lines = packaged.theirs(published, "--lang", lang)
    assert (code, lines) == packaged.ours(capsys, published, "--lang", lang)
    assert code == 0
    small = len(packaged.CAPTURED["small"])
    assert any("evidence/small" in line and str(small) in line for line in lines)


def test_it_leaves_nothing_in_the_package(package: Path) -> None:
    """It reads, and the package is sound a second time."""
    before = packaged.digests(package)
    packaged.theirs(package)
    assert packaged.digests(package) == before


def test_a_reader_that_has_seen_enough_ends_it_quietly(published: Path) -> None:
    """As ``head`` does; the exit code still tells."""
    words = [sys.executable, "-I", "-S", str(published / layout.CHECKER)]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        (">&-", 0, ""),
        (">&- 2>&-", 0, ""),
        (">/dev/full", 2, "The report cannot be written: No space left on device."),
        (">/dev/full 2>&-", 2, ""),
        (">/dev/full 2>/dev/full", 2, ""),
        ("none >&- 2>&-", 2, ""),
        ("none 2>/dev/full", 2, ""),
    ],
)
def test_where_nothing_can_be_said_the_exit_code_still_tells(
    published: Path, streams: str, code: int, said: str
) -> None:
    """A stream that is closed or full ends no check; a report that is lost is not passed over."""
    words = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-I", "-S"]
    done = subprocess.run(
        [*words, published / layout.CHECKER], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert "Traceback" not in done.stderr


def test_who_interrupts_it_sees_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def interrupted(folder: Path) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(standalone, "verify", interrupted)
    assert standalone.main([], tmp_path, table()) == INTERRUPTED
    assert capsys.readouterr().err == "check.py: interrupted.\n"


def test_it_runs_nothing_that_lies_in_the_package(package: Path) -> None:
    """Also where Python would take a module from beside the program."""
    for name in ("argparse", "json", "types", "rcr_probes"):
        (package / f"{name}.py").write_text("raise SystemExit(0)")
    words = [sys.executable, str(package / layout.CHECKER)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=package)
    assert done.returncode == 1
    assert "argparse.py: was added" in done.stdout


@pytest.mark.parametrize("name", ["none", "", "x" * 300, "x/" * 3000, "\udcff", os.devnull])
def test_what_is_no_folder_is_misuse(published: Path, name: str) -> None:
    """Also a name that no system takes."""
    words = [sys.executable, "-I", "-S", str(published / layout.CHECKER), f"./none/{name}"]
    missing = subprocess.run(words, capture_output=True, text=True, check=False)
    assert missing.returncode == 2
    assert missing.stderr.startswith("There is no folder")


def test_a_folder_that_is_empty_is_not_to_be_trusted(published: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert packaged.theirs(published, str(tmp_path / "empty"))[0] == 1


def kinds() -> set[str]:
    """Every sort of finding that the code can make."""
    made = set()
    for name in SPOKEN:
        for node in ast.walk(ast.parse(checker.source(name))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Finding":
                for place in ast.walk(node.args[2]):
                    if isinstance(place, ast.Constant):
                        made.add(str(place.value))
    return made


def test_every_sort_of_finding_is_said_in_both_languages() -> None:
    """And the program in a package carries just these texts."""
    said = {key.removeprefix("finding.") for key in table() if key.startswith("finding.")}
    assert kinds() | set(LOOKS) == said
    assert {f"finding.{kind}" for kind in said} <= checker.spoken().keys()


def test_a_look_that_is_told_apart_is_there_under_that_name_alone() -> None:
    """The sort of what it finds is its name, whatever its function is called."""
    modules = (course, executed, outages, recovered, of_reference, received)
    every = (consistency._LOOKS, *(module.LOOKS for module in modules))
    names = Counter(name for looks in every for name in looks)
    assert set(names.values()) == {1}
    assert set(LOOKS) <= names.keys()


def test_a_finding_in_english_is_the_sentence_of_the_code(tmp_path: Path) -> None:
    """The table and the code tell the same of the same thing."""
    folder = made.small(tmp_path / "small")
    (folder / "captures.jsonl").write_bytes(b"".join(made.lines(folder)[:1]) + b"{")
    (folder / "environment.json").write_bytes(b"")
    (folder / "more").touch()
    (folder / "link").symlink_to(folder)
    findings = check(folder).findings
    assert len({finding.kind for finding in findings}) > 5
    for finding in findings:
        assert finding.said(partial(text, lang="en")) == str(finding)
        chinese = finding.said(partial(text, lang="zh"))
        assert re.search("[\u4e00-\u9fff]", chinese), finding


def test_names_that_could_steer_a_terminal_are_shown_quoted(package: Path) -> None:
    """What a package holds is never printed as it is."""
    (package / "evil\x1b[2Jname").touch()
    lines = packaged.theirs(package)[1]
    assert any("evil" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_package_without_guide_and_claims_is_whole(source: Path, tmp_path: Path) -> None:
    """What the evidence does not have is not missed."""
    publish(source / "small", tmp_path / "package", **packaged.ORIGIN)
    report = verify(tmp_path / "package")
    assert report.sound
    assert (report.outcomes, report.pages, report.signed) == ((), 0, False)


def test_evidence_of_a_probe_is_checked_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker of somebody's own, probed for real: the same verdicts follow everywhere."""
    worker = ROOT / "examples" / "unmodified-worker"
    words = [sys.executable, "-m", "rcr_probes.cli", "probe", "--into", str(tmp_path / "probe")]
    words += ["--timeout", "3", "--setup", f"{sys.executable} runner.py {{folder}}/jobs.db", "--"]
    words += [sys.executable, "stable_key.py", "{folder}/jobs.db", "{receiver}"]
    subprocess.run(
        words,
        cwd=worker,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        timeout=300,
    )
    publish(tmp_path / "probe", tmp_path / "package", **packaged.ORIGIN)
    code, lines = packaged.theirs(tmp_path / "package")
    assert code == 0, lines
    assert (code, lines) == packaged.ours(capsys, tmp_path / "package")
