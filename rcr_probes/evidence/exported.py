"""The tidy rows of evidence as one Parquet file: written in row groups, and read back alike."""

from __future__ import annotations

import itertools
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from rcr_probes.errors import EvidenceError, NotEvidence, NotInstalled, RcrError, naming
from rcr_probes.evidence.form import CAPTURES, holds_evidence
from rcr_probes.evidence.rows import (
    PUBLISHED_VERDICT,
    WHOLE,
    YES_OR_NO,
    Row,
    Told,
    Value,
    cell_of,
    columns,
)
from rcr_probes.evidence.store import Evidence
from rcr_probes.vocabulary import WORKER

SUFFIX = ".parquet"
SCHEMA = 1
_KEY = b"rcr_probes"  # of the file's own metadata: a JSON object, as ``_said`` has it
# Of that object, in whatever format: key → the kind of its value.
_METADATA = {"schema": int, "plan": str, "rows": int, "captures_sha256": str}
_OWN = ("cell", "seed", "repeat")  # columns that tell rows of a sweep apart
_TOGETHER = 10_000  # rows of a row group: some megabytes in memory, and enough to compress well


@dataclass(frozen=True, slots=True)
class Exported:
    """A file of rows: all that the tidy table has, and nothing else of the captures.

    Attributes:
        file: where it stands.
        plan: the name of the plan that the rows are of.
        captures_sha256: digest of the captures that they were made from.
        count: how many rows there are.
        columns: of the rows.
    """

    file: Path
    plan: str
    captures_sha256: str
    count: int
    columns: tuple[str, ...]

    def rows(self) -> Iterator[Row]:
        """Every row, in the order of the plan; one row group is in memory at a time.

        Raises:
            EvidenceError: the file cannot be read.
        """
        for group in _reading(self.file, _groups(self.file)):
            for made in group.to_pylist():
                if made.get(PUBLISHED_VERDICT, "") is None:  # the others of its plan have one
                    del made[PUBLISHED_VERDICT]
                yield made

    def told(self) -> Iterator[Told]:
        """Every row as in seed 0 and repeat 0, its seed, and its repeat, as of evidence.

        Raises:
            EvidenceError: as ``rows``.
        """
        known: dict[tuple[Value, ...], Row] = {}
        for made in self.rows():
            shared = tuple(value for name, value in made.items() if name not in _OWN)
            cell = cell_of(made)
            if shared not in known:
                first = replace(cell, seed=0, repeat=0)
                known[shared] = {**made, "cell": first.id, "seed": 0, "repeat": 0}
            yield known[shared], cell.seed, cell.repeat

    @property
    def is_probe(self) -> bool:
        """Whether these are rows of a worker."""
        return all(row["runtime"] == WORKER for row in self.rows())


# What tables are drawn of: both have rows(), told() and columns.
Rowed: TypeAlias = Evidence | Exported


def export(evidence: Evidence, to: str | os.PathLike[str], *, together: int = _TOGETHER) -> int:
    """Write every row to a Parquet file, which appears whole or not at all.

    Args:
        evidence: what to export.
        to: a path that ends in ``.parquet``, where nothing is yet.
        together: rows of a row group; no more are ever in memory.

    Returns:
        How many rows it has.

    Raises:
        RcrError: something is there already, or pyarrow is not installed.
        EvidenceError: the captures cannot be read, or a row of them cannot be written.
        OSError: the file cannot be written.
    """
    place = Path(to)
    _refuse(place)
    parquet = _parquet()
    place.parent.mkdir(parents=True, exist_ok=True)
    names = evidence.columns
    with (
        naming(place),
        tempfile.TemporaryDirectory(dir=place.parent, prefix=".rcr-export-") as beside,
    ):
        made, schema, count = Path(beside, place.name), _schema(names), 0
        with (
            open(made, "xb") as file,  # a name that is no UTF-8 is beyond pyarrow
            parquet.ParquetWriter(file, schema, compression="zstd") as writer,
        ):
            for group in _grouped(evidence.rows(), together):
                writer.write_table(_table(group, schema), row_group_size=together)
                count += len(group)
            writer.add_key_value_metadata({_KEY: _said(evidence, count)})
        _refuse(place)
        made.rename(place)
    return count


