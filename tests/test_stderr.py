"""What is told beside the results: whatever comes from elsewhere is text, in the asked language."""

from __future__ import annotations

import errno
import os

import pytest

from rcr_probes.stderr import interrupted, refused, say

Captured = pytest.CaptureFixture[str]


def test_what_comes_from_elsewhere_steers_no_terminal(capsys: Captured) -> None:
    """A line stays a line."""
    say("a\x1b[2J: cause\n  remedy")
    assert capsys.readouterr() == ("", "a\\x1b[2J: cause\n  remedy\n")


def test_only_a_run_can_be_resumed() -> None:
    """With what was typed, but for what would begin anew."""
    typed = ["run", "a plan.toml", "--again", "--lang", "zh"]
    assert interrupted(typed, "en").splitlines() == [
        "rcr: interrupted.",
        "  What is measured is kept. To resume: rcr run 'a plan.toml' --lang zh",
    ]
    assert interrupted(typed, "zh").endswith("请运行：rcr run 'a plan.toml' --lang zh")
    assert interrupted(["check", "evidence"], "zh") == "rcr：已中断。"


def test_what_the_system_refuses_is_said_with_its_place_and_a_remedy() -> None:
    """Of two places, the one that was to be written."""
    one = OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), "from", None, "to")
    assert refused(one) == "to: Not a directory.\n  Name a folder, not a file."


@pytest.mark.parametrize(("code", "option"), [(errno.EMFILE, "-n"), (errno.EFBIG, "-f")])
def test_what_a_limit_refuses_is_answered_with_that_limit(code: int, option: str) -> None:
    """Another place would be refused as well."""
    assert f"ulimit {option} " in refused(OSError(code, os.strerror(code)))
