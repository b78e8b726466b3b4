"""A runtime that breaks the contract is told so, in the words of the rule that it breaks."""

from __future__ import annotations

import contextlib
import inspect
import re
from functools import partial
from pathlib import Path

import pytest

from rcr_probes import conformance as module
from rcr_probes import linux, scratch
from rcr_probes.conformance import Result, conformance
from rcr_probes.errors import RuntimeUnusable
from rcr_probes.report.texts import section, text

SOUND = """
import hashlib, json, os, subprocess, sys, time
from rcr_probes import Recorded, reach

def digest(request):
    meaning = {k: v for k, v in request.items() if k != "session_id"}
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()

class Runtime:
    points = {"before_action": {"exception"}, "completion_audit": {"exception", "kill"}}
    recoveries = ("resume",)
    says = {"done": "done", "missing": "open"}

    def start(self, operation):
        (operation.folder / "approved").write_text(digest(operation.request))
        reach("before_action")
        operation.executor(operation.key, operation.request)
        reach("completion_audit")
        (operation.folder / "state").write_text("done")

    def recover(self, operation, way):
        if self.state(operation).status != "done":
            self.start(operation)

    def state(self, operation):
        stored, approved = operation.folder / "state", operation.folder / "approved"
        return Recorded(
            stored.read_text() if stored.exists() else "missing",
            approved_digest=approved.read_text() if approved.exists() else None,
            current_digest=digest(operation.request),
        )
"""
# What is changed in it → the rule that must then be broken, and a word of the advice.
BREACHES = {
    "calls twice": (
        "operation.executor(operation.key, operation.request)\n        reach",
        "[operation.executor(operation.key, operation.request) for _ in 'ab']\n        reach",
        "exactly one effect",
        "left 2 effects of 2 calls",
    ),
    "fails without a fault": (
        '"state").write_text("done")',
        '"no" / "state").write_text("done")',
        "exactly one effect",
        "ended with ENOENT",
    ),
    "declares a point that it never reaches": (
        'reach("before_action")\n',
        "pass\n",
        "every declared point",
        'Call reach("before_action")',
    ),
    "does not say where its audit is": (
        '"completion_audit": {"exception", "kill"}',
        '"completion_audit": {"audit_is_directory"}',
        "every declared point",
        "did not take hold",
    ),
    "has an audit of another code": (
        "    def recover(",
        "    points = {'completion_audit': {'audit_is_directory'}}\n"
        "    def start(self, operation):\n"
        "        operation.executor(operation.key, operation.request)\n"
        "        reach('completion_audit', operation.folder / 'audit')\n"
        "        if (operation.folder / 'audit').is_dir(): raise LookupError\n"
        "        (operation.folder / 'state').write_text('done')\n"
        "    def recover(",
        "every declared point",
        "the caller saw LookupError",
    ),
    "swallows an exception": (
        'reach("before_action")\n',
        'try: reach("before_action")\n        except BaseException: pass\n',
        "as if nothing had been",
        "Do not catch what reach() raises",
    ),
    "loses a process and says nothing": (
        'reach("completion_audit")\n',
        'os.fork() or (reach("completion_audit"), os._exit(0))\n        os.wait()\n',
        "as if nothing had been",
        "must tell its caller",
    ),
    "reaches a point that it does not declare": (
        '(operation.folder / "state").write_text',
        'reach("after_result")\n        (operation.folder / "state").write_text',
        "every point that is reached",
        "after_result",
    ),
    "fails by a mistake of its own": (
        "operation.executor(operation.key, operation.request)\n",
        "json.dumps({operation.key})\n",
        "exactly one effect",
        "is not JSON serializable",
    ),
    "does not know a way": (
        "if self.state(operation)",
        'way == "again" or self.nothing\n        if self.state(operation)',
        "every way to recover",
        "'resume' ended with AttributeError",
    ),
    "leaves a process behind": (
        'reach("before_action")\n',
        'reach("before_action")\n        subprocess.Popen(["sleep", "60"])\n',
        "leaves no process behind",
        "left processes behind",
    ),
    "never ends": (
        'reach("before_action")\n',
        'reach("before_action")\n        time.sleep(60)\n',
        "leaves no process behind",
        "did not end in time",
    ),
    "cannot say its state": (
        "return Recorded(",
        "return None and Recorded(",
        "can always be read",
        "state() returned None. Return a Recorded. (",
    ),
    "says a state that it does not explain": (
        '"done": "done", "missing"',
        '"missing"',
        "declared in says",
        "'done' occurs",
    ),
    "digests the session": (
        ' if k != "session_id"',
        "",
        "what a request means",
        "in a new session",
    ),
    "digests nothing of it": (
        "for k, v in request.items()",
        "for k, v in ()",
        "what a request means",
        "another target",
    ),
    "digests the order": (
        ", sort_keys=True",
        "",
        "what a request means",
        "another order of keys",
    ),
    "writes only where nothing is": (
        "return Recorded(\n",
        "stored.exists() or stored.touch()\n        return Recorded(\n",
        "writes nothing",
        "changed state",
    ),
    "writes the same again": (
        "return Recorded(\n",
        '(operation.folder / "asked").write_text("")\n        return Recorded(\n',
        "writes nothing",
        "changed asked",
    ),
    "writes when it is asked": (
        "return Recorded(\n",
        '(operation.folder / "asked").write_text(str(time.time()))\n        return Recorded(\n',
        "writes nothing",
        "changed asked",
    ),
}


