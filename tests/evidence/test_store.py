"""An evidence folder is written once, resumed where it stopped, and read back as it was sealed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rcr_probes.errors import EvidenceError, NotEvidence, PlanError, UnknownName
from rcr_probes.evidence import seal, store, write
from rcr_probes.evidence.check import check
from rcr_probes.evidence.form import CAPTURES, ENVIRONMENT, MANIFEST, PLAN
from rcr_probes.evidence.write import Writer
from rcr_probes.model import Capture, Plan
from rcr_probes.product import product
from tests.evidence import made

CELLS = (made.CONTROL, made.P3)
PLANNED = Plan("small", CELLS)
CAPTURED = tuple(map(made.capture, CELLS))


def begun(folder: Path) -> Path:
    """A folder whose run was interrupted after one of two captures."""
    with Writer(folder, PLANNED) as writer:
        writer.append(CAPTURED[0])
    return folder


def test_what_was_sealed_is_read_back(tmp_path: Path) -> None:
    """Plan, manifest and captures come back as they went in."""
    evidence = store.read(made.write(tmp_path / "e", CAPTURED).folder)
    assert evidence.plan == PLANNED
    assert tuple(evidence.captures()) == CAPTURED
    assert evidence.manifest.captures == 2
    assert set(evidence.manifest.files) == {CAPTURES, ENVIRONMENT, PLAN}


def test_captures_in_memory_outlive_their_folder(tmp_path: Path) -> None:
    """They are read once, and make the same rows."""
    evidence = made.write(tmp_path / "e", CAPTURED)
    rows = list(evidence.rows())
    kept = evidence.in_memory()
    shutil.rmtree(evidence.folder)
    assert tuple(kept.captures()) == CAPTURED
    assert list(kept.rows()) == rows


@pytest.mark.parametrize("others", [(), CAPTURED[:1], CAPTURED[::-1], (*CAPTURED, CAPTURED[0])])
def test_captures_in_memory_are_those_that_the_plan_promises(
    tmp_path: Path, others: tuple[Capture, ...]
) -> None:
    """As those of a file are: what is left of them would say too much."""
    evidence = made.write(tmp_path / "e", CAPTURED)
    with pytest.raises(EvidenceError, match="not what the plan promises"):
        replace(evidence, remembered=others)


def test_a_plan_is_written_a_cell_at_a_time_as_it_would_be_whole() -> None:
    """A table's cells are made while they are written; readers expect the bytes of a tuple."""
    cells = product(point="none", fault="none", policy=["again", "never"], seed=range(3))
    name = 'quoted "0" and\nbroken'
    whole = write.encoded(Plan(name, tuple(cells)))
    assert b"".join(write.written(Plan(name, cells))) == whole


def test_one_capture_is_found_by_its_cell(tmp_path: Path) -> None:
    """A cell that the plan does not have is refused by name."""
    evidence = made.write(tmp_path / "e", CAPTURED)
    assert evidence.capture(made.P3.id) == CAPTURED[1]
    with pytest.raises(UnknownName, match="Unknown cell"):
        evidence.capture("nowhere")


def test_a_plan_with_a_cell_twice_is_refused(tmp_path: Path) -> None:
    """Nobody who reads it could tell the two apart."""
    folder = made.write(tmp_path / "e", CAPTURED).folder
    plan = json.loads((folder / PLAN).read_text())
    plan["cells"].append(plan["cells"][0])
    (folder / PLAN).write_text(json.dumps(plan))
    with pytest.raises(EvidenceError, match="holds a cell twice"):
        store.read(folder)


def test_the_same_captures_make_the_same_bytes(tmp_path: Path) -> None:
    """Nothing of a folder depends on when or where it is written."""
    one, other = (made.write(tmp_path / name, CAPTURED).folder for name in ("one", "other"))
    for name in (CAPTURES, ENVIRONMENT, PLAN, MANIFEST):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_a_capture_is_one_canonical_line(tmp_path: Path) -> None:
    """Decoding and encoding a line gives its bytes again."""
    folder = made.write(tmp_path / "e", CAPTURED).folder
    for line in made.lines(folder):
        assert seal.encode(seal.decode(line, "here")) == line


def test_the_environment_names_no_machine(tmp_path: Path) -> None:
    """It holds versions and the class of platform alone."""
    folder = made.write(tmp_path / "e", CAPTURED).folder
    assert set(json.loads((folder / ENVIRONMENT).read_bytes())) == {
        "schema", "python", "implementation", "system", "machine", "packages"
    }  # fmt: skip


def test_an_unsealed_folder_is_resumed(tmp_path: Path) -> None:
    """The captures that are there stay, and the rest is appended."""
    with Writer(begun(tmp_path / "e"), PLANNED) as writer:
        assert writer.done == 1
        writer.append(CAPTURED[1])
        evidence = writer.seal()
    assert tuple(evidence.captures()) == CAPTURED
    assert check(evidence.folder).sound


def test_a_torn_last_line_is_kept_aside(tmp_path: Path) -> None:
    """What was half written when the run was killed is not lost, and not taken for a capture."""
    folder = begun(tmp_path / "e")
    torn = seal.encode(CAPTURED[1])[:-20]
    with open(folder / CAPTURES, "ab") as file:
        file.write(torn)
    with Writer(folder, PLANNED) as writer:
        assert writer.done == 1
        writer.append(CAPTURED[1])
        evidence = writer.seal()
    assert (tmp_path / "e.torn").read_bytes() == torn
    assert check(evidence.folder).sound


