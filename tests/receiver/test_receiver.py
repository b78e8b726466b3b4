"""The receiver by ordinary HTTP: effects, keys, the clock, copies, the look-up."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from rcr_probes.receiver import KeyAnswer, Receiver, ReceiverError, Settings
from tests.receiver.calls import PATIENCE, place, raw, send
from tests.receiver.conftest import Start


def test_any_method_and_path_is_an_action(receiver: Receiver) -> None:
    """Each request makes one effect, named in order of arrival; the record has all of it."""
    said = [
        send(receiver, method, path)
        for method, path in (("POST", "/charge"), ("DELETE", "/a/b?c=d"), ("PURGE", "/"))
    ]
    assert [status for status, _ in said] == [200, 200, 200]
    assert [json.loads(body)["id"] for _, body in said] == ["E1", "E2", "E3"]
    receiver.wait_idle(PATIENCE)
    record = receiver.record()
    assert [(each.method, each.path) for each in record.requests] == [
        ("POST", "/charge"), ("DELETE", "/a/b?c=d"), ("PURGE", "/")
    ]  # fmt: skip
    assert [(effect.id, effect.request) for effect in record.effects] == [
        ("E1", 1), ("E2", 2), ("E3", 3)
    ]  # fmt: skip
    first = record.requests[0]
    assert (first.size, first.key, first.answered, first.closed) == (12, None, True, True)
    assert first.body_sha256 == hashlib.sha256(b'{"amount":1}').hexdigest()
    assert record.effects[0].body_sha256 == first.body_sha256
    assert [(event.request, event.what) for event in record.events] == [
        (request, what) for request in (1, 2, 3) for what in ("arrived", "effect", "handled")
    ]


def test_safe_methods_make_no_effect(receiver: Receiver) -> None:
    """They are recorded, answered, and not counted."""
    for method in ("GET", "HEAD", "OPTIONS"):
        assert send(receiver, method)[0] == 200
    assert receiver.effects() == ()
    assert [request.outcome for request in receiver.requests()] == ["no_effect"] * 3


def test_the_settings_name_the_methods_that_act(start: Start) -> None:
    """A read can be what costs money, and a POST can be a search."""
    receiver = start(Settings(effects_of=("GET", "HEAD")))
    for method in ("GET", "POST", "HEAD"):
        assert send(receiver, method)[0] == 200
    assert [effect.method for effect in receiver.effects()] == ["GET", "HEAD"]


def test_the_first_result_is_replayed(receiver: Receiver) -> None:
    """Same key, same payload: the same status and body, and no further effect."""
    first = send(receiver, key='"k"')
    assert send(receiver, key='"k"') == first
    assert send(receiver, key="k") == first  # unquoted, as many clients send it
    assert len(receiver.effects()) == 1
    assert [each.outcome for each in receiver.requests()] == ["effect", "replayed", "replayed"]


@pytest.mark.parametrize(
    "changed", [{"body": b'{"amount":2}'}, {"path": "/refund"}, {"method": "PUT"}]
)
def test_a_key_with_another_payload_is_refused(
    receiver: Receiver, changed: dict[str, str | bytes]
) -> None:
    """Method, path and body are the payload; 422 makes no effect and leaves the key as it is."""
    first = send(receiver, key="k")
    assert send(receiver, key="k", **changed)[0] == 422  # type: ignore[arg-type]
    assert send(receiver, key="k") == first
    assert len(receiver.effects()) == 1


def test_an_unreadable_key_is_refused(receiver: Receiver) -> None:
    """400, no effect; the record keeps the field's text."""
    assert send(receiver, key='"never closed')[0] == 400
    two = b"POST / HTTP/1.1\r\nIdempotency-Key: a\r\nidempotency-key: a\r\n\r\n"
    assert raw(receiver, two).startswith(b"HTTP/1.1 400 ")
    assert receiver.effects() == ()
    assert [(each.outcome, each.key) for each in receiver.requests()] == [
        ("refused", '"never closed'), ("refused", "a, a")
    ]  # fmt: skip


