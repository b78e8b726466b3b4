"""What the variant ``fsync`` flushes: no state that a lost power leaves has a record not whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rcr_probes import power, recorder, strace
from rcr_probes.contents import Change
from rcr_probes.reference.records import replace_file, sync_folder
from tests.recorded import below

pytestmark = pytest.mark.skipif(
    shutil.which(strace.PROGRAM) is None, reason="strace is not installed"
)
STORE = """
import os, sys
from rcr_probes.reference import ADMIN, Actor, ApprovalService
service = ApprovalService(sys.argv[1], durable=sys.argv[2] == "fsync")
request = {"executor": "x", "action": "append", "target": "t", "session_id": "s"}
approval = service.prepare(request)
token = service.approve(approval.id, Actor("a", ADMIN), "because")
service.execute(approval.id, token, request, lambda request: {"observed_count": 1})
"""


def changes(tmp_path: Path, durability: str) -> list[Change]:
    """What the service does to its folder from prepare to the end of execute."""
    place, log = tmp_path / "place", tmp_path / "log"
    (place / "store").mkdir(parents=True)
    words = [word for word in recorder.words(str(log)) if word != "-D"]
    program = [sys.executable, "-P", "-c", STORE, str(place / "store"), durability]
    subprocess.run([*words, *program], check=True)
    done = recorder.changes(recorder.made(log.read_text(), str(place)), "store")
    return below(done, "store")


def losses(done: list[Change]) -> dict[str, set[str]]:
    """Path → what the power may have done to it, in any state after any of the operations."""
    found: dict[str, set[str]] = {}
    for number, change in enumerate(done, 1):
        if change.do == "remove":  # a lock's: a step has come to its end, and was told so
            for state in power.explored(done[:number], 10_000).states:
                for path, word in power.told(done[:number], state):
                    name = "record" if path.endswith(".json") else os.path.basename(path)
                    found.setdefault("lock" if path.endswith(".lock") else name, set()).add(word)
    return found


def test_flushing_leaves_nothing_but_locks_to_be_lost(tmp_path: Path) -> None:
    """At the end of each step, its record and its audit line are there, whole, and the last ones.

    A lock's removal is not flushed: it may be there again, and be busy for ever.
    """
    found = losses(changes(tmp_path, "fsync"))
    assert found == {"lock": {"back"}}


def test_without_flushing_record_and_audit_may_be_anything(tmp_path: Path) -> None:
    """The same steps: an older record, an empty one, none at all, an audit that is cut."""
    found = losses(changes(tmp_path, "none"))
    assert found["record"] >= {"older", "empty", "cut", "gone"}
    assert found["audit.jsonl"] >= {"gone", "empty", "shorter", "cut"}
    assert found["approvals"] == {"gone"}


def test_a_durable_replacement_is_one_for_whoever_reads(tmp_path: Path) -> None:
    """Flushing changes nothing that is seen while the power is on."""
    path = tmp_path / "file"
    for data in (b"one", b"two"):
        replace_file(str(path), data, durable=True)
        assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_flushed_is_an_error(tmp_path: Path) -> None:
    """Whoever is told nothing would take it for done."""
    with pytest.raises(FileNotFoundError):
        sync_folder(str(tmp_path / "none"))
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        sync_folder(str(tmp_path / "file"))
