"""A command that reads evidence takes it at its word; where that breaks, it is checked."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import wraps

from rcr_probes.errors import RcrError

Does = Callable[[Namespace], int]


def reading(*names: str) -> Callable[[Does], Does]:
    """Make a command one that reads evidence.

    Evidence from elsewhere may say anything, also what nobody can count or draw. What breaks over
    evidence that is sound is an error of ours, and is shown as one.

    Args:
        names: of what was typed that is a folder of evidence, or may be.

    Raises:
        EvidenceError: the command broke, and one of these is not sound.
    """

    def read(does: Does) -> Does:
        @wraps(does)
        def doing(args: Namespace) -> int:
            try:
                return does(args)
            except (RcrError, OSError, MemoryError):
                raise
            except Exception:
                from rcr_probes.evidence.checked import refuse_unsound

                for name in names:
                    refuse_unsound(getattr(args, name))
                raise

        return doing

    return read
