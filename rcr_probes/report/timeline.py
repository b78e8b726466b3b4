"""A timeline as it is read at a cutoff: for a terminal, for a notebook, and as JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from rcr_probes.errors import RcrError, printable
from rcr_probes.evidence import archive, meant, store, timeline
from rcr_probes.evidence.admissibility import Reading, Rejected, cutoffs, in_order, naive, read
from rcr_probes.evidence.controls import controls
from rcr_probes.evidence.form import PLAN
from rcr_probes.evidence.package import read_package
from rcr_probes.model import Json
from rcr_probes.report.explain import matching
from rcr_probes.report.terminal import Drawn
from rcr_probes.report.texts import section, text
from rcr_probes.witness import Timeline, refusal

SAYS = ("approval_status", "effect_count", "effect_observed", "duplicate_observed")
_NOTHING = "-"


def opened(place: Path, cell: str | None = None) -> Timeline:
    """The timeline of a published file, of a package, or of a cell of an evidence folder.

    Args:
        place: of the file, the folder, or a package's .zip.
        cell: its id, or a part that no other id of the folder holds; may be left out where the
            folder holds one cell.

    Raises:
        NotEvidence: there is nothing of the kind.
        EvidenceError: it was changed, or is not of the known form.
        RcrError: a cell is missing, or one is named where there is none.
        OSError: the file cannot be read.
    """
    if (place / PLAN).is_file():
        evidence = store.read_whole(place)
        ids = (one.id for one in evidence.plan.cells)
        return timeline.of_capture(evidence.capture(matching(cell, ids, place)))
    if place.is_dir() and meant.below(place):
        raise meant.none(place)
    if cell is not None:
        raise RcrError(f"{place} has no cells, and {cell!r} names none.", "Leave it out.")
    if place.is_dir() or place.suffix.lower() == archive.SUFFIX:
        with archive.opened(place) as folder:
            return timeline.of_package(read_package(folder))
    return timeline.read_file(place)


def refuse_outside(given: Timeline, at: int) -> None:
    """Refuse a moment at which the timeline has nothing to say.

    Raises:
        RcrError: it lies before the first moment, which is 0 or earlier, or after the last.
    """
    known = cutoffs(given)
    if known and not min(0, known[0]) <= at <= known[-1]:
        raise RcrError(
            f"{at} is no moment of {given.owner}.",
            f"Give a number from {min(0, known[0])} to {known[-1]}; of a cell, that of an event: "
            "rcr explain shows them.",
        )


def answer(given: Timeline, at: int) -> dict[str, Json]:
    """Everything that the timeline says at a cutoff, as JSON."""
    return {
        "owner": given.owner,
        "at": at,
        **asdict(read(given, at)),
        "naive": _said(naive(given)),
        "controls": [
            {
                "control": one.name,
                **_said(one.reading),
                "rejected": [asdict(rejected) for rejected in one.reading.rejected],
                "naive": _said(one.naive),
            }
            for one in controls(given, at)
        ],
    }


def sentences(given: Timeline, at: int, lang: str) -> list[str]:
    """Whose timeline it is, and what may be said at the cutoff."""
    reading = read(given, at)
    says = "duplicate" if reading.duplicate_observed else reading.effect_observed
    lines = [text("timeline.whose", lang, owner=given.owner, at=at), text(f"timeline.{says}", lang)]
    return [printable(line) for line in lines]


def drawn(given: Timeline, at: int, lang: str) -> list[Drawn]:
    """What may be said at the cutoff, why each envelope counts or not, and the controls."""
    return [
        _drawn(text(f"timeline.{name}", lang, at=at), frame)
        for name, frame in (
            ("readings", readings(given, lang, at=at)),
            ("envelopes", envelopes(given, lang, at=at)),
            ("controls", controlled(given, lang, at=at)),
        )
    ]


def readings(given: Timeline, lang: str = "en", *, at: int | None = None) -> pd.DataFrame:
    """What may be said at a cutoff, or at each; in the last row, what a naive reader says of all.

    Returns:
        Columns reader, approval status, effects, effect observed, duplicate observed, and, where
        several cutoffs are read, what was rejected.
    """
    shown = cutoffs(given) if at is None else (at,)
    rows = [(text("timeline.at", lang, at=one), read(given, one)) for one in shown]
    rows.append((text("timeline.naive", lang), naive(given)))
    made = [
        {"reader": name, **_words(reading, lang), "rejected": _reasons(reading.rejected, lang)}
        for name, reading in rows
    ]
    frame = _named(made, lang)
    return frame if at is None else frame.iloc[:, :-1]


def envelopes(given: Timeline, lang: str = "en", *, at: int) -> pd.DataFrame:
    """Each envelope at a cutoff.

    Returns:
        Columns envelope, kind, available at, admissible, in the order of time.
    """
    made = []
    for one in in_order(given):
        reason = refusal(given, one, at)
        why = f"timeline.reason.{reason}" if reason else "timeline.accepted"
        made.append(
            {
                "envelope": one["id"],
                "kind": _kind(one["kind"], lang),
                "available_at": json.dumps(one["available_at"]),
                "admissible": text(why, lang) + (f" [{reason}]" if reason else ""),
            }
        )
    return _named(made, lang)


def controlled(given: Timeline, lang: str = "en", *, at: int) -> pd.DataFrame:
    """The negative controls at a cutoff.

    Returns:
        Columns control, what may be said, why its envelope is rejected, what a naive reader says,
        and what that reader mistakes.
    """
    return _named(
        [
            {
                "control": text(f"timeline.control.{one.name}", lang),
                "may_say": _short(one.reading, lang),
                "rejected": ", ".join(_refused(r, lang) for r in one.reading.rejected) or _NOTHING,
                "naive_says": _short(one.naive, lang),
                "mistakes": text(f"timeline.mistakes.{one.name}", lang),
            }
            for one in controls(given, at)
        ],
        lang,
    )


def _said(reading: Reading) -> dict[str, Json]:
    return {name: getattr(reading, name) for name in SAYS}


def _words(reading: Reading, lang: str) -> dict[str, str]:
    """What may be said, in words; the code of what is observed stands beside its word."""
    words = {name: _word(value, lang) for name, value in _said(reading).items()}
    return words | {"effect_observed": _observed(reading, lang)}


def _word(value: Json, lang: str) -> str:
    if value is None:
        return text("explain.null", lang)
    if isinstance(value, bool):
        return text("explain.yes" if value else "explain.no", lang)
    return str(value)


def _observed(reading: Reading, lang: str) -> str:
    return text(f"timeline.observed.{reading.effect_observed}", lang)


def _short(reading: Reading, lang: str) -> str:
    word, count = _observed(reading, lang), reading.effect_count
    if not count:
        return word
    counted = "counted_duplicate" if reading.duplicate_observed else "counted"
    return text(f"timeline.{counted}", lang, word=word, effects=count)


def _kind(kind: str, lang: str) -> str:
    """The kind of an envelope; a publication may have kinds of its own, and words of ours none."""
    key = f"timeline.kind.{kind}"
    return text(key, lang) if key in section("timeline") else kind


def _refused(rejected: Rejected, lang: str) -> str:
    return text(f"timeline.refused.{rejected.reason}", lang)


def _reasons(rejected: Iterable[Rejected], lang: str) -> str:
    """Each reason once, and the envelopes that it keeps out."""
    found: dict[str, list[str]] = defaultdict(list)
    for one in rejected:
        found[_refused(one, lang)].append(one.id)
    return "; ".join(f"{reason}: {', '.join(ids)}" for reason, ids in found.items()) or _NOTHING


def _named(rows: list[dict[str, str]], lang: str) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    return frame.rename(columns=lambda name: text(f"timeline.column.{name}", lang))


def _drawn(title: str, frame: pd.DataFrame) -> Drawn:
    return Drawn(title, dict.fromkeys(map(str, frame.columns), False), list(_printable(frame)))


def _printable(frame: pd.DataFrame) -> Iterator[list[str]]:
    for row in frame.itertuples(index=False, name=None):
        yield [printable(str(value)) for value in row]
