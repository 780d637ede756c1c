"""The constant that an argument is."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.project import build
from amp_migrate.training.origins.constants import constant_of
from amp_migrate.training.origins.reaching import Reaching

_TOLD: dict[str, tuple[str, object]] = {
    "written": ("use(128.0)", 128.0),
    "the last one": ("s = 256\ns = 'dynamic'\nuse(s)", "dynamic"),
    "both ways the same": ("if a:\n    s = 4\nelse:\n    s = 4\nuse(s)", 4),
    "by another name": ("s = 8\nt = s\nuse(t)", 8),
    "of the calls": ("def f(s):\n    use(s)\nf(2)\nf(s=2)", 2),
    "of the default": ("def f(s='dynamic'):\n    use(s)\nf()", "dynamic"),
}
_UNTOLD = {
    "two numbers": "s = 4\nif a:\n    s = 8\nuse(s)",
    "a number and a truth": "s = 1\nif a:\n    s = True\nuse(s)",
    "added to": "s = 4\ns += 1\nuse(s)",
    "an item": "s, t = 4, 5\nuse(s)",
    "an attribute": "use(args.scale)",
    "calls that differ": "def f(s):\n    use(s)\nf(2)\nf(4)",
    "called by others": "def f(s=2):\n    use(s)\n",
    "a call with stars": "def f(s=2):\n    use(s)\nf(*given)",
}


def _constant(text: str, *, through_calls: bool = True) -> object:
    tree = Tree("train.py", dedent(text))
    project = build({"train.py": tree}, ["."])
    module = project.modules["train.py"]
    reaching = Reaching(project, Graphs(), project.function_of)
    call = next(c for c in tree.nodes(ast.Call) if ast.unparse(c.func) == "use")
    function = project.function_of(module, call)
    found = constant_of(project, reaching, function, call.args[0], through_calls=through_calls)
    return None if found is None else found.value


@pytest.mark.parametrize(("text", "value"), _TOLD.values(), ids=_TOLD)
def test_constants(text: str, value: object) -> None:
    """What reaches the argument on every way counts, also through calls."""
    assert _constant(text) == value


@pytest.mark.parametrize("text", _UNTOLD.values(), ids=_UNTOLD)
def test_what_is_no_constant(text: str) -> None:
    """Nothing is told of what may be something else."""
    assert _constant(text) is None


def test_parameters_may_stay_open() -> None:
    """A parameter is what its callers choose, where calls are not to count."""
    text, value = _TOLD["of the calls"]
    assert _constant(text) == value
    assert _constant(text, through_calls=False) is None
