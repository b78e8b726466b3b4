"""HTML of the guide: what was captured is always text in it, never markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import ceil
from typing import Any

import mistune
import pandas as pd
from markupsafe import Markup

from rcr_probes.errors import UnknownName, printable
from rcr_probes.report.panel import SMALL
from rcr_probes.report.texts import template, text

_LONG = 40  # letters; a longer word is broken where a line ends
_NOTHING = "–"  # not known, not published, or no such cell in the plan
_LEAST = 11  # pixels; no letter of a figure is shown smaller
_STACKED = 4  # columns; a phone shows the rows of such a table as lists, each value with its label


class _Renderer(mistune.HTMLRenderer):
    """Headings one level deeper than they are written, for they stand inside a section."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return super().heading(text, level + 1, **attrs)


_markdown = mistune.create_markdown(renderer=_Renderer(escape=True))


def captured(value: object) -> Markup:
    """A captured value as text: no markup, nothing that steers the text around it."""
    if isinstance(value, Markup):
        return value
    said, long = _shown(value)
    return Markup("<bdi{}>{}</bdi>").format(long, said)


def _shown(value: object) -> tuple[str, Markup]:
    """A captured value without what would steer the text, and the class of one that must break."""
    said = printable(str(value))
    long = max(map(len, said.split()), default=0) > _LONG
    return said, Markup(' class="long"') if long else Markup("")


def prose(key: str, lang: str, **values: object) -> Markup:
    """A text in Markdown as HTML; what is filled in comes after, so that it cannot be Markdown.

    Raises:
        UnknownName: no text has this key, or a placeholder has no value.
    """
    return _filled(key, _template(key, lang), values)


@cache
def _template(key: str, lang: str) -> Markup:
    return Markup(_markdown(template(key, lang)))


def phrase(key: str, lang: str, **values: object) -> Markup:
    """The same for a text of one line, without a paragraph around it."""
    return Markup(prose(key, lang, **values).strip().removeprefix("<p>").removesuffix("</p>"))


def _filled(key: str, html: Markup, values: Mapping[str, object]) -> Markup:
    try:
        return html.format_map({name: captured(value) for name, value in values.items()})
    except KeyError as missing:
        raise UnknownName(f"value in the text {key}", missing.args[0], values) from None


def code(value: object) -> Markup:
    """A word of the data."""
    return Markup("<code>{}</code>").format(captured(value))


def link(anchor: str, said: object) -> Markup:
    """A link to a place in the page."""
    return Markup('<a href="#{}">{}</a>').format(anchor, captured(said))


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


def details(title: Markup | str, body: Markup, name: str = "") -> Markup:
    """What is folded away; a link to anything in it opens it."""
    anchor = Markup(' id="{}"').format(name) if name else ""
    return Markup("<details{}><summary>{}</summary>\n{}</details>").format(anchor, title, body)


def figure(drawing: bytes, name: str, caption: str, said: str, lang: str) -> Markup:
    """A figure that scrolls by itself where the page is narrow; below it, what it says in words."""
    label = text("guide.figure.scroll", lang, caption=caption)
    drawn = wide(label, svg(drawing, name, said), kind="wide drawing")
    return Markup("<figure>{}<figcaption>{}</figcaption></figure>").format(drawn, captured(said))


def wide(label: str, body: Markup, kind: str = "wide") -> Markup:
    """What may be wider than the page: it scrolls by itself, also by the keyboard."""
    return Markup('<div class="{}" role="region" tabindex="0" aria-label="{}">\n{}</div>').format(
        kind, label, body
    )


def table(
    frame: pd.DataFrame,
    caption: str,
    *,
    links: Sequence[Mapping[str, str]] = (),
    tools: bool = False,
) -> Markup:
    """A frame as a table: a caption, a scope for each heading, numbers to the right.

    Args:
        frame: its index is shown where it has names.
        caption: what the table shows.
        links: for each row, column → the anchor that its value links to.
        tools: whether readers can filter and sort it.
    """
    if not isinstance(frame.index, pd.RangeIndex):
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    numbers = [pd.api.types.is_integer_dtype(kind) for kind in frame.dtypes]
    rows = [
        _row(names, numbers, values, links[place] if links else {})
        for place, values in enumerate(frame.itertuples(index=False, name=None))
    ]
    return whole_table(names, rows, caption, numbers=numbers, tools=tools)


