"""The private Redis: where it listens, what it keeps, and how its refusal is proven and lifted."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes.runtimes.redis import PrivateRedis, RefusedByRedis, copied
from tests.runtimes.missing import skip_without

skip_without("rq")


def test_it_listens_on_its_socket_alone_and_keeps_what_it_was_told(tmp_path: Path) -> None:
    """No port; a socket's path may be longer than the kernel takes; a later server knows it all."""
    place = tmp_path / ("deep" * 30)
    place.mkdir()
    with PrivateRedis(place) as redis:
        redis.client().set("key", "value")
        listening = redis.client().config_get("*")
        assert (listening["port"], listening["tls-port"]) == ("0", "0")
    with PrivateRedis(place) as redis:
        assert redis.client().get("key") == b"value"


def test_a_refusal_stands_once_it_refused_something_and_until_it_is_lifted(tmp_path: Path) -> None:
    """It outlives the server; lifting takes out its own line, and nothing else."""
    from redis import ResponseError

    refusal = RefusedByRedis(tmp_path)
    with PrivateRedis(tmp_path) as redis:
        assert not refusal.standing()
        refusal.place()
        redis.note_refusals()
        assert not refusal.standing()
        with pytest.raises(ResponseError, match="NOREPLICAS"):
            redis.client().set("key", "value")
        redis.note_refusals()
        assert refusal.standing()
    with PrivateRedis(tmp_path) as redis, pytest.raises(ResponseError, match="NOREPLICAS"):
        redis.client().set("key", "value")
    before = (tmp_path / "redis.conf").read_text().splitlines()
    refusal.lift()
    assert not refusal.standing()
    lifted = (tmp_path / "redis.conf").read_text().splitlines()
    assert set(before) - set(lifted) == {"min-replicas-to-write 1"}
    with PrivateRedis(tmp_path) as redis:
        assert redis.client().set("key", "value")


def test_a_copy_is_a_server_of_its_own(tmp_path: Path) -> None:
    """What is written to it stays in it; where nothing was kept there is none."""
    with copied(tmp_path) as nothing:
        assert nothing is None
    with PrivateRedis(tmp_path) as redis:
        redis.client().set("key", "value")
    with copied(tmp_path) as copy:
        assert copy is not None
        with PrivateRedis(copy) as redis:
            assert redis.client().get("key") == b"value"
            redis.client().set("key", "other")
    with PrivateRedis(tmp_path) as redis:
        assert redis.client().get("key") == b"value"
