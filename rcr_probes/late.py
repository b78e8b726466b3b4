"""An original that acts late: its call has come to the executor, and acts once recovery has ended.

``original_alive``: the caller waits for its answer all the while. ``late_original``: the caller was
told that no answer came in time, and ended; what it had sent is a process of its own, which keeps
nothing of the attempt: no descriptor, and so no fence.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping

from rcr_probes import held
from rcr_probes.executors.marker import Fenced, Marker
from rcr_probes.model import Json

_DEADLINE = 30.0  # seconds in which what was sent must be on its way


class Late:
    """Stands before an executor in the fault phase."""

    def __init__(
        self,
        executor: Marker,
        kind: str,
        place: str,
        let_go: Callable[[], None],
        refused: Callable[[str], None],
    ) -> None:
        """Hold the call that comes.

        Args:
            executor: local; it acts when the call is let go.
            kind: ``original_alive`` or ``late_original``.
            place: the cell's folder, in which one process can be held.
            let_go: called in the process that acts, before it does.
            refused: called with the code of the refusal where the executor fences the call off.
        """
        self.name, self.declares, self.effects = executor.name, executor.declares, executor.effects
        self._executor = executor
        self._kind = kind
        self._place = place
        self._let_go = let_go
        self._refused = refused
        self._keeper = os.getppid()  # of the phase, whatever process below it makes the call

    def raise_fence(self) -> int | None:
        return self._executor.raise_fence()

    def __call__(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        """Count the call, which has come in; act once it is let go.

        Raises:
            TimeoutError: of ``late_original``: no answer came, and nobody knows of the action.
            Fenced: of ``original_alive``: a later attempt was here.
        """
        self._executor.delay(operation_key)
        if self._kind == "original_alive":
            held.wait(self._place, os.getppid())
            return self._act(operation_key, request)
        caller = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._travel(operation_key, request)
        if held.awaited(self._place, pid, _DEADLINE) is None:
            raise RuntimeError(f"what {caller} sent did not come on its way")
        raise TimeoutError(errno.ETIMEDOUT, "no answer came in time")

    def _travel(self, operation_key: str, request: Mapping[str, Json]) -> None:
        """What was sent, as a process of its own; it never comes back."""
        try:
            os.setsid()
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            held.wait(self._place, self._keeper)
            self._act(operation_key, request)
        except Fenced:
            pass
        finally:
            os._exit(0)

    def _act(self, operation_key: str, request: Mapping[str, Json]) -> Mapping[str, Json]:
        self._let_go()
        self._executor.arrive()
        try:
            return self._executor.act(operation_key, request)
        except Fenced as refusal:
            self._refused(refusal.code)
            raise
