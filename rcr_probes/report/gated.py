"""Two figures of recovery by evidence: what is decided, and what each policy was worth."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from rcr_probes.eligibility import decide, may_call
from rcr_probes.evidence.store import Evidence
from rcr_probes.evidence.worth import weigh
from rcr_probes.model import Decision, Facts
from rcr_probes.report.figure import style
from rcr_probes.report.panel import FAINT, INK, SMALL, label
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import EFFECT_FACTS, IDENTITIES

DECLARED: tuple[tuple[str, ...], ...] = ((), ("replay",), ("lookup",), ("lookup", "replay"))
# Okabe and Ito's colours and tints of them; the decision's name stands in each square too.
_COLOURS: Mapping[str, str] = {"reexecute": "#f2b48a", "reconcile": "#a6dcc8", "stop": "#e5e5e5"}
_MAY_CALL = "#D55E00"  # the edge of a decision that lets recovery call
# What a bar counts → its colour, and its name in the texts.
_COUNTED: Mapping[str, str] = {"unsafe": "#D55E00", "false_block": "#E69F00", "rest": "#e5e5e5"}
_NAMED: Mapping[str, str] = {
    "unsafe": "column.unsafe",
    "false_block": "column.false_block",
    "rest": "gated.rest",
}
_WIDTH, _ROW = 9.6, 0.42  # inches
_THIN = 10  # cells; a part of a bar that is narrower has its number beside the bar


def decision_table(lang: str = "en") -> Figure:
    """Every combination of identity, effect and declared capability, and what is decided of it.

    Returns:
        A figure of its own canvas: a row for each effect and identity, a column for each
        capability.

    Raises:
        UnknownName: the language is not there.
    """
    rows = [(effect, identity) for effect in EFFECT_FACTS for identity in IDENTITIES]
    size = (_WIDTH, 1.5 + _ROW * len(rows))
    with style():
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.3, 0.55 / size[1], 0.69, _ROW * len(rows) / size[1]))
        axes.set(xlim=(0, len(DECLARED)), ylim=(len(rows), 0))
        axes.set_axis_off()
        for x, capability in enumerate(DECLARED):
            declared = [text(f"gated.capability_{name}", lang) for name in capability]
            named = " +\n".join(declared) or text("gated.nothing", lang)
            axes.text(x + 0.5, -0.25, label(named), ha="center", va="bottom", size=SMALL)
            for y, (effect, identity) in enumerate(rows):
                _decided(axes, x, y, decide(Facts(identity, effect, capability)), lang)
        for y, (effect, identity) in enumerate(rows):
            if y % len(IDENTITIES) == 0:
                said = text(f"effect_fact.{effect}", lang)
                axes.text(-0.85, y + 0.5, said, ha="right", va="center", size=SMALL)
            named = text(f"gated.identity_{identity}", lang)
            axes.text(-0.08, y + 0.5, named, ha="right", va="center", color=FAINT, size=SMALL)
        for left, heading in ((-0.85, "effect_of"), (-0.08, "identity_of")):
            said = text(f"gated.{heading}", lang)
            axes.text(left, -0.25, said, ha="right", va="bottom", size=SMALL)
        figure.suptitle(text("gated.title", lang), x=0.01, y=1 - 0.1 / size[1], ha="left", size=12)
        handles = [
            Patch(facecolor=colour, edgecolor=FAINT, label=text(f"eligibility.{name}", lang))
            for name, colour in _COLOURS.items()
        ]
        calls = text("gated.may_call", lang)
        handles.append(Patch(facecolor="#ffffff", edgecolor=_MAY_CALL, linewidth=1.6, label=calls))
        figure.legend(handles=handles, loc="lower left", ncols=4, frameon=False, fontsize=SMALL)
    return figure


def compared(evidence: Evidence, lang: str = "en") -> Figure:
    """Each policy's cells: unsafe calls, false blocks, and the rest, where facts are true and not.

    Returns:
        A figure of its own canvas; each bar's number stands in it. A bar's gid is its policy, what
        it counts, and whether its facts are true.

    Raises:
        UnknownName: the language is not there.
    """
    weighed = weigh(evidence.captures())
    policies = list(dict.fromkeys(w.capture.cell.policy or "" for w in weighed))
    both = {(w.capture.cell.policy or "", w.true_facts) for w in weighed}
    bars = [(p, true) for p in policies for true in (True, False) if (p, true) in both]
    size = (_WIDTH, 1.6 + _ROW * len(bars))
    with style():
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.3, 0.7 / size[1], 0.67, _ROW * len(bars) / size[1]))
        axes.set_axis_off()
        axes.set_ylim(len(bars), 0)
        for y, (policy, true) in enumerate(bars):
            own = [w for w in weighed if w.capture.cell.policy == policy and w.true_facts is true]
            unsafe, blocked = sum(w.unsafe for w in own), sum(w.false_block for w in own)
            if true or (policy, True) not in both:
                axes.text(-0.27, y + 0.5, label(policy), ha="right", va="center", size=9,
                          transform=axes.get_yaxis_transform())  # fmt: skip
            said = text(f"gated.facts_{'true' if true else 'false'}", lang)
            axes.text(-0.02, y + 0.5, said, ha="right", va="center", size=SMALL, color=FAINT,
                      transform=axes.get_yaxis_transform())  # fmt: skip
            counts = {"unsafe": unsafe, "false_block": blocked, "rest": len(own) - unsafe - blocked}
            _bar(axes, y, counts, f"{policy}-{'true' if true else 'false'}", lang)
        axes.autoscale_view(scalex=True, scaley=False)
        figure.suptitle(
            text("gated.compared", lang), x=0.01, y=1 - 0.1 / size[1], ha="left", size=12
        )
        handles = [
            Patch(facecolor=_COUNTED[kind], edgecolor=INK, linewidth=0.5, label=text(key, lang))
            for kind, key in _NAMED.items()
        ]
        figure.legend(handles=handles, loc="lower left", ncols=3, frameon=False, fontsize=SMALL)
    return figure


def _decided(axes: Axes, x: int, y: int, decision: Decision, lang: str) -> None:
    axes.add_patch(
        Rectangle(
            (x + 0.03, y + 0.06),
            0.94,
            0.88,
            facecolor=_COLOURS[decision.eligibility],
            edgecolor=_MAY_CALL if may_call(decision) else "#ffffff",
            linewidth=1.6,
        )
    )
    said = text(f"eligibility.{decision.eligibility}", lang).partition("（")[
        0
    ]  # the legend has both
    if decision.way is not None:
        said = f"{said} · {text(f'way.{decision.way}', lang)}"
    axes.text(x + 0.5, y + 0.52, said, ha="center", va="center", size=SMALL, color=INK)


def _bar(axes: Axes, y: int, counts: Mapping[str, int], name: str, lang: str) -> None:
    beside: list[str] = []  # what parts count that are too thin to hold it
    left = 0
    for kind, count in counts.items():
        if not count:
            continue
        axes.barh(
            y + 0.5, count, left=left, height=0.72, color=_COUNTED[kind], edgecolor=INK,
            linewidth=0.5, gid=f"{name}-{kind}",
        )  # fmt: skip
        if count < _THIN:
            beside.append(f"{text(_NAMED[kind], lang)} {count}")
        else:
            axes.text(left + count / 2, y + 0.5, str(count), ha="center", va="center", size=SMALL,
                      color=INK)  # fmt: skip
        left += count
    if beside:
        said = ", ".join(beside)
        axes.text(left + 4, y + 0.5, said, ha="left", va="center", size=SMALL, color=INK)
