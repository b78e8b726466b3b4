"""Claims: one sentence each, bound to a query over captures and an expected value.

A published package carries this file as it is: it needs the standard library and errors.py alone.
It reads no file; ``rows`` are those of rows.py, of the folder that a claim names.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

from rcr_probes.errors import EvidenceError, UnknownName

FILE = "claims.toml"
COUNT = "count"
# Language → the page of a guide that says the claims in it.
PAGES: Mapping[str, str] = {"en": "index.html", "zh": "zh.html"}
Value = str | int | bool
Where = Mapping[str, tuple[Value, ...]]
Row = Mapping[str, object]
Problem = Literal[
    "no_folder",  # these two for who reads the folders: it is not there
    "not_read",  # or cannot be read
    "no_captures",
    "no_column",
    "no_such_value",
    "no_number",
    "not_known",
    "not_one_value",
    "other_value",
]

_SUM = "sum "
_LONGEST = 1 << 20  # characters of a file that is written by hand
_MOST = 1_000  # entries of a file
_DOTS = 64  # in a line: the time that TOML's reader takes grows with the square of them
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # part of an anchor in a page, and a folder's name
_COLUMN = re.compile(r"[a-z][a-z_]*")
_TEXTS = ("en", "zh", "not_shown_en", "not_shown_zh", "source")


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence that the captures of a folder bear out, or not.

    Attributes:
        id: its name, and part of the anchor ``claim-ID`` in a page.
        en: the sentence; ``{value}`` stands for what was measured.
        zh: the same in Chinese.
        evidence: the folder of evidence, which stands beside the file.
        where: column → the values that a row must have one of; every row where it is empty.
        take: ``count``, ``sum COLUMN``, or one column in which all rows agree.
        expect: what that must give.
        not_shown_en: what the claim does not show.
        not_shown_zh: the same in Chinese.
        source: where it was said first.
    """

    id: str
    en: str
    zh: str
    evidence: str
    where: Where
    take: str
    expect: Value
    not_shown_en: str
    not_shown_zh: str
    source: str

    @property
    def column(self) -> str | None:
        """The column that is taken; None where rows are counted."""
        return None if self.take == COUNT else self.take.removeprefix(_SUM)

    def not_shown(self, lang: str) -> str:
        """What it does not show, in ``en`` or ``zh``."""
        return _chosen(lang, self.not_shown_en, self.not_shown_zh)


@dataclass(frozen=True, slots=True)
class Table:
    """A table that a page shows: what it uses needs no claim.

    Attributes:
        name: what is drawn, as ``rcr show`` calls it.
        page: the page, from the root of the repository.
        evidence: the folder of evidence.
        where: as a claim's.
    """

    name: str
    page: str
    evidence: str
    where: Where


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a claim.

    Attributes:
        claim: which one.
        value: what the captures give; None where they give none.
        cells: the ids of the captures that it rests on, in their order.
        problem: why it does not hold; None where it does.
        about: the folder, column or value that the problem is with.
        numbers: the lines of those captures in their folder, from 0.
    """

    claim: Claim
    value: Value | None
    cells: tuple[str, ...]
    problem: Problem | None
    about: str = ""
    numbers: tuple[int, ...] = ()

    @property
    def holds(self) -> bool:
        return self.problem is None


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the claims and tables of a file are held against.

    Attributes:
        rows: folder beside the file → its rows.
        unread: folder beside the file → why its rows cannot be taken.
    """

    rows: Mapping[str, Sequence[Row]]
    unread: Mapping[str, str]

    def refused(self, name: str) -> tuple[Problem, str] | None:
        """Why there are no rows of this folder; None where there are."""
        if name in self.rows:
            return None
        return ("not_read", self.unread[name]) if name in self.unread else ("no_folder", name)

    def outcome(self, claim: Claim) -> Outcome:
        """What becomes of a claim."""
        if refused := self.refused(claim.evidence):
            return Outcome(claim, None, (), *refused)
        return evaluate(claim, self.rows[claim.evidence])

    def lacks(self, table: Table) -> tuple[Problem, str] | None:
        """What a table lacks, and its name; None where nothing."""
        refused = self.refused(table.evidence)
        return refused or lacks(table.where, self.rows[table.evidence])


