"""Being ended by a signal is an interruption like Ctrl-C: what runs is ended in good order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def ignore() -> None:
    """Let nothing more interrupt this process, which is ending."""
    for end in _ENDS:
        signal.signal(end, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Being ended by SIGTERM is an interruption like Ctrl-C; what it was before, it is after.

    Once is enough: a second one must not break the ending of what runs, and is ignored until the
    block is left. What is ignored already, as SIGHUP is under nohup, stays so.
    """

    def interrupt(*_: object) -> NoReturn:
        ignore()
        raise KeyboardInterrupt

    was = {end: signal.getsignal(end) for end in _ENDS}
    before = {end: by for end, by in was.items() if by not in (signal.SIG_IGN, None)}
    for end in before:
        signal.signal(end, interrupt)
    try:
        yield
    finally:
        for end, handler in before.items():
            signal.signal(end, handler)
