"""Recovery by evidence where record or audit are damaged: nothing is believed or lost."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from rcr_probes.reference.policies import DAMAGED
from tests.reference.attempted import (
    Store,
)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"null", bytes(40), b"{}"], ids=["empty", "torn", "null", "NULs", "other"]
)
@pytest.mark.parametrize("effects", [0, 1, None])
def test_a_damaged_record_is_kept_and_needs_a_person(
    store: Store, data: bytes, effects: int | None
) -> None:
    """It is never read as a record of nothing; what takes its place was approved by nobody."""
    path = store.folder / "approvals" / f"{store.id}.json"
    path.write_bytes(data)
    store.sees(effects)
    for _ in range(2):
        record = store.recover()
        assert record.status == "verification_required"
        assert record.decided_by is None
        assert record.held is not None
        assert "record_damaged" in record.held.reasons
        assert Path(f"{path}{DAMAGED}").read_bytes() == data
    assert not store.executor.made


def test_a_missing_record_needs_a_person(store: Store) -> None:
    """Its caller has a ticket: once there was one."""
    (store.folder / "approvals" / f"{store.id}.json").unlink()
    store.sees(0)
    record = store.recover()
    assert record.held is not None
    assert "record_missing" in record.held.reasons
    assert not store.executor.made


@pytest.mark.parametrize("effects", [0, 1])
def test_a_record_that_contradicts_the_audit_is_not_believed(store: Store, effects: int) -> None:
    """It says that nothing was begun; the audit knows better."""
    path = store.folder / "approvals" / f"{store.id}.json"
    older = {**json.loads(path.read_bytes()), "status": "approved", "consumed": False}
    path.write_bytes(msgspec.json.encode(older))
    store.sees(effects)
    if effects:
        assert store.refused() == "APPROVAL_STATE_CONFLICT"
        assert store.record.status == "succeeded"
    else:
        assert store.recover().status == "verification_required"
    assert "record_contradicts_audit" in store.trail[-1].reasons
    assert not store.executor.made


def test_a_damaged_audit_is_told_of(store: Store) -> None:
    """Whatever is decided, it says that lines could not be read."""
    with Path(store.service.audit_path).open("ab") as file:
        file.write(b"\0\0\0\n")
    store.sees(1)
    store.recover()
    assert "audit_damaged" in store.trail[-1].reasons


def test_an_audit_that_cannot_be_read_is_told_of_in_the_record(store: Store) -> None:
    """The record is written before its audit line fails, as everywhere in this service."""
    os.rename(store.service.audit_path, f"{store.service.audit_path}.saved")
    os.mkdir(store.service.audit_path)
    store.sees(None)
    with pytest.raises(IsADirectoryError):
        store.recover()
    assert store.record.held is not None
    assert "audit_damaged" in store.record.held.reasons
