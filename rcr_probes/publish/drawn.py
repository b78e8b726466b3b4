"""Which figures evidence can bear: a package holds exactly these, in each language.

Standard library alone: the package's own checker embeds this module as it is.
"""

from __future__ import annotations

from rcr_probes.model import MATCHED, P3, Capture
from rcr_probes.publish.layout import CHAIN, MATRIX


class Borne:
    """The figures that the captures of a folder bear, of as many as were seen so far."""

    def __init__(self) -> None:
        self._chain = False
        self._runtimes: set[str] = set()

    def see(self, capture: Capture) -> None:
        cell = capture.measurement.cell
        if capture.measurement.events and tuple(getattr(cell, one) for one in MATCHED) == P3:
            self._chain = True
        if cell.repeat is not None:  # what was published has none, and is in no matrix
            self._runtimes.add(cell.runtime)

    @property
    def figures(self) -> tuple[str, ...]:
        """By name, in the order of the layout."""
        several = len(self._runtimes) > 1
        return (CHAIN,) * self._chain + (MATRIX,) * several