@pytest.mark.parametrize("left", [(CAPTURES, b""), (f"{PLAN}.new", b"{")])
def test_a_run_killed_at_its_very_start_can_begin_again(
    tmp_path: Path, left: tuple[str, bytes]
) -> None:
    """What it left before its plan was there is no reason to refuse the folder."""
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / left[0]).write_bytes(left[1])
    with Writer(tmp_path / "e", PLANNED) as writer:
        for capture in CAPTURED:
            writer.append(capture)
        assert check(writer.seal().folder).sound


@pytest.mark.parametrize("put", [os.mkfifo, partial(os.symlink, "/dev/full")])
def test_what_stands_where_a_file_is_to_be_written_is_not_written_to(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    """A pipe would keep the run waiting, and a link leads out of the folder."""
    (tmp_path / "e").mkdir()
    put(tmp_path / "e" / f"{PLAN}.new")
    with Writer(tmp_path / "e", PLANNED) as writer:
        for capture in CAPTURED:
            writer.append(capture)
        assert check(writer.seal().folder).sound


@pytest.mark.parametrize("put", [os.mkfifo, partial(os.symlink, "/dev/full")])
def test_captures_that_are_no_file_are_not_resumed(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    """Of a pipe nothing ever comes, and a device has no end; neither is moved aside as a run."""
    folder = begun(tmp_path / "e")
    (folder / CAPTURES).unlink()
    put(folder / CAPTURES)
    for open_it in (partial(Writer, folder, PLANNED), partial(write.set_aside, folder)):
        with pytest.raises(EvidenceError, match="no regular file"):
            open_it()


def test_a_full_disk_is_said_with_its_folder(tmp_path: Path) -> None:
    """Also where the file is closed, which tries once more what could not be written."""
    writer = Writer(tmp_path / "e", PLANNED)
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), writer._file.fileno())
    with pytest.raises(OSError, match="No space"):
        writer.append(CAPTURED[0])
    with pytest.raises(OSError, match="No space") as refused:
        writer.__exit__(None, None, None)
    assert refused.value.filename == str(tmp_path / "e")


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """Two runs never write to one folder; the first one goes on."""
    with Writer(tmp_path / "e", PLANNED) as writer:
        with pytest.raises(PlanError, match="Another run is writing"):
            Writer(tmp_path / "e", PLANNED)
        writer.append(CAPTURED[0])


def test_another_plan_is_refused(tmp_path: Path) -> None:
    """A folder belongs to the plan that it was begun with."""
    folder = begun(tmp_path / "e")
    with pytest.raises(PlanError, match="another plan"):
        Writer(folder, Plan("small", CELLS[::-1]))


def test_a_run_is_not_resumed_under_other_versions(tmp_path: Path) -> None:
    """The environment that a folder names is that of every capture in it."""
    folder = begun(tmp_path / "e")
    path = folder / ENVIRONMENT
    path.write_text(path.read_text().replace('"python": "3', '"python": "2'))
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(PlanError, match="begun under other versions"):
        Writer(folder, PLANNED)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_a_folder_with_more_captures_than_cells_is_not_resumed(tmp_path: Path) -> None:
    """Something else was written into it."""
    folder = begun(tmp_path / "e")
    with open(folder / CAPTURES, "ab") as file:
        file.writelines(map(seal.encode, (CAPTURED[1], CAPTURED[1])))
    with pytest.raises(EvidenceError, match="the plan has no cell there"):
        Writer(folder, PLANNED)


def test_a_sealed_folder_takes_nothing_more(tmp_path: Path) -> None:
    """What is sealed stays as it is."""
    folder = made.write(tmp_path / "e", CAPTURED).folder
    with pytest.raises(PlanError, match="sealed evidence already"):
        Writer(folder, PLANNED)


@pytest.mark.parametrize("name", ["thesis.txt", CAPTURES])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, name: str) -> None:
    """Nobody's files are written over."""
    (tmp_path / name).write_text("mine")
    with pytest.raises(PlanError, match="not empty"):
        Writer(tmp_path, PLANNED)
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_captures_of_other_cells_are_not_resumed(tmp_path: Path) -> None:
    """A log that does not follow the plan is refused, and named with its line."""
    folder = begun(tmp_path / "e")
    (folder / CAPTURES).write_bytes(seal.encode(CAPTURED[1]))
    with pytest.raises(EvidenceError, match=r"captures.jsonl:1: holds completion_audit"):
        Writer(folder, PLANNED)


def test_a_folder_is_not_sealed_before_its_plan_is_kept(tmp_path: Path) -> None:
    """A missing capture is an error, never a pass."""
    with Writer(tmp_path / "e", PLANNED) as writer:
        writer.append(CAPTURED[0])
        with pytest.raises(EvidenceError, match="1 of 2"):
            writer.seal()
    with pytest.raises(EvidenceError, match="did not come to its end"):
        store.read(tmp_path / "e")


def test_no_evidence_is_misuse(tmp_path: Path) -> None:
    """No folder, and a folder of something else, say what to type instead."""
    with pytest.raises(NotEvidence, match="rcr run article"):
        store.read(tmp_path / "gone")
    with pytest.raises(NotEvidence, match=r"no plan\.json"):
        store.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (PLAN, b"{"),
        (PLAN, b'{"name":"x"}'),
        (PLAN, b"\xff"),
        (MANIFEST, b"[" * 100_000),
        (MANIFEST, b'{"schema":2,"plan":"x","captures":1,"files":{}}'),
        (CAPTURES, b"{}\n"),
        (CAPTURES, None),
    ],
)
def test_what_cannot_be_read_names_its_file(tmp_path: Path, name: str, data: bytes | None) -> None:
    """Bad bytes are an error with a place, never a traceback of the decoder."""
    folder = made.write(tmp_path / "e", CAPTURED).folder
    if data is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(data)
    with pytest.raises(EvidenceError) as raised:
        list(store.read(folder).captures())
    assert raised.value.place.startswith(name)