def parsed(text: str, place: str) -> tuple[Claim, ...]:
    """The claims of a claims.toml, in its order.

    Args:
        text: what it holds.
        place: how an error names it.

    Raises:
        EvidenceError: it is no TOML, holds no claim, or one that is not whole.
    """
    claims = tuple(_claim(entry, at) for entry, at in _entries(text, place, "claim"))
    if not claims:
        raise EvidenceError(place, "holds no claim.", "Write a first [[claim]].")
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise EvidenceError(place, f"holds {claim.id!r} twice.", "Give each claim its own id.")
        seen.add(claim.id)
    return claims


def tables(text: str, place: str) -> tuple[Table, ...]:
    """The tables of a claims.toml, in its order; there may be none.

    Raises:
        EvidenceError: as ``parsed``.
    """
    found = []
    for entry, at in _entries(text, place, "table"):
        _keys(entry, ("name", "page", "evidence", "where"), at)
        name, page = _text(entry, "name", at), _text(entry, "page", at)
        found.append(Table(name, page, _name(entry, "evidence", at), _where(entry, at)))
    return tuple(found)


def evaluate(claim: Claim, rows: Sequence[Row]) -> Outcome:
    """What the rows of the claim's folder say to it. What is not there never bears a claim out."""
    lacking = lacks(claim.where, rows, claim.column)
    if lacking is not None:
        return Outcome(claim, None, (), *lacking)
    numbers = places(claim.where, rows)
    chosen = [rows[number] for number in numbers]
    cells = tuple(str(row.get("cell")) for row in chosen)
    value, problem = _taken(claim, chosen)
    if problem is None and _typed(value) != _typed(claim.expect):
        problem = "other_value"
    return Outcome(claim, value, cells, problem, numbers=tuple(numbers))


def lacks(
    where: Where, rows: Sequence[Row], column: str | None = None
) -> tuple[Problem, str] | None:
    """What these rows lack of that which is asked for, and its name; None where nothing.

    A value that no row has is told also where others of its list select some: it is mistyped, or
    what it meant is gone.
    """
    if not rows:
        return "no_captures", ""
    for name in (*where, *([column] if column else [])):
        if not any(name in row for row in rows):
            return "no_column", name
    for name, values in where.items():
        there = {_typed(row.get(name)) for row in rows}
        for value in values:
            if _typed(value) not in there:
                return "no_such_value", f"{name} = {written(value)}"
    return None if places(where, rows) else ("no_captures", "")


def places(where: Where, rows: Sequence[Row]) -> list[int]:
    """Which rows, from 0, have one of the wanted values in every column; null is no value."""
    numbers: Iterable[int] = range(len(rows))
    for column, values in where.items():
        wanted = {_typed(value) for value in values}
        numbers = [number for number in numbers if _typed(rows[number].get(column)) in wanted]
    return list(numbers)


def said(claim: Claim, lang: str, value: Value | None) -> str:
    """The sentence with what was measured filled in."""
    return _chosen(lang, claim.en, claim.zh).replace("{value}", written(value))


def written(value: Value | None) -> str:
    """A value as a page shows it: true and false as in JSON, ``?`` where there is none."""
    if value is None:
        return "?"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _taken(claim: Claim, rows: Sequence[Row]) -> tuple[Value | None, Problem | None]:
    if claim.column is None:
        return len(rows), None
    found = [row.get(claim.column) for row in rows]
    first = found[0]
    if None in found:
        return None, "not_known"
    if claim.take.startswith(_SUM):
        numbers = [value for value in found if type(value) is int]
        return (sum(numbers), None) if len(numbers) == len(found) else (None, "no_number")
    if not isinstance(first, str | int) or any(_typed(v) != _typed(first) for v in found):
        return None, "not_one_value"
    return first, None


def _typed(value: object) -> tuple[type, object]:
    """What is equal to another value of the same type alone: true is not 1."""
    return type(value), value


def _chosen(lang: str, en: str, zh: str) -> str:
    known = {"en": en, "zh": zh}
    if lang not in known:
        raise UnknownName("language", lang, known)
    return known[lang]


