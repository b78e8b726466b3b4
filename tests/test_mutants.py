"""One row changed in eligibility or judge makes their tables fail: the tests can fail."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from rcr_probes import eligibility, judge
from tests import test_eligibility, test_judge
from tests.recovery import test_rules

WORDS = ("done", "stop")  # a word that means something in each place where one is returned


def mutants(module: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """The module with one thing changed at a time: a word that it returns, or a condition."""
    tree = ast.parse(inspect.getsource(module))
    sites = [site for function in tree.body for site in _sites(function)]
    for number, (line, change, undo) in enumerate(sites):
        change()
        ast.fix_missing_locations(tree)
        made = ModuleType(f"mutant_{number}")
        exec(compile(tree, f"<mutant of line {line}>", "exec"), made.__dict__)
        undo()
        yield f"line {line}, site {number}", made


Site = tuple[int, Callable[[], None], Callable[[], None]]


def _sites(function: ast.stmt) -> Iterator[Site]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            for constant in ast.walk(node.value):
                if isinstance(constant, ast.Constant) and constant.value in _returned(node):
                    yield _swap(constant, "value", _other(constant.value))
        if isinstance(node, ast.If):
            yield _swap(node, "test", ast.UnaryOp(ast.Not(), node.test))
        if isinstance(node, ast.match_case) and node.guard is not None:
            yield _swap(node, "guard", ast.UnaryOp(ast.Not(), node.guard))
        if isinstance(node, ast.BoolOp):
            yield _swap(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
        if isinstance(node, ast.Tuple) and all(isinstance(e, ast.Constant) for e in node.elts):
            for place in range(len(node.elts)):
                yield _swap(node, "elts", node.elts[:place] + node.elts[place + 1 :])
        if isinstance(node, ast.Compare):
            yield _swap(node, "ops", [_opposite(op) for op in node.ops])


def _returned(node: ast.Return) -> set[str]:
    """The words that this statement returns: not those that it compares with."""
    assert node.value is not None
    first = node.value.args if isinstance(node.value, ast.Call) else [node.value]
    return {a.value for a in first if isinstance(a, ast.Constant) and isinstance(a.value, str)}


def _other(word: str) -> str:
    return next(w for w in WORDS if w != word)


def _opposite(op: ast.cmpop) -> ast.cmpop:
    pairs: tuple[tuple[type[ast.cmpop], type[ast.cmpop]], ...] = (
        (ast.Eq, ast.NotEq),
        (ast.In, ast.NotIn),
        (ast.Is, ast.IsNot),
        (ast.Lt, ast.GtE),
        (ast.Gt, ast.LtE),
    )
    both = {**dict(pairs), **{b: a for a, b in pairs}}
    return both[type(op)]()


def _swap(node: ast.AST, field: str, new: object) -> Site:
    old = getattr(node, field)
    line = getattr(node, "lineno", 0)
    return line, lambda: setattr(node, field, new), lambda: setattr(node, field, old)


def judged(module: ModuleType) -> None:
    test_judge.check(module)
    test_rules.check(module)


@pytest.mark.parametrize(
    ("module", "check"),
    [(eligibility, test_eligibility.check), (judge, judged)],
    ids=["eligibility", "judge"],
)
def test_every_mutant_fails_the_table(
    module: ModuleType, check: Callable[[ModuleType], None]
) -> None:
    """Each changed word, condition and comparison is caught by the module's own table."""
    check(module)
    survivors, count = [], 0
    for name, mutant in mutants(module):
        count += 1
        try:
            check(mutant)
        except (AssertionError, TypeError, KeyError, AttributeError, ValueError, IndexError):
            continue
        survivors.append(name)
    assert count > 20, "the mutator found too little to change"
    assert not survivors
