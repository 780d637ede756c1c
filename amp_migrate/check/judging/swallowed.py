"""Whether a program goes on behind what raises: an error that nobody sees is a training that went another way."""

from __future__ import annotations

import ast

from amp_migrate.facts.paths import path
from amp_migrate.project import Function, Module
from amp_migrate.protocol.code.program import Program
from amp_migrate.protocol.faults import Place

_CATCHES = frozenset({"BaseException", "Exception", "RuntimeError"})


def is_swallowed(program: Program, place: Place) -> bool:
    """Tell whether a RuntimeError on a line may end in a handler, there or in what calls its function."""
    module = next((m for m in program.project.modules.values() if m.path == place.path), None)
    if module is None:
        return False
    calls = [c for c in module.tree.nodes(ast.Call) if c.lineno <= place.line <= _end(c)]
    queue: list[tuple[Module, ast.AST]] = [(module, call) for call in calls]
    seen: set[Function] = set()
    for where, node in queue:
        if _is_caught(where, node):
            return True
        function = program.calls.body(where, node)
        if function not in seen:
            seen.add(function)
            for holder in program.calls.holders(function):
                queue += [
                    (holder.module, call)
                    for call in program.graph(holder).calls
                    if function in program.calls.of(call)
                ]
    return False


def _end(call: ast.Call) -> int:
    return call.end_lineno or call.lineno


def _is_caught(module: Module, node: ast.AST) -> bool:
    child = node
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        if isinstance(up, ast.Try) and child in up.body:
            if any(_goes_on(handler) for handler in up.handlers):
                return True
        child = up
    return False


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler takes a RuntimeError and does not raise it again in the end."""
    wanted = handler.type
    names = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    takes = any(name is None or (path(name) or "").rpartition(".")[2] in _CATCHES for name in names)
    return takes and not isinstance(handler.body[-1], ast.Raise)
