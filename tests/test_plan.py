"""A plan is refused before anything runs, with the cause and what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from rcr_probes import plan
from rcr_probes.errors import PlanError, RcrError, RuntimeUnusable, UnknownName
from rcr_probes.model import Cell, Plan

REFUSED = "tests.runtimes_refused"
CONTROL = '[[cells]]\npoint = "none"\nfault = "none"\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_plans_are_read() -> None:
    """Six cells for the article; four locations, each fault that can strike, for the other."""
    assert plan.shipped() == (
        "article", "contrast", "faults", "locations", "power", "power_local", "runtimes", "syscalls"
    )  # fmt: skip
    assert len(plan.read("article").cells) == 6
    cells = plan.read("locations").cells
    assert len(cells) == (4 * 2 + 1) * 2 * 3
    assert len({cell.id for cell in cells}) == len(cells)


def test_lists_are_multiplied_and_values_are_kept(tmp_path: Path) -> None:
    """One table gives every combination, the last axis fastest; the file names the plan."""
    text = CONTROL + 'dedupe = ["none", "operation_key"]\nseed = [0, 1]\n'
    made = plan.read(written(tmp_path, text))
    assert made.name == "mine"
    assert [(c.dedupe, c.seed) for c in made.cells] == [
        ("none", 0),
        ("none", 1),
        ("operation_key", 0),
        ("operation_key", 1),
    ]
    assert [c.id for c in made.cells][1] == "none/none/none/same/again/seed=1"


@pytest.mark.parametrize(
    ("text", "cause", "remedy"),
    [
        ('[[cells]]\npoint = "completion_audits"\nfault = "kill"\n', "point", "completion_audit"),
        ('[[cells]]\npoint = "response"\nfault = "kil"\n', "fault", "Did you mean 'kill'"),
        (CONTROL + 'dedupe = "operation-key"\n', "dedupe", "operation_key"),
        (CONTROL + 'digest = "changd"\n', "digest", "changed"),
        (CONTROL + 'policy = "resum"\n', "policy", "resume"),
        (CONTROL + 'witness = "laging"\n', "witness", "Did you mean 'lagging'"),
        (CONTROL + 'variant = "flushed"\n', "variant", "baseline"),
        (CONTROL + 'recovery_fault = "kill"\n', "recovery_fault", "kill@POINT"),
        (CONTROL + 'recovery_fault = "kill@approval_audit"\n', "recovery_fault", "kill@POINT"),
        (CONTROL + "recoverers = 2\n", "recoverers = 2", "recoverers = 1"),
        (CONTROL + "seed = -1\n", "seed = -1", "Count from 0"),
        (CONTROL + f"repeat = {2**53}\n", "out of range", "Count from 0"),
        ('name = "../elsewhere"\n' + CONTROL, "'../elsewhere'", "Begin with a letter"),
        ('name = "a/b"\n' + CONTROL, "'a/b'", "Begin with a letter"),
        ('name = ""\n' + CONTROL, "name is ''", "Begin with a letter"),
        (CONTROL + 'seed = "1"\n', "wrong type", "a whole number"),
        (CONTROL + "repeat = true\n", "wrong type", "a whole number"),
        (CONTROL + "policy = 3\n", "wrong type", "a name in quotes"),
        (CONTROL + 'dedup = "none"\n', "axis", "Did you mean 'dedupe'"),
        (CONTROL + "dedupe = []\n", "no values", "one value or more"),
        (CONTROL + 'runtime = "nowhere:runtime"\n', "cannot be loaded", "current directory"),
        (CONTROL + 'runtime = "rcr_probes.reference"\n', "does not name", "package.module:factory"),
        (CONTROL + 'runtime = "json:JSONDecoder"\n', "is no runtime", "docs/design.md"),
        (CONTROL + f'runtime = "{REFUSED}:Wordless"\n', "no word of says", "docs/design.md"),
        (CONTROL + f'runtime = "{REFUSED}:Pointless"\n', "'before_acton' is no point", "contract"),
        (CONTROL + f'runtime = "{REFUSED}:Faultless"\n', "'kil' is no fault", "contract"),
        (CONTROL + f'runtime = "{REFUSED}:Listless"\n', "is no mapping", "contract"),
        (CONTROL + f'runtime = "{REFUSED}:Commaless"\n', "is the text 'resume'", "('resume',)"),
        (CONTROL + f'runtime = "{REFUSED}:Listles"\n', "nothing in it is called", "'Listless'"),
        (CONTROL + 'runtime = "q/q.pl"\n', "does not name", "mine/runtime.toml"),
        (CONTROL + 'runtime = "__main__:mine"\n', "this session alone", "%%writefile"),
        (CONTROL * 2, "twice", "vary repeat"),
        ('[[cells]]\npoint = "response"\n', "lacks fault", "control without a fault"),
        ('[[cells]]\npoint = "none"\nfault = "kill"\n', "cannot be", "neither"),
        ('[[cells]]\npoint = "response"\nfault = "none"\n', "cannot be", "needs a fault"),
        (
            '[[cells]]\npoint = "response"\nfault = "audit_is_directory"\n',
            "cannot strike at 'response'",
            "completion_audit",
        ),
        (
            '[[cells]]\npoint = "before_key"\nfault = "kill"\ndedupe = "claim_first"\n',
            "comes to 'before_key'",
            "a point of late_key",
        ),
        (
            '[[cells]]\npoint = "between_effects"\nfault = "kill"\n',
            "dedupe = 'none' comes to 'between_effects'",
            "pair, pair_operation_key, pair_effect_key",
        ),
        (
            '[[cells]]\npoint = "before_key"\nfault = "result_refused"\ndedupe = "late_key"\n',
            "cannot strike at 'before_key'",
            "after_action",
        ),
        (
            '[[cells]]\npoint = "before_key"\nfault = "hang"\ndedupe = "late_key"\n'
            'runtime = "tests.runtimes_under_test:Plain"\n',
            "does not support 'hang' around its action",
            "There it supports exception, kill.",
        ),
        (
            '[[cells]]\npoint = "after_action"\nfault = "timeout"\n',
            "cannot strike at 'after_action' with dedupe = 'none'",
            "receiver_key or expired_key",
        ),
        (
            '[[cells]]\npoint = "before_action"\nfault = "timeout"\ndedupe = "receiver_key"\n',
            "cannot strike at 'before_action'",
            "at after_action",
        ),
        (
            '[[cells]]\npoint = "after_action"\nfault = "response_lost"\n',
            "with dedupe = 'none'",
            "elsewhere at response",
        ),
        (
            CONTROL + 'variant = "fenced"\ndedupe = "receiver_key"\n',
            "variant = 'fenced' with dedupe = 'receiver_key'",
            "local executors",
        ),
        ("", "no cells", "[[cells]]"),
        ("cells = []\n", "no cells", "[[cells]]"),
        ("cells = [1]\n", "no table", "[[cells]]"),
        ('name = 1\n[[cells]]\npoint = "none"\n', "name", "quotes"),
        ('[[cell]]\npoint = "none"\n', "key of a plan", "Did you mean 'cells'"),
        ('command = ["sh"]\n[says]\n', "key of a plan", "It describes a runtime"),
        ("name = \n", "not TOML", "line 1"),
    ],
)
def test_a_plan_that_cannot_be_run_says_why_and_what_to_write(
    tmp_path: Path, text: str, cause: str, remedy: str
) -> None:
    """Each way to get it wrong has its own sentence, before any process is started."""
    with pytest.raises(RcrError) as caught:
        plan.read(written(tmp_path, text))
    assert cause in caught.value.cause
    assert remedy in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_plan_that_does_not_exist_says_which_do(tmp_path: Path) -> None:
    """A misspelt name is answered with the nearest; a path with the path."""
    with pytest.raises(UnknownName, match="Did you mean 'article'"):
        plan.read("artcle")
    with pytest.raises(PlanError, match="There is no plan file") as caught:
        plan.read(tmp_path / "none.toml")
    assert caught.value.remedy.startswith("The plans that come with rcr are named")
    (tmp_path / "loc.toml").write_text("")  # what both end in makes no name like another
    with pytest.raises(PlanError, match="The plans that come with rcr are named"):
        plan.read(tmp_path / "none.toml")
    with pytest.raises(PlanError, match=f"Did you mean {tmp_path}/loc.toml"):
        plan.read(tmp_path / "lco.toml")
    with pytest.raises(PlanError, match="Did you mean article"):
        plan.read(tmp_path / "artcle.toml")
    latin = tmp_path / "latin.toml"
    latin.write_bytes("# caf\xe9\n".encode("latin-1"))
    with pytest.raises(PlanError, match="not UTF-8"):
        plan.read(latin)


def test_a_plan_made_in_python_is_held_to_the_same_rules() -> None:
    """Emptiness is refused, and a cell that others published cannot be run."""
    with pytest.raises(PlanError, match="no cells"):
        plan.validated(Plan("mine", ()))
    with pytest.raises(PlanError, match="policy = None"):
        plan.validated(Plan("mine", (Cell(point="none", fault="none", policy=None),)))
    with pytest.raises(RuntimeUnusable):
        plan.validated(Plan("mine", (Cell(point="none", fault="none", runtime="published:f0"),)))


def test_only_keeps_the_order_of_the_plan_and_refuses_strangers() -> None:
    """A part of a plan is a plan of the same name."""
    whole = plan.read("article")
    ids = [cell.id for cell in whole.cells]
    assert plan.only(whole, [ids[3], ids[0]]) == Plan("article", (whole.cells[0], whole.cells[3]))
    with pytest.raises(UnknownName, match="Unknown cell"):
        plan.only(whole, ["none/none/none/same/resume"])
