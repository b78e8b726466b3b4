"""What a page of the guide says of the claims, held against what they and their captures give.

A claim stands in one table row with the anchor ``claim-ID``: its id and its sentence; the captures
that it rests on, each a link; two notes, of what it does not show and where it was said first; then
its value and what is expected, each in a cell of its own. A list (``<ul class="claims">``) says the
sentence once more before a link to that row. What else a page says follows from no capture by rule,
and is not looked at. Standard library alone: the package's own checker embeds this module as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rcr_probes.evidence.claims import Outcome, said, written

# How a page begins the two notes of a claim. A test holds them against the texts of the guide.
NOT_SHOWN: Mapping[str, str] = {"en": "Not shown: ", "zh": "没有证明："}
SOURCE: Mapping[str, str] = {"en": "Source: ", "zh": "出处："}
_MARK = re.compile(r"<[^<>]*>")
_BLANK = re.compile(r"\s+")
_LIST, _HEADING = '<ul class="claims">', '<p class="claims">'
_LISTS = re.compile(r"\s*=\s*[\"']?[^\"'<>]*\bclaims\b")  # after a "class", however it is written
_CAPTURES, _CAPTURES_END = '<span class="refs">', "</span>"
_CAPTURE = re.compile(r'<a href="#(capture-[^"<>]*)"')
_NUMBER = re.compile(r"\d+")
_ZEROS = re.compile(r"&#0+(?=[0-9])")
_NO_LETTER = re.compile(r"&#[0-9]{8,};?")  # the last letter of all has the number 1114111


@dataclass(frozen=True, slots=True)
class _Said:
    """What stands in the row of a claim, as it is compared."""

    sentence: str
    captures: tuple[str, ...]
    numbers: str
    more: str
    notes: str
    cells: tuple[str, ...]


class Page:
    """A page of HTML.

    Every step is linear in the page's length, whatever it holds: a page may be hostile.
    """

    def __init__(self, source: str) -> None:
        shown = source
        for begin, end in (("<!--", "-->"), ("<script", "</script"), ("<style", "</style")):
            shown = _without(shown, begin, end)
        self._rows: dict[str, list[str]] = {}
        for name, row in _rows(shown):
            self._rows.setdefault(name, []).append(row)
        self._listed: dict[str, set[str]] = {}
        items = 0
        for name, text in _listed(shown):
            items += 1
            self._listed.setdefault(name, set()).add(text)
        self._whole = (  # else a row, a list or an item of one is not as publishing writes it
            shown.count('id="claim-') == sum(map(len, self._rows.values()))
            and _lists(shown) == shown.count(_LIST) + shown.count(_HEADING)
            and items == _items(shown)
        )

    @property
    def claims(self) -> set[str]:
        """The claims that the page speaks of."""
        return self._rows.keys() | self._listed.keys()

    def says(self, outcome: Outcome, lang: str) -> bool:
        """Whether the page says of a claim what came of it, in its one row and in every list."""
        claim = outcome.claim
        rows = self._rows.get(claim.id, [])
        sentence = _plain(said(claim, lang, outcome.value))
        if len(rows) != 1 or not self._whole or self._listed.get(claim.id, set()) - {sentence}:
            return False
        found, total = _read(rows[0]), len(outcome.numbers)
        places = [f"capture-{claim.evidence}-{number}" for number in outcome.numbers]
        shown = outcome.numbers[: len(found.captures)]
        notes = f"{NOT_SHOWN[lang]}{claim.not_shown(lang)}{SOURCE[lang]}{claim.source}"
        left = str(total - len(shown)) if len(shown) < total else ""
        return (
            found.sentence == _plain(f"{claim.id}{sentence}")
            and bool(shown)
            and list(found.captures) == places[: len(shown)]
            and found.numbers == _plain(claim.evidence + ",".join(str(one + 1) for one in shown))
            and (not left or _NUMBER.findall(found.more)[:1] == [left])
            and found.notes == _plain(notes)
            and found.cells == (_plain(written(outcome.value)), _plain(written(claim.expect)))
        )


def _rows(source: str) -> Iterator[tuple[str, str]]:
    """Each claim that has a row, and the row from its anchor on."""
    _, *begun = source.split('<tr id="claim-')
    for part in begun:
        name, _, row = part.partition('">')
        yield _unescaped(name), row.partition("</tr>")[0]


def _read(row: str) -> _Said:
    head, *cells = row.split("<td")
    sentence, _, after = head.partition(_CAPTURES)
    captures, _, notes = after.partition(_CAPTURES_END)
    links, last, more = captures.rpartition("</a>")
    return _Said(
        sentence=_text(sentence),
        captures=tuple(_unescaped(one) for one in _CAPTURE.findall(captures)),
        numbers=_text(links + last),
        more=_text(more),
        notes=_text(notes),
        cells=tuple(_text(f"<td{cell}") for cell in cells[:2]),
    )


def _listed(source: str) -> Iterator[tuple[str, str]]:
    """Each claim that a list names, and what stands before the link to it."""
    for item in _within(source):
        before, link, after = item.partition('<a href="#claim-')
        if link:
            yield _unescaped(after.partition('"')[0]), _text(before)


def _within(source: str) -> Iterator[str]:
    """What each item of the lists of claims holds."""
    _, *begun = source.split(_LIST)
    for part in begun:
        yield from part.partition("</ul>")[0].split("<li>")[1:]


def _items(source: str) -> int:
    """How many items the lists of claims have, however they are written."""
    _, *begun = source.lower().split(_LIST)
    return sum(part.partition("</ul>")[0].count("<li") for part in begun)


def _lists(source: str) -> int:
    """How many elements are of the class of lists of claims, however that is written."""
    _, *begun = _unescaped(source).lower().split("class")
    return sum(_LISTS.match(part) is not None for part in begun)


def _unescaped(source: str) -> str:
    """The text that HTML stands for, as a browser shows it.

    Also where it names a letter by thousands of digits, of which Python makes no number.
    """
    return html.unescape(_NO_LETTER.sub("\ufffd", _ZEROS.sub("&#", source)))


def _text(source: str) -> str:
    return _plain(_unescaped(_MARK.sub("", source)))


def _plain(text: str) -> str:
    """Text as it is compared: a blank or a line's end makes no difference."""
    return _BLANK.sub("", text)


def _without(source: str, first: str, last: str) -> str:
    """The source without what lies between these; one that does not end takes the rest with it."""
    begins = re.compile(first, re.IGNORECASE)
    ends = re.compile(last, re.IGNORECASE)
    kept: list[str] = []
    at = 0
    while begin := begins.search(source, at):
        kept.append(source[at : begin.start()])
        end = ends.search(source, begin.end())
        if end is None:
            return "".join(kept)
        at = end.start()
    return "".join([*kept, source[at:]])
