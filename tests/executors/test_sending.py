"""The executor that calls a receiver: one request a call, and each way in which that can fail."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from rcr_probes import executors, folder, ledger
from rcr_probes.model import Json, Known
from rcr_probes.receiver import Receiver, Settings
from rcr_probes.runtime import Executor, askable
from rcr_probes.vocabulary import RECEIVED, Lane

REQUEST = {
    "executor": "receiver",
    "action": "append",
    "target": "marker-0",
    "session_id": "session-1",
}
KEY = "operation-0"
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


@pytest.fixture
def place() -> Iterator[str]:
    """A cell's folder, with what an executor needs of it."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="rcr-test-") as made:
        for name in (folder.WORLD, folder.HARNESS):
            Path(made, name).mkdir()
        yield made


@pytest.fixture
def receiver(place: str) -> Iterator[Receiver]:
    with Receiver(os.path.join(place, folder.RECEIVER)) as started:
        Path(place, folder.ADDRESS).write_text(started.address)
        yield started


def mute(lane: Lane, value: Mapping[str, Json]) -> None:
    pass


def calling(place: str, dedupe: str = "receiver_key", patience: float = 30.0) -> Executor:
    return executors.make(place, dedupe, mute, patience=patience)


def calls(place: str) -> int:
    return len(ledger.read(os.path.join(place, folder.CALLS), ledger.CallLine).lines)


@pytest.mark.parametrize("dedupe", RECEIVED)
def test_a_call_is_one_request_under_the_operations_key(
    place: str, receiver: Receiver, dedupe: str
) -> None:
    """The receiver's own record says key and target; a retry is answered with the first effect."""
    executor = calling(place, dedupe)
    assert executor(KEY, REQUEST) == {"kind": "receiver", "observed_id": "E1"}
    (sent,) = receiver.requests()
    assert (sent.method, sent.path, sent.key) == ("POST", "/markers/marker-0", KEY)
    assert executor(KEY, REQUEST)["observed_id"] == "E1"
    assert (len(receiver.effects()), len(receiver.requests()), calls(place)) == (1, 2, 2)


def test_what_is_no_meaning_makes_no_other_request(place: str, receiver: Receiver) -> None:
    """A new session and a credential that was minted anew leave the payload as it was."""
    executor = calling(place)
    for session in ("session-1", "session-2"):
        executor(KEY, {**REQUEST, "session_id": session, "credential": session})
    assert len({request.body_sha256 for request in receiver.requests()}) == 1


# A receiver's fault at the call → what the executor raises, and whether the effect is there.
STRUCK = {
    "error_before_effect": ("HTTP_503", 0),
    "response_lost": ("RESPONSE_LOST", 1),
    "error_after_effect": ("HTTP_500", 1),
    "timeout": ("RESPONSE_LATE", 1),
    "reset_before": ("RESPONSE_LOST", 0),
}


@pytest.mark.parametrize("fault", STRUCK)
def test_each_failure_of_a_call_has_its_own_word(
    place: str, receiver: Receiver, fault: str
) -> None:
    """And one more call with the key leaves one effect."""
    code, effects = STRUCK[fault]
    receiver.arm(fault)  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"receiver|answer") as caught:
        calling(place, patience=0.5)(KEY, REQUEST)
    assert getattr(caught.value, "code", None) == code
    receiver.wait_idle(10.0)
    assert len(receiver.effects()) == effects
    calling(place)(KEY, REQUEST)
    assert len(receiver.effects()) == 1


def test_a_key_with_another_payload_is_refused(place: str, receiver: Receiver) -> None:
    """What the draft on idempotency keys asks for: 422, and nothing is done."""
    executor = calling(place)
    executor(KEY, REQUEST)
    with pytest.raises(Exception, match="422") as caught:
        executor(KEY, {**REQUEST, "target": "marker-0-changed"})
    assert getattr(caught.value, "code", None) == "HTTP_422"
    assert len(receiver.effects()) == 1


def test_a_key_that_the_receiver_forgot_is_a_new_one(place: str, receiver: Receiver) -> None:
    """After the retention the same call acts again."""
    executor = calling(place, "expired_key")
    executor(KEY, REQUEST)
    receiver.advance(Settings().retention)
    assert executor(KEY, REQUEST)["observed_id"] == "E2"


def test_the_receiver_can_be_asked_about_a_key(place: str, receiver: Receiver) -> None:
    """It says what it knows, that something may still land, and that it does not know any more."""
    executor = calling(place, patience=0.5)
    assert askable(executor)
    look = partial(executor.look, KEY)
    assert look() == Known(0, in_flight=False)
    receiver.arm("hold_before")
    with pytest.raises(Exception, match="in time"):
        executor(KEY, REQUEST)
    held = receiver.wait_held(10.0)
    assert held is not None
    assert look() == Known(0, in_flight=True)
    receiver.release(held, "answer")
    receiver.wait_idle(10.0)
    assert look() == Known(1, in_flight=False)
    receiver.advance(Settings().retention)
    assert look() == Known(None, in_flight=False)
    assert calls(place) == 1


def test_a_receiver_that_is_gone_is_an_error_of_the_system(place: str, receiver: Receiver) -> None:
    """Nothing answers: the call was made, and its error is the kernel's."""
    receiver.stop()
    with pytest.raises(ConnectionRefusedError):
        calling(place)(KEY, REQUEST)
    assert calls(place) == 1
