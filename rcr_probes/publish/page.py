"""What a page of the guide says of the claims: each sentence, its value, and what was expected.

A claim stands in one table row with the anchor ``claim-ID``: first its id and its sentence, which
its captures follow, then its value and what is expected, each in a cell of its own. A list of
claims (``<ul class="claims">``) says the sentence once more before a link to that row. Standard
library alone: the package's own checker embeds this module as it is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

_MARK = re.compile(r"<[^<>]*>")
_BLANK = re.compile(r"\s+")
_LIST = '<ul class="claims">'
_CAPTURES = '<span class="refs">'  # ends the sentence in a row


class Page:
    """A page of HTML.

    Every step is linear in the page's length, whatever it holds: a page may be hostile.
    """

    def __init__(self, source: str) -> None:
        shown = source
        for begin, end in (("<!--", "-->"), ("<script", "</script"), ("<style", "</style")):
            shown = _without(shown, begin, end)
        self._rows = list(_rows(shown))
        self._listed = list(_listed(shown))
        self._whole = shown.count('id="claim-') == len(self._rows)  # else one is no such row

    @property
    def claims(self) -> set[str]:
        """The claims that the page speaks of."""
        return {name for name, _ in (*self._rows, *self._listed)}

    def says(self, claim: str, sentence: str, value: str, expect: str) -> bool:
        """Whether the page says this of the claim, in its one row and in every list."""
        rows = [row for name, row in self._rows if name == claim]
        if len(rows) != 1 or not self._whole:
            return False
        head, *cells = rows[0].split("<td")
        return (
            _text(head.partition(_CAPTURES)[0]) == _plain(f"{claim}{sentence}")
            and [_text(f"<td{cell}") for cell in cells[:2]] == [_plain(value), _plain(expect)]
            and all(text == _plain(sentence) for name, text in self._listed if name == claim)
        )


def _rows(source: str) -> Iterator[tuple[str, str]]:
    """Each claim that has a row, and the row from its anchor on."""
    _, *begun = source.split('<tr id="claim-')
    for part in begun:
        name, _, row = part.partition('">')
        yield html.unescape(name), row.partition("</tr>")[0]


def _listed(source: str) -> Iterator[tuple[str, str]]:
    """Each claim that a list names, and what stands before the link to it."""
    _, *begun = source.split(_LIST)
    for part in begun:
        for item in part.partition("</ul>")[0].split("<li>")[1:]:
            before, link, after = item.partition('<a href="#claim-')
            if link:
                yield html.unescape(after.partition('"')[0]), _text(before)


def _text(source: str) -> str:
    return _plain(html.unescape(_MARK.sub("", source)))


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
