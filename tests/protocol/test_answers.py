"""A test is spelt with what the functions return that it asks, through the objects that hold each other."""

from __future__ import annotations

import ast

from amp_migrate.facts.tree import Tree
from amp_migrate.project import build
from amp_migrate.protocol.calls.answers import Answers

_TEXT = """
class Steps:
    def ready(self):
        return self.on and self.number > 1

class Trainer:
    def __init__(self):
        self.steps = Steps()

    def ready(self):
        return self.steps.ready()

class Program:
    def __init__(self):
        self.trainer = Trainer()

    def run(self):
        if self.trainer.ready():
            self.trainer.step()
"""


def test_objects_that_hold_each_other_are_named_from_the_outermost() -> None:
    project = build({"train.py": Tree("train.py", _TEXT)})
    (test,) = (node.test for _, node in project.nodes(ast.If))

    found = ast.unparse(Answers(project).spelt(test))

    assert found == "self.trainer.steps.on and self.trainer.steps.number > 1"
