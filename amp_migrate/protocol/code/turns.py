"""The turns of loops: where one ends, and how many there are over a list of one item, as of one callback."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from amp_migrate.facts.scopes import assigned
from amp_migrate.facts.tree import Tree
from amp_migrate.flow.cfg.points import Edge, Kind
from amp_migrate.project import Function, Module, Project
from amp_migrate.project.once import once
from amp_migrate.protocol.calls.called import GIVES_ITEMS
from amp_migrate.protocol.calls.registries import Registries
from amp_migrate.protocol.code.program import Program, program_of
from amp_migrate.training.bindings import returned
from amp_migrate.training.events import Kind as Happens

_PARTS = ("values", "items", "keys")
_FILLS = ("setdefault", "update")
_GROWS = (
    "append",
    "extend",
    "insert",
    "add",
    "remove",
    "pop",
    "clear",
    "appendleft",
    "__iadd__",
    "popitem",
    "discard",
)


class Turns:
    """Asks how often loops turn."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._registries = Registries(program)
        self._known: dict[ast.AST, bool] = {}
        self._some: dict[ast.AST, bool] = {}
        self._ends: dict[Edge, bool] = {}
        self._giving: dict[ast.AST, list[Function]] = {}

    def once(self, function: Function, loop: ast.AST) -> bool:
        """Tell whether a loop goes over exactly one item."""
        if loop not in self._known:
            over = loop.iter if isinstance(loop, ast.For | ast.comprehension) else None
            self._known[loop] = over is not None and (
                self._holds_one(function.module, over) or self._registries.holds_one(function, over)
            )
        return self._known[loop]

    def some(self, function: Function, loop: ast.AST) -> bool:
        """Tell whether a loop goes over one item at least, as it is written what it goes over."""
        if loop not in self._some:
            over = loop.iter if isinstance(loop, ast.For | ast.comprehension) else None
            self._some[loop] = over is not None and self._holds_some(function.module, over)
        return self._some[loop]

    def _holds_some(self, module: Module, over: ast.expr) -> bool:
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
            if over.func.attr in _PARTS and not over.args:
                return self._holds_some(module, over.func.value)
        if _is_some(over):
            return True
        values = list(self._stored(module, over))
        return bool(values) and all(map(_is_some, values)) and not self._grows(module, over)

    def ends(self, function: Function, edge: Edge) -> bool:
        """Tell whether an edge ends a turn of a loop: it comes back to where the next item is taken."""
        if edge.target.kind is not Kind.NEXT:
            return False
        if edge not in self._ends:
            source, tree = edge.source, function.module.tree
            begins = source.kind is Kind.DEFINE
            self._ends[edge] = not begins and _is_inside(tree, source.node, edge.target.node)
        return self._ends[edge]

    def giving(self, loop: ast.AST) -> list[Function]:
        """Return the methods ``__next__`` of objects in sight that give a loop its items, where one run of them trains."""
        if loop not in self._giving:
            over = loop.iter if isinstance(loop, ast.For | ast.comprehension) else None
            self._giving[loop] = [] if over is None else list(self._given(over))
        return self._giving[loop]

    def _given(self, over: ast.expr) -> Iterator[Function]:
        project = self._program.project
        for cls in project.instance_classes(project.module_of(over), over):
            begun, more = cls.method("__iter__"), cls.method(GIVES_ITEMS)
            if begun is not None and more is not None and self._is_whole(more):
                if all(begun.is_receiver(value) for value in returned(begun)):
                    yield more

    def _is_whole(self, function: Function) -> bool:
        """Tell whether one run of a function may come from what it makes of gradients to their step."""
        events = self._program.training.of(function)
        first, last = (
            [n for n, held in events.items() if any(e.kind in kinds for e in held)]
            for kinds in ((Happens.BACKWARD, Happens.UNSCALE), (Happens.STEP, Happens.UPDATE))
        )
        graph = self._program.graph(function)
        order = graph.order(exceptions=False)
        ways = ((a, b) for n in first for a in graph.at(n) for m in last for b in graph.at(m))
        return any(order.may_reach(a, b) for a, b in ways)

    def _holds_one(self, module: Module, over: ast.expr) -> bool:
        if isinstance(over, ast.List | ast.Tuple):
            return _is_one(over)
        values = list(self._stored(module, over))
        return bool(values) and all(map(_is_one, values)) and not self._grows(module, over)

    def _stored(self, module: Module, over: ast.expr) -> Iterator[ast.expr | None]:
        """Yield what is stored under a name or as an attribute of a name; None for what no assignment stores."""
        objects = self._program.training.objects
        if isinstance(over, ast.Name):
            for binding in module.scopes.bound(over):
                yield assigned(module.tree, binding)
        elif isinstance(over, ast.Attribute):
            yield from (value for _, _, value in objects.stored.get(over.attr, ()))
        elif isinstance(over, ast.Subscript):
            yield from self._put(module, over)

    def _put(self, module: Module, over: ast.Subscript) -> Iterator[ast.expr | None]:
        """Yield what is put under the name that an item has, in whatever dict; None for what may be put there unseen."""
        objects, project = self._program.training.objects, self._program.project
        held, key = objects.groups(module, over.value), over.slice
        if not held or not isinstance(key, ast.Constant) or not _is_name(key):
            yield None
            return
        for where, node in project.nodes(ast.Subscript):
            if isinstance(node.ctx, ast.Store):
                if isinstance(node.slice, ast.Constant):
                    if node.slice.value == key.value:
                        yield assigned(where.tree, node)
                elif held & objects.groups(where, node.value):
                    yield None
        for where, display in project.nodes(ast.Dict):
            for name, value in zip(display.keys, display.values, strict=True):
                if isinstance(name, ast.Constant):
                    if name.value == key.value:
                        yield value
                elif held & objects.groups(where, display):
                    yield None
        for where, call in project.nodes(ast.Call):
            yield from (k.value for k in call.keywords if k.arg == key.value)
            func = call.func
            if isinstance(func, ast.Attribute) and func.attr in _FILLS:
                if held & objects.groups(where, func.value):
                    yield None

    def _grows(self, module: Module, over: ast.expr) -> bool:
        """Tell whether something may be put into a list, or taken out of it."""
        objects = self._program.training.objects
        groups = objects.groups(module, over)
        if not groups:
            return True
        calls = (call for method in _GROWS for call in objects.method_calls.get(method, ()))
        return any(
            isinstance(call.func, ast.Attribute) and groups & objects.groups(where, call.func.value)
            for where, call in calls
        ) or any(
            groups & objects.groups(where, node.value)
            for where, node in self._program.project.nodes(ast.Subscript)
            if isinstance(node.ctx, ast.Del)
            or (isinstance(node.ctx, ast.Store) and not _is_name(node.slice))
        )


@once
def turns_of(project: Project) -> Turns:
    """Return what tells how often the loops of a project turn, asked once."""
    return Turns(program_of(project))


def _is_one(node: ast.expr | None) -> bool:
    if not isinstance(node, ast.List | ast.Tuple) or len(node.elts) != 1:
        return False
    return not isinstance(node.elts[0], ast.Starred)


def _is_some(node: ast.expr | None) -> bool:
    """Tell whether a display has an item of its own."""
    if isinstance(node, ast.Dict):
        return any(key is not None for key in node.keys)
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else ()
    return not all(isinstance(item, ast.Starred) for item in items)


def _is_name(key: ast.expr) -> bool:
    """Tell whether an item has a name: what it belongs to is no list."""
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _is_inside(tree: Tree, node: ast.AST, loop: ast.AST) -> bool:
    """Tell whether a node runs in the turns of a loop or comprehension, not before them."""
    assert isinstance(loop, ast.For | ast.AsyncFor | ast.comprehension)
    whole = tree.parent(loop) if isinstance(loop, ast.comprehension) else loop
    around = [node, *tree.ancestors(node)]
    return whole in around and loop.iter not in around
