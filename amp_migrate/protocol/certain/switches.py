"""What switches AMP on: what a GradScaler is given as `enabled=`, and the tests under which one is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from amp_migrate.project import Module, Project
from amp_migrate.training.objects import Objects


class Asked(NamedTuple):
    """A test without its `not`s: how it compares, with what, and what holds its subject."""

    compared: str
    subject: frozenset[int]
    text: str


class Switches:
    """Knows how a test comes out while AMP is on."""

    def __init__(self, project: Project, objects: Objects) -> None:
        self._objects = objects
        self._project = project
        self._on = [self._read(module, test) for module, test in self._tests()]

    def truth(self, module: Module, test: ast.expr) -> bool | None:
        """Return how a test comes out; None where it says nothing of AMP."""
        if not self._on:
            return None
        asked, positive = self._read(module, test)
        for known, truth in self._on:
            same = asked.text == known.text or bool(asked.subject & known.subject)
            if asked.compared == known.compared and same:
                return positive is truth
        return None

    def _read(self, module: Module, test: ast.expr) -> tuple[Asked, bool]:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            asked, positive = self._read(module, test.operand)
            return asked, not positive
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            op, other = test.ops[0], ast.unparse(test.comparators[0])
            positive = not isinstance(op, ast.NotEq | ast.IsNot | ast.NotIn)
            same = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}
            name = same.get(type(op).__name__, type(op).__name__)
            return self._asked(module, test.left, f"{name} {other}"), positive
        return self._asked(module, test, ""), True

    def _asked(self, module: Module, subject: ast.expr, compared: str) -> Asked:
        groups = frozenset[int]()
        if isinstance(subject, ast.Name | ast.Attribute):
            groups = self._objects.groups(module, subject)
        return Asked(compared, groups, f"{module.path} {ast.unparse(subject)}")

    def _tests(self) -> Iterator[tuple[Module, ast.expr]]:
        for module, call in self._objects.made_scalers:
            for keyword in call.keywords:
                if keyword.arg == "enabled":
                    yield from self._parts(module, keyword.value)
            for up, holds in module.tree.sides(call):
                if holds:
                    yield from self._parts(module, up.test)

    def _parts(self, module: Module, test: ast.expr) -> Iterator[tuple[Module, ast.expr]]:
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                yield from self._parts(module, part)
        elif isinstance(test, ast.Call) and len(test.args) == 1 and not test.keywords:
            if isinstance(test.func, ast.Name) and test.func.id == "bool":
                yield from self._parts(module, test.args[0])
        elif not isinstance(test, ast.Constant):
            yield module, test
