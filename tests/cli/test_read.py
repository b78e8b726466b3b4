"""What takes evidence and answers: explain, check, compare, import, decide."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from rcr_probes.evidence import store
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.rows import COLUMNS
from tests.cli.typed import P3, ROOT, Captured, rcr, refused
from tests.evidence import made


def test_explain_tells_the_whole_cell(article: Path, capsys: Captured) -> None:
    """Events in order, what could be known, what was true, and why the verdict holds."""
    assert rcr("explain", article, P3) == 0
    out = capsys.readouterr().out
    for said in ("E1 appears", "EISDIR", "E2 appears", "[effect_present]", "duplicate_effect"):
        out = out[out.index(said) :]


def test_a_part_of_an_id_names_a_cell(article: Path, capsys: Captured) -> None:
    """As long as no other id holds it."""
    assert rcr("explain", article, "start_audit") == 0
    assert capsys.readouterr().out.startswith("start_audit/audit_is_directory/none/same/resume\n")


@pytest.mark.parametrize("command", [["explain"], ["timeline", "--at", 3]], ids=lambda c: c[0])
def test_without_a_cell_some_are_named_and_the_command_that_has_them_all(
    command: list[object], article: Path, capsys: Captured
) -> None:
    """In the order of the plan, for the reader to copy one; of many, the first alone."""
    said = refused(capsys, command[0], article, *command[1:])
    assert [line.strip() for line in said.splitlines()[2:]].index(P3) == 3
    many = ROOT / "evidence" / "faults"
    said = refused(capsys, command[0], many, *command[1:])
    assert len(said.splitlines()) == 11
    listing = re.search(r"; rcr (.+) has all", said)
    assert listing
    assert rcr(*shlex.split(listing[1])) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert f" {len(list(rows))} cells." in said


def test_an_ambiguous_part_lists_what_it_may_mean(article: Path, capsys: Captured) -> None:
    """The reader copies the right one."""
    said = refused(capsys, "explain", article, "completion_audit")
    assert said.count("completion_audit/audit_is_directory/") == 3


def test_check_names_what_is_not_to_be_trusted(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """An edited capture: exit 1, with the file on stdout; a folder of folders checks them all."""
    shutil.copytree(article, tmp_path / "all" / "good")
    bad = Path(shutil.copytree(article, tmp_path / "all" / "bad")) / CAPTURES
    bad.write_bytes(bad.read_bytes().replace(b'"calls":1', b'"calls":7', 1))
    assert rcr("check", "all/good") == 0
    assert rcr("check", "all/bad") == 1
    assert rcr("check", "all") == 1
    out = capsys.readouterr().out
    assert "all/good: sound, captures: 6" in out
    assert f"all/bad: {CAPTURES}" in out
    rcr("check", "all", "--lang", "zh")
    out = capsys.readouterr().out
    assert "all/good：可信，捕获：6 条" in out
    assert f"all/bad：{CAPTURES}" in out


def claims_of(folder: Path, **changes: object) -> Path:
    """A claim over the folder's P3, in a claims.toml beside it."""
    expect, where = changes.get("expect", 2), changes.get("where", 'policy = "resume"')
    (folder.parent / "claims.toml").write_text(
        f'''[[claim]]
id = "P3"
en = "Effects: {{value}}."
zh = "效果数为 {{value}}。"
evidence = "{folder.name}"
where = {{ point = "completion_audit", dedupe = "none", digest = "same", {where} }}
take = "effects_after_recovery"
expect = {expect}
not_shown_en = "A rate."
not_shown_zh = "比率。"
source = "measured here"
''',
        encoding="utf-8",
    )
    return folder.parent


