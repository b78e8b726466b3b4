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
    "exception": Raise("exception"),
    "kill": Kill("kill"),
    "audit_is_directory": Directory("audit_is_directory"),
    "result_refused": ResultRefused(),
    "kill_host": KillHost("kill_host"),
    "io_error": Refused("io_error"),
    "disk_full": DiskFull(),
    "symlink_loop": Link("symlink_loop", None),
    "not_a_directory": Link("not_a_directory", "/dev/null/audit"),
    "file_too_large": TooLarge("file_too_large"),
    "lost_append": Link("lost_append", "/dev/null"),
    "torn_append": Torn(),
    "hang": Hang("hang"),
    "response_lost": LoseAnswer("response_lost"),
    "error_after_call": Misreported("error_after_call"),
    "power_loss": Kill("power_loss"),  # what it leaves on the disk, its parent puts there
    "power_loss_local": Kill("power_loss_local"),
}
