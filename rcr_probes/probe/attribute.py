"""Which approved effect an effect is: told by its payload, where the worker's payloads are stable.

Pure. What the controls sent is what is approved; identifiers are not facts, and become labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from rcr_probes.evidence.received import OTHER
from rcr_probes.receiver import Request

Level = Literal["payload", "path", "count"]
LEVELS: tuple[Level, ...] = get_args(Level)  # the finest first

Print = tuple[str | None, ...]


def acting(requests: Iterable[Request]) -> list[Request]:
    """Those that can make an effect, in order."""
    return [request for request in requests if request.nth is not None]


@dataclass(frozen=True, slots=True)
class Attribution:
    """How requests are told apart, and what the control's were.

    Attributes:
        level: ``payload`` (method, path, SHA-256 of the body), ``path`` (method and path), or
            ``count`` (nothing about a request is the same from run to run).
        sent: the print of each of the control's requests.
        made: the print of each of the control's effects.
    """

    level: Level
    sent: tuple[Print, ...]
    made: tuple[Print, ...]

    def label(self, request: Request) -> str | None:
        """``payload-1``: like the control's first; ``other``: like none; None at ``count``."""
        if self.level == "count":
            return None
        known = list(dict.fromkeys(self.sent))
        seen = printed(self.level, request)
        return f"{self.level}-{known.index(seen) + 1}" if seen in known else OTHER

    def kinds(self, requests: Sequence[Request]) -> list[str]:
        """For each of these effects, by its request, which approved one it is.

        One that is surplus has the name of the last one like it. ``other`` is one that the control
        does not make.
        """
        slots: dict[Print, list[str]] = {}
        for number, seen in enumerate(self.made, 1):
            slots.setdefault(seen, []).append(str(number))
        came: Counter[Print] = Counter()
        named = []
        for request in requests:
            seen = printed(self.level, request)
            own = slots.get(seen, [OTHER])
            named.append(own[min(came[seen], len(own) - 1)])
            came[seen] += 1
        return named


def attribution(
    controls: Sequence[Sequence[Request]],
    effects: Sequence[Request],
    others: Iterable[Sequence[Request]],
) -> Attribution:
    """The finest level at which the worker's requests are the same in every run.

    Args:
        controls: the requests of each control, without its recovery.
        effects: those of the first control that took effect.
        others: the requests of every other run, up to its strike: so far it is like a control.
    """
    first, second = (acting(one) for one in controls)
    before = [acting(one) for one in others]
    for level in LEVELS:
        wanted = Counter(printed(level, request) for request in first)
        same = wanted == Counter(printed(level, request) for request in second)
        if same and all(wanted >= Counter(printed(level, r) for r in one) for one in before):
            break
    return Attribution(
        level,
        tuple(printed(level, request) for request in first),
        tuple(printed(level, request) for request in effects),
    )


def printed(level: Level, request: Request) -> Print:
    """What must be equal for two requests to be the same at this level."""
    match level:
        case "payload":
            return request.method, request.path, request.body_sha256
        case "path":
            return request.method, (request.path or "").partition("?")[0]
        case _:
            return ()
