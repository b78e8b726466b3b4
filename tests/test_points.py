"""Points cost nothing and do nothing, unless the process is under probe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rcr_probes import points


@pytest.fixture(autouse=True)
def unwatched() -> Iterator[None]:
    """No test leaves this process under probe."""
    yield
    points.watch(None)


def test_a_point_does_nothing_outside_a_probe() -> None:
    """A runtime may carry its points into production, misspelt ones included."""
    points.reach("after_action")
    points.reach("no_such_point", Path("audit.jsonl"))


def test_a_point_under_probe_tells_its_name_and_the_path_as_text() -> None:
    """The path that an audit point hands over arrives as a string."""
    seen: list[tuple[str, str | None]] = []
    points.watch(lambda name, path: seen.append((name, path)))
    points.reach("start_audit", Path("a") / "audit.jsonl")
    points.reach("response")
    assert seen == [("start_audit", "a/audit.jsonl"), ("response", None)]


def test_what_a_strike_raises_reaches_the_runtime() -> None:
    """The runtime handles an injected error as it handles its own."""

    def strike(name: str, path: str | None) -> None:
        raise OSError(5, name)

    points.watch(strike)
    with pytest.raises(OSError, match="after_action"):
        points.reach("after_action")
