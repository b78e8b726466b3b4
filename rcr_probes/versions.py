"""What a run depends on: versions of the runtimes under probe, as this process finds them.

Run as a program it prints the whole environment as JSON: so a worker of a cluster says what is
there, without loading a runtime into itself.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable

from rcr_probes.runtime import load, offered


def versions(runtimes: Iterable[str]) -> dict[str, str]:
    """What these runtimes depend on, package or program → version.

    Raises:
        RuntimeUnusable: one cannot be loaded.
    """
    return {
        name: version
        for runtime in dict.fromkeys(runtimes)
        for name, version in offered(load(runtime), "versions")().items()
    }


if __name__ == "__main__":
    import msgspec

    from rcr_probes.evidence import write

    with contextlib.redirect_stdout(sys.stderr):
        said = msgspec.json.encode(write.environment(versions(sys.argv[1:])))
    os.write(1, said)
