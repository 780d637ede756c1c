"""Whether an expression that was evaluated at one moment gives the same at another one."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TypeGuard

from amp_migrate.facts.constants import is_none
from amp_migrate.facts.paths import named, root
from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.variables import Variable, variable
from amp_migrate.flow import Graph, Graphs, Known, Point, Term, cautious, keeping, term
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.changes import after, may_change
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.programs import is_touched_elsewhere
from amp_migrate.project.reach import reachable, where_set

_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
_CONTEXTS = frozenset({"apex.amp.scale_loss", "contextlib.nullcontext"})


_SCALERS = "apex.amp._amp_state.loss_scalers"
_INITIALIZE = "apex.amp.initialize"
_OPERATIONS = (ast.IfExp, ast.BoolOp, ast.Compare, ast.UnaryOp)


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of the body in which something is evaluated."""

    graph: Graph
    point: Point


def _changing(graph: Graph) -> list[Point]:
    return [point for point in graph.points if may_change(point)]


class Keeping:
    """Tells what stays as it is in one file."""

    def __init__(self, project: Project, module: Module) -> None:
        self.project = project
        self.module = module
        self.graphs = Graphs()
        self._cautious = cache(cautious)
        self._changing = cache(_changing)

    def stays(self, node: ast.expr, at: Moment, until: Moment) -> bool:
        """Tell whether an expression that was evaluated at one moment gives the same at another one."""
        if at == until or isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Tuple | ast.List | ast.Dict | ast.Set):
            parts = node.values if isinstance(node, ast.Dict) else node.elts
            keys = (
                [key for key in node.keys if key is not None] if isinstance(node, ast.Dict) else []
            )
            return all(self.stays(part, at, until) for part in [*keys, *parts])
        if isinstance(node, _OPERATIONS):
            return all(self._same_value(part, at, until) for part in _operands(node))
        known = self._term(node)
        if known is None or not self._same_names(node, until):
            return False
        if self.is_apex(node) and self.is_imported(node):
            return True
        if at.graph is not until.graph:
            return isinstance(node, ast.Name) and self._is_final(node.id, until)
        if self.is_loss_scaler(node):
            return not self._may_initialize(at, until)
        return self.kept(known, at, until)

    def _same_value(self, node: ast.expr, at: Moment, until: Moment) -> bool:
        """Tell whether an operand has the same value at both moments, whatever object that is."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, _OPERATIONS):
            return all(self._same_value(part, at, until) for part in _operands(node))
        known = term(node)
        same = known is not None and self._same_names(node, until) and at.graph is until.graph
        return same and known is not None and self.kept(known, at, until)

    def is_apex(self, node: ast.expr) -> bool:
        """Tell whether an expression is Apex, or something of it."""
        name = self.project.apex(self.module, node)
        return name is not None and name.partition(".")[0] == "apex"

    def is_loss_scaler(self, node: ast.expr) -> bool:
        """Tell whether an expression is a loss scaler of Apex by its number, an object that every initialize makes anew."""
        return (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, ast.Constant)
            and self.project.apex(self.module, node.value) == _SCALERS
            and self.is_imported(node)
        )

    def _may_initialize(self, at: Moment, until: Moment) -> bool:
        """Tell whether something that runs between two moments of a body may call ``amp.initialize``."""
        points = at.graph.points
        ran = (points[index].node for index in at.graph.order().between(at.point, until.point))
        return any(
            self.project.apex(self.module, node.func) == _INITIALIZE
            or any(self._initializes(function) for function in self.project.callees(node))
            for node in ran
            if isinstance(node, ast.Call)
        )

    def _initializes(self, function: Function) -> bool:
        return any(
            self.project.apex(run.module, call.func) == _INITIALIZE
            for run in reachable(self.project, function)
            for call in run.calls
        )

    def _term(self, node: ast.expr) -> Term | None:
        path = node
        while isinstance(path, ast.Attribute) and self.is_apex(path.value):
            path = path.value
        found = term(path)
        objects = isinstance(path, ast.Name | ast.Attribute | ast.Subscript)
        return found.of_object() if found is not None and objects else found

    def _same_names(self, node: ast.expr, until: Moment) -> bool:
        scopes = self.module.scopes
        here = scopes.scope_of(until.point.node)
        names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
        return all(scopes.sees(here, name) for name in names)

    def is_imported(self, node: ast.expr) -> bool:
        """Tell whether the name that an expression starts with is one that is only imported, or None."""
        name = root(node)
        start = next(iter(named(node, name or "")), None)
        owner = self.module.scopes.owner(start) if start is not None else None
        bindings = self.module.scopes.bindings(owner, name) if owner is not None and name else []
        return any(isinstance(b, ast.alias) for b in bindings) and all(
            isinstance(b, ast.alias) or self._is_none(b) for b in bindings
        )

    def _is_none(self, binding: ast.AST) -> bool:
        value = assigned(self.module.tree, binding)
        return is_none(value)

    def kept(self, known: Term, at: Moment, until: Moment) -> bool:
        """Tell whether nothing that may run between two moments of a body changes a term."""
        assumed = NOTHING.with_fact(known, Known(True))
        texts = {operand.text for operand in known.operands}
        stay = {text for text in texts if self._is_final(text, at) or self._closed_path(text, at)}
        changes = keeping(self._cautious(at.graph), stay)
        between = at.graph.order().between(at.point, until.point)
        return all(
            after(point, assumed, changes)[1].facts
            for point in self._changing(at.graph)
            if point.index in between and point not in (at.point, until.point)
        )

    def _is_final(self, name: str, at: Moment) -> bool:
        """Tell whether a name of an outer scope is bound once."""
        scopes, body = self.module.scopes, at.graph.root
        owner = scopes.find(body, name) if not isinstance(body, ast.GeneratorExp) else None
        if owner is None or owner is body or len(scopes.bindings(owner, name)) != 1:
            return False
        return not (isinstance(owner, ast.Module) and self.is_set_elsewhere(name))

    def is_set_elsewhere(self, name: str) -> bool:
        """Tell whether an attribute of a name is set anywhere, as on a module."""
        return bool(where_set(self.project, name))

    def _closed_path(self, text: str, at: Moment) -> bool:
        """Tell whether a path is an item of a collection of this body that nothing else can reach."""
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            return False
        base = node.value if isinstance(node, ast.Subscript | ast.Attribute) else None
        root, scopes = at.graph.root, self.module.scopes
        if not isinstance(base, ast.Name) or isinstance(root, ast.GeneratorExp):
            return False
        spelt = scopes.spelt(scopes.find(root, base.id), base.id)
        own = scopes.spelt(root, base.id) if isinstance(node, ast.Subscript) else []
        if own and self.is_closed(own[0], ast.Dict(keys=[], values=[])):
            return True
        parts = (self.module.tree.parent(name) for name in spelt)
        found = next((variable(scopes, p) for p in parts if _is_spelt(p, text)), None)
        return found is not None and all(scopes.scope_of(n) is root for n in found.places)

    def is_closed(self, node: ast.expr, display: ast.expr) -> bool:
        """Tell whether the collection of a variable is reached through that variable alone, item by item."""
        found = self.variable(node)
        if found is None:
            return False
        if isinstance(found.scope, ast.Module) and self.is_touched_elsewhere(found.name):
            return False
        return all(self._looks_in(place, display) for place in found.places)

    def variable(self, node: ast.expr) -> Variable | None:
        """Return the variable, or the part of a collection that serves as one, that an expression reads."""
        return variable(self.module.scopes, node)

    def _looks_in(self, place: ast.expr, display: ast.expr) -> bool:
        up = self.module.tree.parent(place)
        if not isinstance(getattr(place, "ctx", None), ast.Load):
            return True
        if isinstance(up, ast.Subscript):
            return up.value is place and isinstance(up.slice, ast.Constant)
        if isinstance(up, ast.Attribute):
            return self.is_namespace(display)
        return isinstance(up, ast.Starred) or (isinstance(up, ast.keyword) and up.arg is None)

    def is_touched_elsewhere(self, name: str) -> bool:
        """Tell whether another file may read or write a name of this one."""
        return is_touched_elsewhere(self.project, self.module, name)

    def only_holds(self, call: ast.Call) -> bool:
        """Tell whether a call makes an object that keeps its arguments, and does nothing else."""
        if self.is_dict(call) or self.is_namespace(call) or self.is_partial(call):
            return True
        name = self.project.apex(self.module, call.func)
        return (name or self.project.external(self.module, call.func)) in _CONTEXTS

    def is_partial(self, node: ast.expr) -> bool:
        """Tell whether an expression is a call of ``functools.partial``."""
        made = isinstance(node, ast.Call) and self.project.external(self.module, node.func)
        return made == "functools.partial"

    def is_dict(self, node: ast.expr) -> bool:
        """Tell whether an expression is ``dict(...)``."""
        return isinstance(node, ast.Call) and self.module.scopes.builtin(node.func) == "dict"

    def is_namespace(self, node: ast.expr) -> bool:
        """Tell whether an expression makes a namespace."""
        return (
            isinstance(node, ast.Call)
            and self.project.external(self.module, node.func) in _NAMESPACES
        )


def _is_spelt(node: ast.AST | None, text: str) -> TypeGuard[ast.expr]:
    """Tell whether a node is an expression that a term has this text for."""
    known = term(node) if isinstance(node, ast.expr) else None
    return known is not None and known.text == text


def _operands(node: ast.expr) -> list[ast.expr]:
    return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
