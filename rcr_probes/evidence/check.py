"""Doubt an evidence folder: verify every digest and derive every judgement again.

A sound report says that the folder is whole and agrees with itself. Digests detect edits; that the
folder was not made up as a whole, they cannot say. Standard library alone: a reader's checker
embeds this module as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TypeVar

from rcr_probes.errors import NotEvidence
from rcr_probes.evidence import consistency, course, promised, received, strict, whereabouts
from rcr_probes.evidence.alike import Examined
from rcr_probes.evidence.form import (
    CAPTURES,
    ENVIRONMENT,
    FILES,
    LARGEST,
    LISTED,
    LISTS,
    LONGEST,
    MANIFEST,
    PLAN,
    SAYS,
    SCHEMA,
    Manifest,
    regular,
    sha256,
    too_large,
)
from rcr_probes.evidence.order import Order
from rcr_probes.evidence.promised import Promised
from rcr_probes.model import PLAN_NAME, Capture, Cell, Json, Measurement, Plan
from rcr_probes.vocabulary import WORKER, Says

Speak = Callable[..., str]  # the key of a text, and what its placeholders stand for

_NAMED = 3  # cells that are named one by one where many are missing, as after an interruption
MOST = 10_000  # findings of one check
_SMALL = 1 << 26  # bytes of a small file
# The looks at a capture that are told apart; what others find is of the kind ``capture``.
_LOOKS = (
    "origin", "cell", "approved", "processes", "judgement", "digest", "observations", "sequence",
    "points", "standing", "counts", "effects", "returns", "states", "never", "digests", "forced",
    "asked", "first_call",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason not to trust.

    Attributes:
        place: the file and, where there is one, line and cell.
        problem: what is wrong, in English.
        kind: which sort of thing that is; the text ``finding.KIND`` says it in each language.
        values: what that text is filled with besides ``{detail}``, which is the problem.
    """

    place: str
    problem: str
    kind: str
    values: Mapping[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"

    def said(self, speak: Speak) -> str:
        """What is wrong and where, in the language of ``speak``."""
        values = {"detail": self.problem, **self.values}
        if self.kind == "claim":
            values["detail"] = speak(f"claim.problem.{values['problem']}", **values)
        found = speak(f"finding.{self.kind}", **values)
        return plain(speak("checked.finding", place=self.place, said=found))


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
    captures = _Captures()
    findings: list[Finding] = []
    try:
        findings.extend(first(_examine(place, captures)))
    except OSError as error:
        findings.append(
            Finding(Path(error.filename or place).name, f"cannot be read ({error}).", "unreadable")
        )
    return Report(place, captures.read, tuple(findings))


def first(found: Iterator[Finding]) -> Iterator[Finding]:
    """As many findings as anybody reads; what is left of the evidence is then not looked at."""
    yield from islice(found, MOST)
    if next(found, None):
        said = f"has more than {MOST} faults; the rest was not looked for."
        yield Finding(".", said, "too_faulty", {"faults": MOST})


def _examine(folder: Path, captures: _Captures) -> Iterator[Finding]:
    """Every finding in the folder."""
    yield from _names(folder)
    plan = yield from _plan(folder)
    manifest = yield from _decoded(folder, MANIFEST, Manifest)
    environment = yield from _decoded(folder, ENVIRONMENT, dict[str, Json])
    if environment is not None:
        yield from _format(ENVIRONMENT, environment.get("schema"))
        yield from _environment(environment, None if plan is None else plan.count)
    if regular(folder / CAPTURES):
        yield from captures.examine(folder, plan)
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
            yield Finding(name, "is missing.", "missing")
    for name in there:
        path = folder / name
        if path.is_symlink():
            yield Finding(plain(name), "is a symbolic link; evidence holds its own bytes.", "link")
        elif name not in FILES:
            yield Finding(plain(name), "was added: it is no file of an evidence folder.", "added")
        elif too_large(path):
            said = f"has more than {LARGEST} bytes."
            yield Finding(name, said, "too_large", {"bytes": LARGEST})
        elif not regular(path):
            yield Finding(name, "is no regular file.", "irregular")


T = TypeVar("T")


def _decoded(folder: Path, name: str, kind: type[T]) -> Generator[Finding, None, T | None]:
    """The value of a small JSON file; None where a finding says why there is none."""
    if not regular(folder / name):
        return None
    with open(folder / name, "rb") as file:
        data = file.read(_SMALL + 1)
    if not data:
        yield Finding(name, "is empty.", "empty")
        return None
    if len(data) > _SMALL:
        said = f"has more than {_SMALL} bytes."
        yield Finding(name, said, "too_large", {"bytes": _SMALL})
        return None
    try:
        value = strict.decoded(data, kind)
        same = strict.encoded(value, indented=True) == data
    except strict.Unreadable as error:
        yield Finding(name, f"cannot be read ({error}).", "unreadable")
        return None
    if not same:
        said = "says more than is read of it: an unknown or repeated key, or spacing."
        yield Finding(name, said, "restated")
    return value


def _plan(folder: Path) -> Generator[Finding, None, Promised | None]:
    """What the plan promises, under a name that a plan may have."""
    plan = yield from _promised(folder)
    if plan is not None and not re.fullmatch(PLAN_NAME, plan.name):
        said = f"its name is {plan.name!r}, which no plan can have."
        yield Finding(PLAN, said, "plan_name", {"name": plain(plan.name)})
    return plan


def _promised(folder: Path) -> Generator[Finding, None, Promised | None]:
    """It is read as a whole only to say what is wrong with it."""
    if regular(folder / PLAN):
        try:
            return promised.streamed(folder / PLAN)
        except promised.OtherForm:
            pass
    plan = yield from _decoded(folder, PLAN, Plan)
    if plan is None:
        return None
    if not plan.cells:
        yield Finding(PLAN, "promises no cell.", "no_cell")
    seen: set[str] = set()
    for cell in plan.cells:
        if cell.id in seen:
            place = f"{PLAN} {plain(cell.id)}"
            yield Finding(place, "the plan holds this cell twice.", "cell_twice")
        seen.add(cell.id)
    return promised.held(plan)


def _format(name: str, schema: object) -> Iterator[Finding]:
    if type(schema) is not int or schema != SCHEMA:  # true is not 1 here
        yield Finding(name, f"is of format {schema!r}; this version checks {SCHEMA}.", "format")


def _environment(found: dict[str, Json], captures: int | None) -> Iterator[Finding]:
    """Exactly what a run writes, so that nothing else is sealed with it; the words may differ."""
    written = {"schema", *SAYS, *LISTS, *({whereabouts.KEY} & found.keys())}
    where = found.get(whereabouts.KEY)
    if isinstance(where, dict) and (said := whereabouts.problem(where, captures)):
        yield Finding(ENVIRONMENT, f"its {whereabouts.KEY} {said}.", "environment")
    if found.keys() != written:
        names = ", ".join(sorted(map(plain, found.keys() ^ written)))
        said = f"lacks a key that a run writes, or has one more: {names}."
        yield Finding(ENVIRONMENT, said, "environment")
    for name in sorted(written & found.keys() - {"schema"}):
        value, several = found[name], name not in SAYS
        if isinstance(value, dict) != several:
            said = f"its {name} is no {'map of texts' if several else 'text'}."
            yield Finding(ENVIRONMENT, said, "environment")
        elif not all(isinstance(word, str) for word in (value.values() if several else [value])):
            yield Finding(ENVIRONMENT, f"its {name} holds what is no text.", "environment")


class _Captures:
    """The captures of a folder.

    Attributes:
        read: how many could be read.
    """

    def __init__(self) -> None:
        self.read = 0
        self._examined = Examined()
        self._probe = received.Probe()  # those of a worker are one
        self._says: dict[str, Mapping[str, Says]] = {}  # runtime → what its states say

    def examine(self, folder: Path, plan: Promised | None) -> Iterator[Finding]:
        """Every line is one capture, and they are those that the plan promises, in its order."""
        order = Order(plan)
        number = 0
        with open(folder / CAPTURES, "rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(LONGEST + 1), b""), 1):
                if len(line) > LONGEST:
                    said = f"is longer than {LONGEST} bytes; it and what follows were not read."
                    yield Finding(f"{CAPTURES}:{number}", said, "too_long", {"bytes": LONGEST})
                    break
                alike = self._examined.alike(line)
                if alike is None or not order.follows(alike):
                    yield from self._capture(line, number, order)
                else:
                    self.read += 1
        if not number:
            yield Finding(CAPTURES, "holds no capture.", "no_capture")
        yield from map(_of_probe, self._probe.end())
        named, missing = order.missing(_NAMED)
        for missed in named:
            place = f"{CAPTURES} {plain(missed.id)}"
            yield Finding(place, "the plan promises this cell; it is missing.", "cell_missing")
        if missing > _NAMED:
            said = f"lacks {missing} cells of the plan in all."
            yield Finding(CAPTURES, said, "cells_missing", {"cells": missing})

    def _capture(self, line: bytes, number: int, order: Order) -> Iterator[Finding]:
        place = f"{CAPTURES}:{number}"
        if not line.endswith(b"\n"):
            yield Finding(place, "is torn: its last line has no end.", "torn")
            return
        try:
            capture = strict.decoded(line, Capture)
            same = strict.encoded(capture) + b"\n" == line
        except strict.Unreadable as error:
            yield Finding(place, f"is no capture ({error}).", "not_a_capture")
            return
        self.read += 1
        measured = capture.measurement
        probed = capture.cell.runtime == WORKER and not measured.published
        if probed:
            yield from map(_of_probe, self._probe.problems(measured))
        place = f"{place} {plain(capture.cell.id)}"
        if not same:
            said = "its line says more than is read of it: an unknown or repeated key, or spacing."
            yield Finding(place, said, "line_restated")
        if not order.follows(promised.apart(capture.cell)):
            for problem in order.problems(capture.cell, number):
                yield Finding(place, problem, "order")
        sound = same and not (probed or measured.published)
        for look, problem in (*consistency.found(capture), *self._said_otherwise(measured)):
            sound = False
            yield Finding(place, problem, look if look in _LOOKS else "capture")
        if sound:
            self._examined.add(line)

    def _said_otherwise(self, measured: Measurement) -> Iterator[tuple[str, str]]:
        """What the states of a runtime say is from its documentation, and so the same everywhere.

        A worker has none: its own look holds what its commands say.
        """
        runtime = measured.cell.runtime
        if runtime == WORKER or not course.ran(measured):
            return
        if self._says.setdefault(runtime, measured.says) != measured.says:
            yield "says", "it gives its runtime's states another meaning than an earlier cell does."


def _of_probe(found: tuple[Cell, str]) -> Finding:
    cell, problem = found
    return Finding(f"{CAPTURES} {plain(cell.id)}", problem, "worker_controls")


def _manifest(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    for name, digest in manifest.files.items():
        if name not in LISTED:
            where = "leads outside the folder" if _leaves(name) else "is no file of evidence"
            place = f"{MANIFEST} {plain(name)}"
            yield Finding(place, f"it lists this path, which {where}.", "listed")
        elif regular(folder / name) and sha256(folder / name) != digest:
            said = f"was changed: its SHA-256 is not the one that {MANIFEST} gives."
            yield Finding(name, said, "changed", {"list": MANIFEST})
    for name in LISTED:
        if name not in manifest.files:
            yield Finding(MANIFEST, f"does not list {name}.", "not_listed", {"name": name})


def _promises(manifest: Manifest, plan: Promised) -> Iterator[Finding]:
    if manifest.plan != plan.name:
        said = f"names the plan {manifest.plan!r}, but {PLAN} is of {plan.name!r}."
        yield Finding(MANIFEST, said, "promises")
    if manifest.captures != plan.count:
        said = f"promises {manifest.captures} captures, but {PLAN} has {plan.count} cells."
        yield Finding(MANIFEST, said, "promises")


def _leaves(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name


def plain(text: str) -> str:
    """A name for a terminal: one that could steer it is shown quoted."""
    return text if text.isprintable() else repr(text)
