"""Variables, attributes and items: what statements read and write, told apart by the scope that owns the variable."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amp_migrate.facts.paths import MUTATORS, walk
from amp_migrate.facts.scopes import ScopeNode, targets_of
from amp_migrate.project import Class, Function, Module, Project

_FURTHEST = 5
_DEFINES = (ast.alias, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Place:
    """A variable of a scope, and the attributes ``.x`` and items ``['k']`` that lead on from it."""

    owner: ScopeNode
    name: str
    steps: tuple[str, ...] = ()

    def further(self, *steps: str) -> Place:
        """Return a place inside this one; the object itself where a chain of objects leads on without end."""
        known = list(self.steps)
        for step in steps:
            if step in known or len(known) == _FURTHEST:
                break
            known.append(step)
        return Place(self.owner, self.name, tuple(known))

    def holds(self, other: Place) -> bool:
        """Tell whether another place is this one, or inside it."""
        own = self.steps
        same = self.owner is other.owner and self.name == other.name
        return same and other.steps[: len(own)] == own

    def is_item_of(self, other: Place) -> bool:
        """Tell whether this is an item of another place, or inside one."""
        size = len(other.steps)
        return other.holds(self) and len(self.steps) > size and self.steps[size].startswith("[")


Needed = set[Place]


def touches(written: Iterable[Place], needed: Needed) -> bool:
    """Tell whether what is written is needed, holds what is, or is an item of it."""
    return any(w.holds(n) or w.is_item_of(n) for w in written for n in needed)


def without(needed: Needed, written: Iterable[Place]) -> Needed:
    """Return what is still needed above a statement that gives all of what it writes a new value."""
    gone = list(written)
    return {n for n in needed if not any(w.holds(n) for w in gone)}


class Places:
    """Reads expressions and statements of a project as places."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._read: dict[ast.AST, frozenset[Place]] = {}
        self._written: dict[ast.AST, frozenset[Place]] = {}

    def of(self, module: Module, node: ast.expr) -> Place | None:
        """Return the place of a name, attribute or item with a constant key; None for any other expression."""
        if isinstance(node, ast.Name):
            return self._variable(module, node)
        if isinstance(node, ast.Starred):
            return self.of(module, node.value)
        if isinstance(node, ast.Attribute):
            for meaning in self._project.lookup.expression(module, node.value):
                if isinstance(meaning, Module):
                    return Place(meaning.tree.module, node.attr)
                if isinstance(meaning, Class):
                    return Place(meaning.node, node.attr)
            base = self.of(module, node.value)
            return base and base.further(f".{node.attr}")
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            base = self.of(module, node.value)
            return base and base.further(item(node.slice.value))
        return None

    def _variable(self, module: Module, node: ast.Name) -> Place | None:
        owner = module.scopes.owner(node)
        if owner is None:
            return None
        bindings = module.scopes.bindings(owner, node.id)
        if bindings and all(isinstance(binding, _DEFINES) for binding in bindings):
            return None
        return Place(owner, node.id)

    def reads(self, module: Module, node: ast.AST) -> frozenset[Place]:
        """Return the places that a node reads, in functions that are nested in it too."""
        if node not in self._read:
            self._read[node] = frozenset(self._reads(module, node))
        return self._read[node]

    def _reads(self, module: Module, node: ast.AST) -> Needed:
        found: Needed = set()
        stack = [node]
        while stack:
            part = stack.pop()
            if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
                place = self.of(module, part) if isinstance(part.ctx, ast.Load) else None
                if place is not None:
                    found.add(place)
                    continue
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                stack.append(part.func.value)
            stack += ast.iter_child_nodes(part)
        return found

    def writes(self, module: Module, node: ast.AST) -> frozenset[Place]:
        """Return the places that a node assigns, deletes or mutates by a known method, nested functions apart."""
        if node not in self._written:
            self._written[node] = frozenset(self._writes(module, node))
        return self._written[node]

    def _writes(self, module: Module, node: ast.AST) -> Needed:
        found: Needed = set()
        for part in walk(node):
            target: ast.expr | None = None
            if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
                target = part if not isinstance(part.ctx, ast.Load) else None
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
                target = part.func.value if part.func.attr in MUTATORS else None
            elif isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
                found.add(Place(module.scopes.scope_of(part), part.name))
            elif isinstance(part, ast.MatchMapping) and part.rest:
                found.add(Place(module.scopes.scope_of(part), part.rest))
            place = self._nearest(module, target) if target is not None else None
            if place is not None:
                found.add(place)
        return found

    def bound(self, module: Module, node: ast.AST) -> Needed:
        """Return the variables that a node binds or deletes, nested functions apart."""
        names = (
            n for n in walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)
        )
        return {place for name in names if (place := self._variable(module, name)) is not None}

    def _nearest(self, module: Module, node: ast.expr) -> Place | None:
        """Return the place of an expression, or of what holds it where a key varies."""
        while isinstance(node, ast.Subscript) and self.of(module, node) is None:
            node = node.value
        return self.of(module, node)

    def renewed(self, module: Module, stmt: ast.stmt) -> Iterator[Place]:
        """Yield the places that an assignment gives a new value."""
        if not isinstance(stmt, ast.AnnAssign) or stmt.value is not None:
            for target in targets_of(stmt):
                yield from self.targets(module, target)

    def renamed(self, module: Module, stmt: ast.stmt, needed: Needed) -> Needed:
        """Return what is needed of an object that an assignment only gives another name, by the name that it had."""
        if not isinstance(stmt, ast.Assign | ast.AnnAssign) or stmt.value is None:
            return set()
        had = self.of(module, stmt.value)
        named = [self.of(module, target) for target in targets_of(stmt)] if had is not None else []
        return {
            had.further(*place.steps[len(name.steps) :])
            for name in named
            for place in needed
            if had is not None and name is not None and name.holds(place)
        }

    def targets(self, module: Module, target: ast.expr) -> Iterator[Place]:
        """Yield the places that the target of an assignment, a loop or a ``with`` names."""
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                yield from self.targets(module, part)
        else:
            place = self.of(module, target)
            if place is not None:
                yield place


def item(key: object) -> str:
    """Return the step to the item of a container under a constant key."""
    return f"[{key!r}]"


def is_kept(function: Function, place: Place) -> bool:
    """Tell whether a place is an attribute of the object whose method a function is."""
    return place.owner is function.scope and place.name == function.receiver and bool(place.steps)