def test_check_evaluates_the_claims_of_a_folder_of_folders(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """They hold, and what nothing uses is a note; or one does not, and the exit code is 1."""
    good = Path(shutil.copytree(article, tmp_path / "all" / "good"))
    every = claims_of(good)
    assert rcr("check", every) == 0
    *_, holding, note = capsys.readouterr().out.splitlines()
    assert holding == f"{every}/claims.toml: all hold, claims: 1"
    assert note.startswith(f"{every}/claims.toml: note: captures of good that no claim")
    assert rcr("check", every, "--lang", "zh") == 0
    assert f"{every}/claims.toml：全部成立，主张：1 条\n" in capsys.readouterr().out
    claims_of(good, expect=1)
    assert rcr("check", every) == 1
    out = capsys.readouterr().out
    assert "claims.toml: P3: It expects 1, and the captures of good give 2." in out
    assert "all hold" not in out
    claims_of(good, where='polcy = "resume"')
    assert rcr("check", every) == 1
    assert "P3: It names a column that good does not have: polcy." in capsys.readouterr().out
    (every / "claims.toml").write_text("[[claim]]\nid = 'P3'\n")
    assert rcr("check", every) == 1
    assert "claims.toml claim 1 (P3): has no " in capsys.readouterr().out
    assert rcr("check", good) == 0


def test_show_claims_tells_what_each_rests_on(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Query, capture, digest, value, and whether it holds: in both languages, and as JSON."""
    every = claims_of(Path(shutil.copytree(article, tmp_path / "all" / "good")))
    [digest] = [c.facts_sha256 for c in store.read(article).captures() if c.cell.id == P3]
    capture = f"good/{CAPTURES}:4"
    for lang, words in (("en", ["P3: holds", "Effects: 2."]), ("zh", ["P3：成立", "效果数为 2。"])):
        assert rcr("show", every, "--claims", "--lang", lang) == 0
        out = capsys.readouterr().out
        assert all(word in out for word in (*words, "policy = resume", capture, P3, digest))
    assert rcr("show", every, "--claims", "--json") == 0
    [one] = json.loads(capsys.readouterr().out)
    assert (one["value"], one["expect"], one["holds"], one["zh"]) == (2, 2, True, "效果数为 2。")
    assert one["captures"] == [{"place": capture, "cell": P3, "facts_sha256": digest}]


def test_claims_are_shown_where_they_are_and_in_their_own_forms(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """A folder without any, and a form that they do not have, are misuse."""
    assert "holds it beside its evidence" in refused(capsys, "show", article, "--claims")
    every = claims_of(Path(shutil.copytree(article, tmp_path / "all" / "good")))
    assert "--json" in refused(capsys, "show", every, "--claims", "--csv")


def test_compare_with_the_published_figures(
    article: Path, tmp_path: Path, capsys: Captured
) -> None:
    """They agree; what the publication does not give is listed; a changed run differs."""
    assert rcr("compare", article, ROOT / "evidence" / "rcr-20260831") == 0
    assert "Not given by" in capsys.readouterr().out
    rcr("run", "article", "--into", "late", "--start", "spawn", "--deadline", "0.001")
    capsys.readouterr()
    assert rcr("compare", article, "late") == 1
    assert "verdict" in capsys.readouterr().out


def test_import_lists_what_it_did_not_take(tmp_path: Path, capsys: Captured) -> None:
    """Absent files, and rows for which there is no place; the evidence can be shown and checked."""
    made.package(tmp_path / "taken")
    assert rcr("import", "taken") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "runs/taken: captures: 7"
    assert lines[1:3] == ["absent from the package: 1", "  README.md"]
    assert lines[3] == "not imported: 1"
    assert "P9" in lines[4]
    assert rcr("check", "runs/taken") == 0
    capsys.readouterr()
    assert rcr("show", "runs/taken", "--csv") == 0
    assert capsys.readouterr().out.splitlines()[0] == ",".join([*COLUMNS, "published_verdict"])


def test_import_refuses_a_changed_file(tmp_path: Path, capsys: Captured) -> None:
    """Exit 1, the file is named, and nothing is written."""
    file = made.package(tmp_path / "taken") / "fixtures" / "restart.json"
    file.write_bytes(file.read_bytes().replace(b"EISDIR", b"EISDIS", 1))
    assert "fixtures/restart.json" in refused(capsys, "import", "taken", code=1)
    assert not (tmp_path / "runs").exists()


def test_decide_answers_with_its_reasons(capsys: Captured) -> None:
    """In words for a person, and as one object for a program."""
    facts = ("--identity", "changed", "--effect", "absent")
    assert rcr("decide", *facts) == 0
    out = capsys.readouterr().out
    assert "stop: do not call" in out
    assert "[identity_changed]" in out
    assert rcr("decide", *facts, "--capability", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "identity": "changed",
        "effect": "absent",
        "capability": [],
        "eligibility": "stop",
        "way": None,
        "reasons": ["effect_absent", "identity_changed"],
    }
    assert rcr("decide", *facts, "--lang", "zh") == 0
    assert "停止待核查" in capsys.readouterr().out
