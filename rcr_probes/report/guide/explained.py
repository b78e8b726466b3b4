"""One capture told as HTML: its events in order, what was observed between them, what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from rcr_probes.errors import printable
from rcr_probes.model import Capture, Event, Observation
from rcr_probes.report.explain import course, derived, happened, seen
from rcr_probes.report.guide.markup import captured, joined, phrase
from rcr_probes.report.texts import text


def explained(capture: Capture, lang: str) -> Markup:
    """The course of a cell, and below it a list for each heading of what was derived from it."""
    parts = list(_course(capture, lang))
    for name, lines in derived(capture, lang).items():
        if lines:
            heading = text(f"explain.{name}", lang)
            parts.append(Markup("<p>{}</p>\n{}").format(heading, listed(lines)))
    return joined(parts)


def listed(lines: Sequence[str]) -> Markup:
    """Lines of text as a list; those that are marked as items in plain text are so already."""
    said = (line.removeprefix("- ") for line in lines)
    items = joined(Markup("<li>{}</li>").format(captured(line)) for line in said)
    return Markup("<ul>\n{}\n</ul>").format(items)


def observed(one: Observation, lang: str) -> Markup:
    """An observation in a line."""
    after, *said = seen(one, lang)
    return phrase("guide.captures.label.seen", lang, after=after, said="; ".join(said))


def _course(capture: Capture, lang: str) -> Iterator[Markup]:
    """The events in lists that keep their numbers, and between them what was observed."""
    run: list[Event] = []
    for one in course(capture.measurement):
        if isinstance(one, Event):
            run.append(one)
            continue
        yield from _events(run, lang)
        run = []
        yield Markup('<p class="seen">{}</p>').format(observed(one, lang))
    yield from _events(run, lang)


def _events(run: Sequence[Event], lang: str) -> Iterator[Markup]:
    if run:
        items = joined(_event(event, lang) for event in run)
        yield Markup('<ol class="course" start="{}">\n{}\n</ol>').format(run[0].seq, items)


def _event(event: Event, lang: str) -> Markup:
    phase, lane, said = happened(event, lang)
    marked = Markup(' class="mark"') if event.lane in ("fault", "effect") else Markup("")
    when = Markup("{} · {}").format(printable(phase), lane)
    line = phrase("guide.captures.label.seen", lang, after=when, said=said)
    return Markup("<li{}>{}</li>").format(marked, line)
