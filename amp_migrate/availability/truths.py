"""Values that are amp or nothing, as in ``use_amp = args.fp16 and amp``: flags, where only their truth is asked."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import is_touched_elsewhere
from amp_migrate.project.reach import where_read

_BRANCHES = (ast.If, ast.While, ast.IfExp, ast.Assert)


def is_asked(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether a part of ``a and b`` decides what the whole is, or is it where no more is asked of that than its truth."""
    up = module.tree.parent(node)
    decides = (
        isinstance(up, ast.BoolOp) and isinstance(up.op, ast.And) and node is not up.values[-1]
    )
    return decides or _Asking(project).only(module, node)


class _Asking:
    """Follows a value to where it is put and given."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._seen: set[tuple[object, str]] = set()

    def only(self, module: Module, node: ast.expr) -> bool:
        """Tell whether the program asks no more of a value than its truth."""
        up = module.tree.parent(node)
        if isinstance(up, _BRANCHES) and up.test is node:
            return True
        if isinstance(up, ast.comprehension | ast.match_case):
            return node is not getattr(up, "iter", None)
        if isinstance(up, ast.BoolOp | ast.IfExp):
            return self.only(module, up)
        if isinstance(up, ast.UnaryOp):
            return isinstance(up.op, ast.Not)
        if isinstance(up, ast.Assign):
            return all(self._put(module, target, node) for target in up.targets)
        if isinstance(up, ast.Return):
            return self._returned(self._project.function_of(module, up))
        call = module.tree.parent(up) if isinstance(up, ast.keyword) else up
        if not isinstance(call, ast.Call) or node is call.func:
            return False
        return module.scopes.builtin(call.func) == "bool" or self._given(call, node)

    def _put(self, module: Module, target: ast.expr, value: ast.expr) -> bool:
        """Tell the same of a variable that gets the value and nothing else, or of an attribute."""
        if isinstance(target, ast.Attribute):
            reads = where_read(self._project, target.attr)
            return not self._is_new(self._project, target.attr) or all(self.only(*r) for r in reads)
        if not isinstance(target, ast.Name):
            return False
        if any(assigned(module.tree, b) is not value for b in module.scopes.bound(target)):
            return False
        owner = module.scopes.owner(target)
        taken = owner is module.tree.module and is_touched_elsewhere(
            self._project, module, target.id
        )
        return not taken and self._read(module, owner, target.id)

    def _returned(self, function: Function) -> bool:
        """Tell the same of what all calls of a function give."""
        calls = self._project.callers(function)
        if not self._is_new(function, ""):
            return True
        seen = bool(calls) and not self._project.escapes(function)
        return seen and all(self.only(s.function.module, s.call) for s in calls)

    def _given(self, call: ast.Call, node: ast.expr) -> bool:
        """Tell the same of the parameters that get the value, which nothing sets."""
        taking = list(self._taking(call, node))
        return bool(taking) and all(
            name is not None
            and len(function.module.scopes.bindings(function.scope, name)) == 1
            and self._read(function.module, function.scope, name)
            for function, name in taking
        )

    def _taking(self, call: ast.Call, node: ast.expr) -> Iterable[tuple[Function, str | None]]:
        """Yield the functions that a call may run, with the parameter that gets an argument."""
        for function in self._project.callees(call):
            given = self._project.given(call, function)
            yield function, next((name for name, value in given.items() if value is node), None)

    def _read(self, module: Module, scope: ScopeNode | None, name: str) -> bool:
        if scope is None or not self._is_new(scope, name):
            return scope is not None
        return all(self.only(module, read) for read in module.scopes.reads(scope, name))

    def _is_new(self, holder: object, name: str) -> bool:
        new = (holder, name) not in self._seen
        self._seen.add((holder, name))
        return new
