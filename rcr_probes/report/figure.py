"""The causal figure of P3 and its two controls: every mark is an event of a capture."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal

import matplotlib
import matplotlib.style
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from rcr_probes.errors import EvidenceError, RcrError, UnknownName
from rcr_probes.evidence.form import CAPTURES
from rcr_probes.evidence.store import Evidence
from rcr_probes.model import MATCHED, Capture
from rcr_probes.report.panel import FAINT, INK, SMALL, Panel, legend
from rcr_probes.report.tables import EXECUTORS
from rcr_probes.report.texts import text

FORMATS = (".svg", ".png")
MAIN, *CONTROLS = EXECUTORS

_SIZE = (12.8, 8.4)  # inches
_DPI = 110
_STYLE: Mapping[str, Any] = {
    "font.size": 8.5,
    "text.color": INK,
    "svg.hashsalt": "rcr-probes",  # else ids inside the SVG are random
    "text.parse_math": False,  # a captured dollar sign is one
}


def causal_chain(evidence: Evidence, lang: str = "en") -> Figure:
    """P3 without dedupe, event by event, and below it the controls that the evidence holds.

    Returns:
        A figure of its own canvas, known to no other part of matplotlib. Each event's mark carries
        ``executor-seq`` as its gid, and so as its id in an SVG.

    Raises:
        EvidenceError: P3's own cell is not there, or has no events.
        UnknownName: the language is not there.
    """
    captures = _captures(evidence)
    below = [name for name in CONTROLS if name in captures]
    with style():
        figure = Figure(figsize=_SIZE if below else (_SIZE[0], _SIZE[1] * 0.6))
        FigureCanvasAgg(figure)
        panels = [Panel(captures[n], n, lang) for n in (MAIN, *below)]
        for panel, axes in zip(panels, _places(figure, panels), strict=True):
            panel.draw(axes)
        for panel in panels[:2]:  # the two that stand at the left
            panel.label_lanes()
        figure.suptitle(text("figure.title", lang), x=0.012, y=0.985, ha="left", size=12)
        numbers = text("figure.numbers", lang)
        figure.text(0.988, 0.97, numbers, ha="right", size=SMALL, color=FAINT)
        handles = legend(lang)
        figure.legend(handles=handles, loc="lower left", ncols=len(handles), frameon=False)
    return figure


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the figure as SVG or PNG: the same bytes on every run under the same matplotlib.

    Raises:
        UnknownName: the path ends in neither ``.svg`` nor ``.png``.
        RcrError: the font has no glyph for a label.
        OSError: it cannot be written.
    """
    place = Path(path)
    place.write_bytes(rendered(figure, place.suffix))


def rendered(figure: Figure, suffix: str, *, letters: bool = False) -> bytes:
    """The bytes of the figure as a ``.svg`` or ``.png`` file.

    Args:
        figure: as it was made here.
        suffix: of the format.
        letters: keep letters as text in an SVG, for a page that brings the font. What the font
            lacks, the page's reader may have.

    Raises:
        UnknownName: the suffix is neither.
        RcrError: the font has no glyph for a label.
    """
    if suffix not in FORMATS:
        raise UnknownName("figure format", suffix, FORMATS)
    # What would differ from day to day, or between patch releases that draw the same.
    metadata = {"Date": None, "Creator": None} if suffix == ".svg" else {"Software": None}
    buffer = io.BytesIO()
    kept: Any = {"svg.fonttype": "none" if letters else "path"}
    with style(), matplotlib.rc_context(kept), _glyphs("ignore" if letters else "error"):
        figure.savefig(buffer, format=suffix[1:], dpi=_DPI, metadata=metadata)
    return buffer.getvalue()


def _places(figure: Figure, panels: Sequence[Panel]) -> list[Axes]:
    """Axes for the main panel, and below it for the controls, all on one scale where they fit."""
    left, right, gap = 0.125, 0.988, 0.018
    if len(panels) == 1:
        return [figure.add_axes((left, 0.1, right - left, 0.78))]
    top = figure.add_axes((left, 0.515, right - left, 0.42))
    room = right - left - gap * (len(panels) - 2)
    whole = sum(panel.width for panel in panels[1:])
    if len(panels) == 2:
        room *= 0.55
    made = [top]
    for panel in panels[1:]:
        width = room * panel.width / whole
        made.append(figure.add_axes((left, 0.07, width, 0.385)))
        left += width + gap
    return made


def _captures(evidence: Evidence) -> dict[str, Capture]:
    """The first capture of each executor that has events; the main one must be there."""
    found: dict[str, Capture] = {}
    for capture in evidence.captures():
        key = tuple(getattr(capture.cell, axis) for axis in MATCHED)
        for name, wanted in EXECUTORS.items():
            if key == wanted and capture.measurement.events:
                found.setdefault(name, capture)
    if MAIN not in found:
        raise EvidenceError(
            CAPTURES,
            f"holds no events of {'/'.join(EXECUTORS[MAIN])}, which is what the figure shows.",
            "Run a plan that has this cell, such as article.",
        )
    return found


@contextmanager
def style() -> Iterator[None]:
    """Our style on matplotlib's defaults, whatever the reader has set; theirs comes back after."""
    with matplotlib.style.context(["default", {**_STYLE, "font.family": _family()}]):
        yield


@contextmanager
def _glyphs(lacking: Literal["error", "ignore"]) -> Iterator[None]:
    """A character that the font lacks is an error, never a box."""
    with warnings.catch_warnings():
        warnings.filterwarnings(lacking, message="Glyph .* missing from font")
        try:
            yield
        except UserWarning as missing:
            raise RcrError(
                f"The figure's font lacks a character: {missing}.", "Add it with: make font"
            ) from None


@cache
def _family() -> str:
    """Register the package's own font, once, and return the name of its family."""
    with as_file(files("rcr_probes") / "report" / "fonts" / "NotoSansSC-subset.otf") as path:
        font_manager.fontManager.addfont(path)
        return font_manager.FontProperties(fname=path).get_name()
