"""What an approval is bound to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import rfc8785
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rcr_probes.reference.digest import meaning_digest, real_target, request_digest, stored
from rcr_probes.request import effective_target

REQUEST = {"executor": "local-marker", "action": "append", "target": "marker-0"}

# A slow machine is no failure, and a test writes nothing into the folder it is started from.
relaxed = settings(database=None)
names = st.text(max_size=5)
leaves = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | names
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)
requests = st.dictionaries(names.filter(lambda name: name != "session_id"), values, max_size=5)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: reversed_keys(value[name]) for name in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def same_json(one: Any, other: Any) -> bool:
    """Equal as JSON: Python takes True for 1, JSON does not."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and one == other


def test_digest_is_the_sha256_of_canonical_json() -> None:
    """The digest is sha256: over RFC 8785 bytes, which are written out here."""
    canonical = b'{"action":"append","executor":"local-marker","target":"marker-0"}'
    assert request_digest(REQUEST) == "sha256:" + hashlib.sha256(canonical).hexdigest()


@relaxed
@given(requests)
def test_order_of_keys_does_not_matter(request_: dict[str, Any]) -> None:
    """The same request with its keys in another order, at every depth, has the same digest."""
    assert request_digest(reversed_keys(request_)) == request_digest(request_)


@relaxed
@given(requests, values)
def test_session_does_not_matter(request_: dict[str, Any], session: object) -> None:
    """A session id, whatever it is, leaves the digest as it was."""
    assert request_digest({**request_, "session_id": session}) == request_digest(request_)


@relaxed
@given(requests, values)
def test_session_id_further_in_matters(request_: dict[str, Any], session: object) -> None:
    """Only the request's own session id is left out, not one inside of a value."""
    inside = {**request_, "inner": {"session_id": session}}
    assert request_digest(inside) != request_digest({**request_, "inner": {}})


@relaxed
@given(requests, st.data())
def test_any_other_change_matters(request_: dict[str, Any], data: st.DataObject) -> None:
    """A value that is replaced, added or taken away changes the digest."""
    name = data.draw(st.sampled_from(sorted(request_)) if request_ else st.just("added"))
    value = data.draw(values)
    assume(name not in request_ or not same_json(request_[name], value))
    assert request_digest({**request_, name: value}) != request_digest(request_)
    if name in request_:
        left = {other: request_[other] for other in request_ if other != name}
        assert request_digest(left) != request_digest(request_)


MEANT = ("executor", "action", "target", "relative", "session_id")


@relaxed
@given(requests, values)
def test_what_the_action_does_not_depend_on_is_no_meaning(
    request_: dict[str, Any], value: object
) -> None:
    """A credential, or any other field, may be minted anew."""
    asked = {**REQUEST, **{k: v for k, v in request_.items() if k not in MEANT}}
    assert meaning_digest({**asked, "credential": value}) == meaning_digest(REQUEST)
    assert meaning_digest(reversed_keys(asked)) == meaning_digest(REQUEST)


@pytest.mark.parametrize("name", ["executor", "action", "target"])
def test_what_the_action_depends_on_is_its_meaning(name: str) -> None:
    """Another one is another request, and so is one that is left out."""
    left = {other: REQUEST[other] for other in REQUEST if other != name}
    found = {meaning_digest(one) for one in (REQUEST, left, {**REQUEST, name: "another"})}
    assert len(found) == 3


def test_a_session_has_a_meaning_where_the_target_depends_on_it() -> None:
    """And nowhere else; the real target is the one on which the executor acts."""
    sessions: list[dict[str, Any]]
    sessions = [{**REQUEST, "session_id": one} for one in ("session-1", "session-2")]
    relative: list[dict[str, Any]] = [{**asked, "relative": True} for asked in sessions]
    assert len({meaning_digest(one) for one in sessions}) == 1
    assert len({meaning_digest(one) for one in (*sessions, *relative)}) == 3
    for asked in (*sessions, *relative):
        plain = {**REQUEST, "target": effective_target(asked)}
        assert meaning_digest(asked) == meaning_digest(plain)


def test_what_is_stored_keeps_the_session_where_it_has_a_meaning() -> None:
    """Else a record could not say what was approved."""
    asked = {**REQUEST, "session_id": "session-1"}
    assert stored(asked) == REQUEST
    relative = {**asked, "relative": True}
    assert stored(relative) == relative
    assert real_target(stored(relative)) == effective_target(relative)


@pytest.mark.parametrize("digest", [request_digest, meaning_digest])
@pytest.mark.parametrize("value", [float("nan"), 2**53, b"bytes", {1: "one"}, "\ud800"])
def test_what_is_not_json_has_no_digest(
    digest: Callable[[Mapping[str, Any]], str], value: object
) -> None:
    """A value that canonical JSON cannot hold is refused, not guessed at."""
    with pytest.raises(rfc8785.CanonicalizationError):
        digest({**REQUEST, "value": value})
