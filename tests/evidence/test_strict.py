"""Who doubts evidence reads it with other code than wrote it, and both agree on every byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rcr_probes.evidence import form, seal, strict, write
from rcr_probes.model import Capture, Plan
from tests.evidence import made

COMMITTED = sorted((Path(__file__).resolve().parents[2] / "evidence").glob("*/captures.jsonl"))
SOUND = seal.encode(made.capture(made.P3))
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["fault", "EISDIR", "done", "E1", 0, 1, -1, 0.0, "", [], {}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def written(data: bytes) -> bytes | None:
    """What the writer's code gives back of a line; None where it is no capture."""
    try:
        return msgspec.json.encode(msgspec.json.decode(data, type=Capture))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def doubted(data: bytes) -> bytes | None:
    """The same, by the doubter's code."""
    try:
        return strict.encoded(strict.decoded(data, Capture))
    except strict.Unreadable:
        return None


@st.composite
def altered(draw: st.DrawFn) -> bytes:
    """A capture's line with one value put in place of another, or one key taken out."""
    root = json.loads(SOUND)
    ways = list(_ways(root))
    place, key = draw(st.sampled_from(ways))
    if isinstance(place, dict) and draw(st.booleans()):
        del place[key]
    else:
        place[key] = draw(ODD)
    return msgspec.json.encode(root)


def _ways(value: Any) -> Any:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _ways(inner)


@given(altered())
@settings(max_examples=300)
def test_both_read_the_same_of_an_altered_capture(line: bytes) -> None:
    """What the one refuses, the other refuses; what both read, both write alike."""
    assert doubted(line) == written(line)


@given(st.binary(max_size=60) | st.integers(0, len(SOUND)).map(lambda n: SOUND[:n]))
def test_both_refuse_what_is_no_capture(data: bytes) -> None:
    """Bytes, and a line that was cut."""
    assert written(data) is None or data.startswith(SOUND.rstrip())
    assert doubted(data) == written(data)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_written_as_the_writer_writes_it(value: float) -> None:
    """Times are the only floats, and their digits are part of a line."""
    assert strict.number(value).encode() == msgspec.json.encode(value)


@given(st.dictionaries(st.text(max_size=9), ODD, max_size=4))
def test_a_small_file_is_written_as_the_writer_writes_it(value: dict[str, Any]) -> None:
    """Indentation, escapes and letters of every script."""
    assert strict.encoded(value, indented=True) == write.encoded(value)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_committed_evidence_is_read_alike_to_the_byte(path: Path) -> None:
    """Every capture: the same nouns, the same line, the same digest over its facts."""
    plan = path.with_name(form.PLAN).read_bytes()
    assert strict.encoded(strict.decoded(plan, Plan), indented=True) == plan
    for line in path.read_bytes().splitlines():
        capture = strict.decoded(line, Capture)
        assert capture == seal.decode(line, path.name)
        assert strict.encoded(capture) == line
        found = form.facts_sha256(capture.measurement, capture.judgement)
        assert found == capture.facts_sha256


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'"\\ud800"', "surrogates"),
        (b"1e999", "too large"),
        (b"NaN", "no JSON"),
        (b"\xff", "utf-8"),
        (b"9" * 10_000, "digits"),
    ],
)
def test_json_that_no_writer_writes_is_refused(data: bytes, says: str) -> None:
    """Each with its reason, and in no time."""
    with pytest.raises(strict.Unreadable, match=says):
        strict.parsed(data)


def test_of_a_repeated_key_the_last_value_stands() -> None:
    """As where the writer's code reads it; written again, it is not what was read."""
    data = b'{"a":1,"a":2}'
    assert strict.parsed(data) == msgspec.json.decode(data) == {"a": 2}
    assert strict.encoded(strict.parsed(data)) != data


def test_a_misfit_says_where_it_is_and_what_was_wanted() -> None:
    """The way through the line, and the kind."""
    root = json.loads(SOUND)
    root["measurement"]["events"][1]["seq"] = "1"
    with pytest.raises(strict.Unreadable) as raised:
        strict.decoded(json.dumps(root).encode(), Capture)
    said = "$.measurement.events[1].seq: a whole number is expected, not a text"
    assert str(raised.value) == said
