"""What an expression may be: the values that were written for it, wherever they stand."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import looked_up, tail, walk
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.tree import Tree
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.reach import where_set
from amp_migrate.project.relatives import are_related
from amp_migrate.training.bindings import meant as library
from amp_migrate.training.bindings import returned, unpacked
from amp_migrate.training.steppers import makes_optimizer

_MADE = (ast.Call, ast.List, ast.Tuple, ast.ListComp)
_TAKING = frozenset({"pop", "setdefault"})
_COPIES = frozenset({"list", "reversed", "set", "sorted", "tuple"})


def meant(project: Project, module: Module, node: ast.expr) -> Iterator[ast.expr | None]:
    """Yield what names, attributes and parameters were assigned, and functions return; None for what nothing in sight gives."""
    return _meant(project, module, node, set())


def held(project: Project, module: Module, node: ast.expr) -> Iterator[ast.expr | None]:
    """Yield what names, attributes and parameters were assigned, the calls of functions as they stand."""
    return _meant(project, module, node, set(), calls=False)


def may_be_none(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether None is among the values that were written for an expression."""
    return any(value is not None and is_none(value) for value in meant(project, module, node))


def never_none(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether an expression is an object that something makes, whatever was written for it: never None."""
    if isinstance(node, ast.Attribute) and not project.instance_classes(module, node.value):
        return False
    found = list(meant(project, module, node))
    return bool(found) and all(isinstance(value, _MADE) and not _looks_up(value) for value in found)


def only_looks(call: ast.Call) -> bool:
    """Tell whether a call looks for an object that may be missing, whatever holds it, and leaves it there."""
    by_key = isinstance(call.func, ast.Attribute) and call.func.attr == "get"
    return by_key or looked_up(call) is not None


def _looks_up(node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Call):
        return False
    taken = isinstance(node.func, ast.Attribute) and node.func.attr in _TAKING
    return taken or only_looks(node) or (tail(node) == "next" and len(node.args) > 1)


def taken_apart(
    project: Project, function: Function, node: ast.AST, above: frozenset[Function] = frozenset()
) -> bool:
    """Tell whether what an expression of a function gives is unpacked or indexed wherever it goes, as far as that is seen."""
    tree = function.module.tree
    up = tree.parent(node)
    while isinstance(up, ast.IfExp):
        node, up = up, tree.parent(up)
    if isinstance(up, ast.Subscript | ast.Starred):
        return up.value is node
    if isinstance(up, ast.Return):
        sites = [s for s in project.callers(function) if s.function not in above]
        above |= {function}
        return all(s.partial or taken_apart(project, s.function, s.call, above) for s in sites)
    if not isinstance(up, ast.Assign):
        return False
    names = {target.id for target in up.targets if isinstance(target, ast.Name)}
    if len(names) + sum(isinstance(t, ast.Tuple | ast.List) for t in up.targets) < len(up.targets):
        return False
    reads = [n for n in function.all_nodes if isinstance(n, ast.Name) and n.id in names]
    loads = [n for n in reads if isinstance(n.ctx, ast.Load)]
    return function.node is not None and all(_is_apart(tree, n) for n in loads) if names else True


def _is_apart(tree: Tree, name: ast.Name) -> bool:
    """Tell whether a read of a variable takes it apart."""
    up = tree.parent(name)
    if isinstance(up, ast.Subscript | ast.Starred):
        return up.value is name
    return isinstance(up, ast.Assign) and all(
        isinstance(t, ast.Tuple | ast.List) for t in up.targets
    )


def are_several(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether one of the values that were written for an expression is made to hold several objects."""
    return any(
        value is not None and _count(project, module, value) > 1
        for value in meant(project, module, node)
    )


def is_one_optimizer(project: Project, module: Module, node: ast.expr) -> bool:
    """Tell whether all that was written for an expression makes one optimizer each: it is no list of several."""
    found = list(meant(project, module, node))
    made = [value for value in found if isinstance(value, ast.Call)]
    return (
        bool(found)
        and len(made) == len(found)
        and all(_makes_optimizer(project, value) for value in made)
    )


def _makes_optimizer(project: Project, call: ast.Call) -> bool:
    module = project.module_of(call)
    known = project.external(module, call.func)
    named = known is not None and makes_optimizer(known)
    return named or project.values.is_optimizer(module, call)


def in_turns(project: Project, module: Module, node: ast.expr) -> frozenset[int]:
    """Return the names that loops bind which bind the object of an expression: it is one of several, and these go with it."""
    found: set[int] = set()
    for where, target, _ in _turns(project, module, node):
        names = (n for n in walk(target) if isinstance(n, ast.Name))
        found.update(*(project.values.groups(where, name) for name in names))
    return frozenset(found)


def is_one_of_several(
    project: Project, module: Module, node: ast.expr, beside: Collection[ast.AST] = ()
) -> bool:
    """Tell whether a loop goes over optimizers of which this is one, and not over a list that is made of it alone.

    What is read `beside` it is never the list that holds it.
    """
    turns = _turns(project, module, node)
    over = [(where, taken) for where, _, taken in turns if taken not in beside]
    made = all(isinstance(taken, ast.Name | ast.List | ast.IfExp) for _, taken in over)
    if made and is_one_optimizer(project, module, node):
        return any(are_several(project, where, taken) for where, taken in over)
    return bool(over)


def _turns(
    project: Project, module: Module, node: ast.expr
) -> Iterator[tuple[Module, ast.expr, ast.expr]]:
    """Yield what the loops that bind the object of an expression bind, and what they go over, with their files."""
    groups = project.values.groups(module, node)
    loops = [(where, loop.target, loop.iter) for where, loop in project.nodes(ast.For)]
    loops += [(where, loop.target, loop.iter) for where, loop in project.nodes(ast.AsyncFor)]
    loops += [(where, loop.target, loop.iter) for where, loop in project.nodes(ast.comprehension)]
    for where, target, taken in loops:
        names = [n for n in walk(target) if isinstance(n, ast.Name)]
        if any(groups & project.values.groups(where, name) for name in names):
            yield where, target, taken


def _count(project: Project, module: Module, node: ast.expr) -> int:
    """Return how many objects an expression holds, as far as it is written: two for any number, one for what is none of these."""
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return sum(2 if isinstance(item, ast.Starred) else 1 for item in node.elts)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return 2
    if isinstance(node, ast.Dict):
        return len(node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _count(project, module, node.left) + _count(project, module, node.right)
    if isinstance(node, ast.Call) and not project.callees(node):
        copied = library(project, module, node.func) in _COPIES and len(node.args) == 1
        if copied and isinstance(node.args[0], ast.List | ast.Tuple | ast.BinOp):
            return _count(project, module, node.args[0])
        by_method = isinstance(node.func, ast.Attribute) and node.func.attr == "values"
        return 2 if copied or by_method else 1
    return 1


def _meant(
    project: Project, module: Module, node: ast.expr, seen: set[ast.AST], calls: bool = True
) -> Iterator[ast.expr | None]:
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Attribute):
        for where, stored in where_set(project, node.attr):
            asked = (module, node.value, where, stored.value)
            if project.values.same(*asked) or are_related(project, *asked):
                value = assigned(where.tree, stored)
                parts = unpacked(project, where, stored) if value is None else [value]
                for part in parts:
                    yield from _meant(project, project.module_of(part), part, seen, calls)
    elif isinstance(node, ast.Name):
        for binding in module.scopes.bound(node):
            value = assigned(module.tree, binding)
            if value is not None:
                yield from _meant(project, module, value, seen, calls)
            elif isinstance(binding, ast.arg):
                yield from _given(project, module, binding, seen, calls)
            else:
                for part in unpacked(project, module, binding):
                    yield from _meant(project, project.module_of(part), part, seen, calls)
    elif isinstance(node, ast.IfExp | ast.BoolOp):
        ways = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        for way in ways:
            yield from _meant(project, module, way, seen, calls)
    elif calls and isinstance(node, ast.Call) and project.callees(node):
        for function in project.callees(node):
            for given in returned(function):
                yield from _meant(project, function.module, given, seen, calls)
    else:
        yield node


def _given(
    project: Project, module: Module, parameter: ast.arg, seen: set[ast.AST], calls: bool
) -> Iterator[ast.expr | None]:
    """Yield what a parameter is given by the calls that are seen, and its default for those that leave it out."""
    function = project.function_of(module, parameter)
    default = function.parameters.defaults.get(parameter.arg)
    given = project.received(function, parameter.arg, itself=True)
    if not given:
        yield None
    if default is not None and (not given or any(got.node is None for got in given)):
        yield from _meant(project, module, default, seen, calls)
    for got in given:
        if got.node is not None:
            yield from _meant(project, got.function.module, got.node, seen, calls)
