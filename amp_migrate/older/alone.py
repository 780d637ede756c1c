"""A handle of `amp.init` that nothing uses: it only casts, as `amp.initialize` does without an optimizer."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.constants import string
from amp_migrate.facts.paths import argument, called_on, path, tail
from amp_migrate.older.found import Found, Groups
from amp_migrate.older.sheet import ALONE, Sheet
from amp_migrate.plan.cannot import Unwritable
from amp_migrate.project import Function, Module
from amp_migrate.project.order import dominates
from amp_migrate.training.forwards.forwards import Forwards
from amp_migrate.training.steppers import may_train

_O1 = ast.Constant("O1")


def cast_by(sheet: Sheet, call: ast.Call, handles: Groups, found: Found) -> list[str]:
    """Return the networks that run behind a call of `amp.init`, by name, where nothing trains; none where they are made later. Raises `Unwritable`."""
    module, project = sheet.module, found.project
    function = project.function_of(module, call)
    if _is_read(found, handles) or may_train(project, function):
        advice = "write `optimizer = handle.wrap_optimizer(optimizer)` and `with optimizer.scale_loss(loss)`, then run again"
        if (scaling := _scales_itself(function)) is not None:
            advice = (
                f"`{scaling}` scales the loss itself: put the forward pass under torch.cuda.amp.autocast() in place of "
                "amp.init, and leave that to it"
            )
        raise Unwritable(
            module,
            call,
            "the handle wraps no optimizer that is seen, and without one it scales no loss today",
            advice,
        )
    statement = module.tree.statement(call)
    networks = list(dict.fromkeys(_networks(found, module, function, statement)))
    if networks and not sheet.tree.stands_alone(statement):
        raise Unwritable(module, statement, "the statement shares its lines with others", ALONE)
    return networks


def _scales_itself(function: Function) -> str | None:
    """Return how a function runs the backward pass of a loss by an optimizer, which scales that: ``optimizer.backward(loss)``."""
    named = [(path(on), call) for call in function.calls if (on := called_on(call)) is not None]
    stepped = {name for name, call in named if name and tail(call) == "step"}
    scaling = (c for name, c in named if name in stepped and tail(c) == "backward" and c.args)
    return next(map(ast.unparse, scaling), None)


def casts_again(sheet: Sheet, call: ast.Call, handles: Groups, found: Found) -> bool:
    """Tell whether a call of `amp.init` only patches what an `amp.initialize` with O1 that always runs before has patched."""
    module, project = sheet.module, found.project
    statement, function = module.tree.statement(call), project.function_of(module, call)
    if call.args or any(k.arg != "enabled" for k in call.keywords) or _is_read(found, handles):
        return False
    if not isinstance(statement, ast.Expr | ast.Assign) or statement.value is not call:
        return False
    return sheet.tree.stands_alone(statement) and any(
        project.apex(module, other.func) == "apex.amp.initialize"
        and argument(other, "enabled", 2) is None
        and string(argument(other, "opt_level", 3) or _O1) == _O1.value
        and not any(k.arg is None for k in other.keywords)
        and dominates(module.tree, module.tree.statement(other), statement)
        for other in function.calls
    )


def _is_read(found: Found, handles: Groups) -> bool:
    near = found.onward(handles)
    return any(
        near.reaches(module, node) and found.groups(module, node) & handles
        for module in found.project.modules.values()
        for node in module.tree.nodes(ast.Name, ast.Attribute)
        if isinstance(node.ctx, ast.Load)
    )


def _networks(
    found: Found, module: Module, function: Function, statement: ast.stmt
) -> Iterator[str]:
    """Yield the names of networks that a function has when a statement runs."""
    forwards = Forwards(found.project, [])
    for node in function.own_nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            owner = module.scopes.owner(node)
            bindings = module.scopes.bindings(owner, node.id) if owner is function.scope else []
            made = [module.tree.statement(b) for b in bindings if not isinstance(b, ast.arg)]
            given = any(isinstance(b, ast.arg) for b in bindings)
            ready = given or any(dominates(module.tree, stmt, statement) for stmt in made)
            if ready and forwards.is_network(module, node):
                yield node.id
