"""Where a function that is kept as a value ends up: in calls that are seen, or out of sight."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from amp_migrate.facts.imports import last_name
from amp_migrate.facts.paths import LOOKS, YIELDS
from amp_migrate.facts.scopes import assigned
from amp_migrate.modules.binding import bind
from amp_migrate.modules.model import Class, Function, Module
from amp_migrate.values.calling.targets import Target
from amp_migrate.values.nodes import enclosing_class, function_of
from amp_migrate.values.values import Values

Place = tuple[Module, ast.expr]
Written = ast.Attribute | ast.Name
PUTS = frozenset(
    [
        "append", "add", "appendleft", "insert", "extend", "put", "setdefault", "update", "__setitem__",
    ]
)  # fmt: skip
_TAKES = frozenset(["get", "pop", "popleft", "values", "items", "copy", "setdefault"])
_ASKS = frozenset(["keys", "index", "remove", "discard", "clear", "count"])
_VIEWS = frozenset(
    ["list", "tuple", "set", "dict", "reversed", "sorted", "enumerate", "zip", "iter", "next"]
)
_TESTS = LOOKS | {"all", "any"}
_FRESH = frozenset(["list", "dict", "set", "deque", "defaultdict", "OrderedDict"])
_WHOLE = (ast.Tuple, ast.List, ast.Set, ast.Starred, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.GeneratorExp)  # fmt: skip
_NOTHING = (ast.Compare, ast.Expr, ast.FormattedValue, ast.If, ast.While, ast.Assert, ast.UnaryOp, ast.ExceptHandler)  # fmt: skip


class Journeys:
    """Follows functions through variables, attributes, containers, arguments and results, to the calls that run them."""

    def __init__(self, modules: Iterable[Module], values: Values) -> None:
        self._values = values
        self._names: dict[str, list[tuple[Module, ast.Name]]] = {}
        self._attributes: dict[str, list[tuple[Module, ast.Attribute]]] = {}
        self._renamed: set[str] = set()
        for module in modules:
            for node in module.tree.parents:
                if isinstance(node, ast.Name):
                    self._names.setdefault(node.id, []).append((module, node))
                elif isinstance(node, ast.Attribute):
                    self._attributes.setdefault(node.attr, []).append((module, node))
                elif isinstance(node, ast.alias) and node.asname not in (None, node.name):
                    self._renamed.add(node.name)

    def closed(self, module: Module, node: ast.expr, function: Function) -> bool:
        """Tell whether all that becomes of a function that `node` gives is calls that are known to run it.

        Such a call may run others as well, all of them known. What is only handed back to a statement that drops it (``bus.on("step", handler)``) needs none.
        """
        places = self._followed([(module, node)], function)
        if places is None:
            return False
        if any(where.tree.call_of(here) for where, here in places):
            return True
        return all(isinstance(w.tree.parent(here), ast.Return | ast.Expr) for w, here in places)

    def handed_back(self, decorator: Function, bound: bool, function: Function) -> bool:
        """Tell whether a decorator gives back the function that it gets, and all else that becomes of it are known calls."""
        names = decorator.parameters.positional[bound:]
        node = decorator.node
        if not names or node is None or not isinstance(node.body[-1], ast.Return):
            return False
        own = decorator.own_nodes
        named = [n for n in own if isinstance(n, ast.Name) and n.id == names[0]]
        back = {n.value for n in own if isinstance(n, ast.Return)}
        if any(isinstance(n, YIELDS) for n in own) or not back <= {*named}:
            return False
        uses = self._loads(decorator.module, decorator.scope, names[0])
        if uses is None or any(not _is_load(n) for n in named):
            return False
        kept = [place for place in uses if place[1] not in back]
        return self._followed(kept, function) is not None

    def _followed(self, places: list[Place], function: Function) -> list[Place] | None:
        """Return where all is seen that is seen at some places; None where something of it goes out of sight."""
        queue = [*places]
        seen = {node for _, node in queue}
        for where, here in queue:
            onward = self._onward(where, here, function)
            if onward is None:
                return None
            queue += [place for place in onward if place[1] not in seen]
            seen |= {place[1] for place in onward}
        return queue

    def _onward(self, module: Module, node: ast.expr, function: Function) -> list[Place] | None:
        """Return where the object of an expression is seen next; None where that is not known."""
        parent = module.tree.parents.get(node)
        if isinstance(parent, ast.keyword):
            call = module.tree.parents.get(parent)
            return self._given(module, call, parent.value) if isinstance(call, ast.Call) else None
        if isinstance(parent, ast.Call):
            if node is parent.func:
                run = self._values.calls.reached.get(parent, [])
                return [] if _runs(run, function) else None
            return self._given(module, parent, node)
        if isinstance(parent, _WHOLE) or (isinstance(parent, ast.Dict) and node in parent.values):
            return [(module, parent)]
        if isinstance(parent, _NOTHING):
            return []
        if isinstance(parent, ast.Attribute):
            return self._method(module, parent)
        if isinstance(parent, ast.Subscript) and node is parent.value:
            return [(module, parent)] if isinstance(parent.ctx, ast.Load) else []
        if isinstance(parent, ast.Assign):
            return self._all(module, parent.targets)
        if isinstance(parent, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            return self._all(module, [parent.target])
        if isinstance(parent, ast.For | ast.AsyncFor | ast.comprehension):
            if self._is_dictionary(module, node):
                return []
            return self._all(module, [parent.target])
        if isinstance(parent, ast.Return):
            sites = self._values.calls.sites.get(function_of(module, parent), [])
            places = [(site.function.module, site.call) for site in sites]
            return [(m, c) for m, c in places if self._values.may_give(m, c, function)] or None
        return None

    def _given(self, module: Module, call: ast.Call, argument: ast.expr) -> list[Place] | None:
        func = call.func
        targets = self._values.calls.reached.get(call, [])
        if targets:
            return self._received(call, argument)
        if isinstance(func, ast.Attribute) and func.attr in PUTS:
            kept = self._kept(module, func.value)
            return None if kept is None else [*kept, (module, call)]
        name = module.scopes.builtin(func)
        if name in _VIEWS:
            keys = name != "dict" and self._is_dictionary(module, argument)
            return [] if keys else [(module, call)]
        return [] if name in _TESTS else None

    def _is_dictionary(self, module: Module, node: ast.expr) -> bool:
        """Tell whether an expression is a dictionary, of which a loop gives the keys."""
        bound = module.scopes.bound(node) if isinstance(node, ast.Name) else []
        if len(bound) == 1 and isinstance(bound[0], ast.alias):
            statement = module.tree.parents.get(bound[0])
            if not isinstance(statement, ast.ImportFrom):
                return False
            home = self._values.nodes.lookup.source(module, statement)
            if not isinstance(home, Module):
                return False
            bound, module = home.scopes.bindings(home.tree.module, bound[0].name), home
        value = assigned(module.tree, bound[0]) if len(bound) == 1 else node
        return isinstance(value, ast.Dict | ast.DictComp)

    def _received(self, call: ast.Call, argument: ast.expr) -> list[Place] | None:
        """Return the uses of the parameters that a call gives an argument to."""
        found: list[Place] = []
        for target in self._values.calls.reached[call]:
            taker = target.function
            sites = self._values.calls.sites.get(taker, []) if taker is not None else []
            given = [bind(site, taker).given for site in sites if site.call is call and taker]
            names = [name for one in given for name, value in one.items() if value is argument]
            if taker is None or not names:
                return None
            for name in names:
                uses = self._loads(taker.module, taker.scope, name)
                if uses is None:
                    return None
                found += uses
        return found

    def _method(self, module: Module, parent: ast.Attribute) -> list[Place] | None:
        call = module.tree.call_of(parent)
        if parent.attr.startswith("__") or not _is_load(parent):
            return []
        if call is None:
            return None
        if parent.attr in _TAKES:
            return [(module, call)]
        return [] if parent.attr in PUTS | _ASKS else None

    def _all(self, module: Module, targets: list[ast.expr]) -> list[Place] | None:
        found: list[Place] = []
        for target in targets:
            places = self._stored(module, target)
            if places is None:
                return None
            found += places
        return found

    def _stored(self, module: Module, target: ast.expr) -> list[Place] | None:
        if isinstance(target, ast.Tuple | ast.List):
            return self._all(module, target.elts)
        if isinstance(target, ast.Starred):
            return self._stored(module, target.value)
        if isinstance(target, ast.Subscript):
            return self._kept(module, target.value)
        if isinstance(target, ast.Attribute):
            return self._read(module, target)
        scope = module.scopes.owner(target) if isinstance(target, ast.Name) else None
        return None if scope is None else self._loads(module, scope, target.id)  # type: ignore[attr-defined]

    def _kept(self, module: Module, container: ast.expr) -> list[Place] | None:
        """Return the uses of a container that something is put into, where it lives under one name alone."""
        while isinstance(container, ast.Subscript | ast.Call):
            if isinstance(container, ast.Subscript):
                container = container.value
            elif isinstance(container.func, ast.Attribute) and container.func.attr in _TAKES:
                container = container.func.value
            else:
                return None
        if isinstance(container, ast.Attribute):
            named: list[tuple[Module, Written]] = [*self._attributes[container.attr]]
        elif isinstance(container, ast.Name):
            named = [place for place in self._names[container.id] if place[0] is module]
        else:
            return None
        made = [m.tree.parents[node] for m, node in named if isinstance(node.ctx, ast.Store)]
        return self._stored(module, container) if made and all(map(_is_fresh, made)) else None

    def _read(self, module: Module, target: ast.Attribute) -> list[Place] | None:
        cls = enclosing_class(module, target)
        if cls is not None and _has_base_outside(cls):
            return None
        named = [(m, n) for m, n in self._names.get(target.attr, []) if _is_in_class(m, n)]
        places: list[tuple[Module, Written]] = [*self._attributes[target.attr], *named]
        return [(where, node) for where, node in places if _is_load(node)]

    def _loads(self, module: Module, scope: ast.AST, name: str) -> list[Place] | None:
        if name in self._renamed:
            return None
        if not isinstance(scope, ast.Module | ast.ClassDef):
            own = [(m, n) for m, n in self._names.get(name, []) if m.scopes.owner(n) is scope]
            return [(where, node) for where, node in own if _is_load(node)]
        named = [(m, n) for m, n in self._names.get(name, []) if _may_be(m, n, module, scope)]
        places: list[tuple[Module, Written]] = [*named, *self._attributes.get(name, [])]
        return [(where, node) for where, node in places if _is_load(node)]


def _runs(targets: list[Target], function: Function) -> bool:
    """Tell whether a call runs a function, among others that are known."""
    found = {target.function for target in targets}
    return function in found and None not in found


def _may_be(module: Module, node: ast.Name, home: Module, scope: ast.AST) -> bool:
    """Tell whether a name is a variable of a module or class, or may be imported from there."""
    owner = module.scopes.owner(node)
    if module is home or owner is None:
        return owner is scope or (module is not home and owner is None)
    return any(isinstance(made, ast.alias) for made in module.scopes.bindings(owner, node.id))


def _is_load(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _is_in_class(module: Module, node: ast.Name) -> bool:
    return isinstance(module.scopes.owner(node), ast.ClassDef)


def _is_fresh(statement: ast.AST) -> bool:
    """Tell whether a statement gives a name a container that nothing else holds."""
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
        return False
    if isinstance(value, ast.Call):
        return last_name(value) in _FRESH
    return isinstance(value, ast.Dict | ast.List | ast.Set)


def _has_base_outside(cls: Class) -> bool:
    return any(name.rpartition(".")[2] not in {"object", "ABC"} for name in cls.externals())
