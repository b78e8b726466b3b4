"""Each strike as its caller meets it, and the proof that it left."""

from __future__ import annotations

import http.client
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from rcr_probes.receiver import (
    Fault,
    Held,
    KeyAnswer,
    NotReached,
    Receiver,
    ReceiverError,
    Settings,
)
from tests.receiver.calls import PATIENCE, connect, send, until, until_end, worker
from tests.receiver.conftest import Start

POST = b"POST /charge HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nIdempotency-Key: k\r\n\r\n"


@contextmanager
def calling(receiver: Receiver, key: str = "k") -> Iterator[Future[tuple[int, bytes]]]:
    """A call under way in a thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(send, receiver, key=key)


@contextmanager
def working(receiver: Receiver, *key: str) -> Iterator[subprocess.Popen[bytes]]:
    """A call under way in a process, which is ended with the block."""
    process = worker(receiver, *key)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
        if process.stdout:
            process.stdout.close()


def told(receiver: Receiver, request: int = 1) -> list[str]:
    """What happened to a request, in order."""
    receiver.wait_idle(PATIENCE)
    return [event.what for event in receiver.record().events if event.request == request]


def test_response_lost(receiver: Receiver) -> None:
    """The effect is made, and the connection ends without a byte; the retry is replayed."""
    receiver.arm("response_lost")
    with pytest.raises(http.client.RemoteDisconnected):
        send(receiver, key="k")
    assert told(receiver) == ["arrived", "effect", "handled", "struck", "unanswered"]
    assert receiver.ask("k") == KeyAnswer("yes", False)
    assert send(receiver, key="k")[0] == 200
    assert len(receiver.effects()) == 1


def test_reset_before(receiver: Receiver) -> None:
    """A reset, and nothing was handled; the retry is the first."""
    receiver.arm("reset_before")
    with connect(receiver) as sock:
        sock.sendall(POST)
        with pytest.raises(ConnectionResetError):
            until_end(sock)
    assert told(receiver) == ["arrived", "struck", "handled", "unanswered"]
    assert receiver.requests()[0].outcome == "reset"
    assert receiver.ask("k") == KeyAnswer("no", False)
    assert send(receiver, key="k", body=b"")[0] == 200
    assert len(receiver.effects()) == 1


def test_error_before_effect(receiver: Receiver) -> None:
    """503, and nothing was done; the retry with the key is the first, also with another payload."""
    receiver.arm("error_before_effect")
    assert send(receiver, key="k")[0] == 503
    assert told(receiver) == ["arrived", "struck", "handled"]
    assert receiver.requests()[0].outcome == "dropped"
    assert receiver.ask("k") == KeyAnswer("no", False)
    assert send(receiver, key="k", body=b"")[0] == 200
    assert len(receiver.effects()) == 1


def test_error_after_effect(receiver: Receiver) -> None:
    """500 over an effect that exists; the retry with the key gets the first result."""
    receiver.arm("error_after_effect")
    assert send(receiver, key="k")[0] == 500
    assert told(receiver) == ["arrived", "effect", "handled", "struck"]
    assert receiver.requests()[0].status == 500
    assert send(receiver, key="k") == (200, b'{"id": "E1", "status": "accepted"}\n')
    assert len(receiver.effects()) == 1


def test_timeout(receiver: Receiver) -> None:
    """The effect is made, and no answer comes until the client gives up."""
    receiver.arm("timeout")
    with connect(receiver) as sock:
        sock.sendall(POST)
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        with pytest.raises(NotReached):
            receiver.wait_idle(0)
        assert receiver.ask("k") == KeyAnswer("yes", False)
    assert told(receiver) == ["arrived", "effect", "handled", "struck", "gave_up", "unanswered"]


def test_a_delayed_effect_lands_after_its_caller_left(receiver: Receiver) -> None:
    """Nothing while the caller waits, then one effect; a retry in between is in flight."""
    receiver.arm("delayed_effect")
    with connect(receiver) as sock:
        sock.sendall(POST)
        sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        assert receiver.effects() == ()
        assert receiver.ask("k") == KeyAnswer("no", True)
        assert send(receiver, key="k", body=b"")[0] == 409
    assert told(receiver) == [
        "arrived", "struck", "gave_up", "effect", "handled", "unanswered"
    ]  # fmt: skip
    assert receiver.ask("k") == KeyAnswer("yes", False)


def test_a_delayed_effect_can_wait_for_the_clock(receiver: Receiver, start: Start) -> None:
    """Its caller is gone and it is still on its way, here and in a copy of this world."""
    receiver.arm("delayed_effect", delay=60)
    with connect(receiver) as sock:
        sock.sendall(POST.replace(b"Idempotency-Key: k\r\n", b""))
        until(lambda: receiver.record().strikes[0].proof)
    with pytest.raises(NotReached):
        receiver.wait_idle(0.1)
    assert send(receiver)[0] == 200  # the retry comes first
    receiver.snapshot(str(Path(receiver.folder).parent / "copy"))
    receiver.advance(60)
    assert [effect.request for effect in receiver.effects()] == [2, 1]
    receiver.wait_idle(PATIENCE)
    copy = start(None, "copy")
    assert len(copy.effects()) == 1
    copy.advance(60)
    assert len(copy.effects()) == 2


@pytest.mark.parametrize("fault", ["timeout", "delayed_effect"])
def test_an_answer_is_withheld_for_a_bounded_time(start: Start, fault: Fault) -> None:
    """A client without a timeout of its own is let go, unanswered, with one effect."""
    receiver = start(Settings(bound=0.2))
    receiver.arm(fault)
    with connect(receiver) as sock:
        sock.sendall(POST)
        assert until_end(sock) == b""
    receiver.wait_idle(PATIENCE)
    assert len(receiver.effects()) == 1
    [gave_up] = [event for event in receiver.record().events if event.what == "gave_up"]
    assert gave_up.detail == "bound"


@pytest.mark.parametrize(("fault", "effects"), [("hold_before", 0), ("hold_after", 1)])
def test_a_caller_is_killed_while_it_is_held(
    receiver: Receiver, fault: Fault, effects: int
) -> None:
    """The harness knows where the worker stands, kills it there, and drops the connection."""
    receiver.arm(fault)
    with working(receiver, "k") as process:
        held = receiver.wait_held(PATIENCE, unless_ended=process.pid)
        assert held == Held(1, 1, fault)
        process.kill()
        assert process.wait(PATIENCE) == -signal.SIGKILL
        assert len(receiver.effects()) == effects
        receiver.release(held, "drop")
    receiver.wait_idle(PATIENCE)
    assert len(receiver.effects()) == effects
    assert receiver.ask("k") == KeyAnswer("yes" if effects else "no", False)
    record = receiver.record()
    assert record.requests[0].outcome == ("effect" if effects else "dropped")
    assert not record.requests[0].answered
    with working(receiver, "k") as recovery:
        assert recovery.communicate(timeout=PATIENCE)[0] == b"200\n"
    assert len(receiver.effects()) == 1


@pytest.mark.parametrize("fault", ["hold_before", "hold_after"])
def test_a_held_request_can_be_answered(receiver: Receiver, fault: Fault) -> None:
    """Then nothing was lost but time."""
    receiver.arm(fault)
    with calling(receiver) as call:
        held = receiver.wait_held(PATIENCE)
        assert held
        assert not call.done()
        receiver.release(held, "answer")
        assert call.result(PATIENCE)[0] == 200
        with pytest.raises(ReceiverError, match="not held"):
            receiver.release(held, "drop")
    assert len(receiver.effects()) == 1


@pytest.mark.parametrize(("fault", "effects"), [("hold_before", 0), ("hold_after", 1)])
def test_a_request_that_nobody_releases_is_dropped(
    start: Start, fault: Fault, effects: int
) -> None:
    """After the bound, and the record says that it was the bound."""
    receiver = start(Settings(bound=0.2))
    receiver.arm(fault)
    with pytest.raises(http.client.RemoteDisconnected):
        send(receiver)
    receiver.wait_idle(PATIENCE)
    assert len(receiver.effects()) == effects
    [released] = [event for event in receiver.record().events if event.what == "released"]
    assert released.detail == "bound"


def test_waiting_for_a_hold_ends_with_the_worker(receiver: Receiver) -> None:
    """A worker that never sends the request is not waited for any longer."""
    receiver.arm("hold_before", nth=2)
    with working(receiver) as process:
        assert receiver.wait_held(PATIENCE, unless_ended=process.pid) is None
        assert process.wait(PATIENCE) == 0


def test_a_request_left_behind_by_the_dead_comes_to_be_held(receiver: Receiver) -> None:
    """What a worker sent before it died is found, though it had ended before we asked."""
    receiver.arm("hold_after")
    with working(receiver) as process:
        assert receiver.wait_held(PATIENCE)
        process.kill()
        process.wait(PATIENCE)
    with subprocess.Popen(["true"]) as ended:
        held = receiver.wait_held(PATIENCE, unless_ended=ended.pid)
    assert held == Held(1, 1, "hold_after")
    receiver.release(held, "answer")
    receiver.wait_idle(PATIENCE)


def test_waiting_for_a_hold_is_bounded(receiver: Receiver) -> None:
    """Nothing is held, and that is an error after the timeout, not a pass."""
    with pytest.raises(NotReached, match="hold_before"):
        receiver.wait_held(0.1)


def test_a_strike_strikes_once_and_the_others_in_turn(receiver: Receiver) -> None:
    """Each request draws its own; the proofs are in order, and each is before what it did."""
    receiver.arm("error_after_effect", 2)
    receiver.arm("response_lost", 3)
    assert [send(receiver)[0] for _ in range(2)] == [200, 500]
    with pytest.raises(http.client.RemoteDisconnected):
        send(receiver)
    assert send(receiver)[0] == 200
    receiver.wait_idle(PATIENCE)
    record = receiver.record()
    assert [(strike.nth, strike.request) for strike in record.strikes] == [(2, 2), (3, 3)]
    proofs = {event.seq: event for event in record.events if event.what == "struck"}
    assert [proofs[strike.proof or 0].request for strike in record.strikes] == [2, 3]
    assert [proofs[strike.proof or 0].detail for strike in record.strikes] == [
        "error_after_effect", "response_lost"
    ]  # fmt: skip
    assert len(receiver.effects()) == 4


def test_a_strike_may_meet_a_replay(receiver: Receiver) -> None:
    """The lost answer of a retry makes no second effect."""
    receiver.arm("response_lost", 2)
    first = send(receiver, key="k")
    with pytest.raises(http.client.RemoteDisconnected):
        send(receiver, key="k")
    assert send(receiver, key="k") == first
    assert len(receiver.effects()) == 1


def test_sixteen_callers_share_one_strike(receiver: Receiver) -> None:
    """It is drawn by exactly one of them, whoever comes first."""
    receiver.arm("response_lost")

    def call(_: int) -> bool:
        with suppress(http.client.RemoteDisconnected):
            send(receiver)
            return True
        return False

    with ThreadPoolExecutor(16) as pool:
        assert sorted(pool.map(call, range(16))) == [False] + [True] * 15
    assert len(receiver.effects()) == 16


@pytest.mark.parametrize("fault", ["hold_before", "hold_after", "timeout", "delayed_effect"])
def test_a_receiver_with_a_request_in_its_hands_stops_at_once(start: Start, fault: Fault) -> None:
    """And the next one in the folder settles what was left."""
    receiver = start()
    receiver.arm(fault)
    with connect(receiver) as sock:
        sock.sendall(POST)
        until(lambda: receiver.record().strikes[0].proof)
        receiver.stop()
        with suppress(ConnectionResetError):
            assert until_end(sock) == b""
    after = start()
    after.wait_idle(PATIENCE)
    outcome = "abandoned" if fault == "hold_before" else "effect"
    assert [request.outcome for request in after.requests()] == [outcome]
    assert after.ask("k").took_effect == ("no" if fault == "hold_before" else "yes")
