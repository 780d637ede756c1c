"""Which parameters that tests choose for an optimizer leave out others of their network."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from amp_migrate.training.gradients.chosen import leaves_out
from tests.project.helpers import Case

_ALL = {
    "the whole": "model.parameters()",
    "those that get gradients": "[p for p in model.parameters() if p.requires_grad]",
    "with and without decay": """\
        [
            {"params": [p for n, p in model.named_parameters() if not any(nd in n for nd in plain)], "weight_decay": 0.1},
            {"params": [q for m, q in model.named_parameters() if any(part in m for part in plain)]},
        ]""",
    "four rates": """\
        [
            {"params": [p for n, p in named if "head" in n and "bias" not in n and p.requires_grad]},
            {"params": [p for n, p in named if "head" in n and "bias" in n and p.requires_grad]},
            {"params": [p for n, p in named if "head" not in n and "bias" not in n]},
            {"params": [p for n, p in named if not ("head" in n) and "bias" in n]},
        ]""",
    "by the number of axes": "[*[p for p in model.parameters() if p.ndim == 1], *[p for p in model.parameters() if p.ndim != 1]]",
    "beside what is no comprehension": '[{"params": [p for n, p in named if "head" not in n]}, {"params": model.head.parameters()}]',
    "a list that grows": "grown",
    "no parameters": "[p.data for n, p in named if 'head' in n]",
}
_SOME = {
    "a generator gone over twice": """\
        [
            {"params": [p for n, p in pairs if not any(nd in n for nd in plain)]},
            {"params": [p for n, p in pairs if any(nd in n for nd in plain)]},
        ]""",
    "by a name": "[p for n, p in model.named_parameters() if 'table' not in n]",
    "by a function": "list(p for n, p in named if is_trained(n))",
    "with and without decay, less tables": """\
        [
            {"params": [p for n, p in named if not any(nd in n for nd in plain) and is_trained(n)]},
            {"params": [p for n, p in named if any(nd in n for nd in plain) and is_trained(n)]},
        ]""",
    "in a variable": "chosen",
    "of one of two parts": """\
        [
            *[p for n, p in model.top.named_parameters() if "bias" in n],
            *[p for n, p in model.top.named_parameters() if "bias" not in n],
            *[p for n, p in model.base.named_parameters() if "bias" not in n],
        ]""",
    "two of three": '[{"params": [p for n, p in named if "a" in n]}, {"params": [p for n, p in named if "b" in n]}]',
}


def _leaves_out(given: str) -> bool:
    text = f"""\
def main(model, plain, is_trained):
    named = list(model.named_parameters())
    pairs = model.named_parameters()
    chosen = [p for n, p in named if n.startswith("top")]
    grown = [p for n, p in named if n.startswith("top")]
    grown.extend(model.base.parameters())
    use({dedent(given).strip()})
"""
    case = Case({"train.py": text})
    module = case.project.modules["train.py"]
    (call,) = (c for c in module.tree.nodes(ast.Call) if ast.unparse(c.func) == "use")
    return leaves_out(module, call.args[0])


@pytest.mark.parametrize("given", _ALL.values(), ids=_ALL)
def test_nothing_is_left_out(given: str) -> None:
    """Every parameter passes one of the lists, or it is not told which do."""
    assert not _leaves_out(given)


@pytest.mark.parametrize("given", _SOME.values(), ids=_SOME)
def test_some_are_left_out(given: str) -> None:
    """Some parameters pass the tests of no list."""
    assert _leaves_out(given)