def test_without_a_key_every_request_is_an_effect(receiver: Receiver) -> None:
    """Nothing is guessed from equal payloads."""
    for _ in range(3):
        send(receiver)
    assert len(receiver.effects()) == 3


def test_keys_can_be_ignored(start: Start) -> None:
    """A receiver that does not know the header acts again; the record still names the key."""
    receiver = start(Settings(keys="ignored"))
    for _ in range(2):
        assert send(receiver, key="k")[0] == 200
    assert [effect.key for effect in receiver.effects()] == ["k", "k"]
    assert receiver.ask("k") == KeyAnswer("unknown", False)


def test_a_key_expires_on_the_receivers_own_clock(start: Start) -> None:
    """The machine's clock has no part in it: only ``advance`` moves time."""
    receiver = start(Settings(retention=60))
    send(receiver, key="k")
    assert receiver.advance(59) == 59
    send(receiver, key="k")
    assert len(receiver.effects()) == 1
    assert receiver.ask("k").took_effect == "yes"
    assert receiver.advance(1) == 60
    assert receiver.ask("k").took_effect == "expired"
    assert json.loads(send(receiver, key="k", body=b"other")[1])["id"] == "E2"
    assert [effect.at for effect in receiver.effects()] == [0, 60]


def test_sixteen_at_once_with_one_key_make_one_effect(receiver: Receiver) -> None:
    """Each is answered with the one result, or told that it is in flight."""
    barrier = Barrier(16)

    def call(_: int) -> tuple[int, bytes]:
        barrier.wait(PATIENCE)
        return send(receiver, key="k")

    with ThreadPoolExecutor(16) as pool:
        said = Counter(pool.map(call, range(16)))
    assert len(receiver.effects()) == 1
    assert {status for status, _ in said} <= {200, 409}
    assert len({body for status, body in said if status == 200}) == 1


def test_many_at_once_without_a_key_are_each_an_effect(receiver: Receiver) -> None:
    """Nothing is lost and nothing is doubled among threads."""
    with ThreadPoolExecutor(16) as pool:
        said = list(pool.map(lambda _: send(receiver), range(48)))
    assert Counter(json.loads(body)["id"] for _, body in said) == Counter(
        f"E{number}" for number in range(1, 49)
    )
    assert len(receiver.requests()) == 48


def test_a_key_in_flight_is_a_conflict(receiver: Receiver) -> None:
    """409 while the first request is held; 422 where the payload differs; then the replay."""
    receiver.arm("hold_before")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(send, receiver, key="k")
        held = receiver.wait_held(PATIENCE)
        assert held
        assert receiver.ask("k") == KeyAnswer("no", True)
        assert send(receiver, key="k")[0] == 409
        assert send(receiver, key="k", body=b"other")[0] == 422
        assert receiver.effects() == ()
        receiver.release(held, "answer")
        assert first.result(PATIENCE)[0] == 200
    assert send(receiver, key="k") == first.result()
    assert receiver.ask("k") == KeyAnswer("yes", False)
    assert len(receiver.effects()) == 1


def test_a_canned_answer_is_given_byte_for_byte(start: Start, tmp_path: Path) -> None:
    """To every request that nothing is wrong with."""
    file = tmp_path / "answer.json"
    file.write_bytes(b'{ "id": "ch_1",  "paid": true }')
    receiver = start(Settings(answer=str(file), status=201))
    assert send(receiver, "GET") == send(receiver) == (201, file.read_bytes())


def test_an_answer_without_content_has_no_body(start: Start) -> None:
    """204 is 204, and the connection stays in step."""
    receiver = start(Settings(status=204))
    two = b"POST / HTTP/1.1\r\n\r\nPOST / HTTP/1.1\r\n\r\n"
    assert raw(receiver, two) == b"HTTP/1.1 204 No Content\r\n\r\n" * 2


