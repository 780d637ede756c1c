"""The scaler handed back by a function that initializes: ``return model, optimizer`` grows by one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from amp_migrate.plan import Edit, ReplaceExpression
from amp_migrate.project import Function

if TYPE_CHECKING:
    from amp_migrate.unit.home import Home


class Returning:
    """Threads the scaler upwards, from the function that makes it to the one that called it."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._providers: set[Function] = set()
        self.extended: set[ast.Return] = set()

    def provide(self, function: Function, node: ast.AST) -> bool:
        """Make a function that calls the initializing one receive the scaler; tell whether that worked."""
        source = self._source(function, set())
        if source is None:
            return False
        call, callee = source
        edits = self._receive(function, call)
        if edits is None or not self._give(callee, call):
            return False
        from amp_migrate.unit.home import Thread

        sentence = f"{callee.qualname}() returns the GradScaler too"
        self._home.threads.setdefault(function, Thread(function, sentence)).edits += edits
        return True

    def _source(self, function: Function, seen: set[Function]) -> tuple[ast.Call, Function] | None:
        """Find a call in `function` of one that initializes, and so can give the scaler back."""
        seen.add(function)
        tree = function.module.tree
        for node in ast.walk(function.node or tree.module):
            if (
                not isinstance(node, ast.Call)
                or self._home.project.function_of(function.module, node) is not function
            ):
                continue
            for callee in self._home.project.callees(node, function):
                if callee in seen or callee.name == "__init__" or self._home.is_attribute(callee):
                    continue
                if callee in self._home.inits or self._source(callee, seen) is not None:
                    return node, callee
        return None

    def _receive(self, function: Function, call: ast.Call) -> list[tuple[str, Edit]] | None:
        tree = function.module.tree
        stmt = tree.parent(call)
        if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1:
            return None
        target = stmt.targets[0]
        if isinstance(target, ast.Tuple) or isinstance(target, ast.Name | ast.Attribute):
            text = f"{_bare(tree.segment(target))}, {self._home.name}"
            return [(function.module.path, ReplaceExpression(tree.span(target), text))]
        return None

    def _give(self, callee: Function, call: ast.Call) -> bool:
        """Extend every return of `callee`; its other callers must take the longer result too."""
        home = self._home
        if callee in self._providers:
            return True
        self._providers.add(callee)
        if callee.node is None or home.project.escapes(callee):
            return False
        for site in home.project.callers(callee):
            if site.call is not call:
                edits = self._receive(site.function, site.call)
                if edits is None:
                    return False
                self._thread(callee).edits += edits
        returns = [
            n
            for n in ast.walk(callee.node)
            if isinstance(n, ast.Return) and home.project.function_of(callee.module, n) is callee
        ]
        if not returns or any(r.value is None for r in returns):
            return False
        text = home.access(callee, returns[-1])
        for statement in returns:
            if not self._extend(callee, statement, text):
                return False
        return True

    def _extend(self, callee: Function, statement: ast.Return, text: str) -> bool:
        value = statement.value
        tree = callee.module.tree
        if value is None:
            return False
        if any(site.node is value for sites in self._home.inits.values() for site in sites):
            self.extended.add(statement)
            return True
        edit = ReplaceExpression(tree.span(value), f"{_bare(tree.segment(value))}, {text}")
        self._thread(callee).edits.append((callee.module.path, edit))
        return True

    def _thread(self, callee: Function):  # type: ignore[no-untyped-def]
        from amp_migrate.unit.home import Thread

        return self._home.threads.setdefault(
            callee, Thread(callee, f"{callee.qualname}() returns the GradScaler too")
        )


def _bare(text: str) -> str:
    """Take the parentheses off a tuple that stands in them."""
    if (
        text.startswith("(")
        and text.endswith(")")
        and isinstance(ast.parse(text, mode="eval").body, ast.Tuple)
    ):
        return text[1:-1].rstrip(", ")
    return text
