"""The contexts that change what runs in them: autocast, and those without gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.mark import Mark
from amp_migrate.facts.paths import argument, path, tail
from amp_migrate.facts.tree import FunctionNode
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.order import dominates
from amp_migrate.training.beliefs import AUTOCASTS, CALLED_AUTOCAST, WITHOUT_GRADIENTS
from amp_migrate.training.bindings import returned, values_of

_AMP = ("torch.amp", "torch.autocast", "torch.cuda.amp", "torch.GradScaler")
_DECIDED = "torch.set_grad_enabled"
_SCALES = frozenset({"apex.amp.scale_loss", "apex.amp.handle.scale_loss"})


class Context(Mark):
    """What a context manager does."""

    CASTS = "autocast"
    NO_CASTS = "autocast(enabled=False)"
    NO_GRAD = "no_grad"
    GRAD = "enable_grad"
    STACK = "ExitStack"
    DELAYS = "scale_loss(delay_unscale=True)"
    DIVIDES = "scale_loss(delay_unscale=False)"


class Choice(NamedTuple):
    """An expression that decides between two contexts: the one where it is true, and the other."""

    asked: ast.expr
    true: Context
    false: Context


def context(project: Project, module: Module, node: ast.expr) -> Context | None:
    """Return what entering the context of an expression does with AMP on; None for any other one."""
    found = dict.fromkeys(_contexts(project, module, node, set()))
    for first in (Context.CASTS, Context.NO_GRAD):
        if first in found:
            return first
    return next(iter(found), None)


def is_native(name: str | None) -> bool:
    """Tell whether a dotted name is that of native AMP, or of something in it."""
    return name is not None and any(name == own or name.startswith(f"{own}.") for own in _AMP)


def is_scale_loss(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is `amp.scale_loss` itself, which nothing calls there."""
    return project.apex(module, node) in _SCALES


@once
def scaling_calls(project: Project) -> Mapping[ast.Call, Module]:
    """Return the calls that scale a loss by Apex, under whatever name, and those of that name that are out of sight, with their files."""
    return {
        call: module
        for module, call in project.nodes(ast.Call)
        if last_name(call) == "scale_loss" or is_scale_loss(project, module, call.func)
    }


def scales_loss(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is a context of `amp.scale_loss`, made here or by a function that returns it."""
    if not isinstance(node, ast.Call):
        return False
    if is_scale_loss(project, module, node.func):
        return True
    return bool(project.callees(node)) and not _SCALES.isdisjoint(
        project.values.made_by(module, node)
    )


def choice(project: Project, module: Module, node: ast.expr) -> Choice | None:
    """Return what decides which of two contexts a call is."""
    asked = undecided(project, module, node)
    if asked is not None:
        return Choice(asked, Context.GRAD, Context.NO_GRAD)
    if not isinstance(node, ast.Call) or not is_scale_loss(project, module, node.func):
        return None
    delay = argument(node, "delay_unscale", 4)
    return None if delay is None else Choice(delay, Context.DELAYS, Context.DIVIDES)


def undecided(project: Project, module: Module, node: ast.expr) -> ast.expr | None:
    """Return what decides whether a context has gradients: the argument of ``set_grad_enabled``, if it varies."""
    if not isinstance(node, ast.Call) or not node.args or isinstance(node.args[0], ast.Constant):
        return None
    return node.args[0] if project.external(module, node.func) == _DECIDED else None


def _contexts(
    project: Project, module: Module, node: ast.expr, seen: set[ast.AST]
) -> Iterator[Context]:
    """Yield what an expression may be, through names, conditional expressions and functions that return it."""
    if node in seen:
        return
    seen.add(node)
    stated = _stated(project, module, node)
    if stated is not None:
        yield stated
    elif isinstance(node, ast.IfExp):
        yield from _contexts(project, module, node.body, seen)
        yield from _contexts(project, module, node.orelse, seen)
    elif isinstance(node, ast.Name):
        for value in values_of(module, node):
            yield from _contexts(project, module, value, seen)
    elif isinstance(node, ast.Call):
        yield from _handed_out(project, node, seen)
        for value in values_of(module, node.func) if isinstance(node.func, ast.Name) else ():
            if value in seen:  # a name that is bound anew to a partial of itself
                continue
            if isinstance(value, ast.Call) and last_name(value) == "partial" and value.args:
                seen.add(value)
                whole = ast.Call(value.args[0], value.args[1:], [*value.keywords, *node.keywords])
                yield from _contexts(project, module, whole, seen)


def _handed_out(project: Project, node: ast.Call, seen: set[ast.AST]) -> Iterator[Context]:
    """Yield what the functions that a call may run return; one of several that returns no context takes the others' place."""
    given = [
        [c for value in returned(callee) for c in _contexts(project, callee.module, value, seen)]
        for callee in project.callees(node)
    ]
    if all(given):
        yield from (found for each in given for found in each)


def _stated(project: Project, module: Module, node: ast.expr) -> Context | None:
    call = node if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call | ast.Name | ast.Attribute):
        return None
    name = project.external(module, call.func if call is not None else node)
    if name in AUTOCASTS and call is not None:
        return Context.NO_CASTS if is_off(call) else Context.CASTS
    if name in WITHOUT_GRADIENTS:
        return Context.NO_GRAD
    if name == "torch.enable_grad":
        return Context.GRAD
    if name in ("contextlib.ExitStack", "contextlib.AsyncExitStack"):
        return Context.STACK
    if name == _DECIDED and call is not None and call.args:
        given = call.args[0]
        if isinstance(given, ast.Constant):
            return Context.GRAD if given.value else Context.NO_GRAD
    return None


