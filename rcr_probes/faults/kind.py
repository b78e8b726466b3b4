"""What a fault strikes, and what each kind of fault can do."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from rcr_probes.runtime import Operation, Runtime


class Target(Struct, frozen=True):
    """What a fault strikes.

    Attributes:
        point: where the operation is.
        path: the audit file there, where there is one.
        runtime: under probe; it gives the seam that some kinds need.
        operation: in hand.
        pid: of the process that reached the point.
    """

    point: str
    path: str | None
    runtime: Runtime
    operation: Operation
    pid: int = field(default_factory=os.getpid)


Proven = Callable[[str], None]


class Kind(Protocol):
    """One kind of fault."""

    def strike(self, at: Target, proven: Proven) -> None:
        """Strike inside the process that reached the point; that it struck is already on disk.

        ``proven`` takes what is proof besides, where it must be told before the strike is over.
        """
        ...

    def standing(self, at: Target) -> bool | None:
        """Whether it is seen from outside now; None where it leaves nothing to see."""
        ...

    def lift(self, at: Target) -> None:
        """Take it away before recovery; what it set aside is put back."""
        ...