def test_a_copy_is_served_by_a_second_receiver(start: Start, tmp_path: Path) -> None:
    """The fork of a world: what is done there does not reach the original."""
    receiver = start(Settings(retention=100))
    send(receiver, key="k")
    receiver.advance(40)
    receiver.arm("timeout", 5)
    receiver.snapshot(str(tmp_path / "copy"))
    copy = start(None, "copy")
    assert copy.address != receiver.address
    assert copy.record().strikes == receiver.record().strikes
    assert copy.disarm() == 1
    assert send(copy, key="k") == (200, b'{"id": "E1", "status": "accepted"}\n')
    copy.advance(60)
    assert json.loads(send(copy, key="k")[1])["id"] == "E2"
    assert receiver.ask("k") == KeyAnswer("yes", False)
    assert len(receiver.requests()) == 1


def test_the_next_receiver_in_a_folder_goes_on(start: Start) -> None:
    """Keys, effects and the clock are durable, and the settings stay."""
    first = start(Settings(retention=50))
    send(first, key="k")
    first.advance(49)
    first.stop()
    second = start()
    assert send(second, key="k")[1] == b'{"id": "E1", "status": "accepted"}\n'
    second.advance(1)
    assert json.loads(send(second, key="k")[1])["id"] == "E2"


def test_connections_are_kept(receiver: Receiver) -> None:
    """Many requests on one connection, with and without a body, HEAD among them."""
    with closing(http.client.HTTPConnection(*place(receiver), timeout=PATIENCE)) as connection:
        ports = set()
        for method, body in (("POST", b"x"), ("HEAD", None), ("GET", None), ("PUT", b"")) * 3:
            connection.request(method, "/", body)
            response = connection.getresponse()
            response.read()
            assert response.status == 200
            ports.add(connection.sock.getsockname()[1])
    assert len(ports) == 1
    assert len(receiver.effects()) == 6


def test_what_the_harness_asks_is_refused_where_it_makes_no_sense(receiver: Receiver) -> None:
    """With cause and remedy, and the receiver lives on."""
    with pytest.raises(ReceiverError, match="forward"):
        receiver.advance(-1)
    with pytest.raises(ReceiverError, match="whole number"):
        receiver.advance(1.5)  # type: ignore[arg-type]
    with pytest.raises(ReceiverError, match=r"no POST /\.rcr/effect"):
        receiver._call("effect")
    with pytest.raises(ReceiverError, match="cannot be asked"):
        receiver._call("ask")
    assert send(receiver)[0] == 200


def test_a_caller_does_not_reach_the_harness_by_accident(receiver: Receiver) -> None:
    """The reserved prefix is on the other listener; here it is refused, and makes no effect."""
    assert send(receiver, path="/.rcr/shutdown", body=b"{}")[0] == 404
    assert receiver.effects() == ()
    assert [request.outcome for request in receiver.requests()] == ["refused"]


def test_another_header_can_carry_the_key(start: Start) -> None:
    """Not every API calls it as the draft does; then that name means nothing."""
    receiver = start(Settings(key_header="X-Request-Id"))
    head = b"POST /charge HTTP/1.1\r\nHost: x\r\nx-request-id: k\r\nIdempotency-Key: "
    for other in (b"1", b"2"):
        raw(receiver, head + other + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    assert [request.key for request in receiver.requests()] == ["k", "k"]
    assert len(receiver.effects()) == 1


def test_the_harness_can_have_a_request_repeated(receiver: Receiver) -> None:
    """As it was sent, though nobody sends it."""
    send(receiver, key="k")
    assert receiver.repeat(receiver.requests()[0]).outcome == "replayed"
    send(receiver)
    assert receiver.repeat(receiver.requests()[-1]).outcome == "effect"
    assert len(receiver.effects()) == 3
