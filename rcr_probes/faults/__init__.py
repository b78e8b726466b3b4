"""How each kind of fault is really placed, seen from outside, and lifted again."""

from __future__ import annotations

from collections.abc import Mapping

from rcr_probes.faults.audit import Directory, Link, TooLarge, Torn
from rcr_probes.faults.calls import DiskFull, Misreported, Refused, misreport
from rcr_probes.faults.kind import Kind, Proven, Target
from rcr_probes.faults.process import Hang, Kill, KillHost, LoseAnswer, Raise
from rcr_probes.faults.refusal import ResultRefused

__all__ = ["KINDS", "Kind", "Proven", "Target", "misreport"]

KINDS: Mapping[str, Kind] = {
    "exception": Raise(),
    "kill": Kill(),
    "audit_is_directory": Directory(),
    "result_refused": ResultRefused(),
    "kill_host": KillHost(),
    "io_error": Refused(),
    "disk_full": DiskFull(),
    "symlink_loop": Link(None),
    "not_a_directory": Link("/dev/null/audit"),
    "file_too_large": TooLarge(),
    "lost_append": Link("/dev/null"),
    "torn_append": Torn(),
    "hang": Hang(),
    "response_lost": LoseAnswer(),
    "error_after_call": Misreported(),
    "power_loss": Kill(),  # what it leaves on the disk, its parent puts there
    "power_loss_local": Kill(),
}
