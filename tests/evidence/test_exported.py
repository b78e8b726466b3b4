"""Rows go to Parquet and come back as they were; the file never takes another's place."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks import _sweep
from rcr_probes.errors import EvidenceError, NotEvidence, RcrError, installing
from rcr_probes.evidence import store
from rcr_probes.evidence.exported import Exported, export, opened
from rcr_probes.evidence.rows import COLUMNS, PUBLISHED_VERDICT, WHOLE, YES_OR_NO, Row
from rcr_probes.evidence.store import Evidence
from rcr_probes.report import tables, terminal

parquet = pytest.importorskip("pyarrow.parquet", reason=installing("parquet"))

COMMITTED = Path(__file__).resolve().parents[2] / "evidence"
FOLDERS = sorted(path.parent.name for path in COMMITTED.glob("*/manifest.json"))


class Made(Evidence):
    """Evidence whose rows are given, and whose captures nobody needs."""

    given: list[Row]

    def rows(self) -> Iterator[Row]:
        return iter(self.given)


def made(rows: list[Row]) -> Made:
    article = store.read(COMMITTED / "article")
    evidence = Made(article.folder, article.plan, article.manifest)
    object.__setattr__(evidence, "given", rows)
    return evidence


@pytest.fixture(scope="module", params=FOLDERS)
def kept(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Evidence, Exported]:
    """Committed evidence, and the file that its rows went to."""
    evidence = store.read(COMMITTED / request.param)
    place = tmp_path_factory.mktemp("rows") / f"{request.param}.parquet"
    export(evidence, place, together=100)
    return evidence, opened(place)


def test_the_rows_of_the_committed_evidence_come_back_as_they_are(
    kept: tuple[Evidence, Exported],
) -> None:
    """Names, order, types, and what is null; also of rows that others published."""
    evidence, rows = kept
    before, after = list(evidence.rows()), list(rows.rows())
    assert [{**row, PUBLISHED_VERDICT: row.get(PUBLISHED_VERDICT)} for row in after] == [
        {**row, PUBLISHED_VERDICT: row.get(PUBLISHED_VERDICT)} for row in before
    ]
    assert rows.plan == evidence.plan.name
    assert rows.count == len(before)
    assert rows.captures_sha256 == evidence.manifest.files["captures.jsonl"]


def test_rows_of_a_sweep_are_told_as_those_of_its_evidence(tmp_path: Path) -> None:
    """Few rows, and the seed and repeat of each capture."""
    evidence = store.read(_sweep.sealed(tmp_path / "sweep", 108, seeds=True))
    export(evidence, tmp_path / "sweep.parquet")
    told = list(opened(tmp_path / "sweep.parquet").told())
    assert told == list(evidence.told())
    assert len({id(first) for first, *_ in told}) <= 54


def test_the_same_tables_are_drawn_of_rows_and_the_others_are_named(
    kept: tuple[Evidence, Exported],
) -> None:
    """Nothing is left out in silence."""
    evidence, rows = kept
    whole = {one.title: one for one in terminal.every(evidence, "en")}
    some = {one.title: one for one in terminal.every(rows, "en")}
    assert some == {title: one for title, one in whole.items() if title in some}
    assert set(whole) - set(some) == set(terminal.not_drawn(rows, "en")) & set(whole)
    assert not set(terminal.not_drawn(rows, "en")) & set(some)


def values(column: str) -> st.SearchStrategy[Any]:
    if column in WHOLE:
        return st.none() | st.integers(-(2**63), 2**63 - 1)
    return st.none() | (st.booleans() if column in YES_OR_NO else st.text())


rows_of = st.lists(st.fixed_dictionaries({name: values(name) for name in COLUMNS}), max_size=5)


@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=rows_of, published=st.none() | st.text())
def test_whatever_a_row_holds_comes_back(
    rows: list[Row], published: str | None, tmp_path: Path
) -> None:
    """Any text (empty, NUL, a newline, what is no letter), any number of 64 bits, null."""
    if rows and published is not None:
        rows[-1][PUBLISHED_VERDICT] = published
    place = tmp_path / "rows.parquet"
    place.unlink(missing_ok=True)
    assert export(made(rows), place, together=2) == len(rows)
    assert list(opened(place).rows()) == rows
    assert all([*row][: len(COLUMNS)] == [*COLUMNS] for row in opened(place).rows())


def test_what_parquet_cannot_hold_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """A number of more than 64 bits, half a character."""
    row: Row = dict.fromkeys(COLUMNS)
    for wrong in ({"calls_after_fault": 2**63}, {"caller_error": "\ud800"}):
        with pytest.raises(EvidenceError, match="Parquet cannot hold"):
            export(made([row, {**row, **wrong}]), tmp_path / "rows.parquet")
        assert list(tmp_path.iterdir()) == []


def test_no_file_is_overwritten_and_no_evidence_is_added_to(tmp_path: Path) -> None:
    """Neither a file, nor a link to nothing; and the name says what it is."""
    evidence = store.read(COMMITTED / "article")
    place = tmp_path / "rows.parquet"
    place.write_text("precious")
    with pytest.raises(RcrError, match="there already"):
        export(evidence, place)
    assert place.read_text() == "precious"
    (tmp_path / "link.parquet").symlink_to(tmp_path / "nothing")
    with pytest.raises(RcrError, match="there already"):
        export(evidence, tmp_path / "link.parquet")
    with pytest.raises(RcrError, match=r"such as rows\.parquet"):
        export(evidence, tmp_path / "rows.csv")
    copy = shutil.copytree(evidence.folder, tmp_path / "article")
    with pytest.raises(RcrError, match="folder of evidence"):
        export(evidence, copy / "rows.parquet")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["article", "link.parquet", "rows.parquet"]


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    """No file, no Parquet, no metadata or odd ones, other columns, another format, a torn one."""
    import pyarrow as pa

    with pytest.raises(NotEvidence, match="There is no file"):
        opened(tmp_path / "none.parquet")
    strange = tmp_path / "strange.parquet"
    strange.write_bytes(b"PAR1 or so")
    with pytest.raises(NotEvidence, match="no file that rcr export made"):
        opened(strange)
    said = {"schema": 1, "plan": "mine", "rows": 1, "captures_sha256": ""}
    for words in (None, "{", "[]", json.dumps(said)):
        metadata = {"rcr_probes": words} if words else {}
        parquet.write_table(pa.table({"cell": ["a"]}).replace_schema_metadata(metadata), strange)
        with pytest.raises(NotEvidence, match="no file that rcr export made"):
            opened(strange)
    later = {"rcr_probes": json.dumps({**said, "schema": 2})}
    parquet.write_table(pa.table({"cell": ["a"]}).replace_schema_metadata(later), strange)
    with pytest.raises(EvidenceError, match="of format 2"):
        opened(strange)
    place = tmp_path / "rows.parquet"
    export(store.read(COMMITTED / "article"), place)
    whole = parquet.read_table(place)
    for odd in ({"rows": "many"}, {"plan": 1}, {"captures_sha256": None}, {"schema": True}):
        metadata = {"rcr_probes": json.dumps({**said, **odd})}
        parquet.write_table(whole.replace_schema_metadata(metadata), strange)
        with pytest.raises(NotEvidence, match="no file that rcr export made"):
            opened(strange)
    data = bytearray(place.read_bytes())
    data[4:400] = bytes(396)  # the footer is whole, what it points to is not
    place.write_bytes(data)
    with pytest.raises(EvidenceError, match=r"rows\.parquet: cannot be read"):
        list(opened(place).rows())


def test_rows_that_are_too_few_or_too_many_at_a_time_are_not_read(tmp_path: Path) -> None:
    """A table of some of them would say too much; and a small file may hold more than memory."""
    place, strange = tmp_path / "rows.parquet", tmp_path / "strange.parquet"
    export(store.read(COMMITTED / "article"), place)
    whole = parquet.read_table(place)
    said = json.loads(parquet.read_metadata(place).metadata[b"rcr_probes"])
    for rows, count, match in (
        (whole.slice(0, 5), 6, "says that it has 6 rows, and has 5"),
        (whole.take([0] * 10_001), 10_001, "more than 10000 of its rows"),
    ):
        metadata = {"rcr_probes": json.dumps(said | {"rows": count})}
        parquet.write_table(rows.replace_schema_metadata(metadata), strange)
        with pytest.raises(NotEvidence, match=match):
            opened(strange)


def test_rows_are_streamed(tmp_path: Path) -> None:
    """Ten times the rows need no more memory: of Python's, and a row group of Arrow's."""
    import pyarrow as pa

    row: Row = {**dict.fromkeys(COLUMNS, "x" * 30), **dict.fromkeys(WHOLE, 1)}
    row |= dict.fromkeys(YES_OR_NO, True)

    class Many(Made):
        def rows(self) -> Iterator[Row]:
            return (dict(row, cell=f"cell-{n}") for n in range(len(self.given)))

    def peak(count: int) -> int:
        article = store.read(COMMITTED / "article")
        evidence = Many(article.folder, article.plan, article.manifest)
        object.__setattr__(evidence, "given", [row] * count)
        place = tmp_path / f"{count}.parquet"
        tracemalloc.start()
        export(evidence, place, together=500)
        assert sum(1 for _ in opened(place).rows()) == count
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return held

    peak(500)  # what is imported and remembered at first use
    few, many = peak(1_000), peak(10_000)
    assert many < 2 * few
    assert parquet.ParquetFile(tmp_path / "10000.parquet").num_row_groups == 20
    assert pa.total_allocated_bytes() < 1 << 22


def test_tables_are_the_same_without_pyarrow() -> None:
    """Pandas keeps text otherwise where pyarrow is installed; no table shows it."""
    code = (
        # A module that is None is not one that is not there: pandas 3.0.0 stumbles over it.
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'pyarrow': raise ModuleNotFoundError(name=name)\n"
        "if sys.argv[1]: sys.meta_path.insert(0, Absent)\n"
        "from rcr_probes.evidence import store; from rcr_probes.report import terminal\n"
        "for name in sys.argv[2:]: terminal.draw(terminal.every(store.read(name), 'zh'))"
    )
    some = [str(COMMITTED / name) for name in ("article", "locations", "power_local")]
    shown = [
        subprocess.run(
            [sys.executable, "-c", code, without, *some],
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for without in ("", "1")
    ]
    assert shown[0] == shown[1]
    assert shown[0]


def test_without_pyarrow_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an extra, and nothing else needs it."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(RcrError, match=re.escape(installing("parquet"))):
        export(store.read(COMMITTED / "article"), tmp_path / "rows.parquet")


def test_the_columns_of_numbers_are_those_of_the_tidy_table() -> None:
    """One place says which they are."""
    kinds = tables.tidy(store.read(COMMITTED / "article")).dtypes
    assert {name for name in COLUMNS if str(kinds[name]) == "Int64"} == WHOLE
    assert {name for name in COLUMNS if str(kinds[name]) == "boolean"} == YES_OR_NO
