"""Which attributes may hold a function."""

from __future__ import annotations

from textwrap import dedent

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.code.stored import Stored

_HOOK = """
def clip(model):
    model.weight.grad.clamp_(-1, 1)
"""
_HELD = {
    "assigned": "class A:\n    def __init__(self):\n        self.size = clip",
    "by a parameter": "class A:\n    def __init__(self, f):\n        self.size = f\nA(clip)",
    "by a name": "f = clip\nclass A:\n    size = f",
    "by setattr": "setattr(holder, 'size', clip)",
    "of an item": "hooks = []\nhooks.append(clip)\nholder.size = hooks[0]",
    "of a pair": "holder.size, holder.other = clip, 3",
    "of another attribute": "a.hook = clip\nb.size = a.hook",
    "given back": "def give():\n    return clip\nholder.size = give()",
    "a lambda": "holder.size = lambda model: clip(model)",
    "of a loop": "for holder.size in [clip]:\n    pass",
    "of nowhere": "class A:\n    def __init__(self, f):\n        self.size = f",
    "one of two": "holder.size = None or clip",
    "a bound method": "class B:\n    def clip(self): ...\nholder.size = b.clip",
    "of another object": "class A:\n    def size(self): ...\nx.size = y.size",
    "its own through a wrapper of the project": (
        "def wrap(f):\n    return clip\nclass A:\n    def size(self): ...\nx.size = wrap(x.size)"
    ),
    "made by partial": "import functools\nholder.size = functools.partial(clip, 2)",
    "a field": "import dataclasses\n@dataclasses.dataclass\nclass A:\n    size: object\nA(clip)",
}
_FREE = {
    "a number": "class A:\n    def __init__(self):\n        self.size = 4",
    "counted": "class A:\n    def __init__(self):\n        self.size = 0\n        self.size += 2 * n",
    "of a parameter": "class A:\n    def __init__(self, n):\n        self.size = n\nA(4)\nA(n=5)",
    "of a default": "def make(n=3):\n    holder.size = n\nmake()",
    "a list": "holder.size = [clip]",
    "made elsewhere": "import torch\nholder.size = torch.zeros(3)",
    "never stored": "print(x.size(0))",
    "its own under its name": "class A:\n    def size(self): ...\nx.size = x.size",
    "that of its class, in a context of a library": (
        "import torch\nclass A:\n    def size(self): ...\n"
        "x.size = torch.no_grad()(type(x).size).__get__(x)"
    ),
    "a comparison": "holder.size = clip == other",
    "of another attribute": "a.width = 4\nb.size = a.width",
    "given back": "def give():\n    return 4\nholder.size = give()",
}


def _holds(text: str) -> bool:
    tree = Tree("train.py", _HOOK + dedent(text))
    return Stored(build({"train.py": tree}, ["."])).holds_function("size")


@pytest.mark.parametrize("text", _HELD.values(), ids=_HELD)
def test_attributes_that_may_hold_a_function(text: str) -> None:
    """Whatever way a function takes into an attribute, or may take, it is found."""
    assert _holds(text)


@pytest.mark.parametrize("text", _FREE.values(), ids=_FREE)
def test_attributes_that_hold_none(text: str) -> None:
    """Numbers, tensors and collections are no functions, though functions are stored elsewhere."""
    assert not _holds(text)