def _row(
    names: Sequence[str],
    numbers: Sequence[bool],
    values: Sequence[object],
    links: Mapping[str, str],
) -> Markup:
    cells = []
    for place, (name, number, value) in enumerate(zip(names, numbers, values, strict=True)):
        said = _NOTHING if value is None or value is pd.NA else value
        tag = 'th scope="row"' if place == 0 else 'td class="n"' if number else "td"
        if name in links:
            cells.append(_cell(Markup(tag), link(links[name], said)))
        else:  # a cell is a paragraph of its own: what is in it cannot steer its neighbours
            words, long = _shown(said)
            cells.append(_cell(Markup(tag) + long, _breakable(words)))
    return Markup("").join(cells)


def _breakable(words: str) -> Markup:
    """A name of the data may break after an underscore, where a phone leaves it no room."""
    return Markup("_<wbr>").join(words.split("_"))


def _cell(tag: Markup, said: object) -> Markup:
    return Markup("<{}>{}</{}>").format(tag, said, tag[:2])


def whole_table(
    names: Sequence[str],
    rows: Iterable[Markup],
    caption: str,
    *,
    numbers: Sequence[bool] = (),
    tools: bool = False,
) -> Markup:
    """A table of rows that are cells in HTML already; one may bring its own ``tr``.

    A wide one carries its headings for the style sheet, which labels each value on a phone.
    """
    stacked = len(names) >= _STACKED
    kinds = [kind for kind, is_one in {"tools": tools, "stack": stacked}.items() if is_one]
    about = Markup(' class="{}"').format(" ".join(kinds)) if kinds else Markup("")
    if stacked:
        about += Markup(' style="{}"').format(_labels(names))
    heads = [
        Markup('<th scope="col"{}>{}</th>').format(
            Markup(' class="n"') if numbers and numbers[place] else "", captured(name)
        )
        for place, name in enumerate(names)
    ]
    body = joined(
        row if row.startswith("<tr") else Markup("<tr>{}</tr>").format(row) for row in rows
    )
    made = Markup(
        "<table{}><caption>{}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}\n</tbody></table>"
    ).format(about, captured(caption), Markup("").join(heads), body)
    return wide(caption, made)


def _labels(names: Sequence[str]) -> str:
    """The headings as properties of a style, each a string in which nothing can end it."""
    return ";".join(
        f"--c{place}:'{''.join(map(_safe, printable(name)))}'"
        for place, name in enumerate(names, start=1)
    )


def _safe(letter: str) -> str:
    return letter if letter.isalnum() or letter == " " else f"\\{ord(letter):x} "


def svg(drawing: bytes, name: str, said: str) -> Markup:
    """A figure of matplotlib's inside the page: its letters stay text, and it has a description.

    Args:
        drawing: an SVG file.
        name: what its ids begin with, so that two figures in one page share none.
        said: what it shows, for those who cannot see it.
    """
    body = drawing.decode("utf-8")
    body = body[body.index("<svg") :]
    body = re.sub(r"\s*<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(
        r"\s*<style type.*?</style>", "", body, flags=re.DOTALL
    )  # it would style the page
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", body)
    opening = Markup('<svg role="img" aria-label="{}"').format(said)
    width = re.search(r'viewBox="0 0 ([\d.]+)', body)
    assert width is not None
    body = re.sub(r'^<svg([^>]*?) width="[^"]*" height="[^"]*"', r"<svg\1", body)
    least = ceil(float(width[1]) * _LEAST / SMALL)
    body = body.replace("<svg", f'{opening} style="min-width: {least}px"', 1)
    return Markup(body)
