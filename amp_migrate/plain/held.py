"""What a name, attribute or item holds at a moment, as the expression that was stored."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from amp_migrate.apex.unpacked.entries import entries, stored
from amp_migrate.facts.scopes import ScopeNode, assigned
from amp_migrate.flow import Graph, Kind, Point, term
from amp_migrate.flow.changes import stored_name
from amp_migrate.plain.stays import Keeping, Moment
from amp_migrate.project import Module, Project

_DISPLAYS = (ast.Tuple, ast.List, ast.Dict)
_BODIES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Held:
    """The expression that was stored, when, and the reads through which it was found."""

    node: ast.expr
    moment: Moment
    through: tuple[ast.expr, ...]


class Holding(Keeping):
    """Follows access paths of one file back to what was stored in them."""

    def __init__(self, project: Project, module: Module) -> None:
        super().__init__(project, module)
        self._stores: dict[Graph, dict[str | None, list[Point]]] = {}

    def moment(self, node: ast.expr, kind: Kind) -> Moment | None:
        """Return when an expression is evaluated; None where that is not one point."""
        for up in self.module.tree.ancestors(node):
            if isinstance(up, _BODIES):
                graph = self.graphs.of(up)
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

    def stores(self, node: ast.expr, at: Moment) -> list[Held]:
        """Return all that a variable of its own body may hold at a moment; nothing where that is not known."""
        owner = self.module.scopes.owner(node) if isinstance(node, ast.Name) else None
        if owner is None or owner is not at.graph.root or not isinstance(node, ast.Name):
            return []
        found = [
            Held(point.value, Moment(at.graph, point), (node,))
            for point in self._stores_of(at.graph).get(node.id, ())
            if point.value is not None
        ]
        whole = len(found) == len(self.module.scopes.bindings(owner, node.id))
        return found if whole else []

    def display(self, node: ast.expr, at: Moment, depth: int = 0) -> Held | None:
        """Return the tuple, list or dictionary, as it was written out, that an expression gives."""
        if isinstance(node, _DISPLAYS) or self.is_dict(node) or self.is_namespace(node):
            return Held(node, at, ())
        found = self.held(node, at, depth + 1)
        if found is None:
            return None
        inner = self.display(found.node, found.moment, depth + 1)
        if inner is None:
            return None
        kept = isinstance(inner.node, ast.Tuple) or self.is_closed(node, inner.node)
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

    def unchanged(
        self, node: ast.expr, made: Moment, at: Moment
    ) -> tuple[Mapping[object, ast.expr], Iterable[ast.expr]] | None:
        """Return the entries that a collection had at a moment, as they were stored, all of which are the same at another one."""
        shown = self.display(node, at)
        if shown is not None and self.is_whole(node, shown, at):
            items = self.items(shown.node)
            if items and all(self.stays(i, shown.moment, at) for i in items.values()):
                return items, shown.through
        filled = self.filled(node, made) or {"": (node, False)}
        if not all(stays and self.stays(value, made, at) for value, stays in filled.values()):
            return None
        return {key: value for key, (value, _) in filled.items()}, self.filling(node)

    def arguments_stay(self, call: ast.Call, at: Moment, until: Moment) -> bool:
        """Tell whether the arguments of a partial object are at one moment what they were at another one."""
        whole = until.point.node
        if isinstance(whole, ast.Call) and whole.func is call:
            return True  # made where it is called
        first = call.args[0]
        given = [first] if isinstance(first, ast.Starred) else []
        nodes = [*given, *call.args[1:], *(k.value for k in call.keywords)]
        values = (node.value if isinstance(node, ast.Starred) else node for node in nodes)
        return all(self.stays(node, at, until) for node in values)

    def filled(self, node: ast.expr, at: Moment) -> dict[str, tuple[ast.expr, bool]] | None:
        """Return the entries of a dictionary that is filled step by step, and whether they are those that were stored."""
        found = entries(self.project, self.module, node, at.point.node)
        if not found or self.variable(node) is None:
            return None
        items: dict[str, tuple[ast.expr, bool]] = {}
        written = stored(self.project, self.module, node, at.point.node)
        for key, value in found.items():
            item = ast.Subscript(node, ast.Constant(key), ast.Load())
            held = self.held(item, at) or self._updated(written.get(key), at)
            stays = held is not None and self.stays(held.node, held.moment, at)
            constant = isinstance(value, ast.Constant)
            items[key] = (held.node if held and stays else value), stays or constant
        return items

    def _updated(self, value: ast.expr | None, at: Moment) -> Held | None:
        """Return an entry that ``options.update(key=value)`` wrote in the same body, with the moment at which it did."""
        tree = self.module.tree
        up = tree.parent(value) if value in tree.parents else None
        call = tree.parent(up) if isinstance(up, ast.keyword) else None
        points = at.graph.at(call, Kind.CALL) if isinstance(call, ast.Call) else ()
        return Held(value, Moment(at.graph, points[0]), ()) if value and len(points) == 1 else None

    def _stored(self, node: ast.expr, at: Moment) -> Held | None:
        """Return what the last store before a moment put into a path, where it is the last on every way."""
        known = term(node)
        if known is None:
            return None
        order = at.graph.order()
        stores = self._stores_of(at.graph).get(known.text, [])
        for point in stores:
            # A variable that is read was bound, whatever decided about that.
            alone = isinstance(node, ast.Name) and len(stores) == 1
            if not alone and not order.dominates(point, at.point):
                continue
            if self.kept(known.of_object(), Moment(at.graph, point), at):
                if point.value is None:
                    return None
                return Held(point.value, Moment(at.graph, point), (node,))
        return None

    def _stores_of(self, graph: Graph) -> dict[str | None, list[Point]]:
        """The points of a body that store, by what they store into."""
        if graph not in self._stores:
            found = self._stores[graph] = {}
            for point in graph.points:
                if point.kind is Kind.STORE:
                    found.setdefault(_spelling(point.node), []).append(point)
        return self._stores[graph]

    def _from_around(self, name: ast.Name, owner: ScopeNode) -> Held | None:
        """Return what the only assignment to a name of an outer scope stores."""
        bindings = self.module.scopes.bindings(owner, name.id)
        value = assigned(self.module.tree, bindings[0]) if len(bindings) == 1 else None
        if value is None or isinstance(
            owner, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
        ):
            return None
        if isinstance(owner, ast.Module) and self.is_set_elsewhere(name.id):
            return None
        graph = self.graphs.of(owner)
        points = graph.at(bindings[0], Kind.STORE)
        if len(points) != 1 or points[0].value is None:
            return None
        return Held(points[0].value, Moment(graph, points[0]), (name,))

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
        if found is None or isinstance(node, ast.Attribute) != self.is_namespace(found.node):
            return None
        value = (self.items(found.node) or {}).get(key)
        if value is None or self._is_written(base, node, found, at):
            return None
        return Held(value, found.moment, (node, *found.through))

    def filling(self, node: ast.expr) -> tuple[ast.expr, ...]:
        """Return a variable, with the items that are stored under it; nothing where it is named for more than that."""
        known, found = self.variable(node), [node]
        for place in known.reads if known is not None else ():
            if place is node:
                continue
            up = self.module.tree.parent(place)
            if not isinstance(up, ast.Subscript) or not isinstance(up.ctx, ast.Store):
                return ()
            found += [place, up]
        return tuple(found)

    def is_whole(self, node: ast.expr, made: Held, at: Moment) -> bool:
        """Tell whether a collection that an expression gives has all that it was made with, and nothing else."""
        if made.node is node or isinstance(made.node, ast.Tuple):
            return True
        return self.variable(node) is not None and not self._is_written(node, None, made, at)

    def _is_written(self, base: ast.expr, item: ast.expr | None, made: Held, at: Moment) -> bool:
        """Tell whether an item of a collection, or any, may be another one than it was made with."""
        known = term(item) if item is not None else None
        here = made.moment.graph is at.graph
        between = at.graph.order().between(made.moment.point, at.point) if here else set()
        collection = self.variable(base)
        for place in collection.places if collection is not None else ():
            node = self.module.tree.parent(place)
            if not isinstance(node, ast.Subscript | ast.Attribute) or node.value is not place:
                continue
            if isinstance(node.ctx, ast.Load):
                continue
            target = term(node)
            if target is not None and known is not None and target.text != known.text:
                continue
            points = at.graph.at(node)
            if not here or not points:
                return True
            if not between.isdisjoint(p.index for p in points):
                return True
        return False


def _spelling(node: ast.AST) -> str | None:
    """Return what tells the target of a store from others."""
    if isinstance(node, ast.expr):
        found = term(node)
        return None if found is None else found.text
    return stored_name(node)
