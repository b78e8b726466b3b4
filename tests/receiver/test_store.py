"""The store without sockets: what is settled, what is refused, what a copy holds."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rcr_probes.receiver import ReceiverError, Settings, read_back
from rcr_probes.receiver.keys import written
from rcr_probes.receiver.records import FAULTS, Outcome
from rcr_probes.receiver.store import Store


def came(store: Store, key: str | None = None, method: str = "POST") -> int:
    """A request that arrived and is not handled; its id."""
    return store.arrive(method, "/charge", [] if key is None else [key], "00", 2).request


def outcomes(store: Store) -> list[Outcome | None]:
    return [request.outcome for request in store.record().requests]


_open: list[Store] = []


def opened(folder: Path, settings: Settings | None = None) -> Store:
    """A store that is closed when its test has ended."""
    _open.append(Store(str(folder), settings))
    return _open[-1]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """From Python 3.13 on, a database that nobody closed is told of in some later test."""
    yield
    while _open:
        _open.pop().close()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return opened(tmp_path)


def again(tmp_path: Path, store: Store) -> Store:
    """The store of the process that comes after this one."""
    store.close()
    return opened(tmp_path)


def test_a_request_acts_once(store: Store) -> None:
    """Handling it twice is a mistake of ours, and leaves one effect."""
    request = came(store)
    store.handle(request)
    with pytest.raises(ValueError, match="handled before"):
        store.handle(request)
    assert len(store.record().effects) == 1


def test_effect_and_idempotency_record_are_one_transaction(store: Store) -> None:
    """Where the record cannot be kept, there is no effect either."""
    request = came(store, "k")
    store._sql.execute(
        "CREATE TEMP TRIGGER broken BEFORE INSERT ON claim BEGIN SELECT raise(ABORT, 'full'); END"
    )
    with pytest.raises(Exception, match="full"):
        store.handle(request)
    record = store.record()
    assert record.effects == ()
    assert record.requests[0].outcome is None
    assert [event.what for event in record.events] == ["arrived"]


def test_what_was_not_handled_is_abandoned_and_frees_its_key(tmp_path: Path, store: Store) -> None:
    """A receiver that died over a request never handles it later."""
    came(store, "k")
    store = again(tmp_path, store)
    assert outcomes(store) == ["abandoned"]
    assert store.open_requests() == 0
    assert store.ask("k").took_effect == "no"
    assert not store.ask("k").in_flight
    assert store.handle(came(store, "k")).status == 200


def test_what_was_handled_keeps_its_effect_and_is_closed(tmp_path: Path, store: Store) -> None:
    """An answer that was never sent takes nothing back."""
    store.handle(came(store, "k"))
    store = again(tmp_path, store)
    assert outcomes(store) == ["effect"]
    assert store.open_requests() == 0
    assert store.ask("k").took_effect == "yes"


def test_a_delayed_effect_that_struck_outlives_its_receiver(tmp_path: Path, store: Store) -> None:
    """It is on its way, and lands when it is due; without its proof it never struck."""
    store.arm("delayed_effect", 1, delay=60)
    store.arm("delayed_effect", 2, delay=60)
    struck, _ = came(store, "a"), came(store, "b")
    store.strike(struck)
    store = again(tmp_path, store)
    assert outcomes(store) == [None, "abandoned"]
    assert store.ask("a").in_flight
    store.advance(59)
    assert store.record().effects == ()
    store.advance(1)
    assert [effect.request for effect in store.record().effects] == [struck]
    assert store.open_requests() == 0


def test_delayed_effects_land_in_the_order_in_which_they_are_due(store: Store) -> None:
    """One move of the clock past several lands the earliest first."""
    for nth, delay in ((1, 30), (2, 10)):
        store.arm("delayed_effect", nth, delay)
    for request in (came(store), came(store)):
        store.strike(request)
        store.let_fly(request, "caller")
    store.advance(100)
    assert [effect.request for effect in store.record().effects] == [2, 1]


def test_a_key_that_was_forgotten_took_effect_once(store: Store) -> None:
    """The look-up says expired, also while and after a retry that came to nothing."""
    store.handle(came(store, "k"))
    store.advance(86_400)
    assert store.ask("k").took_effect == "expired"
    retry = came(store, "k")
    assert store.ask("k").in_flight
    store.end(retry, False, "dropped")
    assert store.ask("k").took_effect == "expired"
    store.handle(came(store, "k"))
    assert store.ask("k").took_effect == "yes"
    assert len(store.record().effects) == 2


def test_where_keys_mean_nothing_nothing_is_known_of_them(tmp_path: Path) -> None:
    """Unknown is not no."""
    store = opened(tmp_path, Settings(keys="ignored"))
    for _ in range(2):
        store.handle(came(store, "k"))
    store.handle(came(store, '"not a key'))
    assert store.ask("k").took_effect == "unknown"
    assert len(store.record().effects) == 3


@pytest.mark.parametrize(
    ("fault", "nth", "delay", "why"),
    [
        ("explode", 1, 0, "Unknown strike"),
        ("timeout", 0, 0, "cannot be armed"),
        ("timeout", 2, 1, "cannot be armed"),
        ("delayed_effect", 2, -1, "cannot be armed"),
        ("timeout", 1, 0, "came already"),
        ("timeout", 3, 0, "has a strike"),
    ],
)
def test_a_strike_that_could_never_fire_is_refused(
    store: Store, fault: str, nth: int, delay: int, why: str
) -> None:
    """Arming is never without effect in silence."""
    came(store)
    store.arm("response_lost", 3)
    with pytest.raises(ReceiverError, match=why):
        store.arm(fault, nth, delay)


def test_a_strike_counts_requests_that_can_make_an_effect(store: Store) -> None:
    """What makes none is not counted, and draws none."""
    store.arm("timeout", 2)
    for method in ("GET", "POST", "HEAD", "PUT", "PUT"):
        came(store, method=method)
    record = store.record()
    assert [request.nth for request in record.requests] == [None, 1, None, 2, 3]
    assert [request.fault for request in record.requests] == [None, None, None, "timeout", None]
    assert [(strike.request, strike.proof) for strike in record.strikes] == [(4, None)]


def test_disarming_lifts_what_was_not_drawn(store: Store) -> None:
    """What was drawn stays, with its proof."""
    store.arm("timeout", 1)
    store.arm("timeout", 2)
    request = came(store)
    store.strike(request)
    assert store.disarm() == 1
    record = store.record()
    assert len(record.strikes) == 1
    proof = record.events[-1]
    assert (proof.what, proof.detail, proof.request) == ("struck", "timeout", request)
    assert record.strikes[0].proof == proof.seq


@pytest.mark.parametrize("seconds", [-1, 2**60])
def test_the_clock_moves_forward_only(store: Store, seconds: int) -> None:
    """And it stays a number that every reader of JSON keeps whole."""
    with pytest.raises(ReceiverError, match="clock"):
        store.advance(seconds)


def test_a_copy_is_the_same_world_and_goes_its_own_way(tmp_path: Path, store: Store) -> None:
    """Settings, clock, keys, strikes and records are in it."""
    store.handle(came(store, "k"))
    store.advance(7)
    store.arm("timeout", 5)
    into = str(tmp_path / "copy")
    store.snapshot(into)
    copy = opened(tmp_path / "copy")
    assert copy.settings == store.settings
    assert read_back(into).effects == store.record().effects
    assert copy.record().clock == 7
    assert copy.record().strikes == store.record().strikes
    assert copy.handle(came(copy, "k")).body == b'{"id": "E1", "status": "accepted"}\n'
    copy.handle(came(copy))
    assert len(copy.record().effects) == 2
    assert len(store.record().effects) == 1
    with pytest.raises(ReceiverError, match="No copy"):
        store.snapshot(into)


def test_a_canned_answer_is_copied_with_the_database(tmp_path: Path) -> None:
    """Its file need not be there any more; its bytes are."""
    file = tmp_path / "answer.json"
    file.write_bytes(b'{"charged":true}')
    store = opened(tmp_path, Settings(answer=str(file), status=201))
    file.unlink()
    store = again(tmp_path, store)
    answer = store.handle(came(store, method="GET"))
    assert (answer.status, answer.body) == (201, b'{"charged":true}')


def not_a_database(folder: Path) -> None:
    (folder / "receiver.sqlite").write_text("hello" * 1000)


def another_database(folder: Path) -> None:
    sql = sqlite3.connect(folder / "receiver.sqlite")
    sql.execute("CREATE TABLE mine (id)")
    sql.close()


def held(folder: Path) -> list[str]:
    """The files of a folder that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(descriptor))
    return [path for path in found if path.startswith(str(folder))]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("put", [not_a_database, another_database])
