"""One capture, or one decision, in plain words: pure, from what is stored to lines of text."""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rcr_probes.errors import RcrError, UnknownName, below, printable
from rcr_probes.model import (
    Capture,
    Decision,
    Effect,
    Event,
    Facts,
    Json,
    Measurement,
    Observation,
    Verdict,
)
from rcr_probes.report.texts import section, text
from rcr_probes.vocabulary import NONE, WORKER

# What a call may hold that is a request of somebody's worker.
_REQUEST = {"operation_key", "key", "payload", "outcome", "gave_up"}


def matching(given: str | None, cells: Iterable[str], folder: Path) -> str:
    """The one cell that is meant: by its id, or by a part that only its id holds.

    Args:
        given: what was typed; None means the only cell that there is.
        cells: every id.
        folder: of the evidence that holds them.

    Raises:
        UnknownName: no id holds it.
        RcrError: several do.
    """
    known = tuple(cells)
    if given in known:
        return given
    found = [cell for cell in known if given is None or given in cell]
    every = shlex.join(["rcr", "show", str(folder), "--csv"])
    if not found:
        raise UnknownName("cell", given, known, f"{every} has all, each first in its line.")
    if len(found) > 1:
        whose = f"{folder} holds" if given is None else f"{given!r} is a part of"
        raise RcrError(
            f"{whose} {len(found)} cells.",
            f"Name one of them; {every} has all, each first in its line:{below(found)}",
        )
    return found[0]


def explain(capture: Capture, lang: str = "en") -> list[str]:
    """Everything about one cell: its events in order, its facts, and why this verdict."""
    measured = capture.measurement
    source = text(
        "explain.source",
        lang,
        source=measured.source,
        runtime=capture.cell.runtime,
        start=_value(capture.circumstances.start, lang),
    )
    lines = [
        capture.cell.id,
        f"  {source}",
        *_section("events", _events(capture, lang), lang),
    ]
    for name, said in derived(capture, lang).items():
        lines += _section(name, said, lang)
    return [printable(line) for line in lines]


def derived(capture: Capture, lang: str = "en") -> dict[str, list[str]]:
    """What follows from the course of a cell: the name of each heading, and its lines.

    Returns:
        ``known``, ``allowed``, ``truth`` and ``verdict``; lines are empty where there is nothing.
    """
    return {
        "known": list(_known(capture, lang)),
        "allowed": ruled(capture.judgement.decision, lang),
        "truth": list(_truth(capture, lang)),
        "verdict": list(_verdict(capture, lang)),
    }


def decided(facts: Facts, decision: Decision, lang: str = "en") -> list[str]:
    """One decision and its reasons."""
    return [*_facts(facts, lang), "", *ruled(decision, lang)]


def in_words(column: str, value: object, lang: str) -> object:
    """A value of a row as prose says it: a code in words with the code beside, else as it is."""
    if not isinstance(value, str):
        return value
    match column:
        case "eligibility":
            return text(f"eligibility.{value}", lang)
        case "call_harm":
            return text(f"harm.{value}", lang)
        case "verdict":
            return _judged(value, lang)
        case "reasons":
            codes = [] if value == NONE else value.split(",")
            said = [one.removeprefix("- ") for one in _reasons(codes, lang)]
            return " ".join(said) or text("explain.nothing", lang)
    return value


def _section(name: str, lines: Iterable[str], lang: str) -> Iterator[str]:
    """A headed part, indented; nothing where there is nothing to say."""
    body = [f"  {line}" for line in lines]
    if body:
        yield from ("", text(f"explain.{name}", lang), *body)


def _events(capture: Capture, lang: str) -> Iterator[str]:
    """The events with the observations where they cut them."""
    if not capture.measurement.events:
        yield text("explain.no_events", lang)
    for one in course(capture.measurement):
        if isinstance(one, Event):
            yield _event(one, lang)
        else:
            yield from _observed(one, lang)


def course(measured: Measurement) -> Iterator[Event | Observation]:
    """The events in order, and each observation where it cuts them."""
    cuts = list(measured.observations)
    for number, event in enumerate(measured.events):
        while cuts and cuts[0].events <= number:
            yield cuts.pop(0)
        yield event
    yield from cuts


def _event(event: Event, lang: str) -> str:
    phase, lane, said = happened(event, lang)
    return f"{event.seq:>3}  {_padded(phase, 11)}  {_padded(lane, 6)}  {said}"


