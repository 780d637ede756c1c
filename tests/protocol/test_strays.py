"""Which functions an unknown call may run."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.code.strays import Strays

_CLIP = """
def clip(model):
    model.weight.grad.clamp_(-1, 1)
"""
_RUN: dict[str, tuple[str, str]] = {
    "an item": ("HOOKS = [clip]\nfor hook in HOOKS:\n    hook(net)", "hook"),
    "a parameter": ("def train(f):\n    f(net)\ntrain(clip)\nkept = [clip]", "f"),
    "looked up": (
        "import importlib\nm = importlib.import_module(name)\nf = getattr(m, name)\nf(net)",
        "f",
    ),
    "looked up and given back": (
        "import importlib\n"
        "def find(name):\n    m = importlib.import_module(name)\n    return getattr(m, name)\n"
        "def train(name):\n    g = find(name)\n    g(net)",
        "g",
    ),
    "an attribute": (
        "class A:\n    def __init__(self):\n        self.size = clip\nx.size(net)",
        "x.size",
    ),
}
_NOT_RUN: dict[str, tuple[str, str]] = {
    "a number of that name": ("class A:\n    size = 3\nk = [clip]\nx.size(net)", "x.size"),
    "something else than what is looked up": (
        "import importlib\nm = importlib.import_module(name)\nf = getattr(m, name)\n"
        "def apply(act, net):\n    return act(net)",
        "act",
    ),
    "what a library is given to run": (
        "import retry\nretry.call(clip)\ndef apply(act, net):\n    return act(net)",
        "act",
    ),
    "what a library marks": (
        "import pytest\n@pytest.mark.slow\ndef probe(net):\n    net.loss.backward()\n"
        "def apply(act, net):\n    return act(net)",
        "act",
    ),
}


def _runs(text: str, func: str, path: str = "train.py") -> list[str]:
    tree = Tree(path, _CLIP + dedent(text))
    project = build({path: tree}, ["."])
    call = next(c for c in tree.nodes(ast.Call) if ast.unparse(c.func) == func)
    module = project.modules[path]
    known = project.callees(call)
    return [f.name for f in [*known, *Strays(project).of(module, call)]]


@pytest.mark.parametrize(("text", "func"), _RUN.values(), ids=_RUN)
def test_functions_that_a_call_may_run(text: str, func: str) -> None:
    """What travels to a call, or may, runs there."""
    assert "clip" in _runs(text, func)


@pytest.mark.parametrize(("text", "func"), _NOT_RUN.values(), ids=_NOT_RUN)
def test_functions_that_a_call_does_not_run(text: str, func: str) -> None:
    """What only code elsewhere calls, or what comes to other calls, does not run at this one."""
    assert _runs(text, func) == []


@pytest.mark.parametrize(("path", "runs"), [("test_net.py", False), ("net.py", True)])
def test_what_pytest_runs(path: str, runs: bool) -> None:
    """A test function is run by pytest alone, whatever methods are looked up by name beside it."""
    text = "def test_net(x):\n    x.loss.backward()\ndef call(hook, name):\n    getattr(hook, name)(hook)"
    assert ("test_net" in _runs(text, "getattr(hook, name)", path)) is runs
