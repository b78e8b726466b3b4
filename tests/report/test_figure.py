"""The figure of P3: events alone, in both languages, the same bytes on every run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import pytest
from fontTools.ttLib import TTFont
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.text import Text

import rcr_probes
from rcr_probes.errors import EvidenceError, RcrError, UnknownName
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import MATCHED, Capture, Event, Plan
from rcr_probes.report.figure import FORMATS, causal_chain, rendered, save
from rcr_probes.report.tables import EXECUTORS
from rcr_probes.report.texts import LANGS

FONT = Path(rcr_probes.__file__).parent / "report" / "fonts" / "NotoSansSC-subset.otf"
MAIN = "none_same"


def with_captures(evidence: Evidence, captures: Iterator[Capture]) -> Evidence:
    kept = tuple(captures)
    plan = Plan(evidence.plan.name, tuple(capture.cell for capture in kept))
    return replace(evidence, plan=plan, remembered=kept)


def named(capture: Capture) -> str | None:
    key = tuple(getattr(capture.cell, axis) for axis in MATCHED)
    return next((name for name, wanted in EXECUTORS.items() if key == wanted), None)


def altered(evidence: Evidence, change: Callable[[Event], Event | None]) -> Evidence:
    """The same evidence, with P3's own events changed, or left out where None comes back."""

    def one(capture: Capture) -> Capture:
        if named(capture) != MAIN:
            return capture
        events = tuple(e for e in map(change, capture.measurement.events) if e is not None)
        return replace(capture, measurement=replace(capture.measurement, events=events))

    return with_captures(evidence, (one(capture) for capture in evidence.captures()))


def labels(figure: Figure) -> list[str]:
    return [found.get_text() for found in figure.findobj(Text)]


def marks(figure: Figure) -> list[str]:
    def is_mark(artist: Artist) -> bool:
        return artist.get_gid() is not None

    return [str(artist.get_gid()) for artist in figure.findobj(is_mark)]


@pytest.mark.parametrize("lang", LANGS)
def test_each_mark_is_an_event_and_each_event_has_its_mark(article: Evidence, lang: str) -> None:
    """Nothing is drawn that was not captured, and only points are left out."""
    happened = [
        f"{named(capture)}-{event.seq}"
        for capture in article.captures()
        if named(capture)
        for event in capture.measurement.events
        if event.lane != "point"
    ]
    assert sorted(marks(causal_chain(article, lang))) == sorted(happened)


def test_the_marks_are_found_in_the_svg(article: Evidence) -> None:
    """A reader's program can tell which mark is which event."""
    figure = causal_chain(article)
    ids = re.findall(r'id="([\w]+-\d+)"', rendered(figure, ".svg").decode())
    assert sorted(i for i in ids if i.split("-")[0] in EXECUTORS) == sorted(marks(figure))


@pytest.mark.parametrize("lang", LANGS)
def test_the_words_of_the_mechanism_are_there(article: Evidence, lang: str) -> None:
    """Both effects, the break, the state that was lost, and the two processes."""
    said = labels(causal_chain(article, lang))
    assert said.count("E1") == 3
    assert said.count("E2") == 1
    assert said.count("failed") == 3
    assert said.count("completion_audit\naudit_is_directory") == 3
    reclassified = {"en": "reclassified", "zh": "被改判"}[lang]
    assert said.count(reclassified) == 3
    boundary = {"en": "process 2: recovery phase", "zh": "进程 2：恢复阶段"}[lang]
    assert said.count(boundary) == 3


def test_the_boundary_lies_between_the_two_phases(article: Evidence) -> None:
    """It stands right of all that the first process did, and left of all that the second did."""
    axes = causal_chain(article).axes[0]
    [line] = [x for x in axes.get_lines() if x.get_linestyle() == "--" and len(x.get_xdata()) == 2]  # type: ignore[arg-type]
    boundary = float(line.get_xdata()[0])  # type: ignore[index, arg-type]
    capture = next(c for c in article.captures() if named(c) == MAIN)
    phases = {f"{MAIN}-{e.seq}": e.phase for e in capture.measurement.events}
    placed = {str(x.get_gid()): float(x.get_xdata()[0]) for x in axes.get_lines() if x.get_gid()}  # type: ignore[index, arg-type]
    for gid, x in placed.items():
        assert (x < boundary) == (phases[gid] == "fault")


def test_two_processes_are_named_only_where_their_pids_prove_it(article: Evidence) -> None:
    """Where one pid did both phases, or none is known, the figure claims nothing."""

    def one_pid(capture: Capture) -> Capture:
        pids = dict.fromkeys(capture.circumstances.pids, 1)
        return replace(capture, circumstances=replace(capture.circumstances, pids=pids))

    said = labels(causal_chain(with_captures(article, map(one_pid, article.captures()))))
    assert not any("process" in label for label in said)
    assert said.count("recovery phase") == 3


