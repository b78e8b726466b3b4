"""Each kind of fault is really placed, seen from outside, and lifted with nothing lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from rcr_probes import executors, faults
from rcr_probes.errors import FaultError, InjectedFault
from rcr_probes.faults import Target
from rcr_probes.model import Cell
from rcr_probes.phase import operation
from rcr_probes.vocabulary import FAULT_POINTS, FAULTS
from tests.forking_runtime import runtime


def at(point: str, path: Path | None = None, private: Path = Path()) -> Target:
    """A target in a runtime that offers every seam."""
    cell = Cell(point=point, fault="none")
    in_hand = operation(cell, str(private), "fault", executors.make(str(private), "none", mute))
    return Target(point, None if path is None else str(path), runtime(), in_hand)


def mute(*_: object) -> None:
    """Nobody listens."""


def test_every_kind_that_a_plan_may_name_can_be_placed() -> None:
    """The words and the kinds that strike agree, and of each it is said where it can."""
    assert faults.KINDS.keys() == FAULTS.keys() == FAULT_POINTS.keys()


@pytest.mark.parametrize("before", [b"", b'{"event":"operation.prepared"}\n', None])
def test_an_audit_that_is_a_directory_raises_in_the_append_and_is_put_back(
    tmp_path: Path, before: bytes | None
) -> None:
    """The append itself fails with EISDIR; afterwards every saved line is there again."""
    audit = tmp_path / "audit.jsonl"
    if before is not None:
        audit.write_bytes(before)
    fault = faults.KINDS["audit_is_directory"]
    assert fault.standing(at("start_audit", audit)) is False
    fault.strike(at("start_audit", audit), mute)
    assert fault.standing(at("start_audit", audit)) is True
    with pytest.raises(IsADirectoryError):
        audit.open("ab")
    fault.lift(at("start_audit", audit))
    assert fault.standing(at("start_audit", audit)) is False
    assert (audit.read_bytes() if audit.exists() else None) == before
    assert len(list(tmp_path.iterdir())) == (before is not None)


def test_what_a_runtime_puts_into_the_directory_is_kept_aside(tmp_path: Path) -> None:
    """The saved lines come back all the same."""
    audit = tmp_path / "audit.jsonl"
    audit.write_bytes(b"{}\n")
    fault = faults.KINDS["audit_is_directory"]
    fault.strike(at("start_audit", audit), mute)
    (audit / "elsewhere.jsonl").write_text("mine")
    fault.lift(at("start_audit", audit))
    assert audit.read_bytes() == b"{}\n"
    assert (tmp_path / "audit.jsonl.struck" / "elsewhere.jsonl").read_text() == "mine"


def test_lifting_what_was_never_placed_changes_nothing(tmp_path: Path) -> None:
    """A fault that did not fire leaves the audit as it is."""
    audit = tmp_path / "audit.jsonl"
    audit.write_bytes(b"{}\n")
    faults.KINDS["audit_is_directory"].lift(at("start_audit", audit))
    assert audit.read_bytes() == b"{}\n"


def test_a_file_fault_without_a_path_says_what_the_point_must_hand_over() -> None:
    """The remedy names the argument that the runtime left out."""
    with pytest.raises(FaultError, match="reach\\(point, path="):
        faults.KINDS["audit_is_directory"].strike(at("start_audit"), mute)


def test_an_exception_carries_its_point() -> None:
    """What leaves the point says where it was injected."""
    with pytest.raises(InjectedFault, match="before_action"):
        faults.KINDS["exception"].strike(at("before_action"), mute)


def test_a_kill_is_a_real_sigkill() -> None:
    """The wait status is that signal."""
    pid = os.fork()
    if pid == 0:
        faults.KINDS["kill"].strike(at("response"), mute)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
