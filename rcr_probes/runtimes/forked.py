"""A runtime's worker in a child of the phase's process: forked, so that its points are watched."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

from rcr_probes import linux


def forked(work: Callable[[], object]) -> int:
    """Do ``work`` in a forked child, and come back when it and all that it forked are gone.

    The child is a worker as its program would start it; an error that ends it is printed there, as
    that program would print it, and is no error here. It dies with the process that started it.

    Returns:
        The child's exit status; negative, the number of the signal that ended it.
    """
    parent = os.getpid()
    here, theirs = os.pipe()  # whoever is forked from the child holds ``theirs``, too
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(here)
            linux.die_with(parent)
            work()
            status = 0
        except BaseException:
            import traceback  # only where it is needed

            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
    os.close(theirs)
    try:
        _, ended = os.waitpid(child, 0)
        poll = select.poll()
        poll.register(here, 0)  # hang-up alone: nobody writes there
        poll.poll()
    finally:
        os.close(here)
    return os.waitstatus_to_exitcode(ended)