def held(place: Path, source: str, name: str, monkeypatch: pytest.MonkeyPatch) -> list[Result]:
    """The results of a runtime with this source, in the current directory."""
    (place / f"{name}.py").write_text(source)
    monkeypatch.chdir(place)
    return conformance(f"{name}:Runtime", deadline=3)


def english(result: Result) -> list[str]:
    """The rule, and what is wrong against it."""
    return list(result.lines(partial(text, lang="en")))


def test_a_runtime_that_keeps_the_contract_is_not_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rule is looked at, and none is broken."""
    results = held(tmp_path, SOUND, "sound_runtime", monkeypatch)
    assert [result for result in results if result.wrong] == []
    assert len(results) == len({result.rule for result in results}) == 11


def test_its_cells_stand_where_the_next_run_clears_them_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is killed leaves nothing for ever: they are in the scratch of a run."""
    (tmp_path / "placed_runtime.py").write_text(SOUND)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(scratch, "MEMORY", str(tmp_path))
    seen: set[Path] = set()

    def look(done: int, of: int) -> None:
        seen.update(tmp_path.glob(f"{scratch.PREFIX}*/evidence.cells/*"))

    conformance("placed_runtime:Runtime", deadline=3, progress=look)
    assert seen
    assert list(tmp_path.glob(f"{scratch.PREFIX}*")) == []


@pytest.mark.parametrize("breach", BREACHES, ids=lambda name: name.replace(" ", "-"))
def test_each_breach_is_found_and_said_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breach: str
) -> None:
    """The rule that is broken says so, with what to do."""
    old, new, rule, advice = BREACHES[breach]
    assert SOUND.count(old) == 1
    name = f"breach_{list(BREACHES).index(breach)}"
    results = held(tmp_path, SOUND.replace(old, new), name, monkeypatch)
    (found,) = (said for said in map(english, results) if rule in said[0])
    assert found[0].startswith("wrong")
    assert any(advice in sentence for sentence in found[1:]), found


def test_a_state_that_never_comes_is_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that it waits for would stay for ever."""
    asked = (
        "if any(word.startswith('state') for word in sys.argv):\n"
        f"            pid = os.posix_spawnp('sleep', ['sleep', '60'], {{}})\n"
        f"            open({str(tmp_path / 'pids')!r}, 'a').write(f'{{pid}}\\n')\n"
        "            os.waitpid(pid, 0)\n"
        "        return Recorded(\n"
    )
    assert SOUND.count("return Recorded(\n") == 1
    source = SOUND.replace("return Recorded(\n", asked)
    results = held(tmp_path, source, "waiting_runtime", monkeypatch)
    (found,) = (said for said in map(english, results) if "writes nothing" in said[0])
    assert any("at the deadline" in sentence for sentence in found[1:]), found
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it was reaped already
            assert linux.ends_within(pid, 5)


@pytest.mark.parametrize(
    ("called", "rule"),
    [("start(self, operation):\n", "exactly one effect"), ("way):\n", "every way to recover")],
)
def test_an_error_of_the_runtime_comes_with_its_line(
    called: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of its own code, and not the one in Python's library at which it was noticed."""
    name = f"mistaken_{len(called)}"
    source = SOUND.replace(called, f"{called}        json.dumps({{1}})\n", 1)
    line = source[: source.index("json.dumps({1})")].count("\n") + 1
    results = held(tmp_path, source, name, monkeypatch)
    (found,) = (said for said in map(english, results) if rule in said[0])
    assert f"set is not JSON serializable ({tmp_path}/{name}.py:{line})" in found[1]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nimport json\njson.dumps({1})\n", "TypeError: .*serializable \\(.*{name}.py:3\\)"),
        ("x = 1\ndef f(:\n", "SyntaxError: .* \\(.*{name}.py:2\\)"),
        ("import not_there_at_all\n", "No module named 'not_there_at_all' \\(.*{name}.py:1\\)"),
        ("def Runtime():\n    1 / 0\n", "ZeroDivisionError: .* \\(.*{name}.py:2\\)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_where(
    source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own error, with file and line; of a name that is not there, there is no line."""
    name = f"unloadable_{len(source)}"
    with pytest.raises(RuntimeUnusable, match=said.format(name=name)):
        held(tmp_path, source, name, monkeypatch)
    with pytest.raises(RuntimeUnusable) as raised:
        conformance("nowhere_at_all:Runtime")
    assert raised.value.cause.endswith("ModuleNotFoundError: No module named 'nowhere_at_all'.")


def test_every_rule_and_everything_that_can_be_found_has_its_text() -> None:
    """And no text is of something that nobody finds."""
    source = inspect.getsource(module)
    keys = [key.split(".") for key in section("conformance") if key.count(".") == 2]
    kinds = {key[2] for key in keys if key[1] == "finding"}
    assert {*re.findall(r'Finding\("(\w+)"', source)} <= kinds
    for kind in kinds:
        start, _, _ = kind.partition("_")
        assert f'"{kind}"' in source or f'Finding(f"{start}_{{' in source, kind
    assert {key[2] for key in keys if key[1] == "rule"} == {*module._RULES, "asking"}
