"""The constant that an argument is, by the assignments that reach it and the calls that give it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from amp_migrate.facts.constants import number, string
from amp_migrate.facts.paths import spreads
from amp_migrate.facts.scopes import ScopeNode
from amp_migrate.flow.assumption import NOTHING, Assumption
from amp_migrate.flow.refine import assume
from amp_migrate.modules.layout import Folder
from amp_migrate.project import CallSite, Class, Function, Module, Project
from amp_migrate.project.programs import beside
from amp_migrate.project.reach import where_set
from amp_migrate.training.bindings import bound_value
from amp_migrate.training.origins.reaching import Reaching
from amp_migrate.values.written import written

_COLLECTIONS = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_Value = tuple[Function, ast.expr]


def constant_of(
    project: Project,
    reaching: Reaching,
    function: Function,
    value: ast.expr,
    *,
    through_calls: bool = True,
) -> ast.Constant | None:
    """Return the one constant that an expression of a function is on every way to it; None for anything else.

    Without `through_calls` a parameter is none, whatever its calls in sight give.
    """
    found: dict[tuple[type, object], ast.Constant] = {}
    for end in ends(project, reaching, function, value, through_calls):
        node = _folded(end)
        if not isinstance(node, ast.Constant):
            return None
        found[type(node.value), node.value] = node
    return next(iter(found.values())) if len(found) == 1 else None


def _folded(node: ast.expr) -> ast.expr:
    """Return the number that an operation on numbers gives; any other expression as it is."""
    value = number(node) if isinstance(node, ast.BinOp) else None
    return node if value is None else ast.copy_location(ast.Constant(value), node)


def is_collection(
    project: Project, reaching: Reaching, function: Function, value: ast.expr
) -> bool:
    """Tell whether an expression of a function is a list, a dictionary or the like on every way to it, or None: no call of it runs."""
    found = list(ends(project, reaching, function, value, through_calls=True))
    return all(
        isinstance(node, _COLLECTIONS) or (isinstance(node, ast.Constant) and node.value is None)
        for node in found
    )


def ends(
    project: Project, reaching: Reaching, function: Function, value: ast.expr, through_calls: bool
) -> Iterator[ast.expr]:
    """Yield what an expression may be, followed through names and parameters; a name where that is not told."""
    queue: list[_Value] = [(function, value)]
    for where, node in queue:
        onward = _onward(project, reaching, where, node, through_calls)
        if onward is None:
            yield node
        else:
            queue += [item for item in onward if item not in queue]


def _onward(
    project: Project, reaching: Reaching, function: Function, node: ast.expr, through_calls: bool
) -> list[_Value] | None:
    """Return what a name may be where it is read; None where that is not told."""
    if isinstance(node, ast.Subscript):
        return _under_key(project, function.module, node)
    if not isinstance(node, ast.Name):
        return _in_module(project, function, node) if isinstance(node, ast.Attribute) else None
    found: list[_Value] = []
    for held in reaching.of(function, node):
        if isinstance(held, ast.arg):
            given = _given(project, function, held.arg) if through_calls else None
            if given is None:
                return None
            found += given
        elif held is not None and _is_assigned(function, held):
            found.append((reaching.holder(function, held), held))
        else:
            return _imported(project, function, node)
    return found or _imported(project, function, node)


def _under_key(project: Project, module: Module, node: ast.Subscript) -> list[_Value] | None:
    """Return what a dictionary of constants that nothing changes has under a key; None where that is not told."""
    key = string(node.slice)
    near = beside(project, module.path) if key is not None else ()
    files = [m for m in project.modules.values() if m.path in near]
    held = written(project.lookup, files, module, node.value) if key is not None else None
    value = held.get(key) if held is not None and key is not None else None
    return None if value is None else [(project.module_of(value).top, value)]


def _in_module(project: Project, function: Function, node: ast.Attribute) -> list[_Value] | None:
    """Return what a variable of a file, or of a class, is that an attribute of it reads; None where it may be set anew."""
    bases = project.lookup.expression(function.module, node.value)
    if len(bases) != 1 or not isinstance(bases[0], Module | Class):
        return None
    base = bases[0]
    if isinstance(base, Class):
        return _bound_to(project, base.module, base.node, node.attr)
    return _bound_to(project, base, base.tree.module, node.attr)


def _imported(project: Project, function: Function, name: ast.Name) -> list[_Value] | None:
    """Return what the variable of another file is that an import gives a name; None where it may be set anew."""
    module = function.module
    return _through(project, module, module.scopes.bound(name), name.id, frozenset())


def _bound_to(
    project: Project,
    module: Module,
    scope: ScopeNode,
    name: str,
    seen: frozenset[Module] = frozenset(),
) -> list[_Value] | None:
    """Return what a variable of a file or class is, wherever its file has it from; None where it may be set anew."""
    if where_set(project, name):
        return None
    bindings = list(module.scopes.bindings(scope, name))
    found = [(module.top, value) for b in bindings if (value := bound_value(module, b)) is not None]
    if found and len(found) == len(bindings):
        return found
    return _through(project, module, bindings, name, seen)


def _through(
    project: Project,
    module: Module,
    bindings: Sequence[ast.AST],
    name: str,
    seen: frozenset[Module],
) -> list[_Value] | None:
    """Return what a name is that one import binds, by name or with all that its module offers."""
    sources: list[tuple[Module | Folder | None, str]] = []
    for binding in bindings:
        up = module.tree.parent(binding)
        if not isinstance(binding, ast.alias) or not isinstance(up, ast.ImportFrom):
            return None
        sources.append((project.lookup.source(module, up), binding.name))
    if not bindings:
        starred = project.lookup.starred_from(module)
        sources = [(m, name) for m in starred if m.scopes.bindings(m.tree.module, name)]
    if len(sources) != 1 or module in seen:
        return None
    source, there = sources[0]
    if not isinstance(source, Module):
        return None
    return _bound_to(project, source, source.tree.module, there, seen | {module})


def _is_assigned(function: Function, value: ast.expr) -> bool:
    """Tell whether a name is bound to a value itself, not to an item of it or to what an operation makes of it."""
    up = function.module.tree.parent(value)
    return isinstance(up, ast.AnnAssign) or (
        isinstance(up, ast.Assign) and all(isinstance(t, ast.Name) for t in up.targets)
    )


def _given(project: Project, function: Function, name: str) -> list[_Value] | None:
    """Return what a parameter is at the calls of its function; None where others may call that."""
    received = project.received(function, name)
    if not received or project.escapes(function):
        return None
    found: list[_Value] = []
    for site, where, value in received:
        if value is None and not spreads(site.call):
            value = function.parameters.defaults.get(name)
        if value is None:
            return None
        found.append((where, value))
    return found


def settled(project: Project, site: CallSite, callee: Function) -> Assumption:
    """Return what the constants say that a call gives for parameters, which the function never binds anew."""
    scopes, known = callee.module.scopes, NOTHING
    given = {**callee.parameters.defaults, **project.arguments(site, callee)}
    for name, value in given.items():
        bindings = scopes.bindings(callee.scope, name)
        if isinstance(value, ast.Constant) and all(isinstance(b, ast.arg) for b in bindings):
            known = assume({name: value.value}, known)
    return known
