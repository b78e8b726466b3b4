"""Being ended by a signal is an interruption like Ctrl-C: what runs is ended in good order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def interruptible() -> Iterator[None]:
    """Being ended by SIGTERM is an interruption like Ctrl-C; what it was before, it is after.

    Once is enough: a second one must not break the ending of what runs, and is ignored until this
    process has ended. What is ignored already, as SIGHUP is under nohup, stays so.
    """

    def interrupt(*_: object) -> NoReturn:
        for end in before:
            signal.signal(end, signal.SIG_IGN)
        before.clear()
        raise KeyboardInterrupt

    ends = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    was = {end: signal.getsignal(end) for end in ends}
    before = {end: by for end, by in was.items() if by not in (signal.SIG_IGN, None)}
    for end in before:
        signal.signal(end, interrupt)
    try:
        yield
    finally:
        for end, handler in before.items():
            signal.signal(end, handler)
