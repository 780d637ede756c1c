"""Networks that ran with gradients before they run without, in the same autocast block: their casts are there already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.paths import outward, path
from amp_migrate.flow import Kind, leads
from amp_migrate.flow.cfg.points import Point
from amp_migrate.flow.changes import stored_name
from amp_migrate.project import Function
from amp_migrate.project.once import kept
from amp_migrate.protocol.code.program import Program
from amp_migrate.training.contexts import Context, around, context, undecided

_FREEZES = "requires_grad"
_MODES = (Context.NO_GRAD, Context.GRAD)


def cast_already(program: Program, node: ast.AST) -> bool:
    """Tell whether what a call runs has always run with gradients before, in the autocast block around both."""
    asked = cast_already, program, node
    return kept(program.project, asked, lambda: isinstance(node, ast.Call) and _cast(program, node))


def _cast(program: Program, call: ast.Call) -> bool:
    function = program.project.holder(call)
    first = [
        other
        for other in function.calls
        if other is not call and _is_alike(other, call) and has_gradients(program, function, other)
        if _blocks(program, function, other) == _blocks(program, function, call)
    ]
    starts = starts_anew(program, function, call) if first else None
    if starts is None:
        return False
    graph = program.graph(function)
    ran = [point for other in first for point in graph.at(other, Kind.CALL)]
    return not leads(graph.order(exceptions=False), starts, graph.at(call, Kind.CALL), ran)


def starts_anew(program: Program, function: Function, call: ast.Call) -> list[Point] | None:
    """Return the points behind which nothing is cast of the object of a call; None where it may be another object each time."""
    if not _is_one_object(program, function, call.func):
        return None
    graph = program.graph(function)
    starts = [graph.entry, *(p for p in graph.points if _begins(program, function, call, p.node))]
    starts += graph.at(call.func, Kind.STORE)
    name = next(part.id for part in outward(call.func) if isinstance(part, ast.Name))
    return [
        *starts,
        *(p for p in graph.points if p.kind is Kind.STORE and stored_name(p.node) == name),
    ]


def _is_alike(one: ast.Call, other: ast.Call) -> bool:
    """Tell whether two calls of one object run the same of it: their settings are the same."""
    spelt = path(one.func)
    same = spelt is not None and spelt == path(other.func) and len(one.args) == len(other.args)
    return same and _settings(one) == _settings(other)


def _settings(call: ast.Call) -> list[str]:
    constants = [ast.dump(a) if isinstance(a, ast.Constant) else "" for a in call.args]
    return [*constants, *sorted(ast.dump(keyword) for keyword in call.keywords)]


def has_gradients(program: Program, function: Function, node: ast.AST) -> bool:
    """Tell whether nothing in its function takes the gradients of a node."""
    module, project = function.module, program.project
    given = list(around(module, node))
    if any(undecided(project, module, expression) for expression in given):
        return False
    modes = (found for e in given if (found := context(project, module, e)) in _MODES)
    return next(modes, Context.GRAD) is Context.GRAD


def _blocks(program: Program, function: Function, node: ast.AST) -> list[ast.expr]:
    """Return the contexts of autocast around a node in its function."""
    module = function.module
    casts = (Context.CASTS, Context.NO_CASTS)
    return [e for e in around(module, node) if context(program.project, module, e) in casts]


def _is_one_object(program: Program, function: Function, func: ast.expr) -> bool:
    """Tell whether an expression is a variable of a function, or an attribute that constructors alone set."""
    *above, bottom = outward(func)
    if not isinstance(bottom, ast.Name):
        return False
    if function.module.scopes.owner(bottom) is not function.scope:
        return False
    stored = program.training.objects.stored
    return all(
        isinstance(part, ast.Attribute)
        and all(
            program.project.function_of(module, target).name == "__init__"
            for module, target, _ in stored.get(part.attr, ())
        )
        for part in above
    )


def _begins(program: Program, function: Function, call: ast.Call, node: ast.AST) -> bool:
    """Tell whether a point begins a block, drops copies, or may let weights ask for gradients, but for networks that run."""
    if isinstance(node, ast.withitem):
        return program.context(function, node.context_expr) is Context.CASTS
    if isinstance(node, ast.Attribute):
        return node.attr == _FREEZES and not isinstance(node.ctx, ast.Load)
    if not isinstance(node, ast.Call) or path(node.func) == path(call.func):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == f"{_FREEZES}_":
        return True
    if program.project.external(function.module, node.func) == "torch.clear_autocast_cache":
        return True
    return any(f in _thawing(program) for f in program.calls.run(node))


def _thawing(program: Program) -> frozenset[Function]:
    """Return the functions that may set which weights ask for gradients, or drop copies, and those that may come to one."""
    return kept(program.project, (_thawing, program), lambda: program.above(*_setting(program)))


def _setting(program: Program) -> Iterator[Function]:
    names = (_FREEZES, f"{_FREEZES}_", "clear_autocast_cache")
    for module, node in program.project.nodes(ast.Attribute):
        if node.attr in names and (node.attr != _FREEZES or not isinstance(node.ctx, ast.Load)):
            yield program.calls.body(module, node)
