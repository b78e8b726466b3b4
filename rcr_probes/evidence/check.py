"""Doubt an evidence folder: verify every digest and derive every judgement again.

A sound report says that the folder is whole and agrees with itself. Digests detect edits; that the
folder was not made up as a whole, they cannot say.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from rcr_probes.errors import EvidenceError, NotEvidence
from rcr_probes.evidence import consistency, seal, store
from rcr_probes.evidence.store import CAPTURES, ENVIRONMENT, LISTED, MANIFEST, PLAN, Manifest
from rcr_probes.model import Cell, Json, Plan

FILES = (*LISTED, MANIFEST)


_NAMED = 3  # cells that are named one by one where many are missing, as after an interruption


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason not to trust: ``place`` names the file and, where there is one, line and cell."""

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in one folder; sound when nothing was.

    Attributes:
        folder: the folder.
        captures: how many captures were read in it.
        findings: every reason not to trust it.
    """

    folder: Path
    captures: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        return not self.findings


def check(folder: str | os.PathLike[str]) -> Report:
    """Check one evidence folder. Bad evidence is never an error here: it becomes findings.

    Raises:
        NotEvidence: there is no such folder.
    """
    place = Path(folder)
    if not place.is_dir():
        raise NotEvidence(
            f"There is no folder {place}.", "Name one that rcr run or rcr import made."
        )
    captured: list[str] = []
    findings: list[Finding] = []
    try:
        findings.extend(_examine(place, captured))
    except OSError as error:
        findings.append(Finding(Path(error.filename or place).name, f"cannot be read ({error})."))
    return Report(place, len(captured), tuple(findings))


def check_all(folder: str | os.PathLike[str]) -> list[Report]:
    """Check an evidence folder, or each one in a folder of evidence folders.

    Raises:
        NotEvidence: there is no such folder, or no evidence in it.
    """
    place = Path(folder)
    if not place.is_dir() or _holds_evidence(place):
        return [check(place)]
    found = sorted(p for p in place.iterdir() if p.is_dir() and _holds_evidence(p))
    if not found:
        raise NotEvidence(
            f"{place} holds no evidence, and no folder in it does.",
            "Name a folder that rcr run or rcr import made, such as runs/article.",
        )
    return [_outside(p) if p.is_symlink() else check(p) for p in found]


def _holds_evidence(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in FILES)


def _outside(link: Path) -> Report:
    return Report(
        link, 0, (Finding(_plain(link.name), "is a symbolic link; it was not followed."),)
    )


def _examine(folder: Path, captured: list[str]) -> Iterator[Finding]:
    """Every finding in the folder; the cell id of each capture read is added to ``captured``."""
    yield from _names(folder)
    plan = yield from _decoded(folder, PLAN, Plan)
    manifest = yield from _decoded(folder, MANIFEST, Manifest)
    environment = yield from _decoded(folder, ENVIRONMENT, dict[str, Json])
    if plan is not None:
        yield from _planned(plan)
    if environment is not None:
        yield from _format(ENVIRONMENT, environment.get("schema"))
        yield from _environment(environment)
    if _regular(folder / CAPTURES):
        yield from _captures(folder, plan, captured)
    if manifest is not None:
        yield from _format(MANIFEST, manifest.schema)
        yield from _manifest(folder, manifest)
        if plan is not None:
            yield from _promises(manifest, plan)


def _names(folder: Path) -> Iterator[Finding]:
    """Exactly the files of an evidence folder, each with its own bytes inside it."""
    there = sorted(os.listdir(folder))
    for name in FILES:
        if name not in there:
            yield Finding(name, "is missing.")
    for name in there:
        path = folder / name
        if path.is_symlink():
            yield Finding(_plain(name), "is a symbolic link; evidence holds its own bytes.")
        elif name not in FILES:
            yield Finding(_plain(name), "was added: it is no file of an evidence folder.")
        elif not _regular(path):
            yield Finding(name, "is no regular file.")


T = TypeVar("T")


def _decoded(folder: Path, name: str, kind: type[T]) -> Generator[Finding, None, T | None]:
    """The value of a small JSON file; None where a finding says why there is none."""
    if not _regular(folder / name):
        return None
    data = (folder / name).read_bytes()
    if not data:
        yield Finding(name, "is empty.")
        return None
    try:
        value = msgspec.json.decode(data, type=kind)
        same = store.encoded(value) == data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        yield Finding(name, f"cannot be read ({error}).")
        return None
    if not same:
        yield Finding(name, "says more than is read of it: an unknown or repeated key, or spacing.")
    return value


def _planned(plan: Plan) -> Iterator[Finding]:
    if not plan.cells:
        yield Finding(PLAN, "promises no cell.")
    seen: set[str] = set()
    for cell in plan.cells:
        if cell.id in seen:
            yield Finding(f"{PLAN} {_plain(cell.id)}", "the plan holds this cell twice.")
        seen.add(cell.id)


def _format(name: str, schema: object) -> Iterator[Finding]:
    if type(schema) is not int or schema != store.SCHEMA:  # true is not 1 here
        yield Finding(name, f"is of format {schema!r}; this version checks {store.SCHEMA}.")


def _environment(found: dict[str, Json]) -> Iterator[Finding]:
    """Exactly what a run writes, so that nothing else is sealed with it; the words may differ."""
    written = store.environment()
    if found.keys() != written.keys():
        names = ", ".join(sorted(map(_plain, found.keys() ^ written.keys())))
        yield Finding(ENVIRONMENT, f"lacks a key that a run writes, or has one more: {names}.")
    for name in found.keys() & written.keys() - {"schema"}:
        value, several = found[name], isinstance(written[name], dict)
        if isinstance(value, dict) != several:
            yield Finding(ENVIRONMENT, f"its {name} is no {'map of texts' if several else 'text'}.")
        elif not all(isinstance(word, str) for word in (value.values() if several else [value])):
            yield Finding(ENVIRONMENT, f"its {name} holds what is no text.")


def _captures(folder: Path, plan: Plan | None, captured: list[str]) -> Iterator[Finding]:
    """Every line is one capture, and they are those that the plan promises, in its order."""
    order = _Order(plan)
    number = 0
    with open(folder / CAPTURES, "rb") as file:
        for number, line in enumerate(file, 1):
            yield from _capture(line, number, order, captured)
    if not number:
        yield Finding(CAPTURES, "holds no capture.")
    missing = order.missing()
    for cell in missing[:_NAMED]:
        yield Finding(f"{CAPTURES} {_plain(cell)}", "the plan promises this cell; it is missing.")
    if len(missing) > _NAMED:
        yield Finding(CAPTURES, f"lacks {len(missing)} cells of the plan in all.")


def _capture(line: bytes, number: int, order: _Order, captured: list[str]) -> Iterator[Finding]:
    place = f"{CAPTURES}:{number}"
    if not line.endswith(b"\n"):
        yield Finding(place, "is torn: its last line has no end.")
        return
    try:
        capture = seal.decode(line, place)
        same = seal.encode(capture) == line
    except (EvidenceError, RecursionError) as error:
        yield Finding(place, f"is no capture ({error.__cause__ or error}).")
        return
    captured.append(capture.cell.id)
    place = f"{place} {_plain(capture.cell.id)}"
    if not same:
        yield Finding(
            place, "its line says more than is read of it: an unknown or repeated key, or spacing."
        )
    for problem in (*order.problems(capture.cell, number), *consistency.problems(capture)):
        yield Finding(place, problem)


class _Order:
    """Whether the captures come in the order of the plan, each once."""

    def __init__(self, plan: Plan | None) -> None:
        self._planned = None if plan is None else {c: i for i, c in enumerate(plan.cells)}
        self._lines: dict[Cell, int] = {}
        self._furthest = -1

    def problems(self, cell: Cell, number: int) -> Iterator[str]:
        """What is wrong with a capture of this cell on this line."""
        if cell in self._lines:
            yield f"it is there twice; line {self._lines[cell]} holds this cell already."
            return
        self._lines[cell] = number
        if self._planned is None:
            return
        if cell not in self._planned:
            yield "the plan has no such cell."
        elif self._planned[cell] < self._furthest:
            yield "it stands out of the plan's order."
        else:
            self._furthest = self._planned[cell]

    def missing(self) -> list[str]:
        """The ids of the planned cells that no capture was seen of."""
        return [cell.id for cell in self._planned or () if cell not in self._lines]


def _manifest(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    for name, digest in manifest.files.items():
        if name not in LISTED:
            where = "leads outside the folder" if _leaves(name) else "is no file of evidence"
            yield Finding(f"{MANIFEST} {_plain(name)}", f"it lists this path, which {where}.")
        elif _regular(folder / name) and store.sha256(folder / name) != digest:
            yield Finding(name, f"was changed: its SHA-256 is not the one that {MANIFEST} gives.")
    for name in LISTED:
        if name not in manifest.files:
            yield Finding(MANIFEST, f"does not list {name}.")


def _promises(manifest: Manifest, plan: Plan) -> Iterator[Finding]:
    if manifest.plan != plan.name:
        yield Finding(
            MANIFEST, f"names the plan {manifest.plan!r}, but {PLAN} is of {plan.name!r}."
        )
    if manifest.captures != len(plan.cells):
        yield Finding(
            MANIFEST,
            f"promises {manifest.captures} captures, but {PLAN} has {len(plan.cells)} cells.",
        )


def _leaves(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name


def _regular(path: Path) -> bool:
    """A file of its own: no link, folder, pipe or device, which are never opened."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _plain(text: str) -> str:
    """A name for a terminal: one that could steer it is shown quoted."""
    return text if text.isprintable() else repr(text)
