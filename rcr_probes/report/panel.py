"""One capture of P3 drawn as lanes of events: nothing is drawn that was not captured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from rcr_probes.errors import printable
from rcr_probes.model import Capture, Event, Json
from rcr_probes.report.texts import text
from rcr_probes.vocabulary import NONE

# Top to bottom. A fault is drawn in the lane whose append it breaks. Points are not drawn: they say
# where an event could happen, not what did.
LANES = ("state", "audit", "call", "effect", "return")
_ROWS = {lane: float(-row) for row, lane in enumerate(LANES)}
_ROWS["fault"] = _ROWS["audit"]

# Okabe and Ito's colours, which colour-blind readers tell apart; none is the only sign of anything.
INK, FAINT, _RULE = "#222222", "#666666", "#d0d0d0"
_PLAIN, _STRIKING = "#0072B2", "#D55E00"
_SAYS: Mapping[str, str] = {"done": "#bfe3d6", "open": "#f8e7bd", "not_done": "#ffffff"}
_UNEXPLAINED = "#ececec"  # a state of which nobody published what it says
_SHADES: Mapping[str, str] = {"fault": "#f6f6f6", "recover": "#e9f0f6"}

_EFFECT: Mapping[str, Any] = {"marker": "o", "mfc": _PLAIN, "mec": "white"}
_SURPLUS: Mapping[str, Any] = {"marker": "D", "mfc": _STRIKING, "mec": "white"}
_STRIKE: Mapping[str, Any] = {"marker": "X", "mfc": _STRIKING, "mec": "white"}

# In places of events: between two phases; after the last event, whose label needs the room; and the
# width of a phase whose name must fit.
_GAP, _TAIL, _NARROWEST = 1.5, 1.8, 5.4
SMALL = 8.5  # points: the smallest letters of a figure, which a page shows at 11 pixels or more
_LONGEST = 80  # letters of a label; a longer one is cut, and stands whole in the tables


class Panel:
    """One capture, drawn on axes whose x is the order of its events and whose y are the lanes.

    Args:
        capture: has events.
        name: of its executor, in the texts and in the marks' gids.
        lang: of the labels.

    Attributes:
        left: where it begins, in places of events; the first event stands at 0.
        right: where it ends.
    """

    def __init__(self, capture: Capture, name: str, lang: str) -> None:
        self._capture = capture
        self._name = name
        self._lang = lang
        self._events = [e for e in capture.measurement.events if e.lane in _ROWS]
        self._phases = list(dict.fromkeys(e.phase for e in self._events))
        self._at: dict[int, float] = {}
        place = 0.0
        for before, event in zip([None, *self._events], self._events, strict=False):
            if before is not None:
                place += 1.0 if before.phase == event.phase else _GAP
            self._at[event.seq] = place
        last_phase = next(e for e in self._events if e.phase == self._phases[-1])
        narrowest = self._at[last_phase.seq] - _GAP / 2 + _NARROWEST
        self.left, self.right = -0.9, max(place + _TAIL, narrowest)

    @property
    def width(self) -> float:
        """In places of events."""
        return self.right - self.left

    def draw(self, axes: Axes) -> None:
        self._axes = axes
        axes.set_xlim(self.left, self.right)
        axes.set_ylim(_ROWS["return"] - 0.75, _ROWS["state"] + 1.05)
        axes.set_axis_off()
        self._heading()
        self._draw_phases()
        for lane in LANES[1:]:
            axes.plot([self.left, self.right], [_ROWS[lane]] * 2, color=_RULE, lw=0.8, zorder=1)
        self._states()
        self._evidence()
        for event in self._events:
            match event.lane:
                case "audit":
                    self._audit(event)
                case "fault":
                    self._fault(event)
                case "call":
                    self._call(event)
                case "effect":
                    self._effect(event)
                case "return":
                    self._return(event)
            self._number(event)

    def label_lanes(self) -> None:
        """Name the lanes, left of the axes."""
        for lane in LANES:
            y = _ROWS[lane] + (0.13 if lane == "state" else 0)
            self._write(self.left - 0.25, y, self._text(lane), ha="right", size=9)
        y = _ROWS["state"] - 0.32
        self._write(self.left - 0.25, y, self._text("evidence"), ha="right", color=FAINT)

    def _heading(self) -> None:
        """Whose capture this is, and what came of it."""
        effects, calls = len(self._of("effect")), len(self._of("call"))
        outcome = self._text("outcome", calls=calls, effects=effects)
        verdict = self._capture.judgement.verdict
        if verdict:
            named = text(f"verdict.{verdict.verdict}", self._lang)
            outcome += self._text("judged", verdict=named)
        top = _ROWS["state"] + 1.1
        self._write(self.left, top, text(f"executor.{self._name}", self._lang), size=10.5)
        many = effects > self._capture.measurement.approved.effects
        color = _STRIKING if many else INK
        self._write(self.right, top, outcome, ha="right", size=9, color=color)

    def _draw_phases(self) -> None:
        """A shade for each phase, and the boundary between two of them."""
        for phase in self._phases:
            within = [self._at[e.seq] for e in self._events if e.phase == phase]
            start = self.left if phase == self._phases[0] else within[0] - _GAP / 2
            end = self.right if phase == self._phases[-1] else within[-1] + _GAP / 2
            y, height = _ROWS["return"] - 0.72, len(LANES) + 0.6
            self._add(
                Rectangle((start, y), end - start, height, fc=_SHADES.get(phase, "white"), lw=0)
            )
            if phase != self._phases[0]:
                self._axes.plot([start] * 2, [y, y + height], color=INK, lw=1.2, ls=(0, (4, 2)))
            self._write(start + 0.15, y + height - 0.17, self._phase_name(phase), color=FAINT)

    def _phase_name(self, phase: str) -> str:
        """Two processes are named as such only where their pids prove it."""
        pids = self._capture.circumstances.pids
        proven = len({pids.get(p) for p in self._phases} - {None}) == len(self._phases)
        return self._text(f"{phase}_{'process' if proven else 'phase'}")

    def _states(self) -> None:
        """A bar from each recorded state to the next, filled by what the state says."""
        says = self._capture.measurement.says
        row = _ROWS["state"]
        for event, end in _spans(self._of("state"), self._at, self.right):
            status, start = str(event.value["status"]), self._at[event.seq]
            fill = _SAYS.get(says[status], _SAYS["open"]) if status in says else _UNEXPLAINED
            bar = Rectangle(
                (start, row - 0.1), end - start, 0.46, fc=fill, ec=FAINT, lw=0.8, zorder=3
            )
            bar.set_gid(self._gid(event))
            self._add(bar)
            self._write((start + end) / 2, row + 0.12, status, ha="center", size=SMALL)
        states = self._of("state")
        for event, after in pairwise(states):
            words = [says.get(str(e.value["status"]), "open") for e in (event, after)]
            if words[0] == "done" != words[1]:
                self._reclassified(self._at[event.seq], self._at[after.seq])

    def _reclassified(self, start: float, end: float) -> None:
        """An arrow from a state that said done into the one that took its place."""
        y = _ROWS["state"] + 0.37
        style = {"arrowstyle": "-|>", "color": _STRIKING, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
        style["connectionstyle"] = "arc3,rad=-0.45"
        self._axes.annotate("", (end + 0.5, y), (start + 0.6, y), arrowprops=style)
        self._write(start + 0.4, y + 0.2, self._text("reclassified"), ha="right", color=_STRIKING)

    def _evidence(self) -> None:
        """Below the state, for as long as the record holds it: what the executor returned."""
        row = _ROWS["state"]
        held: list[tuple[Json, float, float]] = []
        for event, end in _spans(self._of("state"), self._at, self.right):
            evidence = event.value.get("evidence")
            if held and held[-1][0] == evidence:
                held[-1] = (evidence, held[-1][1], end)
            else:
                held.append((evidence, self._at[event.seq], end))
        for evidence, start, end in held:
            if not evidence:
                continue
            self._add(
                Rectangle(
                    (start, row - 0.42), end - start, 0.24, fc="white", ec=FAINT, lw=0.8, zorder=3
                )
            )
            said = "; ".join(f"{k}: {v}" for e in evidence for k, v in e.items() if k != "kind")
            self._write((start + end) / 2, row - 0.305, said, ha="center", size=SMALL)

    def _audit(self, event: Event) -> None:
        name = str(event.value["event"]).removeprefix("operation.")
        self._mark(event, marker="s", ms=5.5, color=INK)
        self._write(self._at[event.seq], _ROWS["audit"] - 0.27, name, ha="center", size=SMALL)

    def _fault(self, event: Event) -> None:
        """The break, and a line down from it: what lies left of it had already happened."""
        x, row = self._at[event.seq], _ROWS["fault"]
        ends = [_ROWS["return"] - 0.45, row - 0.72]
        self._axes.plot([x, x], ends, color=_STRIKING, lw=1, ls=":", zorder=1)
        self._mark(event, **_STRIKE, ms=11)
        said = "\n".join(
            str(event.value[k]) for k in ("point", "fault", "error") if k in event.value
        )
        self._write(x, row - 0.2, said, ha="center", va="top", size=SMALL, color=_STRIKING)

    def _call(self, event: Event) -> None:
        number = 1 + self._of("call").index(event)
        self._mark(event, marker="o", ms=13, mfc="white", mec=INK, mew=1.1)
        self._write(self._at[event.seq], _ROWS["call"], str(number), ha="center")
        after = next((e for e in self._events if e.seq > event.seq), None)
        start = (self._at[event.seq], _ROWS["call"])
        if after is not None and after.lane == "effect":
            end = (self._at[after.seq], _ROWS["effect"])
            style = {"arrowstyle": "-|>", "color": INK, "lw": 1, "shrinkA": 8, "shrinkB": 10}
            self._axes.annotate("", end, start, arrowprops=style, zorder=2)
        else:
            self._write(start[0], _ROWS["effect"] + 0.25, self._text("no_effect"), ha="center")

    def _effect(self, event: Event) -> None:
        """A mark, and a line for as long as the observations prove that the effect exists."""
        name, before = str(event.value["effect_id"]), self._of("effect").index(event)
        style = _EFFECT if before < self._capture.measurement.approved.effects else _SURPLUS
        last = self._capture.measurement.observations[-1:]  # evidence from elsewhere may lack it
        if any(effect.effect_id == name for seen in last for effect in seen.effects or ()):
            ends, y = [self._at[event.seq], self.right], _ROWS["effect"] - 0.07 * before
            self._axes.plot(ends, [y, y], color=style["mfc"], lw=2, alpha=0.5, zorder=2)
        self._mark(event, **style, ms=17 if style is _SURPLUS else 19)
        x = self._at[event.seq]
        self._write(x, _ROWS["effect"], name, ha="center", color="white", size=9)

    def _return(self, event: Event) -> None:
        error = str(event.value["error"])
        said = self._text("no_error") if error == NONE else error
        x, row = self._at[event.seq], _ROWS["return"]
        self._mark(event, marker="|", ms=10, color=INK)
        self._write(x, row - 0.28, said, ha="center", size=SMALL)

    def _number(self, event: Event) -> None:
        y = _ROWS["return"] - 0.62
        self._write(self._at[event.seq], y, str(event.seq), ha="center", size=SMALL, color=FAINT)

    def _mark(self, event: Event, **style: Any) -> None:
        x, y = self._at[event.seq], _ROWS[event.lane]
        self._axes.plot([x], [y], ls="", zorder=4, gid=self._gid(event), **style)

    def _write(self, x: float, y: float, said: str, **style: Any) -> None:
        self._axes.text(x, y, label(said), zorder=5, **{"va": "center", **style})

    def _add(self, patch: Patch) -> None:
        self._axes.add_patch(patch)

    def _of(self, lane: str) -> list[Event]:
        return [e for e in self._events if e.lane == lane]

    def _gid(self, event: Event) -> str:
        return f"{self._name}-{event.seq}"

    def _text(self, name: str, **values: object) -> str:
        return text(f"figure.{name}", self._lang, **values)


def _spans(
    states: Sequence[Event], at: Mapping[int, float], end: float
) -> Iterator[tuple[Event, float]]:
    """Each state, and where it ends: at the next one, or with the panel."""
    ends = [*(at[e.seq] for e in states[1:]), end]
    yield from zip(states, ends, strict=True)


def label(said: str) -> str:
    """What is written into a figure: in lines of bounded length, and nothing that steers text."""
    lines = (printable(line) for line in said.split("\n"))
    return "\n".join(line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…" for line in lines)


def legend(lang: str) -> list[Artist]:
    """What the fills and the marks mean."""
    made: list[Artist] = [Line2D([], [], ls="", label=text("figure.says", lang))]
    for says, fill in _SAYS.items():
        made.append(Patch(fc=fill, ec=FAINT, lw=0.8, label=text(f"figure.{says}", lang)))
    for name, style in {"strike": _STRIKE, "effect_stays": _EFFECT, "surplus": _SURPLUS}.items():
        made.append(Line2D([], [], ls="", **style, ms=9, label=text(f"figure.{name}", lang)))
    return made