def _entries(text: str, place: str, kind: str) -> Iterator[tuple[dict[str, object], str]]:
    """Each entry of one kind, and how an error names it."""
    if len(text) > _LONGEST or any(line.count(".") > _DOTS for line in text.splitlines()):
        raise EvidenceError(
            place,
            f"has more than {_LONGEST} characters, or more than {_DOTS} dots in a line.",
            "Write a claim in a few lines, as in docs/design.md §3.",
        )
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(
            place, f"is no TOML ({error}).", "Correct it there; its form is in docs/design.md §3."
        ) from None
    if other := found.keys() - {"claim", "table"}:
        raise EvidenceError(
            place, f"has {min(other)!r} at its top.", "Write [[claim]] and [[table]] alone."
        )
    entries = found.get(kind, [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise EvidenceError(
            place, f"{kind!r} is no list of tables.", f"Begin each with [[{kind}]]."
        )
    if len(entries) > _MOST:
        raise EvidenceError(place, f"has more than {_MOST} entries of {kind}.", "Write fewer.")
    for number, entry in enumerate(entries, 1):
        name = entry.get("id") or entry.get("name")
        known = f" ({name})" if isinstance(name, str) and name.isprintable() else ""
        yield entry, f"{place} {kind} {number}{known}"


def _claim(entry: dict[str, object], at: str) -> Claim:
    _keys(entry, ("id", "evidence", "where", "take", "expect", *_TEXTS), at)
    texts = {key: _text(entry, key, at) for key in _TEXTS}
    for lang in ("en", "zh"):
        bare = texts[lang].replace("{value}", "")
        if bare == texts[lang] or "{" in bare or "}" in bare:
            raise EvidenceError(
                at, f"{lang} needs {{value}}, and no other brace.", "Write {value} for the number."
            )
    take, expect = _text(entry, "take", at), entry["expect"]
    if take != COUNT and not _COLUMN.fullmatch(take.removeprefix(_SUM)):
        raise EvidenceError(
            at, f"take is {take!r}.", f"Write {COUNT!r}, 'sum COLUMN', or the name of one column."
        )
    if not _is_value(expect):
        raise EvidenceError(
            at, "expect is no text, whole number, true or false.", "Write what must come out."
        )
    if (take == COUNT or take.startswith(_SUM)) and type(expect) is not int:
        raise EvidenceError(at, f"{take} gives a number, and expect is none.", "Write a number.")
    return Claim(
        id=_name(entry, "id", at),
        evidence=_name(entry, "evidence", at),
        where=_where(entry, at),
        take=take,
        expect=expect,
        **texts,
    )


def _is_value(given: object) -> TypeGuard[Value]:
    """Whether it can stand in a row: a line of text, a number of 64 bits, true or false."""
    if isinstance(given, str):
        return given.isprintable()
    return isinstance(given, int) and -(1 << 63) <= given < 1 << 63


def _keys(entry: dict[str, object], wanted: Sequence[str], at: str) -> None:
    if missing := [key for key in wanted if key not in entry]:
        raise EvidenceError(at, f"has no {missing[0]}.", f"Each has: {', '.join(wanted)}.")
    if other := entry.keys() - set(wanted):
        raise EvidenceError(at, f"has a key {min(other)!r}.", f"Known: {', '.join(wanted)}.")


def _text(entry: dict[str, object], key: str, at: str) -> str:
    found = entry[key]
    if not isinstance(found, str) or not found.strip() or not found.isprintable():
        raise EvidenceError(at, f"{key} is no line of text.", "Write one line, with words in it.")
    return found


def _name(entry: dict[str, object], key: str, at: str) -> str:
    found = _text(entry, key, at)
    if not _ID.fullmatch(found):
        raise EvidenceError(
            at, f"{key} is {found!r}.", "Begin with a letter or digit; then also . _ and -"
        )
    return found


def _where(entry: dict[str, object], at: str) -> Where:
    found = entry["where"]
    if not isinstance(found, dict):
        raise EvidenceError(at, "where is no table.", 'Write: where = { column = "value" }')
    where: dict[str, tuple[Value, ...]] = {}
    for column, given in found.items():
        values = given if isinstance(given, list) else [given]
        if not _COLUMN.fullmatch(column):
            raise EvidenceError(at, f"where names {column!r}.", "Name a column of rcr show --json.")
        if not values or not all(_is_value(value) for value in values):
            raise EvidenceError(
                at,
                f"where asks {column} for no text, whole number, true or false.",
                "Write one value, or a list of some.",
            )
        if len({_typed(value) for value in values}) < len(values):
            raise EvidenceError(
                at, f"where asks {column} for a value twice.", "Write each value once."
            )
        where[column] = tuple(values)
    return where