def test_what_is_no_receivers_database_is_refused(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    """It is left as it is, and named."""
    put(tmp_path)
    before = (tmp_path / "receiver.sqlite").read_bytes()
    for use in (Store, read_back):
        with pytest.raises(ReceiverError, match=r"receiver\.sqlite"):
            use(str(tmp_path))
    assert (tmp_path / "receiver.sqlite").read_bytes() == before
    assert held(tmp_path) == []


def test_reading_back_settles_nothing_and_makes_nothing(tmp_path: Path, store: Store) -> None:
    """It is for looking at what a stopped receiver left."""
    came(store, "k")
    assert read_back(str(tmp_path)) == store.record()
    with pytest.raises(ReceiverError, match="does not exist"):
        read_back(str(tmp_path / "elsewhere"))
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": "maybe"},
        {"retention": -1},
        {"retention": 1.5},
        {"status": 101},
        {"status": True},
        {"bound": 0.0},
        {"read_within": float("nan")},
        {"effects_of": ("post",)},
        {"effects_of": ()},
    ],
)
def test_settings_that_make_no_receiver_are_refused(wrong: dict[str, object]) -> None:
    """Each with what is wrong about it."""
    with pytest.raises(ReceiverError, match=next(iter(wrong)).split("_")[0]):
        Settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_answer_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Before anything is served."""
    with pytest.raises(ReceiverError, match=r"nothing\.json"):
        Store(str(tmp_path), Settings(answer=str(tmp_path / "nothing.json")))
    assert held(tmp_path) == []


def test_every_fault_can_be_armed(store: Store) -> None:
    """Each for a request of its own."""
    for nth, fault in enumerate(FAULTS, 1):
        store.arm(fault, nth)
    assert [strike.fault for strike in store.record().strikes] == list(FAULTS)


def test_a_request_is_repeated_as_it_was_sent(store: Store) -> None:
    """Nobody sends it again, and it is handled like one that came: its key is honoured."""
    for key in ("k", None):
        sent = came(store, key)
        store.handle(sent)
        store.end(sent, answered=True)
    with_key, without = store.record().requests
    assert store.repeat(with_key).outcome == "replayed"
    assert store.repeat(without).outcome == "effect"
    assert [request.nth for request in store.record().requests] == [1, 2, 3, 4]
    assert len(store.record().effects) == 3
    assert store.open_requests() == 0


def test_a_repeated_request_draws_no_strike(store: Store) -> None:
    """It asks what a call would do, and is none that a fault is armed for."""
    store.handle(came(store))
    store.arm("hold_before", 2)
    assert store.repeat(store.record().requests[0]).fault is None
    assert store.disarm() == 1


@pytest.mark.parametrize("key", ['a "quoted" \\ key', "plain-1", "\x7f"])
def test_a_key_is_repeated_whatever_it_holds(store: Store, key: str) -> None:
    """Also one that cannot be read is refused again, as the first time."""
    sent = store.arrive("POST", "/charge", [written(key)], "00", 2).request
    store.handle(sent)
    first = store.record().requests[0]
    again = store.repeat(first)
    assert again.key == first.key
    assert again.outcome == {"effect": "replayed", "refused": "refused"}[str(first.outcome)]


def test_what_can_make_no_effect_is_not_repeated(store: Store) -> None:
    """A question has no effect to be doubled."""
    store.handle(came(store, method="GET"))
    with pytest.raises(ReceiverError, match="cannot be repeated"):
        store.repeat(store.record().requests[0])