def entered(node: ast.With | ast.AsyncWith) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yield the contexts that statements of a block enter on the stack that it opens, with these."""
    stacks = [i.optional_vars.id for i in node.items if isinstance(i.optional_vars, ast.Name)]
    for stmt in node.body:
        call = stmt.value if isinstance(stmt, ast.Expr | ast.Assign | ast.AnnAssign) else None
        if isinstance(call, ast.Call) and last_name(call) == "enter_context" and call.args:
            if path(call.func) in [f"{stack}.enter_context" for stack in stacks]:
                yield stmt, call.args[0]


def around(module: Module, node: ast.AST) -> Iterator[ast.expr]:
    """Yield the contexts of the blocks around a node in its body, inner ones first, those that a statement before it enters included."""
    child = node
    for up in module.tree.ancestors(node):
        if isinstance(up, FunctionNode | ast.Lambda):
            return
        if isinstance(up, ast.With | ast.AsyncWith) and child in up.body:
            before = up.body[: up.body.index(child)]
            given = [item.context_expr for item in up.items]
            given += [one for statement, one in entered(up) if statement in before]
            yield from reversed(given)
        child = up


def decorated(project: Project, function: Function) -> tuple[Context, ...]:
    """Return the contexts in which every run of a function stands."""
    if function.node is None:
        return ()
    found = [context(project, function.module, d) for d in function.node.decorator_list]
    return tuple(item for item in found if item is not None)


def is_off(call: ast.Call) -> bool:
    """Tell whether an autocast or a GradScaler is made with ``enabled=False``."""
    return any(
        k.arg == "enabled" and isinstance(k.value, ast.Constant) and not k.value.value
        for k in call.keywords
    )


def enters_autocast(project: Project, module: Module, node: ast.With) -> bool:
    """Tell whether a `with` enters autocast, on or off, of torch or of a library."""
    return any(
        context(project, module, item.context_expr) in (Context.CASTS, Context.NO_CASTS)
        or last_name(item.context_expr) in CALLED_AUTOCAST
        for item in node.items
    )


def in_autocast(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a node stands under an autocast that the source has itself."""
    above = module.tree.ancestors(node)
    return any(isinstance(up, ast.With) and enters_autocast(project, module, up) for up in above)


def keeps_no_graph(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a node of a function certainly runs without gradients, by what stands around it there."""
    for up in module.tree.ancestors(node):
        if isinstance(up, ast.With):
            found = {context(project, module, item.context_expr) for item in up.items}
            if found & {Context.NO_GRAD, Context.GRAD}:
                return Context.GRAD not in found
        elif isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            function = module.functions.get(up)
            return function is not None and Context.NO_GRAD in decorated(project, function)
        elif isinstance(up, ast.Lambda):
            return False
    return False


def runs_without_gradients(project: Project, module: Module, node: ast.AST) -> bool | None:
    """Tell whether a node is ``with torch.no_grad():``; None for one that is where its argument says so."""
    if not isinstance(node, ast.With):
        return False
    found = [context(project, module, item.context_expr) for item in node.items]
    if Context.STACK in found:
        found += [context(project, module, given) for _, given in entered(node)]
    if Context.NO_GRAD in found:
        return True
    varies = any(undecided(project, module, item.context_expr) for item in node.items)
    return None if varies else False


def stops_exceptions(project: Project, context: ast.expr) -> bool:
    """Tell whether leaving a context stops exceptions: ``contextlib.suppress``."""
    if not isinstance(context, ast.Call):
        return False
    return project.external(project.module_of(context), context.func) == "contextlib.suppress"


def in_training_mode(function: Function, node: ast.AST) -> bool:
    """Tell whether a method of a network comes to a node in its training mode alone, as it asks ``self.training``."""
    return any(_asks_mode(up.test, truth) for up, truth in function.module.tree.sides(node))


def _asks_mode(test: ast.expr, truth: bool) -> bool:
    """Tell whether a test asks for the training mode, and comes out so that this is on."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asks_mode(test.operand, not truth)
    return truth and isinstance(test, ast.Attribute) and test.attr == "training"


def in_evaluation_mode(project: Project, module: Module, call: ast.Call) -> bool:
    """Tell whether a function calls ``network.eval()`` before it runs that, and puts it into no other mode."""
    groups = project.values.groups(module, call.func)
    modes = [
        other
        for other in project.function_of(module, call).calls
        if isinstance(other.func, ast.Attribute) and other.func.attr in ("eval", "train")
        if groups & project.values.groups(module, other.func.value)
    ]
    before = [
        other for other in modes if dominates(module.tree, module.tree.statement(other), call)
    ]
    return bool(before) and all(tail(other) == "eval" for other in modes)