def happened(event: Event, lang: str) -> tuple[str, str, str]:
    """One event in words: its phase, its lane, and what happened."""
    phase = event.phase
    if phase in ("fault", "recover"):
        phase = text(f"explain.{phase}", lang)
    return phase, text(f"explain.lane_{event.lane}", lang), _value_of(event, lang)


def _value_of(event: Event, lang: str) -> str:
    """An event's value in words; one of another shape is shown as it is."""
    value = {name: _value(given, lang) for name, given in event.value.items()}
    stage = f"  [{value.pop('stage')}]" if "stage" in value else ""  # of published events
    match event.lane, sorted(value):
        case "state", ["evidence", "execution", "status"]:
            said = text("explain.state", lang, **value)
        case "audit", ["event"]:
            said = value["event"]
        case "audit", ["event", "reasons"]:
            said = f"{value['event']} ({value['reasons']})"
        case "point", ["point"]:
            said = text("explain.reached", lang, **value)
        case "fault", ["fault", "point"]:
            said = text("explain.strikes", lang, **value)
        case "fault", ["error", "point"]:
            said = text("explain.struck", lang, **value)
        case "fault", [*local, "lines", "lost", "point", "state", "states", "unexplored"] if (
            local in ([], ["effects"])
        ):
            value["lost"] = _lost(event.value["lost"], lang) or value["lost"]
            said = text("explain.power_local" if local else "explain.power", lang, **value)
        case "call", []:
            said = text("explain.entered", lang)
        case "call", ["operation_key"]:
            said = text("explain.called", lang, **value)
        case "call", _ if {"key", "outcome"} <= value.keys() <= _REQUEST:
            said = _came(event.value, lang)
        case "effect", ["call", "effect_id", "key", "kind", "operation_key", "target"]:
            del value["key"]  # which a worker may have left out
            keyed = _key(event.value["key"], lang)
            said = text("request.effect", lang, keyed=keyed, **value)
        case "effect", ["effect_id", "operation_key", "target"]:
            said = text("explain.appears", lang, **value)
        case "effect", ["effect_id", "kind", "operation_key", "target"]:
            said = text("explain.part", lang, **value)
        case "ask", ["effects", "in_flight", "operation_key"]:
            said = text("explain.asked", lang, **value)
        case "return", ["error"]:
            said = text("explain.no_error", lang) if value["error"] == NONE else value["error"]
        case _:
            said = " · ".join(f"{name} {given}" for name, given in value.items())
    return said + stage


def _lost(pairs: Json, lang: str) -> str | None:
    """What a loss of power made of each file; None where that is not told in pairs."""
    match pairs:
        case []:
            return text("explain.nothing_lost", lang)
        case [*_] if all(isinstance(pair, list | tuple) for pair in pairs):
            return ", ".join(" ".join(map(str, pair)) for pair in pairs)
        case _:
            return None


def _key(key: Json, lang: str) -> str:
    return text("request.keyless" if key is None else "request.key", lang, name=key)


def _came(value: Mapping[str, Json], lang: str) -> str:
    """A request that somebody's worker sent, and what became of it."""
    told = {"keyed": _key(value["key"], lang), "payload": value.get("payload")}
    known = f"request.outcome.{value['outcome']}"  # not known of one that might still act
    outcome = text(known, lang) if known in section("request") else _value(value["outcome"], lang)
    waited = text("request.waited", lang) if value.get("gave_up") == "bound" else ""
    came = "came" if "payload" in value else "came_alone"
    return text(f"request.{came}", lang, outcome=outcome, **told) + waited


def _observed(observed: Observation, lang: str) -> Iterator[str]:
    heading, *lines = seen(observed, lang)
    yield f"──── {heading}"
    yield from (f"     {line}" for line in lines)


def seen(observed: Observation, lang: str) -> list[str]:
    """An observation in words: after what, what was seen, and a line for each damage."""
    name = "never" if observed.after == "recover" and observed.ended is None else observed.after
    if observed.settled is None:  # published by others: how its phases ended is not known
        name = observed.after
    said = text(
        "explain.seen",
        lang,
        state=observed.recorded.status,
        effects=_effects(observed.effects, lang),
        calls=_value(observed.calls, lang),
        error=_error(observed, lang),
    )
    damage = [text("explain.damage", lang, damage=damage) for damage in observed.damage]
    return [text(f"explain.observed_{name}", lang), said, *damage]