def test_without_a_second_effect_no_second_effect_is_drawn(article: Evidence) -> None:
    """The figure follows the events, not the story."""

    def lost(event: Event) -> Event | None:
        return None if event.value.get("effect_id") == "E2" else event

    figure = causal_chain(altered(article, lost))
    assert "E2" not in labels(figure)
    assert rendered(figure, ".png") != rendered(causal_chain(article), ".png")


def test_a_state_that_was_not_done_is_not_called_reclassified(article: Evidence) -> None:
    """The arrow needs a state that says done, and another one after it."""

    def open_state(event: Event) -> Event:
        done = event.value.get("status") == "succeeded"
        return replace(event, value={**event.value, "status": "executing"}) if done else event

    said = labels(causal_chain(altered(article, open_state)))
    assert said.count("reclassified") == 2


@pytest.mark.parametrize("lang", LANGS)
def test_the_font_has_every_character_of_every_label(article: Evidence, lang: str) -> None:
    """No label depends on what is installed on a machine."""
    covered = {chr(code) for code in TTFont(FONT).getBestCmap()}
    assert set("".join(labels(causal_chain(article, lang)))) - covered <= {"\n"}


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_character_that_the_font_lacks_is_an_error(article: Evidence, suffix: str) -> None:
    """It never becomes a box."""

    def odd(event: Event) -> Event:
        if event.value.get("status") != "failed":
            return event
        return replace(event, value={**event.value, "status": "\u9f98"})

    with pytest.raises(RcrError, match="lacks a character"):
        rendered(causal_chain(altered(article, odd)), suffix)


@pytest.mark.parametrize("lang", LANGS)
def test_the_same_bytes_come_out_on_every_run(article: Evidence, tmp_path: Path, lang: str) -> None:
    """Also in another process with other hash seeds, and for a reader with a style of their own."""
    style = tmp_path / "matplotlibrc"
    style.write_text("font.size: 20\nsavefig.dpi: 30\naxes.facecolor: red\nsavefig.bbox: tight\n")
    program = (
        "import sys\n"
        "from rcr_probes.evidence.store import read\n"
        "from rcr_probes.report.figure import causal_chain, save\n"
        f"figure = causal_chain(read({str(article.folder)!r}), {lang!r})\n"
        f"for suffix in {FORMATS}: save(figure, {str(tmp_path / 'other')!r} + suffix)\n"
    )
    surroundings = {**os.environ, "MATPLOTLIBRC": str(style), "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", program], env=surroundings, check=True, timeout=120)
    figure = causal_chain(article, lang)
    for suffix in FORMATS:
        save(figure, tmp_path / f"one{suffix}")
        one = (tmp_path / f"one{suffix}").read_bytes()
        assert one == rendered(causal_chain(article, lang), suffix)
        assert one == (tmp_path / f"other{suffix}").read_bytes()


def test_no_file_says_when_or_with_what_it_was_made(article: Evidence) -> None:
    """Neither a date nor a version makes two files differ."""
    figure = causal_chain(article)
    assert b"matplotlib" not in rendered(figure, ".svg").lower()
    assert not re.search(
        rb"<dc:date>|tEXt|tIME", rendered(figure, ".svg") + rendered(figure, ".png")
    )


def test_a_readers_own_settings_are_left_as_they_were(article: Evidence) -> None:
    """Drawing leaks nothing into the process."""

    def settings() -> dict[str, object]:  # to look at the backend would choose one
        return {name: mpl.rcParams[name] for name in mpl.rcParams if name != "backend"}

    before = settings()
    rendered(causal_chain(article, "zh"), ".png")
    assert settings() == before


def test_controls_are_drawn_as_far_as_they_are_there(
    article: Evidence, locations: Evidence
) -> None:
    """The plan ``locations`` has one of the two; P3 may also stand alone."""
    assert len(causal_chain(locations).axes) == 2
    alone = with_captures(article, (c for c in article.captures() if named(c) == MAIN))
    assert len(causal_chain(alone).axes) == 1


def test_without_p3_there_is_no_figure(article: Evidence, published: Evidence) -> None:
    """The controls alone show nothing; rows without events show nothing either."""
    rest = with_captures(article, (c for c in article.captures() if named(c) != MAIN))
    for evidence in (rest, published):
        with pytest.raises(EvidenceError, match="holds no events of"):
            causal_chain(evidence)


def test_an_unknown_language_or_format_is_refused(article: Evidence, tmp_path: Path) -> None:
    """Neither is turned into another one."""
    with pytest.raises(UnknownName):
        causal_chain(article, "fr")
    with pytest.raises(UnknownName):
        save(causal_chain(article), tmp_path / "figure.gif")
