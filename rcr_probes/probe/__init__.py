"""Probe an unmodified worker: a receiver stands in for its remote API, and strikes at its calls."""

from __future__ import annotations

from rcr_probes.probe.command import Command, given
from rcr_probes.probe.run import Asked, Probed, ProbeError, probe

__all__ = ["Asked", "Command", "ProbeError", "Probed", "given", "probe"]
