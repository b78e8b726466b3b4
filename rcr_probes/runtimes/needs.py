"""What an adapter needs on this machine, what of it is missing, and what to type to get it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rcr_probes.errors import RuntimeMissing, installing

# Program → what installs it. RCR_<NAME> names one that is not on the PATH.
PROGRAMS: Mapping[str, str] = {
    "redis-server": "sudo apt install redis-server",
    "restate-server": "npm install --no-save --ignore-scripts @restatedev/restate-server@1.7",
}


@dataclass(frozen=True, slots=True)
class Need:
    """What one adapter needs.

    Attributes:
        name: of the adapter, of its module, and of the extra that installs its packages.
        packages: distributions, the runtime's own first: its version is the runtime's.
        programs: servers that it starts for itself.
    """

    name: str
    packages: tuple[str, ...]
    programs: tuple[str, ...] = ()

    @property
    def runtime(self) -> str:
        """What a plan calls it."""
        return f"rcr_probes.runtimes.{self.name}:runtime"

    def version(self) -> str | None:
        """The installed version of the runtime; None where it is not installed."""
        return _version(self.packages[0])

    def versions(self) -> dict[str, str]:
        """What the runtime's behaviour depends on: its packages and programs, each its version."""
        found = {package: _version(package) or "" for package in self.packages}
        return found | {name: _program_version(name) for name in self.programs}

    def missing(self) -> tuple[str, ...]:
        """What of it is not here."""
        absent = [package for package in self.packages if _version(package) is None]
        return (*absent, *(p for p in self.programs if program(p) is None))

    def remedies(self) -> tuple[str, ...]:
        """What to type, line by line, in a clone of this project, to get what is missing."""
        missing = self.missing()
        lines = [PROGRAMS[p] for p in self.programs if p in missing]
        if any(package in missing for package in self.packages):
            lines.insert(0, installing(self.name))
        return tuple(lines)

    def require(self) -> None:
        """Refuse to go on without it.

        Raises:
            RuntimeMissing: something is missing; the remedy is what to type.
        """
        missing = self.missing()
        if missing:
            raise RuntimeMissing(
                f"The runtime {self.name} needs {' and '.join(missing)}, not found here.",
                f"In the project's folder, type: {' && '.join(self.remedies())}",
            )


def program(name: str) -> str | None:
    """Where a program is: named by ``RCR_<NAME>``, on the PATH, or in ./node_modules/.bin."""
    variable = "RCR_" + name.upper().replace("-", "_")
    places = [os.environ.get(variable), shutil.which(name), Path("node_modules/.bin", name)]
    found = (os.path.abspath(place) for place in places if place and os.access(place, os.X_OK))
    return next(found, None)


def _program_version(name: str) -> str:
    """The first number with dots that it prints of itself; empty where it prints none."""
    path = program(name)
    if path is None:
        return ""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
