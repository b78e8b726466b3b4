"""One phase of the article's probes, in an interpreter of its own: FOLDER STEP FAULT_POINT KEYED.

Prints, as JSON, what the caller of the approval service saw. ``FAULT_POINT`` is the audit point at
which the audit file turns into a directory, or ``none``. ``STEP`` is fault, again, resume or
resume-changed.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rcr_probes import points
from rcr_probes.reference import ADMIN, Actor, ApprovalError, ApprovalService, ExecutorRegistry

REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}


def append(path: Path, line: str) -> int:
    """Append a line; how many there are now."""
    with path.open("a") as file:
        file.write(f"{line}\n")
    return len(path.read_text().splitlines())


def main(folder: Path, step: str, fault_point: str, keyed: bool) -> str:
    """What the caller sees: ``none``, an error's code, or the name of its errno."""

    def act(request: Mapping[str, Any]) -> Mapping[str, Any]:
        append(folder / "calls", "fixture-key")
        effects = folder / "effects"
        if not (keyed and effects.exists()):
            append(effects, "fixture-key")
        return {"kind": "local-marker", "observed_count": len(effects.read_text().splitlines())}

    def reached(name: str, path: str | None) -> None:
        if name == fault_point and path is not None:
            os.rename(path, folder / "audit.saved")
            os.mkdir(path)

    points.watch(reached)
    service = ApprovalService(folder)
    ticket = folder / "ticket"
    try:
        if step == "fault":
            approval_id = service.prepare({**REQUEST, "session_id": "session-1"}).id
            ticket.write_text(f"{approval_id} ")
            token = service.approve(approval_id, Actor("admin-1", ADMIN), "the probe's marker")
            ticket.write_text(f"{approval_id} {token}")
            service.execute(approval_id, token, REQUEST, act)
            return "none"
        approval_id, token = ticket.read_text().split(" ")
        if step == "again":
            service.execute(approval_id, token or None, REQUEST, act)
            return "none"
        target = "marker-1" if step == "resume-changed" else "marker-0"
        registry = ExecutorRegistry(service)
        registry.register("local-marker", act, lambda stored: {**stored, "target": target})
        registry.resume(approval_id)
    except ApprovalError as error:
        return error.code
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "none"


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "keyed")))
