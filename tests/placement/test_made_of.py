"""Which parameters an optimizer is made with."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.build import Graphs
from amp_migrate.placement.unscaling.made_of import Frame, MadeOf
from amp_migrate.project import build
from amp_migrate.training.origins.reaching import Reaching

_WHOLE = {
    "all": "SGD(net.parameters())",
    "a list": "SGD(list(net.parameters()), lr=1)",
    "those with gradients": "SGD(filter(lambda p: p.requires_grad, net.parameters()))",
    "a generator": "SGD(p for p in net.parameters() if p.requires_grad)",
    "a variable": "params = [p for _, p in net.named_parameters()]\nSGD(params)",
    "one group": "SGD([{'params': net.parameters(), 'lr': 1}])",
    "out of a function": """
        def trained(model):
            return [p for p in model.parameters() if p.requires_grad]
        SGD(trained(net))
    """,
    "made by a function": """
        def make(model):
            optimizer = SGD(model.parameters())
            optimizer.zero_grad()
            return optimizer
        optimizer = make(net)
    """,
}
_NOT = {
    "a part of the network": "SGD(net.head.parameters())",
    "a test": "SGD([p for p in net.parameters() if p.dim() > 1])",
    "a filter by a function": "SGD(filter(is_matrix, net.parameters()))",
    "in another order": """
        SGD([{'params': [p for n, p in net.named_parameters() if a(n)]},
             {'params': [p for n, p in net.named_parameters() if not a(n)]}])
    """,
    "one parameter less": "SGD(list(net.parameters())[1:])",
    "a list that grows": "params = list(net.parameters())\nparams.append(extra)\nSGD(params)",
    "a list given away": "def cut(ps):\n    del ps[0]\nparams = list(net.parameters())\ncut(params)\nSGD(params)",
    "either list": "params = net.parameters()\nif small:\n    params = net.head.parameters()\nSGD(params)",
    "another network too": "SGD([{'params': net.parameters()}, {'params': other.parameters()}])",
    "the first layer alone": "SGD(net.parameters(recurse=False))",
    "one of two functions": """
        def make(model):
            if small:
                return SGD(model.head.parameters())
            return SGD(model.parameters())
        optimizer = make(net)
    """,
    "a call of itself": "def make(model):\n    return make(model)\noptimizer = make(net)",
}


def _is_whole(text: str) -> bool:
    tree = Tree("train.py", f"net = Net()\n{dedent(text)}\n")
    project = build({"train.py": tree}, ["."])
    module = project.modules["train.py"]
    calls = [c for c in tree.nodes(ast.Call) if ast.unparse(c.func) in ("SGD", "make")]
    made = max(calls, key=lambda c: (c.lineno, -c.col_offset))
    function = project.function_of(module, made)
    network = MadeOf(project, Reaching(project, Graphs(), project.function_of)).optimizer(
        Frame(function), made
    )
    net = next(n for n in tree.nodes(ast.Name) if n.id == "net")
    return network is not None and network == project.values.group(module, net)


@pytest.mark.parametrize("text", _WHOLE.values(), ids=_WHOLE)
def test_all_parameters_of_a_network(text: str) -> None:
    """Lists of all parameters are the network, also through variables and functions."""
    assert _is_whole(text)


@pytest.mark.parametrize("text", _NOT.values(), ids=_NOT)
def test_not_all_parameters(text: str) -> None:
    """Where one parameter may be missing, stand elsewhere, or another come with it, the list stays a list."""
    assert not _is_whole(text)
