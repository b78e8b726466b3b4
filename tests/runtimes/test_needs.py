"""What is missing is said with what to type, and leaves everything else as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes import plan
from rcr_probes.errors import RuntimeMissing, installing
from rcr_probes.report import adapters
from rcr_probes.report.texts import LANGS
from rcr_probes.runtime import load, offered
from rcr_probes.runtimes import KNOWN, Need
from rcr_probes.runtimes.needs import PROGRAMS, program

ABSENT = Need("absent", ("no-such-distribution",), ("redis-server",))


@pytest.mark.parametrize("need", KNOWN, ids=lambda need: need.name)
def test_each_adapter_loads_or_says_what_to_type(need: Need) -> None:
    """Importing an adapter needs nothing of what it adapts."""
    __import__(need.runtime.partition(":")[0])
    if need.missing():
        with pytest.raises(RuntimeMissing) as refused:
            load(need.runtime)
        for typed in need.remedies():
            assert typed in refused.value.remedy
    else:
        versions = offered(load(need.runtime), "versions")()
        assert versions.keys() == {*need.packages, *need.programs}
        assert all(versions.values())


def test_a_program_is_missed_like_a_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Both are named, with the command that installs each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ABSENT.missing() == ("no-such-distribution", "redis-server")
    with pytest.raises(RuntimeMissing, match="no-such-distribution and redis-server") as refused:
        ABSENT.require()
    assert PROGRAMS["redis-server"] in refused.value.remedy
    assert installing("absent") in refused.value.remedy


def test_a_program_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it is on no path, a variable says where it is."""
    named = tmp_path / "server"
    named.write_text("#!/bin/sh\necho v=7.1.2\n")
    named.chmod(0o700)
    monkeypatch.setenv("RCR_REDIS_SERVER", str(named))
    assert program("redis-server") == str(named)
    assert Need("x", (), ("redis-server",)).versions() == {"redis-server": "7.1.2"}


def test_what_is_not_installed_is_left_out_of_a_plan_and_said(tmp_path: Path) -> None:
    """The cells of the other runtimes stay; where none is left, that is an error."""
    cells = '[[cells]]\npoint = "none"\nfault = "none"\n'
    gone = "tests.runtimes.test_needs:gone"
    both = tmp_path / "both.toml"
    both.write_text(f'{cells}\n{cells}runtime = "{gone}"\n')
    left, missing = plan.read_installed(both)
    assert [cell.runtime for cell in left.cells] == ["rcr_probes.reference:approval"]
    assert "no-such-distribution" in missing[0].cause
    alone = tmp_path / "alone.toml"
    alone.write_text(f'{cells}runtime = "{gone}"\n')
    with pytest.raises(RuntimeMissing):
        plan.read_installed(alone)
    with pytest.raises(RuntimeMissing):
        plan.read(both)


def gone() -> None:
    """The factory of a runtime that needs what nobody has."""
    ABSENT.require()


def test_the_plan_of_real_runtimes_has_them_all_each_with_its_control() -> None:
    """Every adapter, under a kill after the action, with and without dedupe."""
    cells = plan._written("runtimes").cells
    assert len(set(cells)) == len(cells)
    for need in KNOWN:
        own = [cell for cell in cells if cell.runtime == need.runtime]
        assert any(cell.fault == "none" for cell in own), need.name
        killed = {c.dedupe for c in own if (c.point, c.fault) == ("after_action", "kill")}
        assert killed == {"none", "operation_key"}, need.name


@pytest.mark.parametrize("lang", LANGS)
def test_the_list_says_for_each_whether_it_runs_here(lang: str) -> None:
    """A row for each adapter; a remedy for each that lacks something."""
    rows = adapters.drawn(lang).rows
    assert [row[0] for row in rows] == [need.name for need in KNOWN]
    assert len(list(adapters.remedies(lang))) == sum(bool(need.missing()) for need in KNOWN)
