"""Being ended by a signal is an interruption like Ctrl-C: what runs is ended in good order."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible(*, last: bool) -> Iterator[None]:
    """Being ended by SIGTERM is an interruption like Ctrl-C; what it was before, it is after.

    Once is enough: a second one must not break the ending of what runs, and is ignored until the
    block is left. What is ignored already, as SIGHUP is under nohup, stays so.

    Args:
        last: whether this process ends with the block: once interrupted, nothing interrupts it any
            more, also not after the block.
    """
    interrupted = False

    def interrupt(*_: object) -> NoReturn:
        nonlocal interrupted
        interrupted = True
        for end in _ENDS:
            signal.signal(end, signal.SIG_IGN)
        raise KeyboardInterrupt

    was = {end: signal.getsignal(end) for end in _ENDS}
    before = {end: by for end, by in was.items() if by not in (signal.SIG_IGN, None)}
    for end in before:
        signal.signal(end, interrupt)
    try:
        yield
    finally:
        if not (last and interrupted):
            for end, handler in before.items():
                signal.signal(end, handler)
