"""A lock that is a file: whoever creates it holds it, and nobody takes it from the dead."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from types import TracebackType

from rcr_probes.reference.errors import ApprovalError

_PAUSE = 0.001  # seconds between two tries of a patient holder


def free(path: str) -> bool:
    """Take away a lock whose holder is gone, and say whether one stood there.

    Only for who has proven that by the fence (``rcr_probes.fence``). The pid in the file proves
    nothing, and is not read.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


class Lock:
    """Hold the lock at ``path`` for the length of a ``with`` block.

    The file holds the pid of its holder, for a person to read. A process that is killed leaves it
    behind, and it stays: a pid can be recycled, so nothing here decides that a holder is gone.

    Args:
        path: the lock file, in a folder that exists.
        patience: seconds to go on trying where the lock is taken; 0 tries once.

    Raises:
        ApprovalError: APPROVAL_BUSY, the lock is taken.
    """

    def __init__(self, path: str, patience: float = 0.0) -> None:
        self.path = path
        self.patience = patience

    def __enter__(self) -> None:
        deadline = time.monotonic() + self.patience
        while True:
            try:
                fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                break
            except FileExistsError:
                if time.monotonic() >= deadline:
                    raise ApprovalError(
                        "APPROVAL_BUSY",
                        f"{os.path.basename(self.path)} is held; if the process that it names was "
                        "killed, look what it did before you remove the file.",
                    ) from None
            time.sleep(_PAUSE)
        try:
            os.write(fd, b"%d\n" % os.getpid())
        except BaseException:
            os.unlink(self.path)
            raise
        finally:
            os.close(fd)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(FileNotFoundError):  # a person took it away; what was done under it is done
            os.unlink(self.path)
