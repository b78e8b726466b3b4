"""Errors say the cause and the remedy, and what a caller sees of one is a stable code."""

from __future__ import annotations

import errno
import re
import tomllib
from pathlib import Path

import pytest

from rcr_probes.errors import (
    EvidenceError,
    InjectedFault,
    NotInstalled,
    RcrError,
    UnknownName,
    code_of,
    installing,
)
from rcr_probes.vocabulary import FAULTS

ROOT = Path(__file__).parents[1]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    """The fields are kept, and the text says what to type."""
    error = UnknownName("plan", "artcle", ["article", "locations"])
    assert (error.kind, error.name, error.known) == ("plan", "artcle", ("article", "locations"))
    assert str(error) == (
        "Unknown plan: 'artcle'.\n  Did you mean 'article'? Known: article, locations"
    )


def test_a_name_that_is_near_to_nothing_is_answered_with_what_there_is() -> None:
    """A list of words is whole, up to a length; an empty one is called none."""
    assert "Did you mean" not in str(UnknownName("plan", "zzz", ["article"]))
    assert str(UnknownName("cell", "x", [])).endswith("Known: none")
    assert str(UnknownName("fault", "x", FAULTS)).endswith(f"Known: {', '.join(FAULTS)}")
    assert str(UnknownName("seed", "x", [f"c{n}" for n in range(50)])).endswith("c39 … and 10 more")


def test_a_part_of_one_name_alone_means_it() -> None:
    """A part of several means none of them, and these are what is listed."""
    known = ["01_fault_locations", "03_p3_causal_chain", "04_real_runtimes"]
    assert "Did you mean '03_p3_causal_chain'?" in str(UnknownName("notebook", "03", known))
    said = str(UnknownName("notebook", "al", known))
    assert said.endswith("It is a part of 2 of those known: 03_p3_causal_chain, 04_real_runtimes")


def test_what_has_no_name_among_those_known_is_said_beside_them() -> None:
    """Such as a file of one's own."""
    said = str(UnknownName("plan", "mine", ["article"], "A plan of your own is a file."))
    assert said.endswith("Known: article\n  A plan of your own is a file.")


def test_long_names_are_listed_one_below_the_other() -> None:
    """Cells are found by eye, and how many are not shown is said."""
    cells = [f"completion_audit/audit_is_directory/none/same/resume/seed={n}" for n in range(9)]
    text = str(UnknownName("cell", "x", cells))
    assert text.endswith(f"\n    {cells[7]}\n    … and 1 more")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InjectedFault("response"), "INJECTED_FAULT"),
        (OSError(errno.EISDIR, "is a directory"), "EISDIR"),
        (OSError("no number"), "OSError"),
        (OSError(987654, "no such errno"), "OSError"),
        (KeyError("x"), "KeyError"),
        (SystemExit(3), "SystemExit"),
        (type("Fehlgeschlagen", (Exception,), {})(), "Fehlgeschlagen"),
        (type("none", (Exception,), {})(), "Exception"),
        (type("", (Exception,), {})(), "Exception"),
        (type("E" * 65, (Exception,), {})(), "Exception"),
        (type("\x1b[2J", (Exception,), {})(), "Exception"),
    ],
)
def test_the_code_of_an_error_is_its_own_word_its_errno_or_its_type(
    error: BaseException, code: str
) -> None:
    """An exit status is no code."""
    assert code_of(error) == code


def test_misuse_and_distrust_exit_differently() -> None:
    """Two is misuse, one is evidence that is not to be trusted."""
    assert (RcrError("a", "b").exit_code, EvidenceError("x", "a", "b").exit_code) == (2, 1)


def test_what_is_not_installed_comes_with_what_to_type() -> None:
    """And each extra that is named anywhere is there."""
    typed = f"In the project's folder, type: {installing('parquet')}"
    assert NotInstalled("Parquet needs pyarrow.", "parquet").remedy == typed
    source = "".join(path.read_text("utf-8") for path in (ROOT / "rcr_probes").rglob("*.py"))
    named = re.findall(r'NotInstalled\(.*?"(\w+)"\s*\) from', source, re.DOTALL)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {"dask", "notebooks", "parquet", "publish"} == {*named}
    assert {*named} <= extras["optional-dependencies"].keys()
