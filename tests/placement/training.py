"""Programs with one training, and everything that is worked out about it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cached_property
from textwrap import dedent, indent

from amp_migrate.placement.finding.build import Index, make, units
from amp_migrate.placement.finding.unit import Unit
from amp_migrate.project import Function
from amp_migrate.rules.base import Context
from amp_migrate.rules.prepare import prepare
from amp_migrate.scaler.spelling import Spelling
from amp_migrate.settings import Settings
from tests.project.helpers import Case

PATH = "train.py"
HEAD = """\
import torch
from apex import amp
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x


"""
START = """\
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
"""
FORWARD = "loss = model(x).mean()\n"
BACKWARD = "with amp.scale_loss(loss, optimizer) as scaled:\n    scaled.backward()\n"


def looped(body: str, before: str = "") -> str:
    """Return a program whose function `main` initializes and runs a body for every `i, x` of a loader."""
    inner = (
        START + dedent(before) + "for i, x in enumerate(loader):\n" + indent(dedent(body), "    ")
    )
    return HEAD + "def main(args, loader):\n" + indent(inner, "    ")


def stepped(body: str, before: str = "") -> str:
    """Return a program whose loop runs forward and backward before a body."""
    return looped(FORWARD + BACKWARD + dedent(body), before)


class Training(Case):
    """A program of one file, or of several, with one unit."""

    def __init__(self, program: str | Mapping[str, str], roots: Sequence[str] = (".",)) -> None:
        super().__init__({PATH: program} if isinstance(program, str) else program, roots)
        self.index = Index(self.project)

    @cached_property
    def made(self) -> Unit:
        """The unit as its sites make it, before anything is worked out or refused."""
        (found,) = units(self.index)
        return make(self.index, found)

    @cached_property
    def context(self) -> Context:
        """What is decided from. Raises `Cannot` where the unit has to be left."""
        (found,) = units(self.index)
        return prepare(self.index, found, Settings(), Spelling(False))

    @property
    def unit(self) -> Unit:
        """The unit."""
        return self.context.unit

    @property
    def main(self) -> Function:
        """The function that initializes and trains."""
        return self.function(PATH, "main")

    def first_line(self, node: ast.AST, path: str = PATH) -> str:
        """Return the first line of the source of a node."""
        return self.project.modules[path].tree.segment(node).partition("\n")[0]

    def statement(self, line: str, path: str = PATH, nth: int = 0) -> ast.stmt:
        """Return the nth statement of a file whose first line is `line`."""
        tree = self.project.modules[path].tree
        found = [n for n in tree.parents if isinstance(n, ast.stmt)]
        found = [n for n in found if tree.segment(n).partition("\n")[0] == line]
        found.sort(key=lambda node: node.lineno)
        return found[nth]
