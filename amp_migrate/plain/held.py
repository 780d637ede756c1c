"""What a name, attribute or item holds at a moment, as the expression that was stored, and whether that still gives the same."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

from amp_migrate.facts.paths import root
from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.flow import Graph, Graphs, Kind, Known, Point, Term, cautious, keeping, term
from amp_migrate.flow.assumption import NOTHING
from amp_migrate.flow.changes import after, stored_name
from amp_migrate.project import Module, Project

_DISPLAYS = (ast.Tuple, ast.List, ast.Dict)
_BODIES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of the body in which something is evaluated."""

    graph: Graph
    point: Point


@dataclass(frozen=True, slots=True)
class Held:
    """The expression that was stored, when, and the reads through which it was found."""

    node: ast.expr
    moment: Moment
    through: tuple[ast.expr, ...]


class Holding:
    """Follows access paths of one file back to what was stored in them."""

    def __init__(self, project: Project, module: Module) -> None:
        self.project = project
        self.module = module
        self._graphs = Graphs()

    def moment(self, node: ast.expr, kind: Kind) -> Moment | None:
        """Return when an expression is evaluated; None where that is not one point."""
        for up in self.module.tree.ancestors(node):
            if isinstance(up, _BODIES):
                graph = self._graphs.of(up)
                points = graph.at(node, kind)
                return Moment(graph, points[0]) if len(points) == 1 else None
        return None

    def held(self, node: ast.expr, at: Moment, depth: int = 0) -> Held | None:
        """Return what was stored in an access path that is read at a moment; None where that is not known."""
        if depth > _DEEPEST:
            return None
        if isinstance(node, ast.Name):
            owner = self.module.scopes.owner(node)
            if owner is not None and owner is not at.graph.root:
                return self._from_around(node, owner)
        elif not isinstance(node, ast.Attribute | ast.Subscript):
            return None
        stored = self._stored(node, at)
        if stored is not None:
            return stored
        return self._entry(node, at, depth) if not isinstance(node, ast.Name) else None

    def display(self, node: ast.expr, at: Moment, depth: int = 0) -> Held | None:
        """Return the tuple, list or dictionary, as it was written out, that an expression gives."""
        if isinstance(node, _DISPLAYS) or self._is_dict(node) or self._is_namespace(node):
            return Held(node, at, ())
        found = self.held(node, at, depth + 1)
        if found is None:
            return None
        inner = self.display(found.node, found.moment, depth + 1)
        if inner is None:
            return None
        kept = isinstance(inner.node, ast.Tuple) or self._is_closed(node, inner.node)
        return Held(inner.node, inner.moment, (*found.through, *inner.through)) if kept else None

    def items(self, display: ast.expr) -> Mapping[object, ast.expr] | None:
        """Return the entries of a display by index, key or attribute; None where they cannot be told apart."""
        found: dict[object, ast.expr] = {}
        if isinstance(display, ast.Tuple | ast.List):
            starred = any(isinstance(item, ast.Starred) for item in display.elts)
            found.update(enumerate(display.elts))
            return None if starred else found
        if isinstance(display, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in display.keys]
            whole = all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys)
            found.update(zip(keys, display.values, strict=True))
            return found if whole else None
        if isinstance(display, ast.Call) and not display.args:
            found.update((k.arg, k.value) for k in display.keywords)
            return None if None in found else found
        return None

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
        known = self._term(node)
        if known is None or not self._same_names(node, until):
            return False
        if self.is_apex(node) and self._is_imported(node):
            return True
        return at.graph is until.graph and self._kept(known, at, until)

    def is_apex(self, node: ast.expr) -> bool:
        """Tell whether an expression is Apex, or something of it."""
        name = self.project.apex(self.module, node)
        return name is not None and name.partition(".")[0] == "apex"

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
        return all(scopes.find(here, name.id) is scopes.owner(name) for name in names)

    def _is_imported(self, node: ast.expr) -> bool:
        """Tell whether the name that an expression starts with is one that is only imported, or None."""
        name = root(node)
        start = next((n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name), None)
        owner = self.module.scopes.owner(start) if start is not None else None
        bindings = self.module.scopes.bindings(owner, name) if owner is not None and name else []
        return any(isinstance(b, ast.alias) for b in bindings) and all(
            isinstance(b, ast.alias) or self._is_none(b) for b in bindings
        )

    def _is_none(self, binding: ast.AST) -> bool:
        value = assigned(self.module.tree, binding)
        return isinstance(value, ast.Constant) and value.value is None

    def _kept(self, known: Term, at: Moment, until: Moment) -> bool:
        """Tell whether nothing that may run between two moments of a body changes a term."""
        assumed = NOTHING.with_fact(known, Known(True))
        texts = {operand.text for operand in known.operands}
        stay = {text for text in texts if self._is_final(text, at) or self._closed_path(text, at)}
        changes = keeping(cautious(at.graph), stay)
        order = at.graph.order()
        return not any(
            point not in (at.point, until.point)
            and order.may_run_between(at.point, point, until.point)
            and not after(point, assumed, changes)[0].facts
            for point in at.graph.points
        )

    def _is_final(self, name: str, at: Moment) -> bool:
        """Tell whether a name of an outer scope is bound once."""
        scopes, body = self.module.scopes, at.graph.root
        owner = scopes.find(body, name) if not isinstance(body, ast.GeneratorExp) else None
        if owner is None or owner is body or len(scopes.bindings(owner, name)) != 1:
            return False
        return not (isinstance(owner, ast.Module) and self._is_set_elsewhere(name))

    def _closed_path(self, text: str, at: Moment) -> bool:
        """Tell whether a path is an item of a collection of this body that nothing else can reach."""
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            return False
        base = node.value if isinstance(node, ast.Subscript) else None
        if not isinstance(base, ast.Name):
            return False
        names = self.module.tree.nodes(ast.Name)
        own = (n for n in names if n.id == base.id and self.module.scopes.owner(n) is at.graph.root)
        first = next(own, None)
        return first is not None and self._is_closed(first, ast.Dict(keys=[], values=[]))

    def _stored(self, node: ast.expr, at: Moment) -> Held | None:
        """Return what the last store before a moment put into a path, where it is the last on every way."""
        known = term(node)
        if known is None:
            return None
        order = at.graph.order()
        stores = [
            point
            for point in at.graph.points
            if point.kind is Kind.STORE and _spelling(point.node) == known.text
        ]
        for point in stores:
            # A variable that is read was bound, whatever decided about that.
            alone = isinstance(node, ast.Name) and len(stores) == 1
            if not alone and not order.dominates(point, at.point):
                continue
            if self._kept(known.of_object(), Moment(at.graph, point), at):
                if point.value is None:
                    return None
                return Held(point.value, Moment(at.graph, point), (node,))
        return None

    def _from_around(self, name: ast.Name, owner: ScopeNode) -> Held | None:
        """Return what the only assignment to a name of an outer scope stores."""
        bindings = self.module.scopes.bindings(owner, name.id)
        value = assigned(self.module.tree, bindings[0]) if len(bindings) == 1 else None
        if value is None or isinstance(
            owner, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
        ):
            return None
        if isinstance(owner, ast.Module) and self._is_set_elsewhere(name.id):
            return None
        graph = self._graphs.of(owner)
        points = graph.at(bindings[0], Kind.STORE)
        if len(points) != 1 or points[0].value is None:
            return None
        return Held(points[0].value, Moment(graph, points[0]), (name,))

    def _is_set_elsewhere(self, name: str) -> bool:
        return any(
            node.attr == name and not isinstance(node.ctx, ast.Load)
            for module in self.project.modules.values()
            if name in module.tree.text
            for node in module.tree.nodes(ast.Attribute)
        )

    def _entry(self, node: ast.expr, at: Moment, depth: int) -> Held | None:
        """Return what a display has under the key of an item or attribute, where nothing else was stored there."""
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            key: object = node.slice.value
        elif isinstance(node, ast.Attribute):
            key = node.attr
        else:
            return None
        base = node.value
        found = self.display(base, at, depth)
        if found is None or isinstance(node, ast.Attribute) != self._is_namespace(found.node):
            return None
        value = (self.items(found.node) or {}).get(key)
        if value is None or (
            isinstance(base, ast.Name) and self._is_written(base, node, found, at)
        ):
            return None
        return Held(value, found.moment, (node, *found.through))

    def is_whole(self, node: ast.expr, made: Held, at: Moment) -> bool:
        """Tell whether a collection that an expression gives has all that it was made with, and nothing else."""
        if made.node is node or isinstance(made.node, ast.Tuple):
            return True
        return isinstance(node, ast.Name) and not self._is_written(node, None, made, at)

    def _is_written(self, base: ast.Name, item: ast.expr | None, made: Held, at: Moment) -> bool:
        """Tell whether an item of a collection, or any, may be another one than it was made with."""
        known, order = term(item) if item is not None else None, at.graph.order()
        scopes, tree = self.module.scopes, self.module.tree
        items: list[ast.Subscript | ast.Attribute] = [
            *tree.nodes(ast.Subscript),
            *tree.nodes(ast.Attribute),
        ]
        for node in items:
            name = node.value
            if isinstance(node.ctx, ast.Load) or not isinstance(name, ast.Name):
                continue
            if name.id != base.id or scopes.owner(name) is not scopes.owner(base):
                continue
            target = term(node)
            if target is not None and known is not None and target.text != known.text:
                continue
            points = at.graph.at(node)
            if made.moment.graph is not at.graph or not points:
                return True
            if any(order.may_run_between(made.moment.point, p, at.point) for p in points):
                return True
        return False

    def _is_closed(self, node: ast.expr, display: ast.expr) -> bool:
        """Tell whether the collection of a variable is reached through that variable alone, item by item."""
        if not isinstance(node, ast.Name):
            return False
        tree, scopes = self.module.tree, self.module.scopes
        owner = scopes.owner(node)
        if isinstance(owner, ast.Module) and self._is_shared(node.id):
            return False
        return all(
            self._looks_in(name, display)
            for name in tree.nodes(ast.Name)
            if name.id == node.id and scopes.owner(name) is owner
        )

    def _looks_in(self, name: ast.Name, display: ast.expr) -> bool:
        up = self.module.tree.parent(name)
        if not isinstance(name.ctx, ast.Load):
            return True
        if isinstance(up, ast.Subscript):
            return up.value is name and isinstance(up.slice, ast.Constant)
        if isinstance(up, ast.Attribute):
            return self._is_namespace(display)
        return isinstance(up, ast.Starred) or (isinstance(up, ast.keyword) and up.arg is None)

    def _is_shared(self, name: str) -> bool:
        """Tell whether another file may read or write a name of this one."""
        others = (
            m for m in self.project.modules.values() if m is not self.module and name in m.tree.text
        )
        return any(
            any(a.name in (name, "*") for a in other.tree.nodes(ast.alias))
            or any(n.attr == name for n in other.tree.nodes(ast.Attribute))
            for other in others
        )

    def is_read_elsewhere(self, name: str) -> bool:
        """Tell whether another file may read a name of this one's top level."""
        return self._is_shared(name)

    def _is_dict(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "dict"
            and self.module.scopes.owner(node.func) is None
        )

    def _is_namespace(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Call)
            and self.project.external(self.module, node.func) in _NAMESPACES
        )


def _spelling(node: ast.AST) -> str | None:
    """Return what tells the target of a store from others."""
    if isinstance(node, ast.expr):
        found = term(node)
        return None if found is None else found.text
    return stored_name(node)
