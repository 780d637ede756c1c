"""Where lazy expressions are evaluated: generator expressions, and what ``map`` and its like run."""

from __future__ import annotations

import ast

from amp_migrate.facts.scopes import targets_of
from amp_migrate.project import Function, Module, Project
from amp_migrate.training.beliefs import COLLECTS, LAZILY
from amp_migrate.training.bindings import is_generator, meant
from amp_migrate.training.origins.reaching import Body, Reaching

_AT_ONCE = (
    ast.Await, ast.ListComp, ast.SetComp, ast.DictComp, ast.Compare, ast.Starred, ast.YieldFrom,
)  # fmt: skip
_PASSES_ON = (ast.IfExp, ast.BoolOp, ast.NamedExpr)


class Deferred:
    """Follows what is evaluated lazily to where it is gone through; `function` gives the function of a node."""

    def __init__(self, project: Project, reaching: Reaching, function: Body) -> None:
        self._project = project
        self._reaching = reaching
        self._function = function

    def evaluated(self, module: Module, node: ast.AST) -> list[ast.AST] | None:
        """Return the nodes of its function at which a node is evaluated: itself where nothing defers it.

        None where that is not seen: what defers it leaves the function, or is kept.
        """
        lazy = self._lazy(module, node)
        if lazy is None:
            return [node]
        found: list[ast.AST] = []
        there = self._gone_through(module, lazy, set())
        for behind in (self.evaluated(module, each) for each in there or ()):
            if behind is None:
                return None
            found += behind
        return found if there is not None else None

    def _lazy(self, module: Module, node: ast.AST) -> ast.expr | None:
        """Return the innermost expression around a node that evaluates it later."""
        if isinstance(node, ast.Call) and self._is_lazy(module, node):
            return node
        child = node
        for up in module.tree.ancestors(node):
            if isinstance(up, ast.GeneratorExp) and child is not up.generators[0]:
                return up
            if isinstance(up, ast.comprehension) and child is up.iter:
                holder = module.tree.parent(up)
                if isinstance(holder, ast.GeneratorExp) and holder.generators[0] is up:
                    child = holder
                    continue
            if isinstance(up, ast.Lambda):
                call = module.tree.parent(up)
                given = isinstance(call, ast.Call) and up in call.args[:1]
                lazily = given and self._is_lazy(module, call)
                return call if lazily and isinstance(call, ast.Call) else None
            if isinstance(up, ast.stmt | ast.mod):
                return None
            child = up
        return None

    def _is_lazy(self, module: Module, call: ast.AST | None) -> bool:
        """Tell whether a call runs what it is given, or what it calls, only as somebody goes through its result."""
        if not isinstance(call, ast.Call):
            return False
        return meant(self._project, module, call.func) in LAZILY or self.starts(call)

    def starts(self, call: ast.Call) -> bool:
        """Tell whether a call makes a generator or a coroutine, whose function runs as somebody goes through it."""
        return bool(callees := self._project.callees(call)) and all(map(_runs_later, callees))

    def _gone_through(
        self, module: Module, lazy: ast.expr, seen: set[ast.AST]
    ) -> list[ast.AST] | None:
        """Return where a lazy value is gone through."""
        if lazy in seen:
            return []
        seen.add(lazy)
        up = module.tree.user(lazy)
        if isinstance(up, ast.For | ast.AsyncFor):
            return [up]
        if isinstance(up, _AT_ONCE):
            return [up]
        if isinstance(up, ast.comprehension):
            holder = module.tree.parent(up)
            if isinstance(holder, ast.GeneratorExp):
                return self._gone_through(module, holder, seen)
            return [up]
        if isinstance(up, _PASSES_ON):
            return self._gone_through(module, up, seen)
        if isinstance(up, ast.Call):
            return self._given(module, up, lazy, seen)
        if isinstance(up, ast.Assign | ast.AnnAssign):
            return self._bound(module, up, lazy, seen)
        return [] if isinstance(up, ast.Expr) else None

    def _given(
        self, module: Module, call: ast.Call, lazy: ast.expr, seen: set[ast.AST]
    ) -> list[ast.AST] | None:
        """Return where a call goes through what it is given: at once, unless it is lazy itself or keeps it."""
        if self._is_lazy(module, call):
            return self._gone_through(module, call, seen)
        keeps = isinstance(call.func, ast.Attribute) and call.func.attr in COLLECTS - {"extend"}
        if keeps or self._project.constructed(call):
            return None
        callees = self._project.callees(call)
        return [call] if all(self._uses_up(c, call, lazy, seen) for c in callees) else None

    def _uses_up(
        self, function: Function, call: ast.Call, lazy: ast.expr, seen: set[ast.AST]
    ) -> bool:
        """Tell whether a function goes through what a call gives it before it returns."""
        given = self._project.given(call, function)
        names = {name for name, value in given.items() if value is lazy}
        if not names or is_generator(function):
            return False
        loads = (n for n in function.all_nodes if isinstance(n, ast.Name) and n.id in names)
        return all(
            self._function(function.module, load) is function
            and self._gone_through(function.module, load, seen) is not None
            for load in loads
            if isinstance(load.ctx, ast.Load)
        )

    def _bound(
        self, module: Module, stmt: ast.Assign | ast.AnnAssign, lazy: ast.expr, seen: set[ast.AST]
    ) -> list[ast.AST] | None:
        """Return where the readers of a variable go through it."""
        targets = targets_of(stmt)
        if any(isinstance(target, ast.Tuple | ast.List) for target in targets):
            return [stmt]
        if not all(isinstance(target, ast.Name) for target in targets):
            return None
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        function = self._function(module, stmt)
        found: list[ast.AST] = []
        for load in module.tree.nodes(ast.Name):
            if load.id not in names or not isinstance(load.ctx, ast.Load):
                continue
            if lazy not in self._reaching.of(self._function(module, load), load):
                continue
            if self._function(module, load) is not function:
                return None
            there = self._gone_through(module, load, seen)
            if there is None:
                return None
            found += there
        return found


def _runs_later(function: Function) -> bool:
    """Tell whether a call of a function runs none of it: a decorator may make anything of it."""
    if function.node is None or function.node.decorator_list:
        return False
    return is_generator(function) or isinstance(function.node, ast.AsyncFunctionDef)
