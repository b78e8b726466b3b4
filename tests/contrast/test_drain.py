"""The drain: holds and their limits, the generation that guards a restore, overlapping requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rcr_probes.contrast.drain import LIMIT, TENANTS, WAYS, Drains, runtime
from rcr_probes.contrast.store import AUDIT, AUDIT_TABLE, AuditFailed, Refused, Store
from rcr_probes.errors import UnknownName
from rcr_probes.runtimes.sqlite import RefusedBySqlite
from tests.contrast.conftest import Executor, asked

TABLE = """CREATE TABLE IF NOT EXISTS drain (
    stands INTEGER NOT NULL, limit_seconds INTEGER, changed_at REAL NOT NULL, by TEXT,
    digest TEXT, generation INTEGER NOT NULL)"""


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def serving(folder: Path, way: str = "generation", now: Callable[[], float] = time.time) -> Drains:
    return Drains(Store(folder, TABLE), way, publish=lambda: None, now=now)


def stands(folder: Path) -> tuple[object, ...]:
    """What stands, whose it is, and the number of the change."""
    with Store(folder, TABLE).transaction() as database:
        row = database.execute("SELECT stands, by, limit_seconds, generation FROM drain").fetchone()
    return (bool(row[0]), *row[1:]) if row else (False, None, None, 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("limit", [LIMIT, None])
def test_a_hold_is_started_for_every_tenant_and_stopped_again(
    tmp_path: Path, way: str, limit: int | None
) -> None:
    """Each is a change with a number of its own; a stop takes away whosesoever hold there is."""
    drains = serving(tmp_path, way)
    drains.start("one", limit)
    assert stands(tmp_path) == (True, "one", limit, 1)
    drains.stop("two")
    assert stands(tmp_path) == (False, "two", None, 2)
    with Store(tmp_path, TABLE).transaction() as database:
        rows = database.execute("SELECT event, tenant FROM audit.audit ORDER BY number").fetchall()
    assert rows == [(event, one) for event in ("started", "stopped") for one in TENANTS]


@pytest.mark.parametrize(
    ("limit", "passed", "taken"), [(60, 59, False), (60, 60, True), (None, 10**9, False)]
)
def test_the_same_request_starts_again_only_once_its_time_is_over(
    tmp_path: Path, limit: int | None, passed: float, taken: bool
) -> None:
    """A hold without a limit lasts until it is stopped."""
    clock = Clock()
    drains = serving(tmp_path, now=clock)
    drains.start("one", limit)
    clock.now += passed
    if taken:
        drains.start("one", limit)
    else:
        with pytest.raises(Refused) as caught:
            drains.start("one", limit)
        assert caught.value.code == "ALREADY_DRAINING"
    assert stands(tmp_path)[-1] == (2 if taken else 1)


def test_another_request_replaces_a_hold(tmp_path: Path) -> None:
    """It is the same state, and the newest change stands."""
    drains = serving(tmp_path)
    drains.start("one", 60)
    drains.start("two", None)
    assert stands(tmp_path) == (True, "two", None, 2)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "audit_first"])
@settings(max_examples=20)
@given(
    before=st.booleans(),
    meanwhile=st.lists(st.booleans(), max_size=3),
    refused=st.booleans(),
)
def test_a_failed_audit_restores_what_stood_before_and_nothing_newer_is_overwritten(
    tmp_path_factory: pytest.TempPathFactory,
    way: str,
    before: bool,
    meanwhile: list[bool],
    refused: bool,
) -> None:
    """Whatever stood before, and whatever others changed meanwhile; unguarded, it overwrites."""
    folder = tmp_path_factory.mktemp("drain")
    refusal = RefusedBySqlite(folder / AUDIT, AUDIT_TABLE)
    others = serving(folder, way)
    if before:
        others.start("earlier", None)
    earlier = stands(folder)[:3]
    newest: list[tuple[object, ...]] = []

    def others_change() -> None:
        for number, start in enumerate(meanwhile):
            others.start(f"other-{number}", None) if start else others.stop(f"other-{number}")
            newest.append(stands(folder)[:3])
        if refused:
            refusal.place()

    ours = Drains(Store(folder, TABLE), way, publish=lambda: None, meanwhile=others_change)
    if not refused:
        ours.start("ours", 60)
        assert stands(folder)[:3] == (newest[-1] if newest else (True, "ours", 60))
        return
    with pytest.raises(AuditFailed):
        ours.start("ours", 60)
    guarded = newest and way != "unguarded"
    assert stands(folder)[:3] == (newest[-1] if guarded else earlier)


def test_every_change_has_a_number_of_its_own_also_the_one_that_restores(tmp_path: Path) -> None:
    """So a state that came back is not taken for the one that was there before."""
    drains = serving(tmp_path)
    refusal = RefusedBySqlite(tmp_path / AUDIT, AUDIT_TABLE)
    refusal.place()
    for attempt in (1, 2, 3):
        with pytest.raises(AuditFailed):
            drains.start("one", None)
        assert stands(tmp_path) == (False, None, None, 2 * attempt)
    refusal.lift()
    drains.start("one", None)
    assert stands(tmp_path) == (True, "one", None, 7)


def test_what_cannot_be_published_is_logged_and_no_error_to_the_caller(tmp_path: Path) -> None:
    """The change is committed and audited by then."""

    def broken() -> None:
        raise RuntimeError("nobody listens")

    Drains(Store(tmp_path, TABLE), "generation", publish=broken).start("one", None)
    assert stands(tmp_path)[0] is True
    assert (tmp_path / "service.log").read_text() == "RuntimeError\n"


def test_what_fails_in_the_other_request_is_not_lost(
    tmp_path: Path, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs in a thread of its own, and its error comes out here."""

    def broken(self: Drains, by: str) -> None:
        raise RuntimeError("the other request")

    monkeypatch.setattr(Drains, "stop", broken)
    with pytest.raises(RuntimeError, match="the other request"):
        runtime().start(asked(tmp_path, "generation_overlap", executor))


def test_only_again_recovers(tmp_path: Path, executor: Executor) -> None:
    """There is no other way, and nothing is done."""
    with pytest.raises(UnknownName):
        runtime().recover(asked(tmp_path, "generation", executor), "resume")
    assert executor.called == []


@pytest.mark.parametrize(
    ("age", "status"), [(0.0, "draining"), (LIMIT - 5.0, "draining"), (LIMIT, "lapsed")]
)
def test_the_state_tells_a_hold_whose_time_is_over(
    tmp_path: Path, executor: Executor, age: float, status: str
) -> None:
    """Without changing it."""
    operation = asked(tmp_path, "generation", executor)
    runtime().start(operation)
    with Store(tmp_path, TABLE).transaction() as database:
        database.execute("UPDATE drain SET changed_at = changed_at - ?", (age,))
    assert runtime().state(operation).status == status
    assert runtime().state(operation).status == status
