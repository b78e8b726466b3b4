"""Idempotency keys without sockets: the header, the rule, and the store against a tiny model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, rule

from rcr_probes.receiver import Settings, keys
from rcr_probes.receiver.store import Store
from tests.receiver.calls import MEMORY


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('"8e03978e-40d5-43e8-bc93-6894a57f9324"', "8e03978e-40d5-43e8-bc93-6894a57f9324"),
        ("8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324"),
        ('  "a b"\t', "a b"),
        (r'"say \"no\" \\"', 'say "no" \\'),
        ('"k";v=1;last', "k"),
        ("order:7/x, y", "order:7/x, y"),
        ("k" * 255, "k" * 255),
    ],
)
def test_a_key_is_read_with_and_without_quotes(text: str, key: str) -> None:
    """The draft asks for a structured-field string; real clients also send it bare."""
    assert keys.read_key([text]) == key


def test_no_field_is_no_key() -> None:
    """A request without the field has no key, which is not an empty one."""
    assert keys.read_key([]) is None


@pytest.mark.parametrize(
    "text",
    ["", " ", '""', '"', '"a', '"a"b', '"a", "b"', 'a"b', r'"\n"', "k" * 256, "é", '"é"', "a\tb"],
)
def test_what_is_no_key_is_told_so(text: str) -> None:
    """An unreadable key is an error of the client's, not a key and not none."""
    with pytest.raises(keys.BadKey):
        keys.read_key([text])


def test_two_fields_are_no_key() -> None:
    """The draft forbids more than one field in a request."""
    with pytest.raises(keys.BadKey):
        keys.read_key(["a", "a"])


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=255))
def test_every_printable_key_survives_its_quotes(key: str) -> None:
    """Quoting as RFC 8941 says and reading gives the key back."""
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    assert keys.read_key([f'"{quoted}"']) == key


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Whatever a field holds, it is a key or a BadKey."""
    try:
        key = keys.read_key([text])
    except keys.BadKey:
        return
    assert key
    assert len(key) <= keys.LONGEST


PAYLOAD = keys.Payload("POST", "/charge", "00")
OTHER = keys.Payload("POST", "/charge", "01")


@pytest.mark.parametrize(
    ("claim", "payload", "now", "decision"),
    [
        (None, PAYLOAD, 0, "act"),
        (keys.Claim(2, PAYLOAD, None), PAYLOAD, 10**9, "act"),  # its own claim
        (keys.Claim(1, PAYLOAD, None), PAYLOAD, 10**9, "conflict"),
        (keys.Claim(1, PAYLOAD, None), OTHER, 0, "mismatch"),
        (keys.Claim(1, PAYLOAD, 5), PAYLOAD, 5, "replay"),
        (keys.Claim(1, PAYLOAD, 5), PAYLOAD, 14, "replay"),
        (keys.Claim(1, PAYLOAD, 5), PAYLOAD, 15, "act"),  # forgotten
        (keys.Claim(1, PAYLOAD, 5), OTHER, 14, "mismatch"),
        (keys.Claim(1, PAYLOAD, 5), OTHER, 15, "act"),
        (keys.Claim(1, keys.Payload("PUT", "/charge", "00"), 5), PAYLOAD, 5, "mismatch"),
        (keys.Claim(1, keys.Payload("POST", "/refund", "00"), 5), PAYLOAD, 5, "mismatch"),
    ],
)
def test_the_rule(claim: keys.Claim | None, payload: keys.Payload, now: int, decision: str) -> None:
    """First time, retry, concurrent, other payload, forgotten: the draft's scenarios."""
    assert keys.decide(claim, 2, payload, now, 10) == decision


RETENTION = 10


@dataclass
class Known:
    """What the model remembers of a key: the first payload, its result, and since when."""

    payload: str
    owner: int
    result: bytes | None = None
    since: int = 0


@dataclass
class Model:
    """The whole of the rules in a dictionary."""

    clock: int = 0
    effects: int = 0
    known: dict[str, Known] = field(default_factory=dict)

    def standing(self, key: str) -> Known | None:
        known = self.known.get(key)
        if known and known.result is not None and self.clock - known.since >= RETENTION:
            return None
        return known


class Keys(RuleBasedStateMachine):
    """Requests that arrive, are handled later or never, while the clock moves."""

    arrived = Bundle("arrived")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.store = Store(self.folder.name, Settings(retention=RETENTION))
        self.model = Model()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            record = self.store.record()
            assert len(record.effects) == self.model.effects
            assert len({effect.request for effect in record.effects}) == self.model.effects
            self.store.close()
            self.folder.cleanup()

    @rule(target=arrived, key=st.sampled_from("ab"), payload=st.sampled_from("xy"))
    def arrive(self, key: str, payload: str) -> tuple[int, str, str]:
        arrival = self.store.arrive("POST", "/", [key], payload, 1)
        if self.model.standing(key) is None:
            self.model.known[key] = Known(payload, arrival.request)
        return arrival.request, key, payload

    @rule(one=consumes(arrived))
    def handle(self, one: tuple[int, str, str]) -> None:
        request, key, payload = one
        answer = self.store.handle(request)
        known = self.model.standing(key)
        if known is None:
            known = self.model.known[key] = Known(payload, request)
        if known.owner == request:
            self.model.effects += 1
            known.result, known.since = answer.body, self.model.clock
            assert f'"E{self.model.effects}"'.encode() in answer.body
            assert answer.status == 200
        elif known.payload != payload:
            assert answer.status == 422
        elif known.result is None:
            assert answer.status == 409
        else:
            assert (answer.status, answer.body) == (200, known.result)
        self.store.end(request, True)

    @rule(one=consumes(arrived))
    def drop(self, one: tuple[int, str, str]) -> None:
        request, key, _ = one
        self.store.end(request, False, "dropped")
        known = self.model.known.get(key)
        if known and known.owner == request:
            del self.model.known[key]

    @rule(seconds=st.sampled_from([0, 1, RETENTION - 1, RETENTION]))
    def advance(self, seconds: int) -> None:
        self.model.clock += seconds
        assert self.store.advance(seconds) == self.model.clock

    @rule(key=st.sampled_from("ab"))
    def ask(self, key: str) -> None:
        known = self.model.standing(key)
        if known and known.result is not None:
            assert self.store.ask(key).took_effect == "yes"
        else:
            assert self.store.ask(key).took_effect in ("no", "expired")
        if known and known.result is None:
            assert self.store.ask(key).in_flight


Keys.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestKeys = Keys.TestCase
