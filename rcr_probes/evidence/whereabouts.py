"""Which worker of a cluster measured which captures: names that we give, and no host.

Standard library alone: a reader's checker embeds this module as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

KEY = "workers"  # of the environment, where any capture was measured on a cluster
_NAME = re.compile(r"worker-[1-9]\d{0,8}", re.ASCII)
_RANGES = re.compile(r"\d{1,18}(-\d{1,18})?(, \d{1,18}(-\d{1,18})?)*", re.ASCII)


@dataclass
class Whereabouts:
    """The lines of the captures, counted from 0, that each worker measured, as ranges in order."""

    ranges: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    @classmethod
    def parsed(cls, said: Mapping[str, str]) -> Whereabouts:
        """What an environment says.

        Raises:
            ValueError: it is not what ``said`` says.
        """
        return cls({name: list(_ranges(value)) for name, value in said.items()})

    def note(self, line: int, worker: str) -> None:
        """Note that this worker measured the next capture."""
        ranges = self.ranges.setdefault(worker, [])
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))

    def forget(self, lines: int) -> None:
        """Forget all but the first lines: a run that was killed lost the others."""
        for worker, ranges in list(self.ranges.items()):
            left = [(first, min(last, lines - 1)) for first, last in ranges if first < lines]
            self.ranges[worker] = left
            if not left:
                del self.ranges[worker]

    def said(self) -> dict[str, str]:
        """The same for the environment: ``{"worker-1": "0-41, 50"}``."""
        return {
            worker: ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in ranges)
            for worker, ranges in self.ranges.items()
        }

    def unused(self) -> Iterator[str]:
        """Names for workers that are not there yet."""
        taken = max((int(name.rpartition("-")[2]) for name in self.ranges), default=0)
        while True:
            taken += 1
            yield f"worker-{taken}"


def problem(said: Mapping[str, object], captures: int | None) -> str | None:
    """What is wrong with what an environment says; None where it can be so.

    Args:
        said: name → ranges.
        captures: how many there are; None where nobody knows.
    """
    lines: list[tuple[int, int]] = []
    for name, value in said.items():
        if not _NAME.fullmatch(name):
            return "names a worker that we did not name"
        try:
            lines += _ranges(value)
        except ValueError:
            return f"gives {name} no ranges of captures"
    lines.sort()
    if any(before[1] >= after[0] for before, after in pairwise(lines)):
        return "gives a capture to two workers"
    if captures is not None and lines and lines[-1][1] >= captures:
        return "gives a worker a capture that is not there"
    return None


def _ranges(value: object) -> Iterator[tuple[int, int]]:
    if not isinstance(value, str) or not _RANGES.fullmatch(value):
        raise ValueError("no ranges")
    before = -1
    for part in value.split(", "):
        first, _, last = part.partition("-")
        found = (int(first), int(last or first))
        if not before < found[0] <= found[1]:
            raise ValueError("not in order")
        before = found[1]
        yield found
