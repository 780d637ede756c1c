"""What a variable may hold where it is read, by the control flow of its function."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from amp_migrate.facts.paths import all_parameters, outward
from amp_migrate.facts.variables import Variable, variable
from amp_migrate.flow import Graph, Graphs
from amp_migrate.flow.cfg.points import Kind as PointKind
from amp_migrate.flow.cfg.points import Point
from amp_migrate.project import Anonymous, Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.project.rounds import graphs
from amp_migrate.training.bindings import bound_value, taken_apart, unpacked
from amp_migrate.training.objects import Objects
from amp_migrate.training.origins.walk import Origin

Body = Callable[[Module, ast.AST], Function]
Held = ast.expr | ast.arg | None


class Given(NamedTuple):
    """What a statement binds a variable to, or where that shows no more, what it takes `apart` to bind it."""

    value: Held
    apart: bool = False


class Reaching:
    """Follows variables to what they are bound to; `body` gives the function or lambda in which a node stands."""

    def __init__(self, project: Project, graphs: Graphs, body: Body) -> None:
        self._project = project
        self._graphs = graphs
        self._body = body
        self._known: dict[tuple[Function, ast.Name], list[Held]] = {}

    def of(self, function: Function, name: ast.Name) -> list[Held]:
        """Return what a name may have been bound to where it is read; None for a value that is not one."""
        known = self._known.get((function, name))
        if known is None:
            known = self._known[function, name] = self._of(function, name)
        return known

    def given(self, function: Function, name: ast.Name) -> list[Given]:
        """Return the same of a variable of the function itself, without a look into the calls whose results are taken apart."""
        found: dict[Given, None] = {}
        for point in self._graphs.of(function.scope).bound_before(name):
            whole = taken_apart(self._project, function.module, point.node)
            if point.kind is PointKind.ENTRY:
                found[Given(_parameter(function, name.id))] = None
            elif point.value is None and whole is not None:
                found[Given(whole, apart=True)] = None
            else:
                found |= {Given(value): None for value in self._stored(function.module, point)}
        return list(found)

    def read(self, function: Function, name: ast.Name) -> list[Held]:
        """Return the same, without what no read gets past: that a variable of a function is not bound yet."""
        found = self.of(function, name)
        if None not in found or function.node is None:
            return found
        module = function.module
        if module.scopes.owner(name) is not function.scope:
            return found
        points = self._graphs.of(function.scope).bound_before(name)
        stored = (p for p in points if p.kind is not PointKind.ENTRY)
        unseen = any(None in self._stored(module, point) for point in stored)
        return found if unseen else [value for value in found if value is not None]

    def changed(self, function: Function, name: ast.Name) -> list[Held]:
        """Return the same, and what the name held where a statement changed that, as ``name += value`` does."""
        names, found = [name], dict[Held, None]()
        for one in names:
            for value in self.of(function, one):
                found[value] = None
                target = changed_by(function.module, value)
                if target is not None and target not in names:
                    names.append(target)
        return list(found)

    def _of(self, function: Function, name: ast.Name) -> list[Held]:
        module = function.module
        scope = module.scopes.owner(name)
        if scope is not function.scope:
            bindings = module.scopes.bound(name)
            return [value for binding in bindings for value in self._bound(module, binding)]
        found: dict[Held, None] = {}
        for point in self._graphs.of(function.scope).bound_before(name):
            begins = point.kind is PointKind.ENTRY
            held = [_parameter(function, name.id)] if begins else self._stored(module, point)
            found |= dict.fromkeys(held)
        return list(found)

    def holder(self, function: Function, value: ast.expr) -> Function:
        """Return the function in which a value stands that a variable of another is bound to."""
        own = function.module
        module = own if value in own.tree.parents else self._project.module_of(value)
        return self._body(module, value)

    def _stored(self, module: Module, point: Point) -> list[Held]:
        if point.value is not None:
            return [point.value]
        up = module.tree.parent(point.node)
        return [up.value] if isinstance(up, ast.AugAssign) else self._bound(module, point.node)

    def _bound(self, module: Module, binding: ast.AST) -> list[Held]:
        if isinstance(binding, ast.arg):
            return [binding]
        value = bound_value(module, binding)
        if value is not None:
            return [value]
        return [*unpacked(self._project, module, binding)] or [None]


def optimizers_read(
    objects: Objects, reaching: Reaching, function: Function, node: ast.expr
) -> frozenset[int]:
    """Return the optimizers that an expression may hold where it is read: of a variable, those it was last bound to."""
    module = function.module
    numbers = objects.optimizers_of(module, node)
    if len(numbers) < 2 or not isinstance(node, ast.Name):
        return numbers
    held = reaching.of(function, node)
    each = [
        objects.optimizers_of(reaching.holder(function, value).module, value)
        for value in held
        if isinstance(value, ast.expr)
    ]
    known = bool(held) and len(each) == len(held) and all(each)
    return numbers & frozenset[int]().union(*each) if known else numbers


@once
def reaching(project: Project) -> Reaching:
    """Return what follows the variables of the functions of a project; made once."""
    return Reaching(project, graphs(project), project.function_of)


def changed_by(module: Module, value: Held) -> ast.Name | None:
    """Return the name whose value a statement of a file changes by another one; None for a value that is bound."""
    up = module.tree.parent(value) if isinstance(value, ast.expr) else None
    changes = isinstance(up, ast.AugAssign) and up.value is value
    return (
        up.target
        if changes and isinstance(up, ast.AugAssign) and isinstance(up.target, ast.Name)
        else None
    )


def _parameter(function: Function, name: str) -> ast.arg | None:
    owner = function.body if isinstance(function, Anonymous) else function.node
    if owner is None:
        return None
    return next((a for a in all_parameters(owner.args) if a.arg == name), None)


def part_before(function: Function, graph: Graph, node: ast.expr) -> list[Origin]:
    """Return what may have been stored last in a part of a collection before it is read there: ``bag["loss"]``.

    Nothing, where other code may reach the collection.
    """
    held = own_part(function, node)
    if held is None:
        return []
    stores = {point: value for n, value in _stored(held) for point in graph.at(n, PointKind.STORE)}
    found = graph.nearest_before(node, lambda point: point in stores or point is graph.entry)
    values = [stores.get(point, held.made) for point in found]
    return [Origin(function, value) for value in values if value is not None]


def own_part(function: Function, node: ast.expr) -> Variable | None:
    """Return the part of a collection that serves as a variable of one function, which stores it by plain assignments."""
    scopes = function.module.scopes
    *_, base = outward(node)
    if not isinstance(base, ast.Name) or scopes.owner(base) is not function.scope:
        return None
    if any(isinstance(bound, ast.arg | ast.alias) for bound in scopes.bound(base)):
        return None  # what is handed in or imported
    held = variable(scopes, node)
    if held is None or not held.part:
        return None
    own = all(scopes.scope_of(place) is function.scope for place in held.places)
    return held if own and all(value is not None for _, value in _stored(held)) else None


def _stored(held: Variable) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield where a part is stored, with what a plain assignment gives it; None for any other statement."""
    for place in held.places:
        if not isinstance(getattr(place, "ctx", None), ast.Load):
            up = held.scopes.tree.parent(place)
            plain = isinstance(up, ast.Assign) and up.targets == [place]
            yield place, up.value if plain and isinstance(up, ast.Assign) else None