def opened(file: str | os.PathLike[str]) -> Exported:
    """Open a file that ``export`` made.

    Raises:
        NotEvidence: there is none, or it is no such file.
        EvidenceError: it is of another format than this version reads.
        RcrError: pyarrow is not installed.
    """
    place = Path(file)
    if not place.is_file():
        raise NotEvidence(
            f"There is no file {place}.", f"Make one with: rcr export DIR --to {place}"
        )
    made, names = _metadata(place)
    if made["schema"] != SCHEMA:
        raise EvidenceError(
            place.name,
            f"is of format {made['schema']!r}; this version reads format {SCHEMA}.",
            "Read it with the version of rcr-probes that made it, or export the evidence anew.",
        )
    return Exported(place, made["plan"], made["captures_sha256"], made["rows"], names)


def is_exported(place: Path) -> bool:
    """Whether a path is meant to be such a file, and no folder."""
    return place.suffix == SUFFIX and not place.is_dir()


def _refuse(place: Path) -> None:
    if place.suffix != SUFFIX:
        raise RcrError(
            f"{place} does not end in {SUFFIX}.", f"Name a file such as {place.stem}{SUFFIX}."
        )
    if os.path.lexists(place):
        raise RcrError(f"{place} is there already.", "Name another file, or move it away.")
    if place.parent.is_dir() and holds_evidence(place.parent):
        raise RcrError(
            f"{place} would lie in a folder of evidence, which holds nothing else.",
            "Name a file beside it.",
        )


def _schema(names: Sequence[str]) -> Any:
    import pyarrow as pa

    kinds = dict.fromkeys(WHOLE, pa.int64()) | dict.fromkeys(YES_OR_NO, pa.bool_())
    return pa.schema([(name, kinds.get(name, pa.string())) for name in names])


def _table(rows: list[Row], schema: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError) as error:
        raise EvidenceError(
            CAPTURES,
            f"has a row that Parquet cannot hold ({error}).",
            "See what is wrong with: rcr check, or show it with: rcr show --json",
        ) from error


def _said(evidence: Evidence, count: int) -> bytes:
    said: Mapping[str, str | int] = {
        "schema": SCHEMA,
        "plan": evidence.plan.name,
        "rows": count,
        "captures_sha256": evidence.manifest.files.get(CAPTURES, ""),
    }
    return json.dumps(said).encode()


def _metadata(place: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the file says of itself, and its columns.

    Raises:
        NotEvidence: it says nothing, lacks a column or rows, or would fill the memory.
    """
    parquet = _parquet()
    try:
        with open(place, "rb") as opened, parquet.ParquetFile(opened) as file:
            said, schema = file.metadata.metadata or {}, file.schema_arrow
            groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        made = json.loads(said[_KEY])
        if not isinstance(made, dict) or not _METADATA.keys() <= made.keys():
            raise ValueError("its metadata lacks a key")
        if any(type(made[key]) is not kind for key, kind in _METADATA.items()):
            raise ValueError("a value of its metadata is of another kind")
        odd = _odd(schema, groups, made["rows"]) if made["schema"] == SCHEMA else None
        if odd:
            raise ValueError(odd)
    except _unreadable(KeyError, ValueError, RecursionError) as error:
        raise NotEvidence(
            f"{place} is no file that rcr export made ({error}).",
            "Make one with: rcr export DIR --to FILE.parquet",
        ) from error
    return made, tuple(schema.names)


def _odd(schema: Any, groups: Sequence[int], count: int) -> str | None:
    """Why nobody exports a file of this schema, and of so many rows in each group and in all."""
    if not any(schema.equals(_schema(columns(published))) for published in (False, True)):
        return "its columns are others"
    if max(groups, default=0) > _TOGETHER:
        return f"more than {_TOGETHER} of its rows lie together"
    if sum(groups) != count:
        return f"it says that it has {count} rows, and has {sum(groups)}"
    return None


def _groups(place: Path) -> Iterator[Any]:
    with open(place, "rb") as opened, _parquet().ParquetFile(opened) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)


def _reading(place: Path, groups: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from groups
    except _unreadable() as error:
        raise EvidenceError(
            place.name, f"cannot be read ({error}).", "Export the evidence anew."
        ) from error


def _grouped(rows: Iterable[Row], together: int) -> Iterator[list[Row]]:
    left = iter(rows)
    while group := list(itertools.islice(left, together)):
        yield group


def _unreadable(*besides: type[Exception]) -> tuple[type[Exception], ...]:
    import pyarrow as pa

    return (pa.ArrowException, OSError, *besides)


def _parquet() -> Any:
    """What of pyarrow reads and writes Parquet.

    Raises:
        RcrError: it is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise NotInstalled("Parquet needs pyarrow, which is not installed.", "parquet") from error
    return pyarrow.parquet
