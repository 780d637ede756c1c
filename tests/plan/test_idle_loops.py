"""Which loops may go once nothing is left in them."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.rules.guards.emptied import does_nothing

LOOPS = {
    "counts": ("for i in range(len(nets)): pass", True),
    "counts to a number that is given": ("for i in range(1, count): pass", True),
    "goes through a list": ("nets = [one, two]\nfor net in nets: pass", True),
    "goes through pairs": ("nets, steps = [], []\nfor a, b in zip([one], {'k': two}.items()): pass", False),
    "goes through a dictionary": ("for name, net in self.nets.items(): pass", True),
    "numbers a list": ("nets = [make(i) for i in range(3)]\nfor i, net in enumerate(nets): pass", True),
    "goes through what may be used up": ("for net in given: pass", False),
    "goes through one of two": ("nets = [one]\nnets = iter(nets)\nfor net in nets: pass", False),
    "loads data": ("for batch in zip(loader, loader): pass", False),
    "calls": ("for i in range(draw()): pass", False),
    "is read behind": ("for i in range(3): pass\nprint(i)", False),
    "is bound again": ("for i in range(3): pass\nfor i in range(2):\n    print(i)", True),
    "is bound in a comprehension": ("for i in range(3): pass\nprint([i for i in range(2)])", True),
    "stores": ("for kept.net in range(3): pass", False),
    "ends with more": ("for i in range(3): pass\nelse:\n    done()", False),
}  # fmt: skip


@pytest.mark.parametrize(("text", "idle"), LOOPS.values(), ids=LOOPS)
def test_a_loop_that_uses_nothing_up(text: str, idle: bool) -> None:
    body = "\n".join(f"    {line}" for line in text.splitlines())
    tree = Tree("a.py", f"def f(given, loader, count, kept, self):\n{body}\n")
    loop = next(tree.nodes(ast.For))
    assert does_nothing(tree, loop) is idle