def _error(observed: Observation, lang: str) -> str:
    if observed.error == NONE:
        return text("explain.no_error", lang)
    return _value(observed.error, lang)


def _effects(effects: tuple[Effect, ...] | None, lang: str) -> str:
    if not effects:
        return _value(effects if effects is None else 0, lang)
    return f"{len(effects)} ({', '.join(e.effect_id for e in effects)})"


def _known(capture: Capture, lang: str) -> Iterator[str]:
    judged = capture.judgement
    if judged.fired is not None:
        yield _named("fired", _value(judged.fired, lang), lang)
    if judged.facts is not None:
        own = capture.cell.runtime == WORKER and not judged.facts.capability
        yield from _facts(judged.facts, lang, "request.no_capability" if own else "explain.nothing")


def _facts(facts: Facts, lang: str, nothing: str = "explain.nothing") -> Iterator[str]:
    yield _named("identity", text(f"gated.identity_{facts.identity}", lang), lang)
    yield _named("effect", text(f"effect_fact.{facts.effect}", lang), lang)
    named = ", ".join(_capability(name, lang) for name in facts.capability)
    yield _named("capability", named or text(nothing, lang), lang)


def _capability(name: str, lang: str) -> str:
    key = f"gated.capability_{name}"  # evidence from elsewhere may declare what has no word here
    return text(key, lang) if key in section("gated") else name


def _named(name: str, value: str, lang: str) -> str:
    return f"{_padded(text(f'explain.{name}', lang), 11)}  {value}"


def ruled(decision: Decision | None, lang: str = "en") -> list[str]:
    """A decision in words, and a line for each of its reasons; empty where there is none."""
    if decision is None:
        return []
    way = f"_{decision.way}" if decision.way else ""
    said = text(f"explain.{decision.eligibility}{way}", lang)
    return [said, *_reasons(decision.reasons, lang)]


def judged(verdict: Verdict, lang: str = "en") -> list[str]:
    """A verdict in words, and a line for each of its reasons."""
    return [_judged(verdict.verdict, lang), *_reasons(verdict.reasons, lang)]


def verdict_of(capture: Capture, lang: str = "en") -> str:
    """Its verdict in one word; of a published row, that it is one."""
    verdict = capture.judgement.verdict
    if verdict is None:
        return text("guide.captures.label.published", lang)
    return text(f"verdict.{verdict.verdict}", lang)


def _truth(capture: Capture, lang: str) -> Iterator[str]:
    truth, forced = capture.judgement.truth, capture.measurement.forced
    if truth is None or forced is None:
        return
    yield text(f"explain.needed_{'yes' if truth.call_needed else 'no'}", lang)
    yield text(f"explain.harm_{truth.call_harm}", lang, effects=_effects(forced.effects, lang))
    if capture.cell.runtime == WORKER:
        yield text("explain.forced_same_key", lang)


def _verdict(capture: Capture, lang: str) -> Iterator[str]:
    verdict, published = capture.judgement.verdict, capture.measurement.published_verdict
    if verdict is None:
        if published is not None:
            yield published
        yield text("because.unpublished", lang)
        return
    yield _judged(verdict.verdict, lang)
    last, approved = capture.measurement.after("recover"), capture.measurement.approved
    effects = len(last.effects or ()) if last else 0
    yield text(f"because.{verdict.verdict}", lang, effects=effects, approved=approved.effects)
    yield from _reasons(verdict.reasons, lang)


def _judged(verdict: str, lang: str) -> str:
    named = text(f"verdict.{verdict}", lang)
    return named if named == verdict else f"{named}（{verdict}）"


def _reasons(codes: Iterable[str], lang: str) -> Iterator[str]:
    for code in codes:
        key = f"reason.{code}"  # evidence from elsewhere may hold a code that has no sentence here
        yield f"- {text(key, lang)}  [{code}]" if key in section("reason") else f"- [{code}]"


def _value(value: object, lang: str) -> str:
    """A stored value as a reader's word."""
    match value:
        case None:
            return text("explain.null", lang)
        case bool():
            return text("explain.yes" if value else "explain.no", lang)
        case list() | tuple():
            return ", ".join(_value(v, lang) for v in value) or text("explain.nothing", lang)
        case dict():
            return " ".join(f"{name}={_value(v, lang)}" for name, v in value.items())
        case _:
            return str(value)


def _padded(word: str, width: int) -> str:
    """The word, filled up to a width in columns; a Chinese character takes two."""
    taken = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in word)
    return word + " " * (width - taken)
