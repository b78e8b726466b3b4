"""What an event says by its lane: the shape of its value, settled once for whoever reads captures.

Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType

from rcr_probes.evidence.course import Looks
from rcr_probes.model import Event, Json, Measurement, too_deep
from rcr_probes.vocabulary import WORKER, Lane

_TEXT, _PERHAPS, _WHOLE, _LIST = (str,), (str, NoneType), (int,), (list, tuple)
# What a value of this name may be. A name that is not here is read by nobody but as text.
_KINDS: Mapping[Lane, Mapping[str, tuple[type, ...]]] = {
    "state": {"status": _TEXT, "execution": _PERHAPS, "evidence": _LIST, "error": _TEXT},
    "audit": {"event": _TEXT, "reasons": _LIST},
    "point": {"point": _TEXT},
    "fault": {
        **dict.fromkeys(("point", "fault", "error", "refused"), _TEXT),
        **dict.fromkeys(("state", "states", "unexplored", "lines", "effects"), _WHOLE),
        "lost": _LIST,
    },
    "call": dict.fromkeys(("operation_key", "key", "payload", "outcome", "gave_up"), _PERHAPS),
    "ask": {"operation_key": _PERHAPS, "effects": (int, NoneType), "in_flight": (bool,)},
    "effect": {
        "effect_id": _TEXT,
        **dict.fromkeys(("operation_key", "kind", "target", "key"), _PERHAPS),
        "call": _WHOLE,
    },
    "return": {"error": _TEXT, "attempt": _WHOLE},
}
# What it always says; of a worker's requests more, by which they are told apart.
_ALWAYS: Mapping[Lane, tuple[str, ...]] = {
    "state": ("status",),
    "audit": ("event",),
    "point": ("point",),
    "fault": (),
    "call": (),
    "ask": (),
    "effect": ("effect_id",),
    "return": ("error",),
}
_OF_WORKER: Mapping[Lane, tuple[str, ...]] = {
    **_ALWAYS,
    "call": ("key", "outcome"),
    "effect": ("effect_id", "kind", "key", "target"),
}
_NESTING = (list, tuple, dict)


def problem(measured: Measurement) -> str | None:
    """The first event that does not say what its lane says, in one sentence; None where all do."""
    always = _OF_WORKER if measured.cell.runtime == WORKER else _ALWAYS
    for number, event in enumerate(measured.events):
        value, kinds = event.value, _KINDS[event.lane]
        for name in always[event.lane]:
            if name not in value:
                return f"its event {number}, of the lane {event.lane}, has no {name}."
        for name, given in value.items():
            kind = type(given)
            if kind not in kinds.get(name, (kind,)) or (kind in _NESTING and _odd(name, event)):
                return f"its event {number}, of the lane {event.lane}, has {name} of another shape."
    return None


def _odd(name: str, event: Event) -> bool:
    """Whether a list or a map holds what it must not, or is nested too deeply to be told."""
    held = event.value[name]
    inside = _INSIDE.get((event.lane, name))
    return (inside is not None and not all(map(inside, held))) or too_deep(held)


def _is_map(one: Json) -> bool:
    return isinstance(one, dict)


def _is_pair(one: Json) -> bool:
    """Whether it is two texts: a file, and what became of it."""
    pair = isinstance(one, list | tuple) and len(one) == 2
    return pair and all(isinstance(word, str) for word in one)


_INSIDE: Mapping[tuple[Lane, str], Callable[[Json], bool]] = {
    ("state", "evidence"): _is_map,
    ("fault", "lost"): _is_pair,
}


def _shapes(measured: Measurement) -> Iterator[str]:
    """Its events say what their lanes say."""
    found = problem(measured)
    if found:
        yield found


LOOKS: Looks = {"shapes": _shapes}
