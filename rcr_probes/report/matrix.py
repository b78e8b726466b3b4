"""The matrix of real runtimes: runtime by fault, coloured by verdict; every square is a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from rcr_probes.evidence.store import Evidence
from rcr_probes.report.figure import style
from rcr_probes.report.panel import FAINT, INK, SMALL, label
from rcr_probes.report.repeats import UNSTABLE, Repeated, columns, configuration, repeated
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import DEDUPES, NONE, VERDICTS

# Okabe and Ito's colours and tints of them. The number of effects stands in each square, what went
# wrong is edged, and within each of the two no two are equally bright: whoever sees no hue, or
# prints in grey, tells them apart.
COLOURS: Mapping[str, str] = {
    "wrong_effect": "#8c2d04",
    "duplicate_effect": "#D55E00",
    "lost_effect": "#CC79A7",
    "blocked": "#E69F00",
    "state_effect_split": "#F0E442",
    "held": "#9a86c4",
    "deduplicated": "#0072B2",
    "protected": "#56B4E9",
    "consistent": "#a6dcc8",
    "no_effect": "#e5e5e5",
    "unknown": "#ffffff",
    UNSTABLE: "#ffffff",
}
_HATCHED: Mapping[str, str] = {"unknown": "xxx", UNSTABLE: "////"}
_WRONG = ("wrong_effect", "duplicate_effect", "lost_effect", "blocked", "state_effect_split")
_DARK = ("wrong_effect", "duplicate_effect", "deduplicated")  # their numbers are white

_SQUARE = 0.34  # inches, the side of a square
_LEFT, _TOP, _BOTTOM, _RIGHT = 3.9, 1.75, 0.75, 0.15  # inches around the squares
_GAP = 0.35  # in squares, between two runtimes, and between two faults


def matrix(evidence: Evidence, lang: str = "en") -> Figure:
    """Every cell of the evidence, its repeats taken together.

    Rows are recoveries, grouped by runtime and variant; columns are faults, and in each of them one
    square for each executor that occurs. A square shows the effects after recovery.

    Returns:
        A figure of its own canvas. Each square's gid is its cell's id, and so its id in an SVG.

    Raises:
        UnknownName: the language is not there.
    """
    found = repeated(evidence)
    faults = columns(found)
    dedupes = [name for name in DEDUPES if any(one.cell.dedupe == name for one in found)]
    groups: dict[str, list[str]] = {}
    for one in found:
        ways = groups.setdefault(configuration(one.cell), [])
        if (way := one.cell.policy or "") not in ways:
            ways.append(way)
    width = len(faults) * (len(dedupes) + _GAP)
    height = sum(map(len, groups.values())) + len(groups) * _GAP
    size = (_LEFT + _RIGHT + width * _SQUARE, _TOP + _BOTTOM + height * _SQUARE)
    with style():
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        axes = figure.add_axes(
            (
                _LEFT / size[0],
                _BOTTOM / size[1],
                width * _SQUARE / size[0],
                height * _SQUARE / size[1],
            )
        )
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        places = _rows(axes, groups)
        across = _columns(axes, faults, len(dedupes), lang)
        for one in found:
            place = places[configuration(one.cell), one.cell.policy or ""]
            x = across[one.cell.point, one.cell.fault] + dedupes.index(one.cell.dedupe)
            _square(axes, one, x, place)
        figure.suptitle(
            text("matrix.title", lang), x=0.01, y=1 - 0.12 / size[1], ha="left", size=12
        )
        note = text("matrix.note", lang)
        figure.text(0.01, 1 - 0.55 / size[1], note, ha="left", va="top", size=SMALL, color=FAINT)
        figure.legend(
            handles=_legend(found, lang), loc="lower left", ncols=4, frameon=False, fontsize=SMALL
        )
    return figure


def _rows(axes: Axes, groups: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], float]:
    """Where each row stands, with its labels: the configuration once, each recovery beside it."""
    places, y = {}, 0.0
    for name, policies in groups.items():
        axes.text(-3.6, y + 0.5, label(name), ha="right", va="center", size=SMALL, color=INK)
        for policy in policies:
            axes.text(
                -0.3, y + 0.5, label(policy), ha="right", va="center", size=SMALL, color=FAINT
            )
            places[name, policy] = y
            y += 1
        y += _GAP
    return places


def _columns(
    axes: Axes, faults: Sequence[tuple[str, str]], squares: int, lang: str
) -> dict[tuple[str, str], float]:
    """Where each fault's squares begin, of which it has so many, with its heading."""
    across = {}
    for number, (point, fault) in enumerate(faults):
        x = number * (squares + _GAP)
        across[point, fault] = x
        said = text("matrix.control", lang) if fault == NONE else label(f"{fault}\n{point}")
        axes.text(x + squares / 2, -0.25, said, ha="left", va="bottom", size=SMALL, rotation=35)
    return across


def _square(axes: Axes, one: Repeated, x: float, y: float) -> None:
    result = one.result
    axes.add_patch(
        Rectangle(
            (x + 0.04, y + 0.04),
            0.92,
            0.92,
            facecolor=COLOURS[result],
            edgecolor=_edge(result),
            linewidth=0.7,
            hatch=_HATCHED.get(result),
            gid=one.cell.id,
        )
    )
    axes.text(
        x + 0.5,
        y + 0.52,
        one.each("effects_after_recovery").replace(" / ", "/"),
        ha="center",
        va="center",
        size=SMALL,
        color="#ffffff" if result in _DARK else INK,
    )


def _edge(result: str) -> str:
    """Of what went wrong, or is not known, a dark one."""
    return INK if result in _WRONG or result in _HATCHED else "#ffffff"


def _legend(found: Sequence[Repeated], lang: str) -> list[Artist]:
    """A patch for each result that occurs, in the order in which verdicts are judged."""
    occurs = {one.result for one in found}
    named = [name for name in (*VERDICTS, UNSTABLE) if name in occurs]
    return [
        Patch(
            facecolor=COLOURS[name],
            edgecolor=_edge(name),
            linewidth=0.7,
            hatch=_HATCHED.get(name),
            label=text("matrix.unstable" if name == UNSTABLE else f"verdict.{name}", lang),
        )
        for name in named
    ]
