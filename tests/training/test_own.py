"""Parts of networks that every object makes for itself, asked of the source of their class."""

from __future__ import annotations

import ast

import pytest

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.code.program import program_of

HEAD = "import torch\nfrom torch import nn\n"


def is_own(text: str) -> bool:
    """Tell whether the last call is one of a part that its object has made for itself."""
    project = build({"a.py": Tree("a.py", HEAD + text)})
    module = project.modules["a.py"]
    call = max(module.tree.nodes(ast.Call), key=lambda node: node.lineno)
    function = project.function_of(module, call)
    return program_of(project).training.own.is_own(function, call.func)


def net(made: str, outside: str = "") -> str:
    """Return a network whose part is made by some statements of its constructor."""
    return (
        f"def made(size):\n    return nn.Linear(size, size)\n\n\n{outside}\n"
        "class Net(nn.Module):\n    def __init__(self, size, given):\n        super().__init__()\n"
        + "".join(f"        {line}\n" for line in made.splitlines())
        + "\n    def forward(self, x):\n        return self.part(x)\n"
    )


@pytest.mark.parametrize(
    "made",
    [
        "self.part = nn.Linear(size, size)",
        "self.part = made(size)",
        "layers = [nn.ReLU(), made(size)]\nself.part = nn.Sequential(*layers)",
        "layers = []\nlayers.append(nn.ReLU())\nself.part = nn.Sequential(*layers)",
        "self.first = made(size)\nself.part = nn.Sequential(self.first, nn.ReLU())",
        "self.part = self.part if size else made(size)",
        "layers = []\nlayers += [nn.ReLU()]\nlayers += [made(size)]\nself.part = nn.Sequential(*layers)",
        "layers = [None, None]\nlayers[0] = made(size)\nself.part = nn.Sequential(*layers)",
        "self.part = nn.Sequential()\nself.part.append(made(size))",
        "self.part = nn.ModuleDict()\nself.part['one'] = made(size)",
    ],
)
def test_made_by_the_object(made: str) -> None:
    """Whatever the constructor makes is the object's own, by whatever way it gets there."""
    assert is_own(net(made))


@pytest.mark.parametrize(
    ("made", "outside"),
    [
        ("self.part = given", ""),
        ("self.part = shared", "shared = nn.Linear(4, 4)\n"),
        ("self.part = nn.Sequential(nn.ReLU(), given)", ""),
        ("self.first = given\nself.part = nn.Sequential(self.first, nn.ReLU())", ""),
        ("self.part = made(size)", "def put(net, other):\n    net.part = other\n"),
        ("layers = []\nlayers += [given]\nself.part = nn.Sequential(*layers)", ""),
        ("layers = [None, None]\nlayers[0] = given\nself.part = nn.Sequential(*layers)", ""),
        ("self.part = nn.Sequential()\nself.part.append(given)", ""),
        ("self.part = nn.ModuleDict()\nself.part['one'] = given", ""),
        ("self.part = nn.Sequential()", "other = made(4)\ndef put(net):\n    net.part.add_module('one', other)\n"),
        ("self.part = made(size)", "other = made(4)\ndef put(net):\n    setattr(net, 'part', other)\n"),
    ],
)  # fmt: skip
def test_may_be_shared(made: str, outside: str) -> None:
    """What comes from elsewhere may be in two objects, and so may what other code puts there."""
    assert not is_own(net(made, outside))


@pytest.mark.parametrize(
    ("part", "outside", "own"),
    [
        ("self.part.conv(x)", "", True),
        ("self.part[0](x)", "", True),
        ("self.part.conv(x)", "other = made(4)\ndef put(net):\n    net.part.conv = other\n", False),
        ("self.part.layers[0].conv(x)", "other = made(4)\ndef put(net):\n    net.conv = other\n", False),
        ("self.given.conv(x)", "", False),
    ],
)  # fmt: skip
def test_a_part_of_a_part(part: str, outside: str, own: bool) -> None:
    """What a library's network holds is as much its object's own as that is, if nothing else is put there."""
    text = net("self.part = library.resnet50()\nself.given = given", outside)
    assert is_own("import library\n" + text.replace("self.part(x)", part)) is own


def test_a_question_that_needs_itself_is_answered_the_same_in_any_order() -> None:
    """Two parts that are each made of the other are shared where one of them may be."""
    ring = "self.part = nn.Sequential(self.other)\nself.other = nn.Sequential(self.part)"
    assert is_own(net(ring))
    assert not is_own(net(f"{ring}\nself.other = given"))


def test_parts_that_hang_on_each_other_in_a_long_row() -> None:
    """However many there are: no answer waits for another one on the stack."""
    row = "".join(f"self.part{i + 1} = nn.Sequential(self.part{i})\n" for i in range(1500))
    assert is_own(net(f"self.part0 = made(size)\n{row}self.part = self.part1500"))
    assert not is_own(net(f"self.part0 = given\n{row}self.part = self.part1500"))
