"""The file that describes a runtime in any language: a wrong one is refused before a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rcr_probes.errors import RuntimeUnusable
from rcr_probes.runtime import load
from tests.runtimes.spoken import DESCRIBED, toml

WRONG: Mapping[str, tuple[Mapping[str, Any] | str, str]] = {
    "no command": ({"command": None}, "lacks command"),
    "no says": ({"says": None}, "lacks says"),
    "an empty command": ({"command": []}, "has no program"),
    "a command in words": ({"command": "node runtime.mjs"}, "not a list of texts"),
    "a key": ({"recovery": ["again"]}, "Did you mean 'recoveries'"),
    "a program": ({"command": ["no-such-program"]}, "'no-such-program' was not found"),
    "a script": ({"command": ["./nowhere.sh"]}, "'./nowhere.sh' was not found"),
    "a script that is none": ({"command": ["./spoken.py"]}, "cannot be run"),
    "points": ({"points": ["after_action"]}, "points is .*, not a table"),
    "a point": ({"points": {"aftr_action": ["kill"]}}, "'aftr_action' is no point"),
    "a kind": ({"points": {"after_action": ["kil"]}}, "Did you mean 'kill'"),
    "kinds": ({"points": {"after_action": "kill"}}, "points.after_action is 'kill'"),
    "a word of says": ({"says": {"done": "finished"}}, "word for the state 'done'"),
    "recoveries": ({"recoveries": [1]}, "recoveries is"),
    "a variant": ({"variants": ["Not a word"]}, "variants is"),
    "no variant": ({"variants": []}, "variants is empty; leave it out"),
    "a variant twice": ({"variants": ["one", "one"]}, "variants names one twice"),
    "no state": ({"says": {}}, "says explains no state"),
    "a way that all have": ({"recoveries": ["again"]}, "'again' is a way that every runtime has"),
    "no way": ({"recoveries": ["resume", "never"]}, "'never' is a way that every runtime has"),
    "a plan": ('name = "p"\n[[cells]]\npoint = "none"\n', "is a plan: rcr run mine/runtime.toml"),
    "TOML": ("command = [", "is not TOML"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_description_is_refused_with_what_to_do(described: Path, wrong: str) -> None:
    """Before anything runs, and with the file and the key."""
    given, why = WRONG[wrong]
    if isinstance(given, str):
        text = given
    else:
        text = toml({k: v for k, v in {**DESCRIBED, **given}.items() if v is not None})
    (described / "runtime.toml").write_text(text)
    with pytest.raises(RuntimeUnusable, match=why) as refused:
        load("mine/runtime.toml")
    assert "runtime.toml" in str(refused.value)


def test_a_description_that_is_not_there_is_refused() -> None:
    """The path is what the plan says, from the current directory."""
    with pytest.raises(RuntimeUnusable, match="no description of a runtime at nowhere"):
        load("nowhere/runtime.toml")
