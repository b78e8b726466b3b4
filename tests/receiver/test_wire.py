"""HTTP that nobody should send: it is refused with a status, in time, and nothing breaks."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rcr_probes.receiver import Receiver, Request, Settings
from rcr_probes.receiver.wire import BODY_LIMIT, HEAD_LIMIT
from tests.receiver.calls import MEMORY, PATIENCE, connect, raw, send, until, until_end
from tests.receiver.conftest import Start

WITHIN = 0.3  # seconds in which a request must be whole here


@pytest.fixture(scope="module")
def shared() -> Iterator[Receiver]:
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        Receiver(folder, Settings(read_within=WITHIN, bound=5)) as receiver,
    ):
        yield receiver


@pytest.fixture
def receiver(shared: Receiver) -> Iterator[Receiver]:
    """One receiver for all: each test finds it alive and drained, and leaves it so."""
    yield shared
    shared.wait_idle(PATIENCE)
    assert send(shared)[0] == 200


def new(receiver: Receiver, before: int) -> list[Request]:
    """The requests that came since."""
    receiver.wait_idle(PATIENCE)
    return list(receiver.requests()[before:])


def serves(receiver: Receiver) -> bool:
    try:
        return send(receiver)[0] == 200
    except OSError:
        return False


def count(receiver: Receiver) -> int:
    receiver.wait_idle(PATIENCE)
    return len(receiver.requests())


REFUSED = {
    "no HTTP": (b"hello\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 400),
    "not UTF-8": (b"\xff\xfe\xfd / HTTP/1.1\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "only empty lines": (b"\r\n" * 9, 400),
    "no path": (b"POST charge HTTP/1.1\r\n\r\n", 400),
    "asterisk": (b"POST * HTTP/1.1\r\n\r\n", 400),
    "control in path": (b"POST /\x00 HTTP/1.1\r\n\r\n", 400),
    "CONNECT": (b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", 501),
    "no field": (b"POST / HTTP/1.1\r\nno colon here\r\n\r\n", 400),
    "folded": (b"POST / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
    "space before colon": (b"POST / HTTP/1.1\r\nContent-Length : 1\r\n\r\nx", 400),
    "control in field": (b"POST / HTTP/1.1\r\nA: b\x00\r\n\r\n", 400),
    "bare CR": (b"POST / HTTP/1.1\r\nA: b\rContent-Length: 3\r\n\r\n", 400),
    "length no number": (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
    "length negative": (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
    "length underscored": (b"POST / HTTP/1.1\r\nContent-Length: 1_0\r\n\r\n0123456789", 400),
    "length empty": (b"POST / HTTP/1.1\r\nContent-Length:\r\n\r\n", 400),
    "lengths differ": (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
    "length and chunks": (
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400
    ),
    "huge length": (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
    "absurd length": (b"POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n" % (b"9" * 400), 400),
    "gzip coding": (b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "chunk without size": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
    "chunk too long": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
    "huge chunk": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n", 413),
    "expectation": (b"POST / HTTP/1.1\r\nExpect: a miracle\r\n\r\n", 417),
    "huge line": (b"POST /" + b"a" * HEAD_LIMIT + b" HTTP/1.1\r\n\r\n", 431),
    "huge field": (b"POST / HTTP/1.1\r\nA: " + b"a" * HEAD_LIMIT + b"\r\n\r\n", 431),
    "many fields": (b"POST / HTTP/1.1\r\n" + b"A: b\r\n" * HEAD_LIMIT + b"\r\n", 431),
    "reserved": (b"POST /.rcr/shutdown HTTP/1.1\r\n\r\n", 404),
}  # fmt: skip


@pytest.mark.parametrize(("data", "status"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused(receiver: Receiver, data: bytes, status: int) -> None:
    """One answer with that status, the connection ends, no effect; the refusal is recorded."""
    before, effects = count(receiver), len(receiver.effects())
    # What follows on the same connection is never read as a request.
    answer = raw(receiver, data + b"POST /smuggled HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1 ") == 1 or status == 505
    assert b"Connection: close" in answer
    assert [(each.outcome, each.status) for each in new(receiver, before)] == [("refused", status)]
    assert len(receiver.effects()) == effects


CUT = {
    "in the line": b"POST /cha",
    "in the head": b"POST / HTTP/1.1\r\nA: b",
    "before the body": b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
    "in the body": b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n1234",
    "in a chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n1234",
    "before the last chunk": b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n",
}


@pytest.mark.parametrize("data", CUT.values(), ids=CUT)
def test_a_client_that_leaves_in_the_middle_makes_no_effect(
    receiver: Receiver, data: bytes
) -> None:
    """It is recorded as incomplete, and gets no answer."""
    before, effects = count(receiver), len(receiver.effects())
    assert raw(receiver, data) == b""
    assert [each.outcome for each in new(receiver, before)] == ["incomplete"]
    assert len(receiver.effects()) == effects


@pytest.mark.parametrize("data", CUT.values(), ids=CUT)
def test_a_slow_client_is_not_waited_for(receiver: Receiver, data: bytes) -> None:
    """408 after the time that a request may take, however it drips."""
    with connect(receiver) as sock:
        begun = time.monotonic()
        sock.sendall(data)
        assert until_end(sock).startswith(b"HTTP/1.1 408 ")
        assert WITHIN <= time.monotonic() - begun < WITHIN + 2


def test_a_dripping_client_is_not_waited_for(receiver: Receiver) -> None:
    """The time is for the whole request, and begins with its first byte, not with each."""
    with connect(receiver) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\n")
        begun = time.monotonic()
        sock.settimeout(0.02)
        answer = b""
        while not answer and time.monotonic() < begun + PATIENCE:
            sock.sendall(b"A: b\r\n")
            try:
                answer = sock.recv(100)
            except TimeoutError:
                continue
        assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_client_that_sends_nothing_is_nobodys_request(receiver: Receiver) -> None:
    """It may rest or leave; the receiver is idle all the while."""
    before = count(receiver)
    with connect(receiver):
        receiver.wait_idle(PATIENCE)
    assert new(receiver, before) == []


def test_half_a_request_is_something_in_flight(receiver: Receiver) -> None:
    """Nobody may conclude that a key was not used while bytes are here that may carry it."""
    before = count(receiver)
    with connect(receiver) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nIdempotency-Key: half\r\n")
        until(lambda: receiver.ask("half").in_flight)  # the kernel may still be carrying it
        assert not receiver._call("wait_idle", 0)
        sock.sendall(b"\r\n")
        until(lambda: receiver.ask("half").took_effect == "yes")
    until(lambda: not receiver.ask("half").in_flight)  # its answer is sent after its effect
    assert [each.outcome for each in new(receiver, before)] == ["effect"]


ACCEPTED = {
    "HTTP/1.0": b"POST /a HTTP/1.0\r\n\r\n",
    "bare newlines": b"POST /a HTTP/1.1\n\n",
    "empty line first": b"\r\nPOST /a HTTP/1.1\r\n\r\n",
    "absolute form": b"POST http://example.org/a HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "same length twice": b"POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "odd method": b"ch!rge /a HTTP/1.1\r\n\r\n",
    "Latin-1 field": b"POST /a HTTP/1.1\r\nX-Name: \xe9\xff\r\n\r\n",
    "chunks": (
        b"POST /a HTTP/1.1\r\ntransfer-encoding: Chunked\r\n\r\n3;x=1\r\nabc\r\n00\r\nT: x\r\n\r\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED)
def test_unusual_but_right(receiver: Receiver, data: bytes) -> None:
    """It is one request, and one effect."""
    before = count(receiver)
    assert raw(receiver, data).startswith(b"HTTP/1.1 200 ")
    assert [(each.outcome, each.path) for each in new(receiver, before)] == [("effect", "/a")]


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://h", "/"),
        (b"HTTPS://h:1?a=b", "/?a=b"),
        (b"http://h/x?y#z", "/x?y#z"),
        (b"/%ff?\xe9", "/%ff?é"),
        (b"//x", "//x"),
    ],
)
def test_targets_in_origin_form(receiver: Receiver, target: bytes, path: str) -> None:
    """An absolute target is the same payload as its path."""
    before = count(receiver)
    raw(receiver, b"POST " + target + b" HTTP/1.1\r\n\r\n")
    assert [each.path for each in new(receiver, before)] == [path]


def test_options_of_the_whole_server(receiver: Receiver) -> None:
    """The only asterisk that means something."""
    assert raw(receiver, b"OPTIONS * HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_chunks_are_one_payload(receiver: Receiver) -> None:
    """The payload is the bytes, however they were cut."""
    before = count(receiver)
    head = b"POST / HTTP/1.1\r\nIdempotency-Key: chunks\r\n"
    raw(receiver, head + b"Content-Length: 3\r\n\r\nabc")
    chunked = b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
    raw(receiver, head + chunked)
    assert [each.outcome for each in new(receiver, before)] == ["effect", "replayed"]


def test_head_has_no_body(receiver: Receiver) -> None:
    """But the length of what a GET would have."""
    head, _, rest = raw(receiver, b"HEAD / HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
    assert b"Content-Length: 17" in head
    assert rest == b""


def test_pipelined_requests_are_answered_in_order(receiver: Receiver) -> None:
    """Each is one effect; the last one ends the connection."""
    before = count(receiver)
    one = b"POST /1 HTTP/1.1\r\nContent-Length: 2\r\n\r\nab"
    two = b"GET /2 HTTP/1.1\r\n\r\n"
    last = b"POST /3 HTTP/1.1\r\nConnection: Close\r\n\r\n"
    with connect(receiver) as sock:
        sock.sendall(one + two + last + b"POST /never HTTP/1.1\r\n\r\n")
        assert until_end(sock).count(b"HTTP/1.1 200 ") == 3
    assert [each.path for each in new(receiver, before)] == ["/1", "/2", "/3"]


def test_an_old_client_keeps_its_connection_only_if_it_says_so(receiver: Receiver) -> None:
    """HTTP/1.0 ends with its answer."""
    with connect(receiver) as sock:
        sock.sendall(b"POST / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        sock.sendall(b"POST / HTTP/1.0\r\n\r\n")
        assert until_end(sock).count(b"HTTP/1.1 200 ") == 2


def test_who_waits_for_100_gets_it(receiver: Receiver) -> None:
    """And a payload that is too large is refused before it is sent."""
    head = b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with connect(receiver) as sock:
        sock.sendall(head % 3)
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"abc")
        sock.shutdown(socket.SHUT_WR)
        assert until_end(sock).startswith(b"HTTP/1.1 200 ")
    assert raw(receiver, head % (BODY_LIMIT + 1)).startswith(b"HTTP/1.1 413 ")


def test_the_largest_payload_is_taken(start: Start) -> None:
    """And one byte more is refused, with an answer that the client can read."""
    receiver = start()
    assert send(receiver, body=b"x" * BODY_LIMIT)[0] == 200
    assert send(receiver, body=b"x" * (BODY_LIMIT + 1))[0] == 413
    assert len(receiver.effects()) == 1


def test_many_idle_connections_keep_nobody_out_for_long(receiver: Receiver) -> None:
    """Past what it can hold, a connection is closed at once; when others leave, it serves again."""
    with ExitStack() as stack:
        held = [stack.enter_context(closing(connect(receiver))) for _ in range(300)]
        receiver.wait_idle(PATIENCE)
        held[-1].settimeout(PATIENCE)
        assert held[-1].recv(1) == b""
    until(lambda: serves(receiver))  # the others may still be leaving


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [b"POST ", b"/ ", b"HTTP/1.1", b"\r\n", b"\n", b"Content-Length: ", b"5", b": ",
                 b"Transfer-Encoding: chunked\r\n", b"Idempotency-Key: k\r\n", b"0\r\n\r\n"]
            ),
        ),
        max_size=14,
    )
)  # fmt: skip
def test_no_bytes_break_it(shared: Receiver, pieces: list[bytes]) -> None:
    """Whatever comes, the connection ends in time with well-formed answers or none."""
    try:
        answer = raw(shared, b"".join(pieces))
    except OSError:  # it may have ended before all was sent
        return
    assert answer == b"" or answer.startswith(b"HTTP/1.1 ")
