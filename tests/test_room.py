"""Full and read-only disks: a clear error, nothing damaged, and the same command goes on after."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rcr_probes import folder, pool, room, worker
from rcr_probes import run as runs
from rcr_probes.errors import PlanError, installing
from rcr_probes.evidence import store, write
from rcr_probes.evidence.check import check
from rcr_probes.model import Capture, Cell, Plan
from rcr_probes.worker import Job

ROOT = Path(__file__).parents[1]
MINE = "tests.runtimes_beyond_bounds"
CONTROL: dict[str, Any] = {"point": "none", "fault": "none", "policy": "never"}
# Run where we may mount: it has a folder and a command for each step, and says how each ended.
STEPS = """
import contextlib, io, json, os, subprocess, sys, tempfile
from rcr_probes.cli import main
from rcr_probes.report import execute
from rcr_probes.report.guide import build

def mount(place, options):
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)

def rcr(*words):
    tempfile.tempdir = None
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return [code, err.getvalue()]

disk = sys.argv[1]
"""


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes of these tests lie in the current directory."""
    monkeypatch.chdir(ROOT)


def stepped(steps: str, disk: Path, *more: Path) -> Any:
    """Take the steps in a mount namespace of their own, and return what they say."""
    try:
        tried = subprocess.run(["unshare", "-rm", "true"], capture_output=True, timeout=60)
        permitted = tried.returncode == 0
    except FileNotFoundError:
        permitted = False
    if not permitted:
        pytest.skip("nothing may be mounted here: unshare -rm is missing or refused")
    disk.mkdir()
    words = ["unshare", "-rm", sys.executable, "-c", STEPS + steps, str(disk), *map(str, more)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def facts(folder: Path) -> list[str]:
    return [c.facts_sha256 for c in store.read_whole(folder).captures()]


def damage(capture: Capture) -> tuple[str, ...]:
    assert capture.judgement.verdict is not None
    assert capture.judgement.verdict.verdict == "unknown"
    return capture.measurement.observations[0].damage


def test_a_run_whose_disk_fills_is_resumed_once_there_is_room(tmp_path: Path) -> None:
    """No cell is lost, doubled, or judged differently; meanwhile the same command says the same."""
    said = stepped(
        """
mount(disk, "size=24k")
run = ("run", "article", "--into", f"{disk}/evidence")
said = [rcr(*run), rcr(*run)]
subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
said.append(rcr(*run))
subprocess.run(["cp", "-r", f"{disk}/evidence", sys.argv[2]], check=True)
print(json.dumps(said))
""",
        tmp_path / "disk",
        tmp_path,
    )
    assert [code for code, _ in said] == [2, 2, 0]
    for _, err in said[:2]:
        assert f"{tmp_path / 'disk' / 'evidence'}" in err
        assert "Free some space, then type the same command again." in err
    assert facts(tmp_path / "evidence") == facts(ROOT / "evidence" / "article")
    assert check(tmp_path / "evidence").findings == ()


def test_where_cells_have_no_room_nothing_is_measured(tmp_path: Path) -> None:
    """Neither from the start, nor once a disk fills: what fails then is not the runtime."""
    toml = tmp_path / "hoards.toml"
    axes = "point = 'none'\nfault = 'none'\npolicy = 'never'\n"
    toml.write_text(
        f"[[cells]]\n{axes}[[cells]]\nruntime = '{MINE}:Hoards'\n{axes}", encoding="utf-8"
    )
    said = stepped(
        """
mount("/dev/shm", "size=1m")
mount(disk, "size=32m")
os.environ["TMPDIR"] = disk
run = ("run", sys.argv[2], "--into", sys.argv[3], "--workers", "1")
said = [rcr(*run)]
subprocess.run(["mount", "-o", "remount,size=70m", disk], check=True)
said += [rcr(*run), [os.listdir(disk), ""]]
subprocess.run(["mount", "-o", "remount,size=200m", disk], check=True)
said.append(rcr(*run))
print(json.dumps(said))
""",
        tmp_path / "disk",
        toml,
        tmp_path / "evidence",
    )
    assert [code for code, _ in said] == [2, 2, [], 0]
    assert "too little to measure cells in" in said[0][1]
    assert "type the same command again" in said[1][1]
    assert check(tmp_path / "evidence").findings == ()
    verdicts = [c.judgement.verdict for c in store.read(tmp_path / "evidence").captures()]
    assert [v and v.verdict for v in verdicts] == ["protected"] * 2


@pytest.mark.parametrize("code", [room.NoRoom.code, "ENOSPC"])
def test_what_was_broken_off_for_want_of_room_is_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Also where there is room again when somebody looks: the cell took its files with it."""

    def full(jobs: Iterable[Job], _: object) -> Iterator[tuple[Capture, None]]:
        yield from ((worker.broken(job, code), None) for job in jobs)

    monkeypatch.setattr(pool, "captures", full)
    with pytest.raises(room.NoRoom):
        runs.run("article", tmp_path / "article", workers=1)
    assert not (tmp_path / "article" / "captures.jsonl").stat().st_size


def test_what_is_closed_to_its_owner_is_removed_for_a_user_too() -> None:
    """As a cache of modules may be; root is never refused, and sees nothing of it."""
    pid = os.fork()
    if not pid:
        status = 1
        with contextlib.suppress(BaseException):
            if os.geteuid() == 0:
                os.setuid(65534)
            place = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own is root's
            (place / "runtime" / "deep" / "closed").mkdir(parents=True)
            (place / "runtime" / "deep" / "closed" / "file").touch()
            for closed in ("runtime/deep/closed", "runtime/deep", "runtime"):
                (place / closed).chmod(0o555)
            folder.remove(str(place))
            status = int(place.exists())
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_plan_whose_captures_no_folder_can_hold_is_refused_by_its_first_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not after hours, when nobody could read what was measured."""
    monkeypatch.setattr(write, "LARGEST", 8 << 10)
    with pytest.raises(PlanError, match=r"6 cells.*\n?.*several plans"):
        runs.run("article", tmp_path / "article", workers=1)
    assert not (tmp_path / "article" / "captures.jsonl").stat().st_size


def test_what_cannot_be_written_is_said_and_leaves_what_was_there(tmp_path: Path) -> None:
    """Each command that writes, on a full and on a read-only disk."""
    pytest.importorskip("pyarrow", reason=installing("parquet"))
    said = stepped(
        """
import nbformat
build.page = lambda *_: bytes(20_000)  # without a kernel
cell = nbformat.v4.new_raw_cell("x" * 20_000, id="one")
execute._executed = lambda *_: nbformat.v4.new_notebook(cells=[cell])
package = f"{disk}.zip"
rcr("publish", "evidence/article", "--into", package, "--date", "2026-01-01")
said = {}
for options in ("size=16k", "ro"):
    mount(disk, "size=16k")
    os.mkdir(f"{disk}/old")
    for name in ("index.html", "zh.html", "01_fault_locations.ipynb"):
        open(f"{disk}/old/{name}", "w").write("old")
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)
    told = {name: rcr(name, *words) for name, *words in (
        ("run", "article", "--into", f"{disk}/evidence"),
        ("publish", "evidence/article", "--into", f"{disk}/made.zip", "--date", "2026-01-01"),
        ("export", "evidence/article", "--to", f"{disk}/rows.parquet"),
        ("import", package, "--into", f"{disk}/imported"),
        ("guide", "--into", f"{disk}/old"),
        ("notebooks", "01_fault_locations", "--into", f"{disk}/old"),
        ("probe", "--into", f"{disk}/probe", "--", "true"),
    )}
    left = {name: open(f"{disk}/old/{name}").read() for name in os.listdir(f"{disk}/old")}
    said[options] = told, left
    subprocess.run(["umount", disk], check=True)
print(json.dumps(said))
""",
        tmp_path / "disk",
    )
    for options, remedy in (("size=16k", "Free some space"), ("ro", "Name a place")):
        told, left = said[options]
        assert left == dict.fromkeys(["index.html", "zh.html", "01_fault_locations.ipynb"], "old")
        assert {name: code for name, (code, _) in told.items()} == dict.fromkeys(told, 2)
        for name, (_, err) in told.items():
            assert str(tmp_path / "disk") in err, name
            assert remedy in err, name


def test_a_cell_that_grows_and_grows_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is unknown, and says why, long before its deadline."""
    monkeypatch.setattr(room, "LARGEST", 1 << 20)
    job = Job(Cell(runtime=f"{MINE}:Fills", **CONTROL), str(tmp_path / "cell"), "fork", 600.0)
    assert "grew beyond 1 MiB" in " ".join(damage(worker.run_cell(job)))
    assert os.path.getsize(tmp_path / "cell" / "runtime" / "big") < 30 << 20


def test_what_a_runtime_writes_is_bounded_and_removed(tmp_path: Path) -> None:
    """Many small files, much evidence, folders without end, names and output that are no text."""
    names = ("Litters", "Boasts", "Digs", "Garbles")
    cells = tuple(Cell(runtime=f"{MINE}:{name}", **CONTROL) for name in names)
    plan = Plan("odd", (*cells, Cell(**CONTROL)))
    litters, boasts, *fine = runs.run(plan, tmp_path / "odd", workers=1).captures()
    assert f"or {room.MOST} files" in " ".join(damage(litters))
    assert "takes more than" in " ".join(damage(boasts))
    assert {c.judgement.verdict and c.judgement.verdict.verdict for c in fine} == {"protected"}
    assert check(tmp_path / "odd").findings == ()


def test_what_a_runtime_puts_in_place_of_the_harness_s_files_is_not_read(tmp_path: Path) -> None:
    """No worker waits for it or fills the memory, and no run ends over it: the cell is unknown."""
    put = [Cell(runtime=f"{MINE}:{name}", **CONTROL) for name in ("Pipes", "Endless", "Hollow")]
    names = ("MisleadsDeeply", "MisleadsInNoText")
    left = [Cell(runtime=f"{MINE}:{name}", **CONTROL) for name in names]
    plan = Plan("replaced", (*put, *left, Cell(**CONTROL)))
    *captures, fine = runs.run(plan, tmp_path / "replaced", workers=1, deadline=5.0).captures()
    said = [" ".join(damage(capture)) for capture in captures]
    whys = ("FOLDER_DAMAGED", "events.jsonl: cannot be read (EINVAL)", "EFBIG")
    for told, why in zip(said, whys, strict=False):
        assert why in told
    assert all("the worker process died" in told for told in said[len(put) :])
    assert fine.judgement.verdict
    assert fine.judgement.verdict.verdict == "protected"
    assert check(tmp_path / "replaced").findings == ()
