"""Where captures were measured is said without hosts, and what says more is not sealed unseen."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rcr_probes.errors import EvidenceError
from rcr_probes.evidence import form, store, write
from rcr_probes.evidence.check import check
from rcr_probes.evidence.whereabouts import Whereabouts, problem

COMMITTED = Path(__file__).resolve().parents[2] / "evidence"


def saying(tmp_path: Path, workers: Any) -> Path:
    """Evidence of six captures whose environment says this of its workers."""
    folder = Path(shutil.copytree(COMMITTED / "article", tmp_path / "article"))
    said = msgspec.json.decode((folder / form.ENVIRONMENT).read_bytes())
    (folder / form.ENVIRONMENT).write_bytes(write.encoded({**said, "workers": workers}))
    write.write_manifest(folder, store.read_plan(folder))
    return folder


@given(st.lists(st.none() | st.sampled_from(["worker-1", "worker-2", "worker-10"])), st.integers(0))
def test_what_is_noted_is_read_again(by: list[str | None], kept: int) -> None:
    """Each line is somebody's, or nobody's; a run that was killed forgets what it lost."""
    where = Whereabouts()
    for line, worker in enumerate(by):
        if worker:
            where.note(line, worker)
    again = Whereabouts.parsed(where.said())
    assert again == where
    assert problem(where.said(), len(by)) is None
    again.forget(kept)
    fresh = Whereabouts()
    for line, worker in enumerate(by[:kept]):
        if worker:
            fresh.note(line, worker)
    assert again == fresh
    highest = max((int(name[7:]) for name in where.ranges), default=0)
    assert next(where.unused()) == f"worker-{highest + 1}"


def test_ranges_are_sound(tmp_path: Path) -> None:
    """Captures that nobody is named for ran where the run was started."""
    assert check(saying(tmp_path, {"worker-1": "0-1, 4", "worker-2": "2"})).findings == ()


@pytest.mark.parametrize(
    ("workers", "problem"),
    [
        ({"tcp://10.0.0.7:41234": "0"}, "names a worker that we did not name"),
        ({"worker-0": "0"}, "names a worker that we did not name"),
        ({"worker-1": "node7"}, "gives worker-1 no ranges"),
        ({"worker-1": ""}, "gives worker-1 no ranges"),
        ({"worker-1": "2-1"}, "gives worker-1 no ranges"),
        ({"worker-1": "3, 1"}, "gives worker-1 no ranges"),
        ({"worker-1": "0-2", "worker-2": "2"}, "gives a capture to two workers"),
        ({"worker-1": "0-6"}, "gives a worker a capture that is not there"),
        ({"worker-1": 3}, "gives worker-1 no ranges"),
        ("node7", "is no map of texts"),
    ],
)
def test_a_host_or_a_capture_too_many_is_found(
    tmp_path: Path, workers: object, problem: str
) -> None:
    """Also with every digest made anew."""
    found = [str(one) for one in check(saying(tmp_path, workers)).findings]
    assert any(f"environment.json: its workers {problem}" in one for one in found), found


def test_a_run_is_not_resumed_over_whereabouts_that_nobody_can_read(tmp_path: Path) -> None:
    """They would be lost in silence."""
    folder = saying(tmp_path, {"worker-1": "node7"})
    (folder / form.MANIFEST).unlink()
    with pytest.raises(EvidenceError, match="environment"):
        write.Writer(folder, store.read_plan(folder))
