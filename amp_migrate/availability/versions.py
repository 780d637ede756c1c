"""Tests of torch's version, which are settled where native AMP runs: that needs torch 1.6 or later."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cached_property

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import walk
from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Module, Project

NATIVE_SINCE = (1, 6)
"""The first torch with `torch.cuda.amp`."""

_PARSERS = ("parse", "Version", "LooseVersion", "StrictVersion", "parse_version")
_MIRRORED = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


class Versions:
    """What a module asks about torch's version, and the variables of its top level that follow from the answers."""

    def __init__(self, project: Project, module: Module) -> None:
        self._project = project
        self._module = module

    @cached_property
    def flags(self) -> dict[str, bool]:
        """The variables of the top level that are known at its end, which nothing else binds."""
        known: dict[str, bool] = {}
        top, scopes = self._module.tree.module, self._module.scopes
        self._run(top.body, known)
        own = set(walk(top))
        return {
            name: value
            for name, value in known.items()
            if all(isinstance(n, ast.Name) and n in own for n in scopes.bindings(top, name))
        }

    @property
    def asks(self) -> bool:
        """Tell whether the top level branches on torch's version."""
        branches = (s for s in self._module.tree.module.body if isinstance(s, ast.If))
        return any(self.test(branch.test) is not None for branch in branches)

    def known(self, test: ast.expr) -> bool | None:
        """Return what a part of a test comes out as with a torch that has native AMP; None where that is open."""
        if isinstance(test, ast.Name) and test.id in self.flags:
            top = self._module.tree.module
            return self.flags[test.id] if self._module.scopes.owner(test) is top else None
        return self.test(test)

    def test(self, test: ast.expr) -> bool | None:
        """Return what a comparison of torch's version comes out as, where 1.6 and later all answer alike."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return None
        left, right, op = test.left, test.comparators[0], type(test.ops[0])
        if self._is_torch(right):
            left, right, op = right, left, _MIRRORED.get(op, op)
        asked = _release(right)
        if asked is None or not self._is_torch(left):
            return None
        if op in (ast.GtE, ast.Lt) and asked <= NATIVE_SINCE:
            return op is ast.GtE
        if op in (ast.Gt, ast.LtE) and asked < NATIVE_SINCE:
            return op is ast.Gt
        return None

    def _is_torch(self, node: ast.expr) -> bool:
        """Tell whether an expression is torch's version, parsed: as text, 1.13 comes before 1.6."""
        if not isinstance(node, ast.Call) or last_name(node.func) not in _PARSERS or not node.args:
            return False
        return self._project.external(self._module, node.args[0]) == "torch.__version__"

    def _run(self, body: Iterable[ast.stmt], known: dict[str, bool]) -> None:
        """Follow the statements of a block, with what each leaves in its variables."""
        for stmt in body:
            if isinstance(stmt, ast.If):
                answer = self.test(stmt.test)
                if answer is not None:
                    self._run(stmt.body if answer else stmt.orelse, known)
                    continue
            if isinstance(stmt, ast.ImportFrom) and stmt.names[0].name == "*":
                known.clear()
            value = stmt.value if isinstance(stmt, ast.Assign) else None
            for node in walk(stmt):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
                    known.pop(node.id, None)
            if isinstance(value, ast.Constant) and isinstance(value.value, bool):
                known |= {t.id: value.value for t in targets_of(stmt) if isinstance(t, ast.Name)}


def _release(node: ast.expr) -> tuple[int, ...] | None:
    """Return the release that a constant names, parsed or not; trailing zeros say nothing."""
    if isinstance(node, ast.Call) and last_name(node.func) in _PARSERS and node.args:
        node = node.args[0]
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return None
    if not re.fullmatch(r"\d+(\.\d+)*", node.value):
        return None
    numbers = [int(part) for part in node.value.split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
